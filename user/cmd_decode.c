// SPDX-License-Identifier: MIT
/* decode: makes a trace of a recording from any machine. */
#include "cmd_decode.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apart.h"
#include "capture/code/live_code.h"
#include "cmd.h"
#include "pipeline/perf_pipeline.h"
#include "pipeline/print_branches.h"
#include "serve/show.h"
#include "session/capture_options.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/signals.h"
#include "util/text.h"
#include "util/vec.h"
#include "view/phases.h"

/* ---- the output */

static bool is_text_name(const char *name)
{
	return text__ends_in(name, ".txt") || text__ends_in(name, ".txt.gz") ||
	       text__ends_in(name, ".txt.zst");
}

/* The format of text that the options ask for; NULL: a trace for Perfetto. */
static text_format_fn text_format(const struct decode_options *options)
{
#define TREE_FUNCTION(name) trace_##name##__tree,
	static const text_format_fn formats[] = {TEXT_FORMATS(TREE_FUNCTION)};
	bool by_name = options->format == FORMAT_BY_NAME && options->output &&
		       is_text_name(options->output);

	if (options->format > FORMAT_FXT)
		return formats[options->format - FORMAT_FXT - 1];
	return options->print == PRINT_CALLS || by_name ? trace_text__tree : NULL;
}

/* True if the output is a trace for Perfetto. */
static bool wants_trace(const struct decode_options *options)
{
	return !options->portable && options->print == PRINT_NOTHING && !text_format(options);
}

static int name_text(const struct decode_options *options, struct decode_output *output)
{
	if (options->print != PRINT_NOTHING || !options->output || !strcmp(options->output, "-"))
		return 0;
	output->path = options->output;
	if (is_text_name(output->path))
		return 0;
	log__error("'%s' is not a name for a text file", output->path);
	log__hint("the name must end in .txt, .txt.gz or .txt.zst; -o - is stdout");
	return -EINVAL;
}

static int name_trace(const struct decode_options *options, const char *input,
		      struct decode_output *output)
{
	char trimmed[PATH_MAX];
	size_t n = strlen(input);

	*output = (struct decode_output){.text = text_format(options), .is_whole = true};
	if (output->text)
		return name_text(options, output);
	if (options->output && !strcmp(options->output, "-")) {
		log__error("decode: a trace for Perfetto cannot be written to stdout");
		log__hint("use -o NAME.fxt.gz, or -format text");
		return -EINVAL;
	}
	if (options->output)
		return output_names__from(&output->names, options->output);
	while (n > 1 && input[n - 1] == '/')
		n--;
	snprintf(trimmed, sizeof(trimmed), "%.*s", (int)n, input);
	return output_names__from(&output->names,
				  n > 6 && text__ends_in(trimmed, ".mtbpf") ? trimmed : NULL);
}

int decode_output__name(struct decode_output *output, const struct decode_options *options,
			const char *input)
{
	int err = name_trace(options, input, output);
	struct stat a, b;

	if (err || !options->portable || stat(input, &a) || stat(output->names.recording, &b) ||
	    a.st_dev != b.st_dev || a.st_ino != b.st_ino)
		return err;
	log__error("decode -portable: %s is the recording itself", output->names.recording);
	log__hint("name the portable recording with -o NAME.mtbpf");
	return -EINVAL;
}

/* The output file, which exists only when it is complete. NULL: the output is text on stdout. */
static const char *file_of(const struct decode_output *output)
{
	return output->text ? output->path : output->names.trace;
}

/*
 * From here on a signal ends decoding, after a message. It names `recording`, to decode it again;
 * NULL: it does not. Without an output file, does nothing.
 */
static void begin_stoppable(const struct decode_output *output, const char *recording)
{
	const char *file = file_of(output);
	_cleanup_free_ char *stopped = file ? stopped__format(recording, file) : NULL;

	if (file)
		stop__begin(stopped ?: "");
}

