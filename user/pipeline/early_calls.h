/* SPDX-License-Identifier: MIT */
/* Passes one thread's calls to the trace's writer while the thread is decoded. */
#ifndef MTBPF_PIPELINE_EARLY_CALLS_H
#define MTBPF_PIPELINE_EARLY_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "stack/tree_passes.h"
#include "stack/call_tree.h"
#include "target/code_map.h"
#include "trace/trace_writer.h"

/*
 * A queue of calls from the thread that decodes them to the one that writes them: encoding a slice
 * takes a third as long as decoding it.
 */

struct early_queue;

/* The thread that made the calls, and the time to which the trace's times are relative. */
struct early_owner {
	pid_t pid, tid;
	uint64_t base_ns;
};

/* Until early_queue__finish(), nobody else uses the writer. NULL: no memory. */
struct early_queue *early_queue__new(struct trace_writer *writer);
/* Waits for batches that are being written. NULL is fine. */
void early_queue__free(struct early_queue *queue);

/* Sets the owner of the calls that are added next. Waits if the writer falls behind. */
void early_queue__begin(struct early_queue *queue, const struct early_owner *owner);
/*
 * Adds the next call, made at that site; the caller fills it. Calls are in pre-order; depth 0 is
 * that of the first one since early_queue__begin(). NULL: out of memory.
 */
struct call *early_queue__add(struct early_queue *queue, const struct call_site *site);
/* Waits until all calls are written. Nothing may be added afterwards. May be called twice. */
void early_queue__finish(struct early_queue *queue);

/* The calls of one thread. */

struct early_calls {
	struct call_consumer consumer; /* for stack__set_consumer() */
	struct early_queue *queue;
	struct code_map *map;
	const uint64_t *base_ns; /* the value is set before the first call is taken */
	bool no_inline;
	struct call_tree part; /* its calls are those being passed on now, its sites all so far */
	struct inline_pass inlined;
	/* The last site that was looked up: usually that of the next call. */
	uint64_t site_ip;
	const struct call_site *site;
	/* The writer identifies slices by the addresses of their sites, so old sites are kept. */
	VEC(struct call_sites) retired;
	unsigned int replaced; /* code_map__replaced() at the time of the sites */
	uint64_t n;	       /* calls taken, with slices of inlined functions */
	bool failed;	       /* out of memory */
};

/*
 * Passes the thread's calls to `queue`. The map must exist as long as calls come; the caller sets
 * base_ns. Free it after the queue, which refers to its sites. NULL: out of memory.
 */
struct early_calls *early_calls__new(struct early_queue *queue, pid_t pid, pid_t tid,
				     struct code_map *map);
void early_calls__free(struct early_calls *early);

#endif
