// SPDX-License-Identifier: MIT
/* report and diff: the answer in the terminal, once more. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "cmd_table.h"
#include "confine.h"
#include "mtbpf_shared.h"
#include "pipeline/output_name.h"
#include "pipeline/perf_pipeline.h"
#include "pipeline/pipeline.h"
#include "session/capture_options.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/vec.h"
#include "cli/options.h"
#include "view/folded.h"

struct report_options {
	int top;
	uint64_t max_memory;
	struct option_list filters;
	struct trace_filter filter; /* what these are */
	bool json, folded, no_inline;
	bool verbose, quiet;
};

static const struct option_spec specs[] = {
	{"json", NULL, 0, OPT_FLAG, NULL, "an object on one line, of all functions",
	 offsetof(struct report_options, json), NULL},
	{"folded", NULL, 0, OPT_FLAG, NULL,
	 "instead: all stacks of the trace and the nanoseconds in each, for flame graphs and "
	 "speedscope",
	 offsetof(struct report_options, folded), NULL},
	{"top", NULL, 0, OPT_INT, "N", "so many functions (10)",
	 offsetof(struct report_options, top), NULL},
	{"filter", NULL, 0, OPT_LIST, "FROM..TO", "of a recording: " FILTER_HELP,
	 offsetof(struct report_options, filters), NULL},
	{"max-memory", NULL, 0, OPT_SIZE, "SIZE", MAX_MEMORY_HELP,
	 offsetof(struct report_options, max_memory), NULL},
	{"no-inline", NULL, 0, OPT_FLAG, NULL,
	 "of a recording: no inlined functions apart from their callers",
	 offsetof(struct report_options, no_inline), NULL},
	{"v", "verbose", 0, OPT_FLAG, NULL, "say more", offsetof(struct report_options, verbose),
	 NULL},
	{"q", "quiet", 0, OPT_FLAG, NULL, "say only errors; the report stays",
	 offsetof(struct report_options, quiet), NULL},
};

#define N_SPECS (sizeof(specs) / sizeof(specs[0]))
/* The first of them, which are about one report. */
#define N_OF_REPORT 2

const struct option_table report_table = {
	.command = "report",
	.examples =
		(const char *const[]){"mtbpf report slow.mtbpf", "mtbpf report slow.fxt.gz -top 30",
				      "mtbpf report slow.mtbpf -filter hit-20ms..hit",
				      "mtbpf report slow.fxt.gz -json | jq '.functions[0]'",
				      "mtbpf report slow.fxt.gz -folded | flamegraph.pl > slow.svg",
				      NULL},
	.usage = "report RECORDING|TRACE [options]",
	.summary =
		"What made the slow iteration slow: functions by the time that they took beyond\n"
		"the ordinary iterations of the same trace.",
	.specs = specs,
	.count = N_SPECS,
};

const struct option_table diff_table = {
	.command = "diff",
	.examples = (const char *const[]){"mtbpf diff before.fxt.gz after.fxt.gz", NULL},
	.usage = "diff A B [options]",
	.summary = "Of two recordings or traces: what the slow iteration of B spent more time in "
		   "than\n"
		   "that of A, or less, by function.",
	.specs = specs + N_OF_REPORT,
	.count = N_SPECS - N_OF_REPORT,
};

/* Of either kind. */
struct input {
	const char *path;
	bool is_read;	      /* rec is */
	struct recording rec; /* of a trace it is empty */
	struct decoded decoded;
};

static int refuse_missing(const char *path, int err)
{
	log__error("cannot open %s: %s", path, strerror(-err));
	log__hint("give a trace (NAME.fxt.gz) or a recording (NAME.mtbpf)");
	return err;
}

static int refuse_trace(const char *path)
{
	log__error("%s is no FXT trace, whatever its name says", path);
	log__hint("'mtbpf decode NAME.mtbpf' makes one of a recording");
	return -EINVAL;
}

/* What is not is tried as a trace first. */
static bool is_recording(const char *path, const struct stat *st)
{
	static const char magic[] = "PERFILE2";
	_cleanup_close_ int fd = -1;
	char start[sizeof(magic) - 1];

	if (!S_ISREG(st->st_mode))
		return true;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, start, sizeof(start)) == sizeof(start) &&
	       !memcmp(start, magic, sizeof(start));
}

static int read_recording(struct input *input)
{
	int err = recording__read(&input->rec, input->path);

	input->is_read = true;
	return err ? err : recording__hold_roots(&input->rec);
}

/* What cannot be done by a process that is confined. */
static int begin_input(struct input *input)
{
	struct stat st;

	if (stat(input->path, &st))
		return refuse_missing(input->path, -errno);
	return is_recording(input->path, &st) ? read_recording(input) : 0;
}

static int refuse_trace_filter(const char *path)
{
	log__error("-filter: %s is a trace, and was decoded already", path);
	log__hint("give the recording that it was made of: -filter decodes a part of that");
	return -EINVAL;
}

static int make_from_text(struct input *input, int fd, const struct report_options *options)
{
	struct perf_text_input text = {
		.fd = fd, .name = input->path, .no_inline = options->no_inline};
	struct perf_text_summary summary;

	if (options->filters.n)
		return perf_text__refuse_filter(input->path);
	return decoded__make_from_text(&input->decoded, &input->rec, &text, &summary);
}

