/* SPDX-License-Identifier: MIT */
/*
 * The code of one process at a time, with its decoded blocks. One decoding thread uses it, and the
 * next one takes it over with its content.
 */
#ifndef MTBPF_DECODE_SPACE_H
#define MTBPF_DECODE_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/blocks.h"
#include "decode/images.h"
#include "decode/memo.h"

struct space {
	struct images_kept kept; /* while unused; its process is kept.pid */
	struct images *images;
	struct code_map *map;
	struct blocks *blocks;
	struct memo *memo;	    /* of runs along them */
	struct memo_entry *entries; /* the memo's */
	bool tell_all;		    /* blocks__new() */
	size_t next_map;
};

/* A space that was put back, or a new one without code. NULL: out of memory. */
struct space *space__get(struct images *images, pid_t pid, bool tell_all);
void space__put(struct space *space);

/* Applies the mappings up to time_ns. *cleared: all blocks were freed. 0 or -ENOMEM. */
int space__set_time(struct space *space, uint64_t time_ns, bool *cleared);

#endif
