// SPDX-License-Identifier: MIT
/* report and diff: print the report of a recording or trace, or the difference of two. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "captures.h"
#include "input.h"
#include "mtbpf_shared.h"
#include "keep/folder.h"
#include "pipeline/pipeline.h"
#include "session/capture_options.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/vec.h"
#include "cli/options.h"
#include "util/units.h"
#include "view/folded.h"
#include "view/page.h"
#include "view/pattern.h"

struct report_options {
	int top;
	uint64_t max_memory;
	struct option_list filters, labels;
	struct trace_filter filter; /* made of these options */
	const char *since, *html;
	bool json, folded, csv, diff, again, no_inline;
	bool verbose, quiet;
};

static const struct option_spec specs[] = {
	{"json", NULL, 0, OPT_FLAG, NULL, "print a JSON object on one line, with all functions",
	 offsetof(struct report_options, json), NULL},
	{"csv", NULL, 0, OPT_FLAG, NULL, "of many captures: a row for each cause",
	 offsetof(struct report_options, csv), NULL},
	{"folded", NULL, 0, OPT_FLAG, NULL,
	 "print all stacks of the trace with their nanoseconds instead, for flame graphs and "
	 "speedscope; with several captures, the stacks of their slow iterations",
	 offsetof(struct report_options, folded), NULL},
	{"html", NULL, 0, OPT_STRING, "FILE",
	 "write a self-contained HTML page about one or many captures",
	 offsetof(struct report_options, html), NULL},
	{"diff", NULL, 0, OPT_FLAG, NULL,
	 "compare two folders: causes that appeared, disappeared or changed",
	 offsetof(struct report_options, diff), NULL},
	{"since", NULL, 0, OPT_STRING, "TIME",
	 "only captures of the last 2h or 7d, or since 2026-11-21 or 2026-11-21T10:00:00.000Z",
	 offsetof(struct report_options, since), NULL},
	{"label", NULL, 0, OPT_LIST, "KEY=VALUE", "only captures with this label",
	 offsetof(struct report_options, labels), NULL},
	{"again", NULL, 0, OPT_FLAG, NULL, "decode each capture again, even if it has a summary",
	 offsetof(struct report_options, again), NULL},
	{"top", NULL, 0, OPT_INT, "N", "number of functions to print (default 10)",
	 offsetof(struct report_options, top), NULL},
	{"filter", NULL, 0, OPT_LIST, "FROM..TO", "of a recording: " FILTER_HELP,
	 offsetof(struct report_options, filters), NULL},
	{"max-memory", NULL, 0, OPT_SIZE, "SIZE", MAX_MEMORY_HELP,
	 offsetof(struct report_options, max_memory), NULL},
	{"no-inline", NULL, 0, OPT_FLAG, NULL,
	 "for a recording: count inlined functions as their callers",
	 offsetof(struct report_options, no_inline), NULL},
	{"v", "verbose", 0, OPT_FLAG, NULL, "print more", offsetof(struct report_options, verbose),
	 NULL},
	{"q", "quiet", 0, OPT_FLAG, NULL, "print only errors and the report",
	 offsetof(struct report_options, quiet), NULL},
};

#define N_SPECS (sizeof(specs) / sizeof(specs[0]))
/* The first options, which only report has. */
#define N_OF_REPORT 8

const struct option_table report_table = {
	.command = "report",
	.examples =
		(const char *const[]){"mtbpf report slow.mtbpf", "mtbpf report slow.fxt.gz -top 30",
				      "mtbpf report slow.mtbpf -filter hit-20ms..hit",
				      "mtbpf report slow.fxt.gz -json | jq '.functions[0]'",
				      "mtbpf report slow.fxt.gz -folded | flamegraph.pl > slow.svg",
				      "mtbpf report /var/lib/mtbpf -since 24h",
				      "mtbpf report /var/lib/mtbpf -html slow.html",
				      "mtbpf report -diff before/ after/", NULL},
	.usage = "report RECORDING|TRACE|DIR... [options]",
	.summary = "Prints what made the slow iteration slow: functions by their time beyond "
		   "that\nin the ordinary iterations of the same trace. For several captures or "
		   "folders:\nthe causes, the largest excess first.",
	.specs = specs,
	.count = N_SPECS,
};

const struct option_table diff_table = {
	.command = "diff",
	.examples = (const char *const[]){"mtbpf diff before.fxt.gz after.fxt.gz", NULL},
	.usage = "diff A B [options]",
	.summary = "Compares the slow iterations of A and B, two recordings or traces: in which "
		   "functions\nB spent more time than A, or less. With two folders of captures it "
		   "compares their\ncauses.",
	.specs = specs + N_OF_REPORT,
	.count = N_SPECS - N_OF_REPORT,
};

static int refuse_report(const char *path)
{
	if (errno == ENOMEM) {
		log__error("out of memory");
		log__hint("use a larger -max-memory, or a part of the recording: -filter");
		return -ENOMEM;
	}
	log__error("%s: no report: the trace lacks the hit, or does not reach back to the start of "
		   "the slow iteration",
		   path);
	log__hint("'mtbpf report' without options prints what the trace contains");
	return -ENODATA;
}

