/* SPDX-License-Identifier: MIT */
/*
 * The code of one process as it was at a time, with its decoded blocks. One decoding thread uses
 * it; the next takes it over with everything in it.
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
	struct images_kept kept; /* while nobody uses it; whose: kept.pid */
	struct images *images;
	struct code_map *map;
	struct blocks *blocks;
	struct memo *memo;	    /* of runs along them */
	struct memo_entry *entries; /* the memo's */
	bool tell_all;		    /* blocks__new() */
	size_t next_map;
};

/* One that was put back, or a new one without any code. NULL: out of memory. */
struct space *space__get(struct images *images, pid_t pid, bool tell_all);
void space__put(struct space *space);

/*
 * Shows the code of time_ns from now on. *cleared: no block of before exists any more. 0 or
 * -ENOMEM.
 */
int space__set_time(struct space *space, uint64_t time_ns, bool *cleared);

#endif
