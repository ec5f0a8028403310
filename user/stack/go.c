// SPDX-License-Identifier: MIT
/*
 * Goroutines (Go's src/runtime/asm_amd64.s, proc.go). Each thread has a stack for the scheduler,
 * g0's. mcall() and morestack() leave a goroutine by a call on that stack, from which nothing
 * returns: the scheduler goes to a goroutine by gogo(), a jump to where that one called mcall() or
 * morestack(), or to its first function. What is called by systemstack() runs on that stack, too,
 * but comes back like any call, and is shown as one.
 */
#include "stack/rules.h"

bool stack__is_preemption(const struct function *function)
{
	return function__is_named(function, "runtime.asyncPreempt") ||
	       function__is_named(function, "runtime.asyncPreempt.abi0");
}

static struct frame *find_frame(const struct frames *frames, const char *name)
{
	struct frame *frame = frames__top(frames);

	while (frame && !function__is_named(frame->call.function, name))
		frame = frames__parent(frames, frame);
	return frame;
}

/* Its last frame is goexit1()'s, which Goexit() calls, or what every goroutine returns to. */
static void end_goroutine(struct stack *s, const struct branch *b)
{
	bool by_goexit = find_frame(s->frames, "runtime.Goexit");

	frames__cut_to(s->frames, NULL, b->time_ns, by_goexit ? LEFT_BY_GOEXIT : LEFT_BY_UNKNOWN);
	if (s->strands.running == &s->strands.own)
		stack__suspend(s, b->time_ns, 0);
	else
		stack__end(s, b->time_ns, 0);
}

static void leave_goroutine(struct stack *s, const struct branch *b,
			    const struct function *function)
{
	struct strand *strand = s->strands.running;

	strand->is_goroutine = true;
	if (function__is_named(function, "runtime.goexit0"))
		end_goroutine(s, b);
	else
		stack__suspend(s, b->time_ns, frames__top(s->frames)->resume_ip);
	if (function__is_named(function, "runtime.recovery"))
		s->strands.recovering = strand;
}

/* The scheduler's frames that stay, in a new segment: another one runs in them each time. */
static void begin_system(struct stack *s, uint64_t time_ns)
{
	const held_vec *base = &s->strands.system_base;

	frames__begin_with(s->frames, time_ns, (struct held_stack){base->v, base->n}, CALL_INSIDE);
	if (base->n && frames__top(s->frames)) {
		s->strands.system_depth = s->frames->open.n - 1;
		s->strands.system_index = frames__top(s->frames)->index;
	}
}

/* It ran when a gap began, and has been left in it. */
static void find_system(struct stack *s, const struct branch *b)
{
	struct strands *strands = &s->strands;
	struct strand *system = strands->lost_system;

	strands->lost_system = NULL;
	if (!system || system->state != STRAND_PARKED)
		return;
	stack__end_wait(s, system, b->time_ns, false);
	strands->system = system;
}

void stack__on_mcall(struct stack *s, const struct branch *b, const struct function *function)
{
	struct strands *strands = &s->strands;
	struct strand *system;

	if (!strands->system)
		find_system(s, b);
	system = strands->system;
	if (!system)
		system = strands__add(strands, false);
	if (!system || system == strands->running) {
		stack__push_call(s, b, function);
		return;
	}
	leave_goroutine(s, b, function);
	if (system != strands->system) {
		strands->system = system;
		stack__begin_at(s, b->time_ns, system, b->to);
		return;
	}
	if (system->state == STRAND_WAITS) {
		stack__resume(s, b->time_ns, system);
	} else {
		stack__switch_to(s, system);
		begin_system(s, b->time_ns);
	}
	stack__push(s, &(struct frame){.call = branch__call(b, function, CALL_FUNCTION)});
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
		strands->system_base.n = 0;
		frames__list_open(frames, strands->system_depth + 1, &strands->system_base);
		return base;
	}
	if (strands->system_depth >= frames->open.n)
		return NULL;
	base = &frames->open.v[strands->system_depth];
	return !base->is_root && base->index == strands->system_index ? base : NULL;
}

/* What runs is the scheduler, and has not been seen since the gap: it is the one from before. */
static void join_system(struct stack *s)
{
	struct strands *strands = &s->strands;
	struct strand *system = strands->system;

	if (!system && strands->lost_system && strands->lost_system->state == STRAND_PARKED)
		system = strands->lost_system;
	if (!system || system == strands->running || !strands->running->is_loose)
		return;
	if (system->since > strands->n_before_gap || system->state == STRAND_OVER)
		return;
	stack__join(s, strands->running, system, false);
	strands->system = system;
	strands->lost_system = NULL;
}

void stack__settle_system(struct stack *s)
{
	struct held_stack begin;

	if (!s->strands.running->is_loose)
		return;
	begin = frames__show_begin(s->frames);
	for (size_t i = 0; i < begin.n; i++)
		if (function__is_named(begin.v[i].function, "runtime.schedule")) {
			join_system(s);
			return;
		}
}

void stack__leave_system(struct stack *s, const struct branch *b)
{
	struct strands *strands = &s->strands;
	struct frame *base;

	join_system(s);
	base = find_base(s);
	frames__pop_to(s->frames, base, b->time_ns, 0);
	if (!base && strands->system_base.n)
		begin_system(s, b->time_ns);
	strands->system = strands->running;
	stack__suspend(s, b->time_ns, 0);
}

/*
 * Not so newstack(), which goes back to the one whose stack has grown. And one that parked has been
 * made ready by another one, which puts it first of all.
 */
bool stack__is_queued(const struct stack *s, const struct branch *b)
{
	bool is_entry;

	return frames__top(s->frames)->role == ROLE_GOGO &&
	       find_frame(s->frames, "runtime.execute") &&
	       !function__is_named(stack__function_at(s, b->to, &is_entry), "runtime.gopark");
}

/* recovery() has the goroutine return once more from what deferred the call that recovered. */
void stack__recover(struct stack *s, const struct branch *b, const struct function *function)
{
	struct strand *strand = s->strands.recovering;
	struct frame *frame;

	stack__leave_system(s, b);
	stack__resume(s, b->time_ns, strand);
	s->strands.recovering = NULL;
	frame = stack__find_caller(s, function);
	if (frame)
		frames__cut_to(s->frames, frame, b->time_ns, LEFT_BY_PANIC);
	else
		stack__land(s, b, NULL, unwinding__departure_to(s, NULL, LEFT_BY_PANIC));
}
