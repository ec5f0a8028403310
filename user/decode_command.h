/* SPDX-License-Identifier: MIT */
/* What `mtbpf decode` was told, what it reads, and where that goes. */
#ifndef MTBPF_DECODE_COMMAND_H
#define MTBPF_DECODE_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"
#include "pipeline/output_name.h"
#include "pipeline/pipeline.h"
#include "view/closing.h"

/* What is not asked for has no name. */
enum decode_print { PRINT_NOTHING = -1, PRINT_CALLS, PRINT_BRANCHES };
enum decode_format { FORMAT_BY_NAME = -1, FORMAT_FXT, FORMAT_TEXT };

struct decode_options {
	const char *output, *ocaml_traps;
	int print, format; /* enum decode_print, decode_format */
	uint64_t max_memory;
	struct option_list filters;
	bool no_inline, portable, view, strict;
	bool verbose, quiet;
};

/* Whether a trace for Perfetto is what comes of it. */
bool decode_options__want_trace(const struct decode_options *options);

/* Where the trace goes, and what has become of it. */
struct decode_output {
	bool is_whole;
	bool is_text;
	const char *path; /* of the text; NULL: stdout */
	struct output_names names;
};

/*
 * The trace goes where the recording lies, unless told otherwise. 0, or -EINVAL after a line and a
 * hint; also where -portable would write what it reads.
 */
int decode_output__name(struct decode_output *output, const struct decode_options *options,
			const char *input);
/* What there is a file of at the end, or none. NULL: stdout's text, which comes as far as it does.
 */
const char *decode_output__file(const struct decode_output *output);
/* `recording`: what it can be made of once more; NULL: nothing. */
void decode_output__begin_stoppable(const struct decode_output *output, const char *recording);
/* 0, or -errno after a line and a hint. */
int decode_output__write(struct decode_output *output, struct decoded *decoded,
			 const struct recording *rec, struct phases *phases);
/* What happened, where that is not in the way of a text on stdout. */
void decode_output__summarise(const struct decode_output *output, const struct decoded *decoded,
			      const struct recording *rec, const struct phases *phases);

struct decoding {
	const struct decode_options *options;
	const char *input; /* a recording, a perf.data, perf's text; "-": that, on stdin */
	struct decode_output *output;
	const struct ocaml_traps *traps;
	const struct trace_filter *filter;
};

/* This process is confined behind it. -errno after a line and a hint, or whether something was
 * lost. */
int decoding__run(const struct decoding *decoding);
/* The same by a process of its own: what is confined cannot serve, nor start a browser. */
int decoding__run_apart(struct decoding *decoding);

#endif
