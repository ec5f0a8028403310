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
	if (s->coroutines.running == &s->coroutines.own)
		stack__suspend(s, b->time_ns, 0);
	else
		stack__end(s, b->time_ns, 0);
}

static void leave_goroutine(struct stack *s, const struct branch *b,
			    const struct function *function)
{
	struct coroutine *coroutine = s->coroutines.running;

	coroutine->is_goroutine = true;
	if (function__is_named(function, "runtime.goexit0"))
		end_goroutine(s, b);
	else
		stack__suspend(s, b->time_ns, frames__top(s->frames)->resume_ip);
	if (function__is_named(function, "runtime.recovery"))
		s->coroutines.recovering = coroutine;
}

/* The scheduler's frames that stay, in a new segment: another one runs in them each time. */
static void begin_system(struct stack *s, uint64_t time_ns)
{
	const held_vec *base = &s->coroutines.system_base;

	frames__begin_with(s->frames, time_ns, (struct held_stack){base->v, base->n}, CALL_INSIDE);
	if (base->n && frames__top(s->frames)) {
		s->coroutines.system_depth = s->frames->open.n - 1;
		s->coroutines.system_index = frames__top(s->frames)->index;
	}
}

/* It ran when a gap began, and has been left in it. */
static void find_system(struct stack *s, const struct branch *b)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *system = coroutines->lost_system;

	coroutines->lost_system = NULL;
	if (!system || system->state != COROUTINE_PARKED)
		return;
	stack__end_wait(s, system, b->time_ns, false);
	coroutines->system = system;
}

void stack__on_mcall(struct stack *s, const struct branch *b, const struct function *function)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *system;

	if (!coroutines->system)
		find_system(s, b);
	system = coroutines->system;
	if (!system)
		system = coroutines__add(coroutines, false);
	if (!system || system == coroutines->running) {
		stack__push_call(s, b, function);
		return;
	}
	leave_goroutine(s, b, function);
	if (system != coroutines->system) {
		coroutines->system = system;
		stack__begin_at(s, b->time_ns, system, b->to);
		return;
	}
	if (system->state == COROUTINE_WAITS) {
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
	struct coroutines *coroutines = &s->coroutines;
	struct frames *frames = s->frames;
	struct frame *first = find_frame(frames, "runtime.mstart1");
	struct frame *base = first ? frames__parent(frames, first) : NULL;

	if (base) {
		coroutines->system_depth = (size_t)(base - frames->open.v);
		coroutines->system_index = base->index;
		coroutines->system_base.n = 0;
		frames__list_open(frames, coroutines->system_depth + 1, &coroutines->system_base);
		return base;
	}
	if (coroutines->system_depth >= frames->open.n)
		return NULL;
	base = &frames->open.v[coroutines->system_depth];
	return !base->is_root && base->index == coroutines->system_index ? base : NULL;
}

/* What runs is the scheduler, and has not been seen since the gap: it is the one from before. */
static void join_system(struct stack *s)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *system = coroutines->system;

	if (!system && coroutines->lost_system &&
	    coroutines->lost_system->state == COROUTINE_PARKED)
		system = coroutines->lost_system;
	if (!system || system == coroutines->running || !coroutines->running->is_loose)
		return;
	if (system->since > coroutines->n_before_gap || system->state == COROUTINE_OVER)
		return;
	stack__join(s, coroutines->running, system, false);
	coroutines->system = system;
	coroutines->lost_system = NULL;
}

void stack__settle_system(struct stack *s)
{
	struct held_stack begin;

	if (!s->coroutines.running->is_loose)
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
	struct coroutines *coroutines = &s->coroutines;
	struct frame *base;

	join_system(s);
	base = find_base(s);
	frames__pop_to(s->frames, base, b->time_ns, 0);
	if (!base && coroutines->system_base.n)
		begin_system(s, b->time_ns);
	coroutines->system = coroutines->running;
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
	struct coroutine *coroutine = s->coroutines.recovering;
	struct frame *frame;

	stack__leave_system(s, b);
	stack__resume(s, b->time_ns, coroutine);
	s->coroutines.recovering = NULL;
	frame = stack__find_caller(s, function);
	if (frame)
		frames__cut_to(s->frames, frame, b->time_ns, LEFT_BY_PANIC);
	else
		stack__land(s, b, NULL, unwinding__departure_to(s, NULL, LEFT_BY_PANIC));
}
