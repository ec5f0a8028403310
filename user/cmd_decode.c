// SPDX-License-Identifier: MIT
/* decode: a recording, wherever it was made, to a trace. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/code/found_files.h"
#include "session/capture_options.h"
#include "apart.h"
#include "cmd.h"
#include "cmd_table.h"
#include "confine.h"
#include "serve/show.h"
#include "pipeline/output_name.h"
#include "pipeline/perf_pipeline.h"
#include "pipeline/pipeline.h"
#include "pipeline/print_branches.h"
#include "util/cleanup.h"
#include "util/interrupts.h"
#include "util/log.h"
#include "util/memory_limit.h"
#include "util/stop.h"
#include "cli/options.h"
#include "view/closing.h"

/* What is not asked for has no name. */
enum print { PRINT_NOTHING = -1, PRINT_CALLS, PRINT_BRANCHES };
static const char *const print_names[] = {"calls", "branches", NULL};
enum format { FORMAT_BY_NAME = -1, FORMAT_FXT, FORMAT_TEXT };
static const char *const format_names[] = {"fxt", "text", NULL};

struct decode_options {
	const char *output, *ocaml_traps;
	int print, format;
	uint64_t max_memory;
	bool no_inline, portable, view, strict;
	bool verbose, quiet;
};

static const struct option_spec specs[] = {
	{"output", NULL, 'o', OPT_STRING, "FILE",
	 "the trace: NAME.fxt.gz, .fxt or .fxt.zst (the recording's name with .fxt.gz), or "
	 "NAME.txt",
	 offsetof(struct decode_options, output), NULL},
	{"format", NULL, 0, OPT_CHOICE, "FORMAT",
	 "fxt, or text: a line a slice (tid depth start end name), on stdout without -o",
	 offsetof(struct decode_options, format), format_names},
	{"no-inline", NULL, 0, OPT_FLAG, NULL, NO_INLINE_HELP,
	 offsetof(struct decode_options, no_inline), NULL},
	{"print", NULL, 0, OPT_CHOICE, "WHAT",
	 "instead of a trace, lines on stdout: calls (those of -format text) or branches (tid time "
	 "kind from to)",
	 offsetof(struct decode_options, print), print_names},
	{"ocaml-traps", NULL, 0, OPT_STRING, "FILE",
	 "where handlers of OCaml exceptions are in code that no ELF file holds: a hexadecimal "
	 "address a line",
	 offsetof(struct decode_options, ocaml_traps), NULL},
	{"max-memory", NULL, 0, OPT_SIZE, "SIZE", MAX_MEMORY_HELP,
	 offsetof(struct decode_options, max_memory), NULL},
	{"portable", NULL, 0, OPT_FLAG, NULL,
	 "instead of a trace, NAME.mtbpf: the recording with all programs and libraries in it, "
	 "which decodes on any machine",
	 offsetof(struct decode_options, portable), NULL},
	{"view", NULL, 0, OPT_FLAG, NULL, VIEW_HELP, offsetof(struct decode_options, view), NULL},
	{"strict", NULL, 0, OPT_FLAG, NULL, STRICT_HELP, offsetof(struct decode_options, strict),
	 NULL},
	{"v", "verbose", 0, OPT_FLAG, NULL, "say more", offsetof(struct decode_options, verbose),
	 NULL},
	{"q", "quiet", 0, OPT_FLAG, NULL, "say only errors; the report stays",
	 offsetof(struct decode_options, quiet), NULL},
};

const struct option_table decode_table = {
	.command = "decode",
	.examples = (const char *const[]){"mtbpf decode trace.mtbpf",
					  "mtbpf decode trace.mtbpf -o trace.fxt.zst",
					  "mtbpf decode trace.mtbpf -format text",
					  "mtbpf decode -portable perf.data -o all.mtbpf",
					  "perf script --itrace=be -F "
					  "pid,tid,time,event,ip,sym,symoff,addr,dso,flags --ns "
					  "| mtbpf decode -",
					  NULL},
	.usage = "decode RECORDING|TEXT|- [-o NAME.fxt.gz]",
	.summary = "Decodes a recording, a perf.data of 'perf record -e intel_pt//u', or what\n"
		   "perf script prints of branches that perf itself can decode (- is stdin).\n"
		   "The same without text: perf script --itrace=be --dlfilter mtbpf-dlfilter.so\n"
		   "--dlarg NAME.fxt, with the filter from PREFIX/lib/mtbpf.",
	.specs = specs,
	.count = sizeof(specs) / sizeof(specs[0]),
};

/* Where the trace goes, and what has become of it. */
struct output {
	bool is_whole;
	bool is_text;
	const char *path; /* of the text; NULL: stdout */
	struct output_names names;
};

static bool ends_in(const char *name, const char *suffix)
{
	size_t n = strlen(name), s = strlen(suffix);

	return n >= s && !strcmp(name + n - s, suffix);
}

