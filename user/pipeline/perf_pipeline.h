/* SPDX-License-Identifier: MIT */
/*
 * Makes trees of what perf has decoded: combines perf and stack, as pipeline.h combines decode and
 * stack.
 */
#ifndef MTBPF_PIPELINE_PERF_PIPELINE_H
#define MTBPF_PIPELINE_PERF_PIPELINE_H

#include <stdio.h>

#include "perf/perf_text.h"
#include "pipeline/pipeline.h"

/* The text of `perf script`, and facts that it does not contain. */
struct perf_text_input {
	int fd;
	const char *name;
	const struct ocaml_traps *traps; /* NULL: none are known */
	bool no_inline;			 /* for samples: without frames of inlined functions */
};

/* Parts of the text that no tree shows, and parts that it lacked. */
struct perf_text_summary {
	struct perf_text_totals text;
	struct perf_samples_totals samples; /* for text without branches */
	uint64_t moved;			    /* branches that went back in time */
};

/*
 * Makes the trees, and adds to the empty `rec` the threads' names and, for text without branches,
 * the samples. Call decoded__fini() in any case, before recording__fini(). 0, or -errno after a
 * line and a hint.
 */
int decoded__make_from_text(struct decoded *decoded, struct recording *rec,
			    const struct perf_text_input *input, struct perf_text_summary *summary);
/* Reports that -filter is not supported for text. Returns -EINVAL. */
int perf_text__refuse_filter(const char *name);
void perf_text__summarise(const struct perf_text_summary *summary, FILE *out);

/*
 * Prints the text's branches like recording__print_branches(). 0, or -errno after a line and a
 * hint.
 */
int perf_text__print_branches(int fd, const char *name, FILE *out);

#endif
