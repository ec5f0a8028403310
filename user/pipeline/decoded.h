/* SPDX-License-Identifier: MIT */
/* A recording that is being decoded, or has been: its trees, its hits and its totals. */
#ifndef MTBPF_PIPELINE_DECODED_H
#define MTBPF_PIPELINE_DECODED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/decode.h"
#include "perf/perf_text.h"
#include "pipeline/early_calls.h"
#include "pipeline/trace_filter.h"
#include "sampled/sampled.h"
#include "stack/call_tree.h"
#include "target/unwind/ocaml_handlers.h"
#include "util/vec.h"

struct meter;

struct thread_speed {
	pid_t pid, tid;
	struct speed speed;
};

/* A decoded recording: its trees, one per stack of a thread, and the hits with their functions. */
struct decoded {
	VEC(struct call_tree) trees;
	VEC(struct hit_mark) hits;
	struct decode_totals totals; /* for samples: only first_ns and last_ns are set */
	struct sampled_totals sampled;
	int64_t behind_hit;	/* branches between the hit and the freeze; -1: hit not found */
	uint64_t behind_hit_ns; /* time from the hit to the last of these branches */
	/* One of these owns the functions that the trees point to; the other two are NULL. */
	struct images *images;	   /* for a recording */
	struct perf_threads *perf; /* for branches that perf decoded */
	struct fxt_trees *fxt;	   /* for a trace file */
	size_t ring_bytes;	   /* size of the full ring of samples; 0: none was full */
	bool is_sampled;	   /* the calls were sampled, not followed */
	struct meter *meter;	   /* shows progress while the trees are made; may be NULL */
	/* The writer of a trace that is written while decoding, or NULL. */
	struct trace_writer *writer;
	struct early_queue *queue;	 /* to the writer, while decoding */
	VEC(struct early_calls *) early; /* one per thread whose calls are in no tree */
	VEC(struct thread_speed) speeds; /* by thread, then by time */
	VEC(struct pt_note) events;
	/* The trace's begin, if it is known before decoding; 0: totals.first_ns is used instead. */
	uint64_t base_ns;
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

#endif