/* 0, or -errno after a message and a hint. */
static int write_output(struct decode_output *output, struct decoded *decoded,
			const struct recording *rec, struct phases *phases)
{
	int err;

	output->is_whole = decoded__is_whole(decoded, rec);
	phases__end(phases, "decoding");
	if (!file_of(output))
		return decoded__write_text(decoded, output->text, stdout);
	err = output->text ? decoded__write_text_file(decoded, output->text, output->path)
			   : decoded__write_trace(decoded, rec, output->names.trace);
	phases__end(phases, "writing");
	return err;
}

/* Prints the summary, unless the text was printed on stdout. */
static void summarise(const struct decode_output *output, const struct decoded *decoded,
		      const struct recording *rec, const struct phases *phases)
{
	if (!file_of(output))
		return;
	phases__say(phases);
	decoded__summarise(decoded, rec, stdout, REPORT_ROWS);
}

/* ---- the input, which may be hostile: this process is confined */

static int print_or_write(const struct decoding *d, struct recording *rec)
{
	const struct decode_options *options = d->options;
	struct decode_output *output = d->output;
	struct tree_options trees = {.no_inline = options->no_inline,
				     .ocaml_traps = d->traps,
				     .filter = d->filter,
				     .trace = output->text ? NULL : output->names.trace};
	struct decoded decoded;
	struct phases phases;
	int err;

	if (options->print == PRINT_BRANCHES)
		return recording__print_branches(rec, d->filter, stdout);
	begin_stoppable(output, d->input);
	phases__begin(&phases);
	err = decoded__make(&decoded, rec, &trees);
	if (!err)
		err = write_output(output, &decoded, rec, &phases);
	stop__end();
	if (!err)
		summarise(output, &decoded, rec, &phases);
	decoded__fini(&decoded);
	return err;
}

/* rec may be NULL. */
static void confine(const struct decode_options *options, const struct decode_output *output,
		    const struct recording *rec)
{
	const char *path = options->portable ? output->names.recording : file_of(output);

	if (options->print != PRINT_NOTHING)
		path = NULL;
	confine__decoding(path, options->portable, &rec, rec ? 1 : 0);
}

static int decode_text(const struct decoding *d, int fd, const char *name)
{
	const struct decode_options *options = d->options;
	const struct perf_text_input input = {
		.fd = fd, .name = name, .traps = d->traps, .no_inline = options->no_inline};
	struct decode_output *output = d->output;
	struct perf_text_summary summary;
	struct decoded decoded;
	struct recording rec;
	struct phases phases;
	int err;

	if (options->portable) {
		log__error("decode -portable: %s is text and contains no code", name);
		log__hint("use a recording or a perf.data");
		return -EINVAL;
	}
	if (trace_filter__is_set(d->filter))
		return perf_text__refuse_filter(name);
	confine(options, output, NULL);
	if (options->print == PRINT_BRANCHES)
		return perf_text__print_branches(fd, name, stdout);
	recording__init(&rec);
	begin_stoppable(output, NULL);
	phases__begin(&phases);
	err = decoded__make_from_text(&decoded, &rec, &input, &summary);
	if (!err)
		err = write_output(output, &decoded, &rec, &phases);
	stop__end();
	if (!err)
		summarise(output, &decoded, &rec, &phases);
	if (!err && file_of(output))
		perf_text__summarise(&summary, stdout);
	decoded__fini(&decoded);
	recording__fini(&rec);
	return err;
}

static int make_portable(struct recording *rec, const char *path)
{
	_cleanup_free_ char *stopped = stopped__format(NULL, path);
	int err;

	stop__begin(stopped ?: "");
	err = found_files__add(rec);
	if (!err)
		err = recording__write_whole(rec, path);
	stop__end();
	if (!err)
		log__info("%s can now be decoded on any machine", path);
	return err;
}

