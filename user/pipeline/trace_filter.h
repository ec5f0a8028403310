/* SPDX-License-Identifier: MIT */
/* -filter: the part of a recording to decode, as the user wrote it. */
#ifndef MTBPF_PIPELINE_TRACE_FILTER_H
#define MTBPF_PIPELINE_TRACE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/recording/recording.h"
#include "decode/filter.h"
#include "decode/decode.h"
#include "stack/call_tree.h"

/* A time that is relative to another one. */
struct filter_point {
	enum { FILTER_OPEN, FILTER_BEGIN, FILTER_END, FILTER_HIT } base;
	int64_t offset_ns;
};

/* The filter; zero-initialised, it selects everything. */
struct trace_filter {
	struct filter_point from, to;
	char *start, *stop; /* names of functions; NULL: no limit */
	bool has_times, has_functions;
};

/* The grammar, for help and hints. */
#define FILTER_HELP                                                                                \
	"only a part: by time, 10ms..20ms (from the beginning), -20ms.. (the last 20 ms), "        \
	"hit-5ms..hit; or by calls, parse..render: each thread from a call of the one function "   \
	"to the next call of the other; at most one -filter of each kind"
#define FILTER_HINT                                                                                \
	"10ms..20ms, -20ms.. (the last 20 ms), hit-5ms..hit+1ms, or two functions: parse..render"

/*
 * Adds one filter:
 *
 *   FILTER = [POINT] ".." [POINT]     both times, or both functions; one of them at least
 *   POINT  = DURATION                 after the beginning of the trace; "0" is a DURATION
 *          | "-" DURATION             before its end
 *          | BASE ["+" DURATION | "-" DURATION]      BASE = "begin" | "end" | "hit"
 *          | FUNCTION                 as in -symbol: NAME, lib.so:NAME, symbol:NAME, a glob
 *
 * The hit is the one that the report is of: the slowest. Where a function's name has ".." in it,
 * spaces part the two: "a..b .. c". 0; -ENOMEM; or -EINVAL after a line and a hint.
 */
int trace_filter__add(struct trace_filter *filter, const char *text);
/* Adds all filters, as above. Call trace_filter__fini() in any case. */
int trace_filter__parse(struct trace_filter *filter, const char *const *texts, size_t n);
void trace_filter__fini(struct trace_filter *filter);
static inline bool trace_filter__is_set(const struct trace_filter *filter)
{
	return filter && (filter->has_times || filter->has_functions);
}

/* A filter that has been resolved for one recording. */
struct filter_part {
	bool is_known; /* the part is resolved, and applied to the recording */
	struct decode_filter decode;
	struct decode_bounds bounds; /* bounds of the whole recording */
	size_t n_hits;		     /* hits outside of the part, which were removed */
};

/*
 * Finds the times that the filter names. 0; or -EINVAL after a message and a hint: the recording
 * lacks hits, or the part is empty.
 */
int trace_filter__resolve(const struct trace_filter *filter, const struct recording *rec,
			  const struct decode_bounds *bounds, struct filter_part *part);
/*
 * Like trace_filter__resolve(), for a recording of Intel PT. Also removes bytes of its rings that
 * need not be decoded, and hits outside of the part. 0, -ENOMEM, or as above.
 */
int trace_filter__apply(const struct trace_filter *filter, struct recording *rec,
			struct images *images, struct filter_part *part);

/* Removes hits outside of the part from the recording. */
void filter_part__drop_hits(struct filter_part *part, struct recording *rec);
/*
 * Removes everything outside of the part from the tree. Slices that it cuts get inferred edges
 * there. 0 or -ENOMEM.
 */
int filter_part__cut_tree(const struct filter_part *part, struct call_tree *tree);
/* Call this after decoding. 0, or -ENODATA after a line and a hint if the filter leaves nothing. */
int filter_part__check(const struct filter_part *part, const struct filter_totals *found);

#endif
