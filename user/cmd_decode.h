/* SPDX-License-Identifier: MIT */
/* The options, input and output of `mtbpf decode`. */
#ifndef MTBPF_CMD_DECODE_H
#define MTBPF_CMD_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"
#include "pipeline/output_name.h"
#include "pipeline/pipeline.h"
#include "trace/text.h"

/* -1: not given. */
enum decode_print { PRINT_NOTHING = -1, PRINT_CALLS, PRINT_BRANCHES };
/* After FORMAT_FXT come TEXT_FORMATS, in their order. */
enum decode_format { FORMAT_BY_NAME = -1, FORMAT_FXT };

struct decode_options {
	const char *output, *ocaml_traps;
	int print, format; /* enum decode_print, decode_format */
	uint64_t max_memory;
	struct option_list filters;
	bool no_inline, portable, view, strict;
	bool verbose, quiet;
};

/* The output of decoding. */
struct decode_output {
	bool is_whole;
	text_format_fn text; /* NULL: a trace for Perfetto */
	const char *path;    /* of a text; NULL: stdout */
	struct output_names names;
};

/*
 * Chooses the output's names: by default next to the recording. 0, or -EINVAL after a message and a
 * hint, for example if -portable would overwrite its input.
 */
int decode_output__name(struct decode_output *output, const struct decode_options *options,
			const char *input);

struct decoding {
	const struct decode_options *options;
	const char *input; /* a recording, a perf.data, or perf's text; "-": perf's text on stdin */
	struct decode_output *output;
	const struct ocaml_traps *traps;
	const struct trace_filter *filter;
};

/*
 * Decodes in a child process, since a confined process cannot serve or start a browser. Returns
 * -errno after a message and a hint, 1 if something was lost, otherwise 0.
 */
int decoding__run_apart(struct decoding *decoding);

#endif