static bool is_text_name(const char *name)
{
	return ends_in(name, ".txt") || ends_in(name, ".txt.gz") || ends_in(name, ".txt.zst");
}

static bool wants_text(const struct decode_options *options)
{
	if (options->print == PRINT_CALLS || options->format == FORMAT_TEXT)
		return true;
	return options->format == FORMAT_BY_NAME && options->output &&
	       is_text_name(options->output);
}

static bool writes_trace(const struct decode_options *options)
{
	return !options->portable && options->print == PRINT_NOTHING && !wants_text(options);
}

static int name_text(const struct decode_options *options, struct output *output)
{
	if (options->print != PRINT_NOTHING || !options->output || !strcmp(options->output, "-"))
		return 0;
	output->path = options->output;
	if (is_text_name(output->path))
		return 0;
	log__error("'%s' is no name for a text", output->path);
	log__hint("end it in .txt (.txt.gz, .txt.zst), or -o - for stdout");
	return -EINVAL;
}

/* The trace goes where the recording lies, unless told otherwise. */
static int name_output(const struct decode_options *options, const char *input,
		       struct output *output)
{
	char trimmed[PATH_MAX];
	size_t n = strlen(input);

	*output = (struct output){.is_text = wants_text(options), .is_whole = true};
	if (output->is_text)
		return name_text(options, output);
	if (options->output && !strcmp(options->output, "-")) {
		log__error("decode: a trace for Perfetto does not go to stdout");
		log__hint("-o NAME.fxt.gz, or -format text");
		return -EINVAL;
	}
	if (options->output)
		return output_names__from(&output->names, options->output);
	while (n > 1 && input[n - 1] == '/')
		n--;
	snprintf(trimmed, sizeof(trimmed), "%.*s", (int)n, input);
	return output_names__from(&output->names,
				  n > 6 && ends_in(trimmed, ".mtbpf") ? trimmed : NULL);
}

static int write_trace(struct decoded *decoded, const struct recording *rec,
		       const struct output *output)
{
	if (output->is_text)
		return decoded__write_text_file(decoded, output->path);
	return decoded__write_trace(decoded, rec, output->names.trace);
}

/* What there is a file of at the end, or none. NULL: stdout's text, which comes as far as it does.
 */
static const char *file_of(const struct output *output)
{
	return output->is_text ? output->path : output->names.trace;
}

/* `recording`: what it can be made of once more; NULL: nothing. */
static void begin_stoppable(const struct output *output, const char *recording)
{
	const char *file = file_of(output);
	_cleanup_free_ char *stopped = file ? stopped__format(recording, file) : NULL;

	if (file)
		stop__begin(stopped ?: "");
}

static int write_output(struct decoded *decoded, const struct recording *rec, struct output *output,
			struct phases *phases)
{
	int err;

	output->is_whole = decoded__is_whole(decoded, rec);
	phases__end(phases, "decoding");
	if (!file_of(output))
		return decoded__write_text(decoded, stdout);
	err = write_trace(decoded, rec, output);
	phases__end(phases, "writing");
	return err;
}

static void summarise(const struct decoded *decoded, const struct recording *rec,
		      const struct output *output, const struct phases *phases)
{
	if (!file_of(output))
		return;
	phases__say(phases);
	decoded__summarise(decoded, rec, stdout, REPORT_ROWS);
}

static int print_or_write(const struct decode_options *options, struct recording *rec,
			  const char *input, struct output *output, const struct ocaml_traps *traps)
{
	struct tree_options trees = {.no_inline = options->no_inline,
				     .ocaml_traps = traps,
				     .trace = output->is_text ? NULL : output->names.trace};
	struct decoded decoded;
	struct phases phases;
	int err;

	if (options->print == PRINT_BRANCHES)
		return recording__print_branches(rec, stdout);
	begin_stoppable(output, input);
	phases__begin(&phases);
	err = decoded__make(&decoded, rec, &trees);
	if (!err)
		err = write_output(&decoded, rec, output, &phases);
	stop__end();
	if (!err)
		summarise(&decoded, rec, output, &phases);
	decoded__fini(&decoded);
	return err;
}

/* `rec` may be NULL: there is none. */
static void confine(const struct decode_options *options, const struct output *output,
		    const struct recording *rec)
{
	const char *path = options->portable ? output->names.recording : file_of(output);

	if (options->print != PRINT_NOTHING)
		path = NULL;
	confine__decoding(path, options->portable, &rec, rec ? 1 : 0);
}

static int decode_text(const struct decode_options *options, const struct perf_text_input *input,
		       struct output *output)
{
	struct perf_text_totals totals;
	struct decoded decoded;
	struct recording rec;
	struct phases phases;
	int err;

