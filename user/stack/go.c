// SPDX-License-Identifier: MIT
/*
 * Goroutines (Go's src/runtime/asm_amd64.s, proc.go). Each thread has a stack for the scheduler,
 * g0's. mcall() and morestack() leave a goroutine by a call on that stack, from which nothing
 * returns: the scheduler goes to a goroutine by gogo(), a jump to where that one called mcall() or
 * morestack(), or to its first function. What is called by systemstack() runs on that stack, too,
 * but comes back like any call, and is shown as one.
 */
#include "stack/rules.h"

#include <string.h>

static bool runs(const struct function *function, const char *name)
{
	return function && !strcmp(function->raw_name, name);
}

bool stack__is_preemption(const struct function *function)
{
	return runs(function, "runtime.asyncPreempt") ||
	       runs(function, "runtime.asyncPreempt.abi0");
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

/* The scheduler's frames that stay, in a new segment: another one runs in them each time. */
static void begin_system(struct stack *s, uint64_t time_ns)
{
	const struct held *base = s->strands.system_base.v;
	size_t n = s->strands.system_base.n;

	frames__begin_segment(s->frames, time_ns);
	for (size_t i = 0; i < n; i++) {
		struct call call = {
			.start_ns = time_ns,
			.entry_ip = i + 1 < n ? base[i + 1].return_ip : base[i].entry_ip,
			.function = base[i].function,
			.flags = CALL_INFERRED_START | CALL_INSIDE,
		};
		struct frame *frame = frames__push(s->frames, &call);

		if (!frame)
			return;
		frame->return_ip = base[i].return_ip;
		frame->slack = base[i].slack;
	}
	if (n) {
		s->strands.system_depth = s->frames->open.n - 1;
		s->strands.system_index = frames__top(s->frames)->index;
	}
	s->frames->level = 0;
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

static void go_to_system(struct stack *s, const struct branch *b, struct strand *system)
{
	bool has_run = system->state == STRAND_WAITS;

	stack__run_strand(s, system);
	if (has_run)
		frames__pop(s->frames, b->time_ns, 0); /* the slice of the time switched out */
	else
		begin_system(s, b->time_ns);
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
		stack__begin_strand(s, b, system);
		return;
	}
	go_to_system(s, b, system);
	stack__push(s, b, function, CALL_FUNCTION, 0, 0);
}

static void keep_base(struct stack *s, const struct frame *base)
{
	held_vec *kept = &s->strands.system_base;

	kept->n = 0;
	for (const struct frame *frame = s->frames->open.v; frame <= base; frame++) {
		struct held *held = VEC_PUSH(kept);

		if (!held) {
			s->frames->failed = true;
			return;
		}
		*held = (struct held){.function = frame->call.function,
				      .return_ip = frame->return_ip,
				      .entry_ip = frame->call.entry_ip,
				      .slack = frame->slack};
	}
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
		keep_base(s, base);
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
		if (runs(begin.v[i].function, "runtime.schedule")) {
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
	if (base) {
		frames__unwind_to(s->frames, base, b->time_ns, 0);
	} else {
		frames__close_all(s->frames, b->time_ns, 0);
		if (strands->system_base.n)
			begin_system(s, b->time_ns);
	}
	strands->system = strands->running;
	stack__wait(s, b, 0);
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
	       !runs(stack__function_at(s, b->to, &is_entry), "runtime.gopark");
}

/* recovery() has the goroutine return once more from what deferred the call that recovered. */
void stack__recover(struct stack *s, const struct branch *b, const struct function *function)
{
	struct strand *strand = s->strands.recovering;
	struct frame *frame;

	stack__leave_system(s, b);
	stack__run_strand(s, strand);
	s->strands.recovering = NULL;
	frames__pop(s->frames, b->time_ns, 0); /* the slice of the time switched out */
	frame = stack__find_caller(s, function);
	if (frame)
		frames__cut_to(s->frames, frame, b->time_ns, LEFT_BY_PANIC);
	else
		stack__land(s, b, NULL, unwinding__departure_to(s, NULL, LEFT_BY_PANIC));
}
