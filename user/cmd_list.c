// SPDX-License-Identifier: MIT
/* list: shows functions and USDT probes that can trigger. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "session/capture_options.h"
#include "session/probe/jit_probe.h"
#include "session/probe/kernel_probe.h"
#include "target/process.h"
#include "target/symbols/hints.h"
#include "target/symbols/symbols.h"
#include "target/usdt.h"
#include "util/names.h"
#include "util/log.h"

static const struct option_spec specs[] = {
	OPTIONS_TARGET,
};

const struct option_table list_table = {
	.command = "list",
	.examples = (const char *const[]){"mtbpf list -pid 1234 '*iter*'",
					  "mtbpf list -pid 1234 'usdt:*'",
					  "mtbpf list 'kernel:tcp_*'", NULL},
	.usage = "list -pid PID | -name NAME | -container NAME | ... [GLOB]",
	.summary =
		"Lists functions of the target that can be triggers: address, size, module, name; "
		"with 'usdt:GLOB' its USDT probes, with line:FILE:N the code of a source line, "
		"with 'jit:GLOB' what a JIT has compiled; with 'kernel:GLOB' functions, with "
		"'syscall:GLOB' system calls, with 'tracepoint:SYSTEM:GLOB' tracepoints and with "
		"'signal:GLOB' signals of the kernel.",
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

/* print_match() and print_usdt() count the matches in their context, a size_t. */
static int print_match(void *n, const struct symbol_match *match)
{
	printf("%016llx %6llu %-20s %s\n",
	       (unsigned long long)(match->function->vaddr + match->offset + match->module->bias),
	       (unsigned long long)match->function->size, match->function->module,
	       match->function->name);
	++*(size_t *)n;
	return 0;
}

/* Prints the name as -symbol takes it, and the arguments as perf and bpftrace show them. */
static int print_usdt(void *n, const struct usdt_match *match)
{
	char text[LABEL_SIZE], buf[LABEL_SIZE];
	size_t len;

	snprintf(text, sizeof(text), USDT_PREFIX "%s:%s%s%s", match->place.provider,
		 match->place.name, *match->place.args ? "  " : "", match->place.args);
	printf("%016llx %6s %-20s %s\n",
	       (unsigned long long)(match->place.vaddr + match->module->bias), "usdt",
	       module__name(match->module), label__clean(buf, text, &len));
	++*(size_t *)n;
	return 0;
}

static bool is_of_functions(const char *glob)
{
	return !usdt__is_selector(glob) && !line__is_selector(glob) && !kernel_probe_kind__of(glob);
}

/* Prints and counts the process's matches. 0, or -errno after a message and a hint. */
static int list(pid_t pid, const char *glob, size_t *n)
{
	struct process process;
	struct symbols symbols;
	int err = process__open(&process, pid);

	if (err)
		return err;
	if (symbols__open(&symbols, &process)) {
		log__error("cannot read the symbols of process %d", pid);
		log__hint("reading another user's process needs CAP_SYS_PTRACE: try sudo");
		process__close(&process);
		return -EACCES;
	}
	if (usdt__is_selector(glob))
		err = symbols__each_usdt(&symbols, glob, print_usdt, n);
	else if (kernel_probe_kind__of(glob) == KERNEL_PROBE_BREAKPOINT)
		*n = jit_probe__list(symbols.pid, glob);
	else if (line__is_selector(glob))
		err = symbols__each_of_line(&symbols, glob, print_match, n);
	else
		err = symbols__each(&symbols, glob, print_match, n);
	fflush(stdout);
	if (!err && *n && is_of_functions(glob))
		symbols__hint_scripts(&symbols);
	symbols__close(&symbols);
	process__close(&process);
	return err;
}

static void hint_missing(pid_t pid)
{
	struct process process;
	struct symbols symbols;

	if (process__open(&process, pid))
		return;
	if (!symbols__open(&symbols, &process)) {
		symbols__hint_missing(&symbols);
		symbols__close(&symbols);
	}
	process__close(&process);
}

/* pid is the first of n processes that have been searched. */
static int refuse_glob(pid_t pid, size_t n, const char *glob)
{
	const char *what = usdt__is_selector(glob) ? "USDT probe" : "function";
	int prefix = strncmp(glob, JIT_PREFIX, strlen(JIT_PREFIX)) ? 0 : (int)strlen(JIT_PREFIX);

	if (n > 1)
		log__error("no %s of %zu processes matches '%s'", what, n, glob);
	else
		log__error("no %s of process %d matches '%s'", what, pid, glob);
	if (usdt__is_selector(glob))
		log__hint("the forms are usdt:PROVIDER:NAME and usdt:FILE:PROVIDER:NAME; 'usdt:*' "
			  "lists all");
	else if (strpbrk(glob, "*?["))
		log__hint("quote the glob, so that the shell does not expand it; '%.*s*' lists all",
			  prefix, glob);
	else
		log__hint("globs match the whole name: try '%.*s*%s*'", prefix, glob,
			  glob + prefix);
	if (is_of_functions(glob))
		hint_missing(pid);
	return EXIT_FAILED;
}

/*
 * Prints the matches of the first process that has any: most targets run one program in all their
 * processes.
 */
static int list_first(const struct target *target, const char *glob)
{
	size_t n, i, n_listed = 0;
	pid_t *pids;
	int err = target__processes(target, &pids, &n);

	if (err)
		return exit_code_for(err);
	for (i = 0; i < n && !n_listed && !err; i++)
		err = list(pids[i], glob, &n_listed);
	if (!err && !n)
		err = target__refuse_empty(target);
	if (n > 1 && n_listed)
		log__info("listing process %d, one of %zu", pids[i - 1], n);
	err = !err && !n_listed ? refuse_glob(pids[0], n, glob) : exit_code_for(err);
	free(pids);
	return err;
}

/* Lists probes of the kernel, which are the same for every process. */
static int list_of_kernel(const char *selector)
{
	if (!kernel_probe__can_list(selector)) {
		log__error("'%s' cannot be listed", selector);
		log__hint("'kernel:*', 'syscall:*', 'tracepoint:*' and 'signal:*' can");
		return EXIT_USAGE;
	}
	if (kernel_probe__list(selector))
		return 0;
	log__error("nothing matches '%s'", selector);
	log__hint("globs match the whole name; functions that are inlined or take no probe are not "
		  "listed, and tracepoints only if tracefs is mounted on /sys/kernel/tracing");
	return EXIT_FAILED;
}

int cmd_list(int argc, char **argv)
{
	struct capture_options options = CAPTURE_DEFAULTS;
	const char *glob = "*";
	struct target target;
	int found, err;

	err = parse_around_words(&list_table, &options, argc, argv, &glob, 1, &found);
	if (err)
		return exit_code_for_options(err);
	if (target_options__check(&options.target, list_table.command))
		return EXIT_USAGE;
	if (found > 1) {
		log__error("list: more than one glob");
		log__hint("usage: mtbpf %s", list_table.usage);
		return EXIT_USAGE;
	}
	if (kernel_probe_kind__of(glob) && kernel_probe_kind__of(glob) != KERNEL_PROBE_BREAKPOINT)
		return list_of_kernel(glob);
	err = target__choose(&target, &options.target);
	if (err == -ENODATA) {
		log__error("list: no process given");
		log__hint("usage: mtbpf %s", list_table.usage);
	}
	err = err ? exit_code_for(err) : list_first(&target, glob);
	target__close(&target);
	return err;
}
