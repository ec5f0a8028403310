/* SPDX-License-Identifier: MIT */
/* Passes one thread's calls to the trace's writer while the thread is decoded. */
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
	struct call_tree part; /* the calls that are passed on, with all sites so far */
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
 * Passes the thread's calls to `queue`. All pointers must outlive it, and it must outlive the
 * queue. NULL: out of memory.
 */
struct early_calls *early_calls__new(struct early_queue *queue, pid_t pid, pid_t tid,
				     struct code_map *map);
void early_calls__free(struct early_calls *early);

#endif