static int print_json(const struct input *input)
{
	const struct decoded *decoded = &input->decoded;
	struct report *report = decoded__report(decoded);
	int cause = errno;
	const struct hit_mark *hit = decoded__slowest_hit(decoded);
	size_t index = hit ? (size_t)(hit - decoded->hits.v) : SIZE_MAX;
	struct thread_places places;
	int err = decoded__thread_places(decoded, &input->rec, index, &places);

	if (!err && report)
		err = report__print_json(stdout, report, &places);
	else if (!err && places.all.n && cause == ENODATA)
		err = thread_places__print_json(stdout, &places, hit);
	else if (!err) {
		errno = cause;
		err = refuse_report(input->path);
	}
	thread_places__fini(&places);
	report__free(report);
	return err;
}

static int print_report(const struct input *input, const struct report_options *options)
{
	const struct decoded *decoded = &input->decoded;
	bool has_trigger = false;

	if (options->folded)
		return folded__print(stdout, decoded->trees.v, decoded->trees.n);
	if (options->json)
		return print_json(input);
	decoded__summarise(decoded, &input->rec, stdout, (size_t)options->top);
	/* A report was asked for, so its absence needs a reason. */
	for (size_t i = 0; i < decoded->hits.n; i++)
		has_trigger |= decoded->hits.v[i].reason != MT_HIT_LAST;
	if (!has_trigger)
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

/* Parses "2h" or "7d" before now, a day "2026-11-21", or a moment as mtbpf prints it. */
static int parse_since(const char *text, uint64_t *ms)
{
	char moment[UNITS_MOMENT_SIZE];
	uint64_t ns, now = unix_now_ms();

	*ms = 0;
	if (!text)
		return 0;
	if (!units__parse_duration(text, &ns)) {
		*ms = ns / 1000000 < now ? now - ns / 1000000 : 0;
		return 0;
	}
	snprintf(moment, sizeof(moment), "%s%s", text,
		 strlen(text) == strlen("2026-11-21") ? "T00:00:00.000Z" : "");
	if (!units__parse_moment(moment, ms))
		return 0;
	log__error("report: -since %s is not a time", text);
	log__hint("use -since 2h, 7d, 2026-11-21, or 2026-11-21T10:00:00.000Z");
	return -EINVAL;
}

static bool has_labels(const struct summary *s, const struct option_list *labels)
{
	for (size_t i = 0; i < labels->n; i++) {
		const char *equals = strchr(labels->v[i], '=');
		_cleanup_free_ char *key = strndup(labels->v[i], (size_t)(equals - labels->v[i]));
		const char *value = key ? summary__label(s, key) : NULL;

		if (!value || strcmp(value, equals + 1))
			return false;
	}
	return true;
}

static int check_labels(const struct option_list *labels)
{
	for (size_t i = 0; i < labels->n; i++) {
		if (strchr(labels->v[i], '='))
			continue;
		log__error("report: -label %s lacks a value", labels->v[i]);
		log__hint("use -label KEY=VALUE, as it was given to record, or host=NAME");
		return -EINVAL;
	}
	return 0;
}

/* Prints which captures could not be read, and which summaries could not be stored. */
static void say_unread(const struct summaries *s)
{
	if (s->n_unread)
		log__warn("%zu capture%s could not be read", s->n_unread,
			  s->n_unread == 1 ? "" : "s");
	if (s->n_unkept)
		log__info("%zu capture%s cannot store a summary (only recordings in a folder that "
			  "may be written to can): each is decoded every time",
			  s->n_unkept, s->n_unkept == 1 ? "" : "s");
}

static int refuse_none(size_t n_found, const struct summaries *s)
{
	if (!n_found) {
		log__error("the given folders contain neither recordings (NAME.mtbpf) nor traces "
			   "(NAME.fxt.gz)");
		log__hint("'mtbpf record -dir DIR' fills a folder with recordings");
	} else if (s->n_unread == n_found) {
		log__error("no capture could be read");
	} else {
		log__error("no capture is left: -since or -label leaves all %zu out",
			   n_found - s->n_unread);
		log__hint("without -since and -label the report contains all captures");
	}
	return -ENODATA;
}

/* Appends the summaries of the captures that the words name. */
static int summarise(struct summaries *out, const char *const *words, size_t n,
		     const struct report_options *options, uint64_t since_ms)
{
	const struct summarise_options how = {.no_inline = options->no_inline,
					      .again = options->again,
					      .since_ms = since_ms,
					      .max_memory = options->max_memory};
	struct capture_paths paths = {0};
	struct summaries found = {0};
	int err = captures__find(&paths, words, n);

	if (!err)
		err = captures__summarise(&found, &paths, &how);
	if (!err) {
		VEC_DROP_EACH(&found.all, summary, !has_labels(summary, &options->labels),
			      summary__fini(summary));
		say_unread(&found);
	}
	if (!err && !found.all.n)
		err = refuse_none(paths.all.n, &found);
	if (!err)
		err = VEC_ADD_ALL(&out->all, &found.all);
	/* `out` owns these summaries now. */
	if (!err)
		found.all.n = 0;
	summaries__fini(&found);
	capture_paths__fini(&paths);
	return err;
}

/* Writes the complete page, or no file at all. */
static int write_page(const struct patterns *p, const char *path)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int err = out ? page__print(out, p, &(struct page_options){0}) : -ENOMEM;

	if (out && fclose(out) && !err)
		err = -ENOMEM;
	if (!err)
		err = fs__write(path, text, size);
	if (err) {
		log__error("cannot write %s: %s", path, strerror(-err));
		log__hint("choose a folder that may be written to");
		return err;
	}
	log__info("%s: a page of %zu capture%s", path, p->n, p->n == 1 ? "" : "s");
	return 0;
}

