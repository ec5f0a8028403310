// SPDX-License-Identifier: MIT
/*
 * Goroutines (Go's src/runtime/asm_amd64.s, proc.go). Each thread has a stack for the scheduler,
 * g0's. mcall() and morestack() leave a goroutine by a call on that stack, from which nothing
 * returns: the scheduler goes to a goroutine by gogo(), a jump to where that one called mcall() or
 * morestack(), or to its first function. What is called by systemstack() runs on that stack, too,
 * but comes back like any call, and is shown as one.
 */
#include "stack/stack_internal.h"

#include <string.h>

static bool runs(const struct function *function, const char *name)
{
	return function && !strcmp(function->raw_name, name);
}

static struct frame *find_frame(const struct frames *frames, const char *name)
{
	struct frame *frame = frames__top(frames);

	while (frame && !runs(frame->call.function, name))
		frame = frames__parent(frames, frame);
	return frame;
}

/* Its last frame is goexit1()'s, which Goexit() calls, or what every goroutine returns to. */
static void end_goroutine(struct stack *s, const struct branch *b)
{
	bool by_goexit = find_frame(s->frames, "runtime.Goexit");

	frames__cut_all(s->frames, b->time_ns, by_goexit ? LEFT_BY_GOEXIT : LEFT_BY_UNKNOWN);
	if (s->strands.running == &s->strands.own)
		stack__wait(s, b, 0);
	else
		s->strands.running->state = STRAND_OVER;
}

static void leave_goroutine(struct stack *s, const struct branch *b,
			    const struct function *function)
{
	struct strand *strand = s->strands.running;

	strand->is_goroutine = true;
	if (runs(function, "runtime.goexit0"))
		end_goroutine(s, b);
	else
		stack__wait(s, b, frames__top(s->frames)->resume_ip);
	if (runs(function, "runtime.recovery"))
		s->strands.recovering = strand;
}

void stack__on_mcall(struct stack *s, const struct branch *b, const struct function *function)
{
	struct strands *strands = &s->strands;
	struct strand *system = strands->system;

	if (!system)
		system = strands__add(strands, false);
	if (!system || system == strands->running) {
		stack__push_call(s, b, function);
		return;
	}
	leave_goroutine(s, b, function);
	if (system != strands->system) {
		strands->system = system;
		stack__begin_strand(s, b, system);
		return;
	}
	stack__run_strand(s, system);
	frames__pop(s->frames, b->time_ns, 0); /* the slice of the time switched out */
	stack__push(s, b, function, CALL_FUNCTION, 0, 0);
}

/* It begins each time where mstart1() was called, which is seen but once. */
static struct frame *find_base(struct stack *s)
{
	struct strands *strands = &s->strands;
	struct frames *frames = s->frames;
	struct frame *first = find_frame(frames, "runtime.mstart1");
	struct frame *base = first ? frames__parent(frames, first) : NULL;

	if (base) {
		strands->system_depth = (size_t)(base - frames->open.v);
		strands->system_index = base->index;
		return base;
	}
	if (strands->system_depth >= frames->open.n)
		return NULL;
	base = &frames->open.v[strands->system_depth];
	return !base->is_root && base->index == strands->system_index ? base : NULL;
}

void stack__leave_system(struct stack *s, const struct branch *b)
{
	struct frame *base = find_base(s);

	if (base)
		frames__unwind_to(s->frames, base, b->time_ns, 0);
	else
		frames__close_all(s->frames, b->time_ns, 0);
	s->strands.system = s->strands.running;
	stack__wait(s, b, 0);
}

/* recovery() has the goroutine return once more from what deferred the call that recovered. */
bool stack__recover(struct stack *s, const struct branch *b)
{
	struct strands *strands = &s->strands;
	struct strand *strand = strands->recovering;
	const struct function *function;
	struct frame *frame;
	bool is_entry;

	if (!strand || strand->state != STRAND_WAITS || frames__top(s->frames)->role != ROLE_GOGO)
		return false;
	function = stack__function_at(s, b->to, &is_entry);
	stack__leave_system(s, b);
	stack__run_strand(s, strand);
	strands->recovering = NULL;
	frames__pop(s->frames, b->time_ns, 0); /* the slice of the time switched out */
	frame = stack__find_caller(s, function);
	if (frame)
		frames__cut_to(s->frames, frame, b->time_ns, LEFT_BY_PANIC);
	else
		stack__break_segment(s, b);
	return true;
}
