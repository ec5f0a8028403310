// SPDX-License-Identifier: MIT
#include "decode_command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apart.h"
#include "capture/code/live_code.h"
#include "pipeline/perf_pipeline.h"
#include "pipeline/print_branches.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/signals.h"

/* ---- the output */

static bool ends_in(const char *name, const char *suffix)
{
	size_t n = strlen(name), s = strlen(suffix);

	return n >= s && !strcmp(name + n - s, suffix);
}

static bool is_text_name(const char *name)
{
	return ends_in(name, ".txt") || ends_in(name, ".txt.gz") || ends_in(name, ".txt.zst");
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

bool decode_options__want_trace(const struct decode_options *options)
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
				  n > 6 && ends_in(trimmed, ".mtbpf") ? trimmed : NULL);
}

static bool is_same(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Refuses to overwrite the input. */
static int refuse_same(const char *input, const char *output)
{
	if (!is_same(input, output))
		return 0;
	log__error("decode -portable: %s is the recording itself", output);
	log__hint("name the portable recording with -o NAME.mtbpf");
	return -EINVAL;
}

int decode_output__name(struct decode_output *output, const struct decode_options *options,
			const char *input)
{
	int err = name_trace(options, input, output);

	return err || !options->portable ? err : refuse_same(input, output->names.recording);
}

static int write_trace(struct decoded *decoded, const struct recording *rec,
		       const struct decode_output *output)
{
	if (output->text)
		return decoded__write_text_file(decoded, output->text, output->path);
	return decoded__write_trace(decoded, rec, output->names.trace);
}

/* The file that exists only if decoding completes. NULL: text on stdout, which appears as it is
 * decoded. */
static const char *file_of(const struct decode_output *output)
{
	return output->text ? output->path : output->names.trace;
}

/* The message of an interrupted decoding names `recording`, to decode it again (or NULL). */
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
	err = write_trace(decoded, rec, output);
	phases__end(phases, "writing");
	return err;
}

/* Prints the summary, unless stdout has a text. */
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

static int refuse_trace(const char *input)
{
	log__error("%s is a trace by its name, which is decoded already", input);
	log__hint("'mtbpf report %s' prints its report, 'mtbpf view' opens it; a recording is "
		  "NAME.mtbpf",
		  input);
	return -EINVAL;
}

int decoding__run(const struct decoding *d)
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
	else if (fd >= 0 && is_trace_name(d->input))
		err = refuse_trace(d->input);
	else
		err = decode_recording(d);
	if (!err && fflush(stdout))
		err = -errno;
	return err ? err : !d->output->is_whole;
}

static int decode_released(void *context)
{
	interrupts__release();
	return decoding__run((const struct decoding *)context);
}

int decoding__run_apart(struct decoding *d)
{
	int result;

	interrupts__hold();
	result = apart__run(decode_released, d, "decoding");
	interrupts__release();
	return result;
}