static int print_patterns(const struct patterns *p, const struct report_options *options,
			  size_t n_first)
{
	if (options->diff)
		return patterns__print_difference(stdout, p, n_first, options->json);
	if (options->html)
		return write_page(p, options->html);
	if (options->json)
		return patterns__print_json(stdout, p);
	if (options->csv)
		patterns__print_csv(stdout, p);
	else if (options->folded)
		patterns__print_folded(stdout, p);
	else
		patterns__print(stdout, p, (size_t)options->top);
	return 0;
}

static int report_many(const char *const *words, size_t n, const struct report_options *options)
{
	struct summaries summaries = {0};
	struct patterns patterns = {0};
	uint64_t since_ms;
	size_t n_first = options->diff ? 1 : n;
	int err = parse_since(options->since, &since_ms);

	if (!err)
		err = check_labels(&options->labels);
	if (!err)
		err = summarise(&summaries, words, n_first, options, since_ms);
	n_first = summaries.all.n;
	if (!err && options->diff)
		err = summarise(&summaries, words + 1, n - 1, options, since_ms);
	if (!err)
		err = patterns__find(&patterns, summaries.all.v, summaries.all.n);
	if (!err)
		err = print_patterns(&patterns, options, n_first);
	patterns__fini(&patterns);
	summaries__fini(&summaries);
	return err;
}

static int check(const struct report_options *options, int n_words, bool is_many)
{
	if (options->json + options->folded + options->csv + !!options->html > 1) {
		log__error("report: only one of -json, -csv, -folded and -html can be given");
		log__hint("choose one of the four");
		return -EINVAL;
	}
	if (options->diff && (n_words != 2 || options->csv || options->folded || options->html)) {
		log__error("report: -diff is about two folders, as text or -json");
		log__hint("mtbpf report -diff BEFORE/ AFTER/");
		return -EINVAL;
	}
	if (is_many && options->filters.n) {
		log__error("report: -filter is about one recording");
		log__hint("give one NAME.mtbpf");
		return -EINVAL;
	}
	return 0;
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

/* Prints the report of one input, or the difference of two. */
static int report_inputs(const char *const *paths, size_t n, struct report_options *options)
{
	const struct input_options how = {options->no_inline, &options->filter};
	struct input inputs[INPUTS_MAX];
	int err = trace_filter__parse(&options->filter, options->filters.v, options->filters.n);

	inputs__init(inputs, paths, n);
	if (!err)
		err = inputs__open(inputs, n, &how);
	if (!err)
		err = n == 1 ? print_report(&inputs[0], options)
			     : print_difference(inputs, (size_t)options->top);
	inputs__fini(inputs, n);
	trace_filter__fini(&options->filter);
	return err;
}

int cmd_report(int argc, char **argv)
{
	struct report_options options = {.top = REPORT_ROWS};
	_cleanup_free_ const char **words = calloc((size_t)argc + 1, sizeof(*words));
	bool is_many;
	int n, err = -ENOMEM;

	if (words)
		err = parse_around_words(&report_table, &options, argc, argv, words, argc, &n);
	if (err)
		return exit_code_for_options(err);
	if (!n) {
		log__error("report: which recording?");
		log__hint("usage: mtbpf %s", report_table.usage);
		return EXIT_USAGE;
	}
	apply(&options);
	/* One capture has a report of its own, unless an option is about several. */
	is_many = n > 1 || options.csv || options.html || options.diff || options.since ||
		  options.labels.n || options.again || captures__is_folder(words[0]);
	if (check(&options, n, is_many))
		return EXIT_USAGE;
	err = is_many ? report_many(words, (size_t)n, &options) : report_inputs(words, 1, &options);
	return exit_code(err);
}

int cmd_diff(int argc, char **argv)
{
	struct report_options options = {.top = REPORT_ROWS};
	const char *paths[2];
	int err = parse_with_words(&diff_table, &options, argc, argv, "recording", paths, 2);

	if (err)
		return exit_code_for_options(err);
	apply(&options);
	options.diff = captures__is_folder(paths[0]) || captures__is_folder(paths[1]);
	if (options.diff && check(&options, 2, true))
		return EXIT_USAGE;
	return exit_code(options.diff ? report_many(paths, 2, &options)
				      : report_inputs(paths, 2, &options));
}
