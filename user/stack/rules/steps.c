// SPDX-License-Identifier: MIT
/*
 * How far an exception has come. libgcc's unwinder goes from frame to frame twice: to find who
 * takes the exception, and to leave those above (libgcc/unwind.inc: _Unwind_RaiseException(), and
 * its second phase, a function of its own, which _Unwind_Resume() calls as well). Of each frame,
 * from the caller of these on and with the one that it lands in, it asks _Unwind_Find_FDE() once
 * (unwind-dw2.c: uw_frame_state_for()). So the branches tell how many frames were left, of those
 * too that a gap has hidden.
 */
#include "stack/stack_internal.h"

void stack__on_step(struct stack *s)
{
	const struct frame *top = frames__top(s->frames);
	const struct frame *phase = top ? frames__parent(s->frames, top) : NULL;
	const struct frame *unwinder = phase ? frames__parent(s->frames, phase) : NULL;

	/* A phase that had begun before the trace did, so that there were more, has no caller yet.
	 */
	if (!unwinder) {
		s->steps.n = 0;
		return;
	}
	if (!s->steps.n || s->steps.phase != frame__id(phase) ||
	    s->steps.unwinder != frame__id(unwinder)) {
		s->steps.phase = frame__id(phase);
		s->steps.unwinder = frame__id(unwinder);
		s->steps.n = 0;
	}
	s->steps.n++;
}

size_t stack__count_steps(const struct stack *s)
{
	const struct frame *top = frames__top(s->frames);

	return top && s->steps.n && s->steps.unwinder == frame__id(top) ? s->steps.n : 0;
}