	if (options->portable) {
		log__error("decode -portable: %s is text, and has no code to take along",
			   input->name);
		log__hint("a recording, or a perf.data, has");
		return -EINVAL;
	}
	confine(options, output, NULL);
	if (options->print == PRINT_BRANCHES)
		return perf_text__print_branches(input->fd, input->name, stdout);
	recording__init(&rec);
	begin_stoppable(output, NULL);
	phases__begin(&phases);
	err = decoded__make_from_text(&decoded, &rec, input, &totals);
	if (!err)
		err = write_output(&decoded, &rec, output, &phases);
	stop__end();
	if (!err)
		summarise(&decoded, &rec, output, &phases);
	if (!err && file_of(output))
		perf_text__summarise(&totals, perf_threads__totals(decoded.perf)->moved, stdout);
	decoded__fini(&decoded);
	recording__fini(&rec);
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
	_cleanup_free_ char *stopped = stopped__format(NULL, path);
	int err;

	stop__begin(stopped ?: "");
	err = found_files__add(rec);
	if (!err)
		err = recording__write_whole(rec, path);
	stop__end();
	if (!err)
		log__info("%s: decodes on any machine", path);
	return err;
}

static int decode_recording(const struct decode_options *options, const char *input,
			    struct output *output, const struct ocaml_traps *traps)
{
	struct recording rec;
	int err;

	recording__init(&rec);
	err = recording__read(&rec, input);
	if (!err)
		err = recording__hold_roots(&rec);
	if (!err)
		confine(options, output, &rec);
	if (!err && options->portable)
		err = make_portable(&rec, output->names.recording);
	else if (!err)
		err = print_or_write(options, &rec, input, output, traps);
	recording__fini(&rec);
	return err;
}

static int refuse_trace(const char *input)
{
	log__error("%s is a trace by its name: decoded already", input);
	log__hint("'mtbpf report %s' prints its report, 'mtbpf view' opens it; a recording is "
		  "NAME.mtbpf",
		  input);
	return -EINVAL;
}

struct decoding {
	const struct decode_options *options;
	const char *input;
	struct output *output;
	const struct ocaml_traps *traps;
};

/* -errno, or whether something was lost. */
static int decode_input(const struct decoding *d)
{
	_cleanup_close_ int fd = -1;
	int err;

	confine__reading();
	if (strcmp(d->input, "-"))
		fd = open(d->input, O_RDONLY | O_CLOEXEC);
	if (!strcmp(d->input, "-"))
		err = decode_text(d->options,
				  &(struct perf_text_input){STDIN_FILENO, "stdin", d->traps},
				  d->output);
	else if (fd >= 0 && perf_text__may_be(fd))
		err = decode_text(d->options, &(struct perf_text_input){fd, d->input, d->traps},
				  d->output);
	else if (fd >= 0 && is_trace_name(d->input))
		err = refuse_trace(d->input);
	else
		err = decode_recording(d->options, d->input, d->output, d->traps);
	if (!err && fflush(stdout))
		err = -errno;
	return err ? err : !d->output->is_whole;
}

static int decode_released(void *context)
{
	interrupts__release();
	return decode_input((const struct decoding *)context);
}

/* What is confined cannot serve, nor start a browser. */
static int decode_apart(struct decoding *d)
{
	int result;

	interrupts__hold();
	result = apart__run(decode_released, d, "decoding");
	interrupts__release();
	return result;
}

static int decode(const struct decode_options *options, const char *input,
		  const struct ocaml_traps *traps)
{
	struct output output;
	struct decoding decoding = {options, input, &output, traps};
	bool is_whole;
	int code, err = name_output(options, input, &output);

	if (!err && options->portable)
		err = refuse_same(input, output.names.recording);
	if (err)
		return EXIT_USAGE;
	err = options->view ? decode_apart(&decoding) : decode_input(&decoding);
	is_whole = !err;
	if (err > 0)
		err = 0;
	if (!err && options->view)
		err = show__trace(output.names.trace, &(struct show_options){0});
	else if (!err && writes_trace(options))
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
	const char *input = NULL;
	int err = parse_with_words(&decode_table, &options, argc, argv, "recording", &input, 1);

	if (err)
		return exit_code_for_options(err);
	memory_limit__set(options.max_memory);
	log__set_level(options.verbose ? LOG_VERBOSE : options.quiet ? LOG_QUIET : LOG_NORMAL);
	if (options.portable && options.print != PRINT_NOTHING) {
		log__error("decode: -portable makes a recording, and prints nothing");
		log__hint("leave one of the two out");
		return EXIT_USAGE;
	}
	if (options.view && !writes_trace(&options)) {
		log__error("decode: -view shows a trace, and none is written");
		log__hint("leave -view out, or the option that asks for text or a recording");
		return EXIT_USAGE;
	}
	if (options.ocaml_traps && ocaml_traps__read(&traps, options.ocaml_traps))
		err = EXIT_USAGE;
	else
		err = decode(&options, input, &traps);
	ocaml_traps__fini(&traps);
	return err;
}
