/* SPDX-License-Identifier: MIT */
/* Inputs of report and diff: a recording, a trace, a perf.data, or perf's text. */
#ifndef MTBPF_INPUT_H
#define MTBPF_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "capture/recording/recording.h"
#include "pipeline/pipeline.h"

struct input_options {
	bool no_inline;
	const struct trace_filter *filter; /* NULL: none */
};

/* One input, read and decoded. */
struct input {
	const char *path;
	bool is_read;	      /* rec has been read */
	struct recording rec; /* empty for a trace */
	struct decoded decoded;
};

#define INPUTS_MAX 2

/* Call inputs__fini() in any case afterwards. */
void inputs__init(struct input *inputs, const char *const *paths, size_t n);
/*
 * Reads and decodes the inputs, at most INPUTS_MAX; confines this process. 0, or -errno after a
 * line and a hint.
 */
int inputs__open(struct input *inputs, size_t n, const struct input_options *options);
void inputs__fini(struct input *inputs, size_t n);

#endif
