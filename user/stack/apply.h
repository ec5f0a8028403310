/* SPDX-License-Identifier: MIT */
/* What an event does to the frames, in a handful of operations. */
#ifndef MTBPF_STACK_APPLY_H
#define MTBPF_STACK_APPLY_H

#include "stack/rules.h"

/* True: that has set something right, and the branch itself is still to be classified by the rules
 * behind this one. */
bool event__apply(struct stack *s, const struct branch *b, const struct event *e);

#endif
