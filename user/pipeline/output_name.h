/* SPDX-License-Identifier: MIT */
/* -o: decides which of the two outputs a name means, and derives the name of the other. */
#ifndef MTBPF_PIPELINE_OUTPUT_NAME_H
#define MTBPF_PIPELINE_OUTPUT_NAME_H

#include <limits.h>
#include <stdbool.h>

struct output_names {
	char trace[PATH_MAX];	  /* NAME.fxt, NAME.fxt.gz, NAME.fxt.zst */
	char recording[PATH_MAX]; /* NAME.mtbpf */
};

/*
 * "x.fxt.gz" gives x.mtbpf in the same folder; "x.mtbpf" gives x.fxt.gz; NULL means trace.fxt.gz.
 * 0; or, after a line and a hint, -EINVAL: unknown suffix, or -ENAMETOOLONG.
 */
int output_names__from(struct output_names *names, const char *output);

/* True if the name has the suffix of a trace. */
bool is_trace_name(const char *path);

#endif
