/* SPDX-License-Identifier: MIT */
/* The stack at a hit: joins what the recording has of it with the code that ran. */
#ifndef MTBPF_SAMPLED_HIT_STACK_H
#define MTBPF_SAMPLED_HIT_STACK_H

#include "capture/recording/recording.h"
#include "decode/images.h"
#include "target/unwind/unwind.h"

/*
 * The best list of callers that there is for one of rec's hits: unwound from the copy of its stack;
 * what that does not reach, or all of it where there is no copy, is from the chain of frame
 * pointers that the kernel followed, as far as its addresses are behind calls. Such a chain may
 * lack callers, and is never said to be whole. 0 or -ENOMEM; unwound__fini() in any case.
 */
int hit_stack__find(const struct recording *rec, const struct mt_hit *hit, struct images *images,
		    struct unwound *out);

#endif
