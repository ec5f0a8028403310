// SPDX-License-Identifier: MIT
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apart.h"
#include "pipeline/output_name.h"
#include "pipeline/perf_pipeline.h"
#include "util/cleanup.h"
#include "util/log.h"

/* True for a recording; other files are tried as a trace first. */
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

static int make_from_text(struct input *input, int fd, const struct input_options *options)
{
	struct perf_text_input text = {
		.fd = fd, .name = input->path, .no_inline = options->no_inline};
	struct perf_text_summary summary;

	if (trace_filter__is_set(options->filter))
		return perf_text__refuse_filter(input->path);
	return decoded__make_from_text(&input->decoded, &input->rec, &text, &summary);
}

static int make_input(struct input *input, const struct input_options *options)
{
	struct tree_options trees = {.no_inline = options->no_inline, .filter = options->filter};
	_cleanup_close_ int fd = -1;
	int err = 0;

	if (!input->is_read) {
		if (trace_filter__is_set(options->filter) && is_trace_name(input->path)) {
			log__error("-filter: %s is a trace, which is decoded already", input->path);
			log__hint("name the recording that it was made from: -filter decodes a "
				  "part of it");
			return -EINVAL;
		}
		err = decoded__make_from_fxt(&input->decoded, input->path);
		if (err != -EBADMSG)
			return err;
		if (is_trace_name(input->path)) {
			log__error("%s has the name of a trace, but is damaged or not an FXT trace",
				   input->path);
			log__hint("'mtbpf decode NAME.mtbpf' makes a trace from a recording");
			return -EINVAL;
		}
		decoded__fini(&input->decoded);
		input->decoded = (struct decoded){0};
		fd = open(input->path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && perf_text__may_be(fd))
			return make_from_text(input, fd, options);
		err = read_recording(input);
	}
	return err ? err : decoded__make(&input->decoded, &input->rec, &trees);
}

void inputs__init(struct input *inputs, const char *const *paths, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		inputs[i] = (struct input){.path = paths[i]};
		recording__init(&inputs[i].rec);
	}
}

int inputs__open(struct input *inputs, size_t n, const struct input_options *options)
{
	const struct recording *recs[INPUTS_MAX];
	struct stat st;
	int err = 0;

	confine__reading();
	/* The steps that a confined process cannot do. */
	for (size_t i = 0; i < n && !err; i++) {
		recs[i] = &inputs[i].rec;
		if (stat(inputs[i].path, &st)) {
			err = -errno;
			log__error("cannot open %s: %s", inputs[i].path, strerror(-err));
			log__hint("name a trace (NAME.fxt.gz) or a recording (NAME.mtbpf)");
		} else if (is_recording(inputs[i].path, &st)) {
			err = read_recording(&inputs[i]);
		}
	}
	if (!err)
		confine__decoding(NULL, false, recs, n);
	for (size_t i = 0; i < n && !err; i++)
		err = make_input(&inputs[i], options);
	return err;
}

void inputs__fini(struct input *inputs, size_t n)
{
	while (n) {
		decoded__fini(&inputs[--n].decoded);
		recording__fini(&inputs[n].rec);
	}
}