static int make_input(struct input *input, const struct report_options *options)
{
	struct tree_options trees = {.no_inline = options->no_inline, .filter = &options->filter};
	_cleanup_close_ int fd = -1;
	int err = 0;

	if (!input->is_read) {
		if (options->filters.n && is_trace_name(input->path))
			return refuse_trace_filter(input->path);
		err = decoded__make_from_fxt(&input->decoded, input->path);
		if (err != -EBADMSG)
			return err;
		if (is_trace_name(input->path))
			return refuse_trace(input->path);
		decoded__fini(&input->decoded);
		input->decoded = (struct decoded){0};
		fd = open(input->path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && perf_text__may_be(fd))
			return make_from_text(input, fd, options);
		err = read_recording(input);
	}
	return err ? err : decoded__make(&input->decoded, &input->rec, &trees);
}

static void init_inputs(struct input *inputs, const char *const *paths, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		inputs[i] = (struct input){.path = paths[i]};
		recording__init(&inputs[i].rec);
	}
}

/* 0, or -errno after a line and a hint. */
static int open_inputs(struct input *inputs, size_t n, const struct report_options *options)
{
	const struct recording *recs[2];
	int err = 0;

	confine__reading();
	for (size_t i = 0; i < n && !err; i++) {
		recs[i] = &inputs[i].rec;
		err = begin_input(&inputs[i]);
	}
	if (!err)
		confine__decoding(NULL, false, recs, n);
	for (size_t i = 0; i < n && !err; i++)
		err = make_input(&inputs[i], options);
	return err;
}

static void fini_inputs(struct input *inputs, size_t n)
{
	while (n) {
		decoded__fini(&inputs[--n].decoded);
		recording__fini(&inputs[n].rec);
	}
}

static int refuse_report(const char *path)
{
	if (errno == ENOMEM) {
		log__error("out of memory");
		return -ENOMEM;
	}
	log__error("%s: no report: there is no trigger in it, or not the whole iteration", path);
	log__hint("'mtbpf report' without options says what there is");
	return -ENODATA;
}

static int print_json(const struct input *input)
{
	struct report *report = decoded__report(&input->decoded);
	int err = report ? report__print_json(stdout, report) : refuse_report(input->path);

	report__free(report);
	return err;
}

static bool has_trigger(const struct decoded *decoded)
{
	for (size_t i = 0; i < decoded->hits.n; i++)
		if (decoded->hits.v[i].reason != MT_HIT_LAST)
			return true;
	return false;
}

static int print_report(const struct input *input, const struct report_options *options)
{
	const struct decoded *decoded = &input->decoded;

	if (options->folded)
		return folded__print(stdout, decoded->trees.v, decoded->trees.n);
	if (options->json)
		return print_json(input);
	decoded__summarise(decoded, &input->rec, stdout, (size_t)options->top);
	/* Whoever has it decoded knows that it was Ctrl-C; here it is what was asked for. */
	if (!has_trigger(decoded))
		printf("no report: no hit triggered this trace; -folded prints what ran in it\n");
	return 0;
}

static void apply(const struct report_options *options)
{
	memory_limit__set(options->max_memory);
	log__set_level(options->verbose ? LOG_VERBOSE : options->quiet ? LOG_QUIET : LOG_NORMAL);
}

static int exit_code(int err)
{
	if (!err && fflush(stdout))
		err = -errno;
	return err == -ENODATA ? EXIT_FAILED : exit_code_for(err);
}

int cmd_report(int argc, char **argv)
{
	struct report_options options = {.top = REPORT_ROWS};
	const char *path;
	struct input input;
	int err = parse_with_words(&report_table, &options, argc, argv, "recording", &path, 1);

	if (err)
		return exit_code_for_options(err);
	apply(&options);
	if (options.json && options.folded) {
		log__error("report: -json and -folded are two things");
		log__hint("leave one of the two out");
		return EXIT_USAGE;
	}
	err = trace_filter__parse(&options.filter, options.filters.v, options.filters.n);
	init_inputs(&input, &path, 1);
	if (!err)
		err = open_inputs(&input, 1, &options);
	if (!err)
		err = print_report(&input, &options);
	fini_inputs(&input, 1);
	trace_filter__fini(&options.filter);
	return exit_code(err);
}

static int print_difference(const struct input inputs[2], size_t top)
{
	struct report *reports[2] = {NULL};
	int err = 0;

	for (int i = 0; i < 2 && !err; i++) {
		reports[i] = decoded__report(&inputs[i].decoded);
		err = reports[i] ? 0 : refuse_report(inputs[i].path);
	}
	if (!err)
		err = report__print_difference(stdout, reports[0], reports[1], top);
	report__free(reports[0]);
	report__free(reports[1]);
	return err;
}

int cmd_diff(int argc, char **argv)
{
	struct report_options options = {.top = REPORT_ROWS};
	const char *paths[2];
	struct input inputs[2];
	int err = parse_with_words(&diff_table, &options, argc, argv, "recording", paths, 2);

	if (err)
		return exit_code_for_options(err);
	apply(&options);
	err = trace_filter__parse(&options.filter, options.filters.v, options.filters.n);
	init_inputs(inputs, paths, 2);
	if (!err)
		err = open_inputs(inputs, 2, &options);
	if (!err)
		err = print_difference(inputs, (size_t)options.top);
	fini_inputs(inputs, 2);
	trace_filter__fini(&options.filter);
	return exit_code(err);
}
