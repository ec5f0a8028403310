/* SPDX-License-Identifier: MIT */
/* One stack's calls put behind, or below, those of another tree. */
#ifndef MTBPF_STACK_MOVED_SPLICE_H
#define MTBPF_STACK_MOVED_SPLICE_H

#include "stack/moved/waits.h"

typedef VEC(struct call) call_vec;

/*
 * The stack whose calls are `root` to `end` turns out to have had these calls below it, the
 * outermost first. 0 or -ENOMEM.
 */
int splice__below(struct waiter *waiter, uint32_t root, uint32_t end, const call_vec *below);

/*
 * The newcomer is what waits in `to`, as the last of its calls, and has all of its own callers
 * there. It leaves its tree. 0 or -ENOMEM.
 */
int splice__behind(struct waiter *to, struct waiter *from, const struct newcomer *newcomer);

#endif
