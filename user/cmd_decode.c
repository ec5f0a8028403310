// SPDX-License-Identifier: MIT
/* decode: a recording, wherever it was made, to a trace. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "capture/found_files.h"
#include "cmd.h"
#include "interrupts.h"
#include "output_name.h"
#include "pipeline.h"
#include "util/log.h"
#include "util/options.h"

enum print { PRINT_NOTHING, PRINT_CALLS, PRINT_BRANCHES };
static const char *const print_names[] = {"nothing", "calls", "branches", NULL};

struct decode_options {
	const char *output;
	int print;
	bool portable, verbose, quiet;
};

static const struct option_spec specs[] = {
	{"output", NULL, 'o', OPT_STRING, "FILE",
	 "the trace: NAME.fxt, .fxt.gz or .fxt.zst (the recording's name with .fxt)",
	 offsetof(struct decode_options, output), NULL},
	{"print", NULL, 0, OPT_CHOICE, "WHAT",
	 "instead of a trace, lines on stdout: calls (tid depth start end name) or branches (tid "
	 "time kind from to)",
	 offsetof(struct decode_options, print), print_names},
	{"portable", NULL, 0, OPT_FLAG, NULL,
	 "instead of a trace, NAME.mtbpf: the recording with all programs and libraries in it, "
	 "which decodes on any machine",
	 offsetof(struct decode_options, portable), NULL},
	{"v", "verbose", 0, OPT_FLAG, NULL, "say more", offsetof(struct decode_options, verbose),
	 NULL},
	{"q", "quiet", 0, OPT_FLAG, NULL, "say only errors; the report stays",
	 offsetof(struct decode_options, quiet), NULL},
};

static const struct option_table table = {
	.command = "decode",
	.examples = (const char *const[]){"mtbpf decode trace.mtbpf",
					  "mtbpf decode trace.mtbpf -o trace.fxt.gz",
					  "mtbpf decode -portable perf.data -o all.mtbpf", NULL},
	.usage = "decode RECORDING [-o NAME.fxt]",
	.summary = "Decodes a recording, or a perf.data of 'perf record -e intel_pt//u'.",
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

static bool is_same(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* What it is read from would be what it is written to. */
static int refuse_same(const char *input, const char *output)
{
	if (!is_same(input, output))
		return 0;
	log__error("decode -portable: %s is the recording itself", output);
	log__hint("-o NAME.mtbpf says where the portable one goes");
	return -EINVAL;
}

static int make_portable(struct recording *rec, const char *path)
{
	int err = found_files__add(rec);

	if (!err)
		err = recording_dir__create(path);
	if (!err)
		err = recording__write(rec, path);
	if (!err)
		log__info("%s: decodes on any machine", path);
	return err;
}

static int decode(const struct decode_options *options, const char *input)
{
	struct output_names names;
	struct recording rec;
	int err = name_output(options, input, &names);

	if (!err && options->portable)
		err = refuse_same(input, names.recording);
	if (err)
		return EXIT_USAGE;
	recording__init(&rec);
	err = recording__read(&rec, input);
	if (!err && options->portable)
		err = make_portable(&rec, names.recording);
	else if (!err)
		err = print_or_write(options, &rec, names.trace);
	recording__fini(&rec);
	if (!err && fflush(stdout))
		err = -errno;
	return err == -ENOENT ? EXIT_USAGE : err ? EXIT_FAILED : EXIT_OK;
}

/* Options behind the recording, which is argv[*rest]. */
static int parse_rest(struct decode_options *options, int argc, char **argv, int *rest)
{
	int more, err;

	argv[*rest] = argv[0];
	err = options__parse(&table, options, argc - *rest, argv + *rest, &more);
	*rest += more;
	return err;
}

int cmd_decode(int argc, char **argv)
{
	struct decode_options options = {0};
	const char *input = NULL;
	int rest, err;

	/* The recording may stand before or behind the options. */
	if (argc > 1 && argv[1][0] != '-') {
		input = argv[1];
		argv[1] = argv[0];
		argv++;
		argc--;
	}
	err = options__parse(&table, &options, argc, argv, &rest);
	if (err)
		return exit_code_for_options(err);
	if (!input && rest < argc) {
		input = argv[rest];
		err = parse_rest(&options, argc, argv, &rest);
		if (err)
			return exit_code_for_options(err);
	}
	log__set_level(options.verbose ? LOG_VERBOSE : options.quiet ? LOG_QUIET : LOG_NORMAL);
	if (!input || rest < argc) {
		log__error(input ? "decode: one recording at a time" : "decode: which recording?");
		log__hint("usage: mtbpf %s", table.usage);
		return EXIT_USAGE;
	}
	if (options.portable && options.print != PRINT_NOTHING) {
		log__error("decode: -portable makes a recording, and prints nothing");
		log__hint("leave one of the two out");
		return EXIT_USAGE;
	}
	return decode(&options, input);
}