static int decode_recording(const struct decoding *d)
{
	const struct decode_options *options = d->options;
	struct recording rec;
	int err;

	recording__init(&rec);
	err = recording__read(&rec, d->input);
	if (!err)
		err = recording__hold_roots(&rec);
	if (!err)
		confine(options, d->output, &rec);
	if (!err && options->portable)
		err = make_portable(&rec, d->output->names.recording);
	else if (!err)
		err = print_or_write(d, &rec);
	recording__fini(&rec);
	return err;
}

/* Decodes; confines this process. Returns -errno after a message and a hint, 1 if something was
 * lost, otherwise 0. */
static int run(const struct decoding *d)
{
	_cleanup_close_ int fd = -1;
	int err;

	confine__reading();
	if (strcmp(d->input, "-"))
		fd = open(d->input, O_RDONLY | O_CLOEXEC);
	if (!strcmp(d->input, "-"))
		err = decode_text(d, STDIN_FILENO, "stdin");
	else if (fd >= 0 && perf_text__may_be(fd))
		err = decode_text(d, fd, d->input);
	else if (fd >= 0 && is_trace_name(d->input)) {
		log__error("%s has the name of a trace, and traces are decoded already", d->input);
		log__hint("'mtbpf report %s' prints its report, 'mtbpf view' opens it; a recording "
			  "is NAME.mtbpf",
			  d->input);
		err = -EINVAL;
	} else {
		err = decode_recording(d);
	}
	if (!err && fflush(stdout))
		err = -errno;
	return err ? err : !d->output->is_whole;
}

static int decode_released(void *context)
{
	interrupts__release();
	return run((const struct decoding *)context);
}

int decoding__run_apart(struct decoding *d)
{
	int result;

	interrupts__hold();
	result = apart__run(decode_released, d, "decoding",
			    "'mtbpf decode' without -view decodes without another process");
	interrupts__release();
	return result;
}

/* ---- the command */

static const char *const print_names[] = {"calls", "branches", NULL};
#define FORMAT_NAME(name) #name,
static const char *const format_names[] = {"fxt", TEXT_FORMATS(FORMAT_NAME) NULL};

static const struct option_spec specs[] = {
	{"output", NULL, 'o', OPT_STRING, "FILE",
	 "the trace: NAME.fxt.gz, .fxt, .fxt.zst, or NAME.txt (default: the recording's name with "
	 ".fxt.gz)",
	 offsetof(struct decode_options, output), NULL},
	{"format", NULL, 0, OPT_CHOICE, "FORMAT",
	 "fxt, or text: one line per slice (tid depth start end name), on stdout without -o",
	 offsetof(struct decode_options, format), format_names},
	{"filter", NULL, 0, OPT_LIST, "FROM..TO", FILTER_HELP,
	 offsetof(struct decode_options, filters), NULL},
	{"no-inline", NULL, 0, OPT_FLAG, NULL, NO_INLINE_HELP,
	 offsetof(struct decode_options, no_inline), NULL},
	{"print", NULL, 0, OPT_CHOICE, "WHAT",
	 "print lines on stdout instead of a trace: calls (as -format text) or branches (tid time "
	 "kind from to)",
	 offsetof(struct decode_options, print), print_names},
	{"ocaml-traps", NULL, 0, OPT_STRING, "FILE",
	 "addresses of OCaml exception handlers in code that is in no ELF file: one hexadecimal "
	 "address per line",
	 offsetof(struct decode_options, ocaml_traps), NULL},
	{"max-memory", NULL, 0, OPT_SIZE, "SIZE", MAX_MEMORY_HELP,
	 offsetof(struct decode_options, max_memory), NULL},
	{"portable", NULL, 0, OPT_FLAG, NULL,
	 "write NAME.mtbpf instead of a trace: the recording with all programs and libraries, "
	 "which decodes on any machine",
	 offsetof(struct decode_options, portable), NULL},
	{"view", NULL, 0, OPT_FLAG, NULL, VIEW_HELP, offsetof(struct decode_options, view), NULL},
	{"strict", NULL, 0, OPT_FLAG, NULL, STRICT_HELP, offsetof(struct decode_options, strict),
	 NULL},
	{"v", "verbose", 0, OPT_FLAG, NULL, "print more", offsetof(struct decode_options, verbose),
	 NULL},
	{"q", "quiet", 0, OPT_FLAG, NULL, "print only errors and the report",
	 offsetof(struct decode_options, quiet), NULL},
};

