// SPDX-License-Identifier: MIT
/* decode: a recording, wherever it was made, to a trace. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "interrupts.h"
#include "output_name.h"
#include "perf_pipeline.h"
#include "pipeline.h"
#include "print_branches.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/options.h"

enum print { PRINT_NOTHING, PRINT_CALLS, PRINT_BRANCHES };
static const char *const print_names[] = {"nothing", "calls", "branches", NULL};

struct decode_options {
	const char *output;
	int print;
	bool verbose, quiet;
};

static const struct option_spec specs[] = {
	{"output", NULL, 'o', OPT_STRING, "FILE",
	 "the trace: NAME.fxt, .fxt.gz or .fxt.zst (the recording's name with .fxt)",
	 offsetof(struct decode_options, output), NULL},
	{"print", NULL, 0, OPT_CHOICE, "WHAT",
	 "instead of a trace, lines on stdout: calls (tid depth start end name) or branches (tid "
	 "time kind from to)",
	 offsetof(struct decode_options, print), print_names},
	{"v", "verbose", 0, OPT_FLAG, NULL, "say more", offsetof(struct decode_options, verbose),
	 NULL},
	{"q", "quiet", 0, OPT_FLAG, NULL, "say only errors; the report stays",
	 offsetof(struct decode_options, quiet), NULL},
};

static const struct option_table table = {
	.command = "decode",
	.examples =
		(const char *const[]){
			"mtbpf decode trace.mtbpf", "mtbpf decode trace.mtbpf -o trace.fxt.gz",
			"perf script --itrace=be -F "
			"pid,tid,time,event,ip,sym,symoff,addr,dso,flags --ns | mtbpf decode -",
			NULL},
	.usage = "decode RECORDING|TEXT|- [-o NAME.fxt]",
	.summary = "Decodes a recording, a perf.data of 'perf record -e intel_pt//u', or what\n"
		   "perf script prints of branches that perf itself can decode (- is stdin).\n"
		   "The same without text: perf script --itrace=be --dlfilter mtbpf-dlfilter.so\n"
		   "--dlarg NAME.fxt, with the filter from PREFIX/lib/mtbpf.",
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

/* The trace goes where the recording lies, unless told otherwise. */
static int name_output(const struct decode_options *options, const char *input,
		       struct output_names *names)
{
	char trimmed[PATH_MAX];
	size_t n = strlen(input);

	if (options->output)
		return output_names__from(names, options->output);
	while (n > 1 && input[n - 1] == '/')
		n--;
	snprintf(trimmed, sizeof(trimmed), "%.*s", (int)n, input);
	if (n > 6 && !strcmp(trimmed + n - 6, ".mtbpf"))
		return output_names__from(names, trimmed);
	return output_names__from(names, NULL);
}

/* Half a trace is none: Ctrl-C waits for the other half. */
static int write_trace(const struct decoded *decoded, const struct recording *rec, const char *path)
{
	int err;

	interrupts__hold();
	err = decoded__write_trace(decoded, rec, path);
	interrupts__release();
	return err;
}

static int print_or_write(const struct decode_options *options, const struct recording *rec,
			  const char *path)
{
	struct decoded decoded;
	int err;

	if (options->print == PRINT_BRANCHES)
		return recording__print_branches(rec, stdout);
	err = decoded__make(&decoded, rec);
	if (!err && options->print == PRINT_CALLS)
		err = decoded__write_text(&decoded, stdout);
	else if (!err)
		err = write_trace(&decoded, rec, path);
	if (!err && options->print == PRINT_NOTHING)
		decoded__summarise(&decoded, rec, stdout);
	decoded__fini(&decoded);
	return err;
}

static int decode_recording(const struct decode_options *options, const char *input,
			    const char *path)
{
	struct recording rec;
	int err;

	recording__init(&rec);
	err = recording__read(&rec, input);
	if (!err)
		err = print_or_write(options, &rec, path);
	recording__fini(&rec);
	return err;
}

/* Reading is most of the work, and may be ended; writing waits for its end. */
static int decode_text(const struct decode_options *options, int fd, const char *name,
		       const char *path)
{
	struct perf_text_totals totals;
	struct decoded decoded;
	struct recording rec;
	int err;

	if (options->print == PRINT_BRANCHES)
		return perf_text__print_branches(fd, name, stdout);
	recording__init(&rec);
	err = decoded__make_from_text(&decoded, &rec, fd, name, &totals);
	if (!err && options->print == PRINT_CALLS)
		err = decoded__write_text(&decoded, stdout);
	else if (!err)
		err = write_trace(&decoded, &rec, path);
	if (!err && options->print == PRINT_NOTHING) {
		decoded__summarise(&decoded, &rec, stdout);
		perf_text__summarise(&totals, perf_threads__totals(decoded.perf)->moved, stdout);
	}
	decoded__fini(&decoded);
	recording__fini(&rec);
	return err;
}

static int decode(const struct decode_options *options, const char *input)
{
	struct output_names names;
	_cleanup_close_ int fd = -1;
	int err = name_output(options, input, &names);

	if (err)
		return EXIT_USAGE;
	if (!strcmp(input, "-")) {
		err = decode_text(options, STDIN_FILENO, "stdin", names.trace);
	} else {
		fd = open(input, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && perf_text__may_be(fd))
			err = decode_text(options, fd, input, names.trace);
		else
			err = decode_recording(options, input, names.trace);
	}
	if (!err && fflush(stdout))
		err = -errno;
	return err == -ENOENT ? EXIT_USAGE : err ? EXIT_FAILED : EXIT_OK;
}

int cmd_decode(int argc, char **argv)
{
	struct decode_options options = {0};
	const char *input = NULL;
	int rest, err;

	/* The recording may stand before or behind the options. */
	if (argc > 1 && (argv[1][0] != '-' || !argv[1][1])) {
		input = argv[1];
		argv[1] = argv[0];
		argv++;
		argc--;
	}
	err = options__parse(&table, &options, argc, argv, &rest);
	if (err)
		return exit_code_for_options(err);
	log__set_level(options.verbose ? LOG_VERBOSE : options.quiet ? LOG_QUIET : LOG_NORMAL);
	if (!input && rest < argc)
		input = argv[rest++];
	if (!input || rest < argc) {
		log__error(input ? "decode: one recording at a time" : "decode: which recording?");
		log__hint("usage: mtbpf %s", table.usage);
		return EXIT_USAGE;
	}
	return decode(&options, input);
}
