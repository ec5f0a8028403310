/* SPDX-License-Identifier: MIT */
/* Everything after the capture: joins decode, stack, trace and view. */
#ifndef MTBPF_PIPELINE_PIPELINE_H
#define MTBPF_PIPELINE_PIPELINE_H

#include <stdbool.h>
#include <stdio.h>

#include "capture/recording/recording.h"
#include "decode/decode.h"
#include "perf/perf_threads.h"
#include "pipeline/counters.h"
#include "pipeline/early_calls.h"
#include "pipeline/trace_filter.h"
#include "sampled/sampled.h"
#include "stack/call_tree.h"
#include "target/unwind/ocaml_handlers.h"
#include "util/vec.h"
#include "view/report.h"
#include "view/thread_places.h"

struct meter;

/* A decoded recording: its trees, one per stack of a thread, and the hits with their functions. */
struct decoded {
	VEC(struct call_tree) trees;
	VEC(struct hit_mark) hits;
	struct decode_totals totals; /* of samples: the times only */
	struct sampled_totals sampled;
	int64_t behind_hit; /* branches between the hit and the freeze; -1: the hit is not seen */
	uint64_t behind_hit_ns;	   /* from the hit to the last of them */
	struct images *images;	   /* owns the functions the trees point to; or this does: */
	struct perf_threads *perf; /* of branches that perf has decoded; or this: */
	struct fxt_trees *fxt;	   /* of a trace file */
	size_t ring_bytes;	   /* what kept the samples, and was full; 0: none was */
	bool is_sampled;	   /* the calls were seen now and then, not followed */
	struct meter *meter;	   /* while it is made: NULL, or what shows how far that has come */
	/* The writer of a trace that is written while decoding, or NULL. */
	struct trace_writer *writer;
	struct early_queue *queue;	 /* to it, while it is decoded */
	VEC(struct early_calls *) early; /* one per thread whose calls are in no tree */
	struct counters counters;
	VEC(struct pt_note) events;
	uint64_t base_ns; /* of that trace: totals.first_ns, known beforehand */
	bool is_filtered;
	struct filter_part part; /* which it is then */
};

/* Options for making trees of a recording. */
struct tree_options {
	bool no_inline; /* without slices of inlined functions */
	/* Handlers of OCaml exceptions that no ELF file tells of, or NULL. */
	const struct ocaml_traps *ocaml_traps;
	/*
	 * The path that decoded__write_trace() will write, so that writing may begin at once; or
	 * NULL.
	 */
	const char *trace;
	const struct trace_filter *filter; /* what part of it, or NULL */
};

/*
 * 0, or -errno after a line and a hint. decoded__fini() in any case. If the limit of
 * memory_limit__set() does not suffice, rec loses the older half of its rings, and half of the
 * rest, until it does. With a filter, it first loses everything outside of that.
 */
int decoded__make(struct decoded *decoded, struct recording *rec,
		  const struct tree_options *options);
/*
 * The same from a trace file that mtbpf has written; rec is then an empty one. -EBADMSG, without a
 * message, if path is not an FXT file.
 */
int decoded__make_from_fxt(struct decoded *decoded, const char *path);
void decoded__fini(struct decoded *decoded);

/*
 * Writes the trace file. Without a hit the trees' calls are undefined afterwards, since nothing
 * reads them again. 0, or -errno after a line and a hint.
 */
int decoded__write_trace(struct decoded *decoded, const struct recording *rec, const char *path);
/* One line per slice: tid depth start end name. */
int decoded__write_text(const struct decoded *decoded, FILE *out);
/* The same, to a file. 0, or -errno after a line and a hint. */
int decoded__write_text_file(const struct decoded *decoded, const char *path);

/*
 * The time that times in the trace are relative to: its beginning, even if a filter removed that.
 */
uint64_t decoded__base(const struct decoded *decoded);

/* Functions in a report. */
#define REPORT_ROWS 10
/*
 * Prints the summary: the trigger, the report (`top` functions of it), the losses, and how far the
 * trace looks back.
 */
void decoded__summarise(const struct decoded *decoded, const struct recording *rec, FILE *out,
			size_t top);

/* True if nothing was lost, by the same tests as in the summary. */
bool decoded__is_whole(const struct decoded *decoded, const struct recording *rec);

/* The hit that triggered, of several the slowest; NULL: none did. */
const struct hit_mark *decoded__slowest_hit(const struct decoded *decoded);
/*
 * Finds where the threads were at the stall of that hit; without a stall, *places is empty. The
 * names refer to decoded and rec. 0 or -ENOMEM; thread_places__fini() in any case.
 */
int decoded__thread_places(const struct decoded *decoded, const struct recording *rec, size_t hit,
			   struct thread_places *places);

/*
 * Makes the report of the slowest hit, which refers to decoded. NULL with errno: ENODATA: without a
 * hit, or the lookback lacks its iteration; ENOMEM.
 */
struct report *decoded__report(const struct decoded *decoded);

#endif