const struct option_table decode_table = {
	.command = "decode",
	.examples =
		(const char *const[]){
			"mtbpf decode trace.mtbpf", "mtbpf decode trace.mtbpf -o trace.fxt.zst",
			"mtbpf decode trace.mtbpf -format text",
			"mtbpf decode trace.mtbpf -filter -20ms..",
			"mtbpf decode trace.mtbpf -filter parse..render",
			"mtbpf decode -portable perf.data -o all.mtbpf",
			"perf script --itrace=be -F "
			"pid,tid,time,event,ip,sym,symoff,addr,dso,flags --ns "
			"| mtbpf decode -",
			"perf script --show-switch-events -F +pid | mtbpf decode -", NULL},
	.usage = "decode RECORDING|TEXT|- [-o NAME.fxt.gz]",
	.summary = "Decodes a recording, a perf.data of 'perf record -e intel_pt//u' or -g, or "
		   "the\noutput of perf script for these (- is stdin): branches that perf can "
		   "decode,\nor samples with stacks and context switches.",
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

static int decode(const struct decode_options *options, const char *input,
		  const struct ocaml_traps *traps, const struct trace_filter *filter)
{
	struct decode_output output;
	struct decoding decoding = {options, input, &output, traps, filter};
	bool is_whole;
	int code, err;

	if (decode_output__name(&output, options, input))
		return EXIT_USAGE;
	err = options->view ? decoding__run_apart(&decoding) : run(&decoding);
	is_whole = !err;
	if (err > 0)
		err = 0;
	if (!err && options->view)
		err = show__trace(output.names.trace, &(struct show_options){0});
	else if (!err && wants_trace(options))
		next_step__say("view", output.names.trace);
	if (!err && options->strict && !is_whole)
		return refuse_lost(decode_table.command);
	code = exit_code_for(err);
	return err && err != -ENOENT ? EXIT_FAILED : code;
}

int cmd_decode(int argc, char **argv)
{
	struct decode_options options = {.print = PRINT_NOTHING, .format = FORMAT_BY_NAME};
	struct ocaml_traps traps = {0};
	struct trace_filter filter = {0};
	const char *input = NULL;
	int err = parse_with_words(&decode_table, &options, argc, argv, "recording", &input, 1);

	if (err)
		return exit_code_for_options(err);
	memory_limit__set(options.max_memory);
	log__set_level(options.verbose ? LOG_VERBOSE : options.quiet ? LOG_QUIET : LOG_NORMAL);
	if (options.portable && options.print != PRINT_NOTHING) {
		log__error("decode: -portable and -print cannot both be given");
		log__hint("leave out one of the two");
		return EXIT_USAGE;
	}
	if (options.view && !wants_trace(&options)) {
		log__error("decode: -view needs a trace, and this writes a different output");
		log__hint("leave out -view, or the option that selects text or a recording");
		return EXIT_USAGE;
	}
	if (options.portable && options.filters.n) {
		log__error("decode: -portable and -filter cannot both be given");
		log__hint("leave one of them out; the portable recording can be filtered later");
		return EXIT_USAGE;
	}
	err = trace_filter__parse(&filter, options.filters.v, options.filters.n);
	if (err)
		err = exit_code_for(err);
	else if (options.ocaml_traps && ocaml_traps__read(&traps, options.ocaml_traps))
		err = EXIT_USAGE;
	else
		err = decode(&options, input, &traps, &filter);
	ocaml_traps__fini(&traps);
	trace_filter__fini(&filter);
	return err;
}
