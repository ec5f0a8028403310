// SPDX-License-Identifier: MIT
/* list: what can be a trigger. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "target/process.h"
#include "target/symbols/symbols.h"
#include "util/log.h"
#include "util/options.h"

struct list_options {
	int pid;
};

static const struct option_spec specs[] = {
	{"pid", NULL, 'p', OPT_INT, "PID", "the process", offsetof(struct list_options, pid), NULL},
};

static const struct option_table table = {
	.command = "list",
	.examples = (const char *const[]){"mtbpf list -pid 1234 '*iter*'", NULL},
	.usage = "list -pid PID [GLOB]",
	.summary = "The functions of a process that can be triggers: address, size, module, name.",
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

struct listing {
	size_t n;
};

static int print_match(void *ctx, const struct symbol_match *match)
{
	struct listing *listing = ctx;

	printf("%016llx %6llu %-20s %s\n",
	       (unsigned long long)(match->function->vaddr + match->module->bias),
	       (unsigned long long)match->function->size, match->function->module,
	       match->function->name);
	listing->n++;
	return 0;
}

static int list(pid_t pid, const char *glob)
{
	struct process process;
	struct symbols symbols;
	struct listing listing = {0};
	int err = process__open(&process, pid);

	if (err)
		return exit_code_for(err);
	err = symbols__open(&symbols, &process);
	if (!err) {
		symbols__each(&symbols, glob, print_match, &listing);
		symbols__close(&symbols);
	}
	process__close(&process);
	if (err) {
		log__error("cannot read the symbols of process %d", pid);
		log__hint("reading another user's process needs CAP_SYS_PTRACE: try sudo");
		return EXIT_FAILED;
	}
	if (!listing.n) {
		log__error("no function of process %d matches '%s'", pid, glob);
		if (strpbrk(glob, "*?["))
			log__hint(
				"quote the glob, so that the shell leaves it alone; '*' lists all");
		else
			log__hint("globs match the whole name: try '*%s*'", glob);
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

int cmd_list(int argc, char **argv)
{
	struct list_options options = {0};
	int rest, err;

	err = options__parse(&table, &options, argc, argv, &rest);
	if (err)
		return exit_code_for_options(err);
	if (!options.pid || rest + 1 < argc) {
		log__error(options.pid ? "list: one glob at a time" : "list: which process?");
		log__hint("usage: mtbpf %s", table.usage);
		return EXIT_USAGE;
	}
	return list(options.pid, rest < argc ? argv[rest] : "*");
}
