/* SPDX-License-Identifier: MIT */
/* For tests that drive a stack branch by branch, and look at what runs in between. */
#ifndef MTBPF_TESTS_STACK_STATE_H
#define MTBPF_TESTS_STACK_STATE_H

#include "stack/stack.h"
#include "stack/stack_internal.h"

static inline int take_one(struct stack *s, const struct branch *b)
{
	return stack__take(s, b, 1);
}

/* The stack that runs: 0 is the thread's own, and each one that begins has the next number. */
static inline unsigned int running_stack(const struct stack *s)
{
	return s->coroutines.running->generation;
}

/* The segment before, if an unwind below all of it led to this one; NULL: another way did. */
static inline const struct part *unwound_segment(const struct frames *frames,
						 const struct part *segment)
{
	if (segment == frames->parts.v || segment->boundary != BOUNDARY_UNWIND)
		return NULL;
	do
		segment--;
	while (segment->outer != PART_NONE);
	return segment;
}

/* The depth of the top frame, from where its stack, or its segment, began; negative above that. */
static inline long top_level(const struct stack *s)
{
	const struct part *segment = frames__running_segment(s->frames);
	long level = (long)s->frames->open.n - 1 - s->outside;

	if (segment)
		level -= segment->n_roots;
	while (segment && (segment = unwound_segment(s->frames, segment)))
		level -= 1 + (long)segment->n_roots;
	return level;
}

/* The function on top, below a slice of time outside user code; NULL: none. */
static inline const struct function *top_function(const struct stack *s)
{
	const struct frame *top = frames__top(s->frames);

	if (top && s->outside)
		top = frames__parent(s->frames, top);
	return top ? top->call.function : NULL;
}

#endif
