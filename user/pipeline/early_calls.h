/* SPDX-License-Identifier: MIT */
/* Calls of one thread, on their way to the trace while it is decoded. */
#ifndef MTBPF_PIPELINE_EARLY_CALLS_H
#define MTBPF_PIPELINE_EARLY_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/early_queue.h"
#include "stack/tree_passes.h"
#include "stack/call_tree.h"
#include "target/code_map.h"

struct early_calls {
	struct call_consumer consumer; /* for stack__set_consumer() */
	struct early_queue *queue;
	struct code_map *map;
	const uint64_t *base_ns; /* known with the first call */
	bool no_inline;
	struct call_tree part; /* the calls that are handed on, with the sites of all so far */
	struct inline_pass inlined;
	/* The last site that was asked for: mostly that of the call which is handed on next. */
	uint64_t site_ip;
	const struct call_site *site;
	/* The writer tells slices of a kind by their sites: those stay. */
	VEC(struct call_sites) retired;
	unsigned int replaced; /* code_map__replaced(), of the sites */
	uint64_t n;	       /* calls taken, with slices of inlined functions */
	bool failed;	       /* out of memory */
};

/*
 * Into `queue`, the calls of that thread. All pointers must outlive it, and it the queue. NULL: no
 * memory.
 */
struct early_calls *early_calls__new(struct early_queue *queue, pid_t pid, pid_t tid,
				     struct code_map *map);
void early_calls__free(struct early_calls *early);

#endif
