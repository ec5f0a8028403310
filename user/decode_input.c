// SPDX-License-Identifier: MIT
/* Reads the input of decode, confined, since it may be hostile: a recording, or perf's text. */
#include "decode_command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apart.h"
#include "capture/code/live_code.h"
#include "confine.h"
#include "pipeline/perf_pipeline.h"
#include "pipeline/print_branches.h"
#include "util/cleanup.h"
#include "util/signals.h"
#include "util/log.h"

static int print_or_write(const struct decoding *d, struct recording *rec)
{
	const struct decode_options *options = d->options;
	struct decode_output *output = d->output;
	struct tree_options trees = {.no_inline = options->no_inline,
				     .ocaml_traps = d->traps,
				     .filter = d->filter,
				     .trace = output->is_text ? NULL : output->names.trace};
	struct decoded decoded;
	struct phases phases;
	int err;

	if (options->print == PRINT_BRANCHES)
		return recording__print_branches(rec, d->filter, stdout);
	decode_output__begin_stoppable(output, d->input);
	phases__begin(&phases);
	err = decoded__make(&decoded, rec, &trees);
	if (!err)
		err = decode_output__write(output, &decoded, rec, &phases);
	stop__end();
	if (!err)
		decode_output__summarise(output, &decoded, rec, &phases);
	decoded__fini(&decoded);
	return err;
}

/* rec may be NULL. */
static void confine(const struct decode_options *options, const struct decode_output *output,
		    const struct recording *rec)
{
	const char *path =
		options->portable ? output->names.recording : decode_output__file(output);

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
	decode_output__begin_stoppable(output, NULL);
	phases__begin(&phases);
	err = decoded__make_from_text(&decoded, &rec, &input, &summary);
	if (!err)
		err = decode_output__write(output, &decoded, &rec, &phases);
	stop__end();
	if (!err)
		decode_output__summarise(output, &decoded, &rec, &phases);
	if (!err && decode_output__file(output))
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
		log__info("%s: decodes on any machine", path);
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
