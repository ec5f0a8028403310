/* SPDX-License-Identifier: MIT */
/*
 * The code of one process as of one time, with its decoded blocks, and the effects of runs along
 * them (walk.c). A space is used by one decoding thread at a time, and the next thread takes it
 * over with its content.
 */
#ifndef MTBPF_DECODE_SPACE_H
#define MTBPF_DECODE_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/blocks.h"
#include "decode/images.h"

/* The effect of a run of packets at a block. */
struct memo_entry {
	struct block *block;
	uint64_t bytes;
	struct block *to;    /* NULL: the run has come once, and its effects are unknown */
	block_counts counts; /* what the run adds after the last branch that it hands on */
	/* NULL: none: the run has only jumps, and hands on nothing. */
	struct memo_effects *effects;
	uint64_t ip; /* of the run's TIP, if it has one */
	uint64_t pad[2];
};
_Static_assert(sizeof(struct memo_entry) == 64, "memo_entry");

/* There are 1 << MEMO_BITS entries. */
#define MEMO_BITS 16

struct space {
	struct images_kept kept; /* kept by images while unused; kept.pid: the process */
	struct images *images;
	struct code_map *map;
	struct blocks *blocks;
	struct memo_entry *entries; /* pages are allocated when first touched */
	struct arena effects;	    /* of the entries */
	bool tell_all;		    /* as for blocks__new() */
	size_t next_map;
};

/* A space that was put back, or a new one without code. NULL: out of memory. */
struct space *space__get(struct images *images, pid_t pid, bool tell_all);
void space__put(struct space *space);

/* Applies the mappings up to time_ns. *cleared: all blocks were freed. 0 or -ENOMEM. */
int space__set_time(struct space *space, uint64_t time_ns, bool *cleared);
/* Clears all entries, and frees their effects. */
void space__forget_runs(struct space *space);

#endif
