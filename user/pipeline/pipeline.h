/* SPDX-License-Identifier: MIT */
/* All steps after the capture: combines decode, stack, trace and view. */
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
	struct decode_totals totals; /* for samples: only the times */
	struct sampled_totals sampled;
	int64_t behind_hit;	   /* branches between the hit and the freeze; -1: hit not found */
	uint64_t behind_hit_ns;	   /* time from the hit to the last of these branches */
	struct images *images;	   /* owns the functions that the trees point to; or: */
	struct perf_threads *perf; /* for branches that perf decoded; or: */
	struct fxt_trees *fxt;	   /* for a trace file */
	size_t ring_bytes;	   /* size of the full ring of samples; 0: none was full */
	bool is_sampled;	   /* the calls were sampled, not followed */
	struct meter *meter;	   /* shows progress while the trees are made; may be NULL */
	/* The writer of a trace that is written while decoding, or NULL. */
	struct trace_writer *writer;
	struct early_queue *queue;	 /* to the writer, while decoding */
	VEC(struct early_calls *) early; /* one per thread whose calls are in no tree */
	struct counters counters;
	VEC(struct pt_note) events;
	uint64_t base_ns; /* totals.first_ns of the trace that is written early */
	bool is_filtered;
	struct filter_part part; /* the resolved filter */
};

/* Options for making trees of a recording. */
struct tree_options {
	bool no_inline; /* without slices of inlined functions */
	/* Handlers of OCaml exceptions that no ELF file has, or NULL. */
	const struct ocaml_traps *ocaml_traps;
	/*
	 * The path for decoded__write_trace(), so that writing can begin while decoding; or NULL.
	 */
	const char *trace;
	const struct trace_filter *filter; /* the part to decode; NULL: everything */
};

/*
 * Decodes the recording. 0, or -errno after a line and a hint; call decoded__fini() in any case. If
 * the limit of memory_limit__set() is exceeded, drops the older half of rec's rings, as often as
 * needed. With a filter, first drops everything outside of it.
 */
int decoded__make(struct decoded *decoded, struct recording *rec,
		  const struct tree_options *options);
/*
 * Like decoded__make(), from a trace file that mtbpf wrote; rec is then empty. -EBADMSG, without a
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
/* Like decoded__write_text(), to a file. 0, or -errno after a line and a hint. */
int decoded__write_text_file(const struct decoded *decoded, const char *path);

/*
 * The time to which times in the trace are relative: its beginning, even if a filter removed that.
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

/* True if nothing was lost, judged as in the summary. */
bool decoded__is_whole(const struct decoded *decoded, const struct recording *rec);

/* The hit that triggered; if several did, the slowest. NULL: none did. */
const struct hit_mark *decoded__slowest_hit(const struct decoded *decoded);
/*
 * Finds where the threads were at the stall of that hit; without a stall, *places is empty. The
 * names refer to decoded and rec. 0 or -ENOMEM; thread_places__fini() in any case.
 */
int decoded__thread_places(const struct decoded *decoded, const struct recording *rec, size_t hit,
			   struct thread_places *places);

/*
 * Makes the report of the slowest hit. It refers to decoded. NULL with errno: ENODATA: the lookback
 * lacks hits, or the hit's iteration; ENOMEM.
 */
struct report *decoded__report(const struct decoded *decoded);

#endif
