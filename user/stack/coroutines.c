// SPDX-License-Identifier: MIT
/*
 * The stacks that one thread runs on in turn, and the switches from one to another: swapcontext()
 * and the like, and functions whose code loads the stack pointer. The frames that are left stay
 * open, and wait where their switch would have returned to; who goes there runs on in them. Of
 * several that wait at one address the stack pointer alone, which is in no packet, could tell: the
 * one that was left last is taken.
 */
#include "stack/rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void coroutines__init(struct coroutines *coroutines, struct frames *own_frames)
{
	*coroutines = (struct coroutines){
		.own_frames = own_frames, .own.state = COROUTINE_RUNS, .system_index = UINT32_MAX};
	coroutines->running = &coroutines->own;
}

void coroutines__fini(struct coroutines *coroutines)
{
	for (size_t i = 0; i < coroutines->others.n; i++) {
		frames__fini(&coroutines->others.v[i]->frames);
		VEC_FINI(&coroutines->others.v[i]->pending);
		free(coroutines->others.v[i]);
	}
	VEC_FINI(&coroutines->others);
	VEC_FINI(&coroutines->own.pending);
	VEC_FINI(&coroutines->system_base);
	frames_mark__fini(&coroutines->mark);
}

static struct coroutine *later(struct coroutine *best, struct coroutine *coroutine)
{
	return !best || coroutine->since > best->since ? coroutine : best;
}

static bool waits_at(const struct coroutine *coroutine, uint64_t ip, enum coroutine_state state)
{
	return coroutine->state == state && coroutine->waits_at &&
	       ip - coroutine->waits_at <= coroutine->slack;
}

bool coroutines__has_parked(const struct coroutines *coroutines)
{
	for (size_t i = 0; i < coroutines__count(coroutines); i++)
		if (coroutines__at(coroutines, i)->state == COROUTINE_PARKED)
			return true;
	return false;
}

struct coroutine *coroutines__find_waiting(const struct coroutines *coroutines, uint64_t ip,
					   bool is_first)
{
	struct coroutine *best = NULL;

	for (size_t i = 0; ip && i < coroutines__count(coroutines); i++) {
		struct coroutine *coroutine = coroutines__at(coroutines, i);

		if (waits_at(coroutine, ip, COROUTINE_WAITS) &&
		    (!best || (coroutine->since < best->since) == is_first))
			best = coroutine;
	}
	return best;
}

struct coroutine *coroutines__find_other(const struct coroutines *coroutines, uint64_t return_ip,
					 enum coroutine_state state)
{
	struct coroutine *running = coroutines->running, *best = NULL;
	struct frames *frames = coroutines__frames_of(coroutines, running);

	for (size_t i = 0; i < coroutines__count(coroutines); i++) {
		struct coroutine *coroutine = coroutines__at(coroutines, i);

		if (waits_at(coroutine, coroutines->mark.waits_at, state) &&
		    frames_mark__fits(&coroutines->mark, frames,
				      coroutines__frames_of(coroutines, coroutine), return_ip))
			best = later(best, coroutine);
	}
	return best;
}

static bool is_free(const struct coroutine *coroutine, bool is_loose)
{
	return coroutine->state == COROUTINE_OVER && !coroutine->is_loose &&
	       (!is_loose || !coroutine->frames.parts.n);
}

/* Of the one that was there before it keeps its track only. */
static struct coroutine *use_again(struct coroutines *coroutines, struct coroutine *coroutine)
{
	if (coroutines->system == coroutine)
		coroutines->system = NULL;
	if (coroutines->lost_system == coroutine)
		coroutines->lost_system = NULL;
	frames__forget(&coroutine->frames);
	coroutine->is_fiber = coroutine->is_rootless = false;
	coroutine->parent = coroutine->child = coroutine->performed = NULL;
	return coroutine;
}

struct coroutine *coroutines__add(struct coroutines *coroutines, bool is_loose)
{
	struct coroutine **place, *coroutine;

	/* From here on, what was taken for the thread's own may turn out to be another's. */
	coroutines->own_frames->consumer = NULL;
	for (size_t i = 0; i < coroutines->others.n; i++)
		if (is_free(coroutines->others.v[i], is_loose))
			return use_again(coroutines, coroutines->others.v[i]);
	if (coroutines->others.n == COROUTINES_MAX)
		return NULL;
	coroutine = calloc(1, sizeof(*coroutine));
	place = coroutine ? VEC_PUSH(&coroutines->others) : NULL;
	if (!place) {
		free(coroutine);
		return NULL;
	}
	*place = coroutine;
	frames__init(&coroutine->frames);
	coroutine->frames.stitcher.is_off = coroutines->own_frames->stitcher.is_off;
	coroutine->number = (uint32_t)coroutines->others.n;
	return coroutine;
}

struct coroutine *coroutines__take_next(struct coroutines *coroutines)
{
	while (coroutines->n_taken < coroutines->others.n) {
		struct coroutine *coroutine = coroutines->others.v[coroutines->n_taken++];

		if (coroutine->frames.parts.n)
			return coroutine;
	}
	return NULL;
}

void coroutines__name(const struct coroutines *coroutines, const struct coroutine *coroutine,
		      char *buf, size_t size)
{
	const char *kind = coroutine->is_goroutine ? "goroutine"
			   : coroutine->is_fiber   ? "fiber"
						   : "coroutine";

	if (coroutine == coroutines->system)
		snprintf(buf, size, "g0");
	else
		snprintf(buf, size, "%s %" PRIu32, kind, coroutine->number);
}

/* The thread's own is never over, and getcontext() may have remembered where another goes on. */
static void leave(struct stack *s, const struct branch *b)
{
	struct coroutine *coroutine = s->coroutines.running;
	const struct frame *top = frames__top(s->frames);
	bool comes_back = top->role == ROLE_SWITCH || top->role == ROLE_MAY_SWITCH;

	if (top->role == ROLE_GOGO) {
		stack__leave_system(s, b);
		return;
	}
	if (comes_back || coroutine == &s->coroutines.own || s->frames->landings.n)
		stack__suspend(s, b->time_ns, comes_back ? top->resume_ip : 0);
	else
		stack__end(s, b->time_ns, CALL_CUT_SHORT);
}

void stack__mark(struct stack *s, uint64_t time_ns, uint64_t waits_at, size_t n_above)
{
	s->coroutines.has_mark = true;
	s->own_frames.consumer = NULL;
	if (frames_mark__set(&s->coroutines.mark, s->frames, time_ns, waits_at, n_above))
		s->frames->failed = true;
}

/*
 * To itself, or to one that is not known yet and waits at the same address. What only looks like a
 * switch does not undo what is known of one.
 */
static void come_back(struct stack *s, const struct branch *b)
{
	const struct frame *top = frames__top(s->frames);

	if (top->role == ROLE_SWITCH || !s->coroutines.has_mark ||
	    s->coroutines.switched_by == top->call.function) {
		s->coroutines.switched_by = top->call.function;
		s->coroutines.running->waits_at = top->resume_ip;
		s->coroutines.running->slack = top->slack;
		stack__mark(s, b->time_ns, b->to, 1);
	}
	frames__pop(s->frames, b->time_ns, 0);
}

/* Its switch has come back, unless it is another one's that waits there. */
static void resume(struct stack *s, const struct branch *b, struct coroutine *coroutine)
{
	leave(s, b);
	stack__switch_to(s, coroutine);
	stack__mark(s, b->time_ns, b->to, 2);
	frames__pop(s->frames, b->time_ns, 0); /* the slice of the time switched out */
	s->coroutines.switched_by = frames__top(s->frames)->call.function;
	frames__pop(s->frames, b->time_ns, 0);
}

/* To a frame of another coroutine that called getcontext() or setjmp(). */
static void land_elsewhere(struct stack *s, const struct branch *b, struct coroutine *coroutine)
{
	struct departure by;
	struct frame *frame;

	leave(s, b);
	stack__switch_to(s, coroutine);
	if (unwinding__find_setjmp(s, b, &frame, &by))
		stack__land(s, b, frame, by);
}

static bool begin(struct stack *s, const struct branch *b, bool is_goroutine)
{
	const struct function *function;
	struct coroutine *coroutine;
	bool is_entry;

	function = stack__function_at(s, b->to, &is_entry);
	coroutine = coroutines__add(&s->coroutines, !function || !is_entry);
	if (!coroutine)
		return false;
	coroutine->is_goroutine = is_goroutine;
	leave(s, b);
	stack__begin_at(s, b->time_ns, coroutine, b->to);
	return true;
}

/* One that has waited since before a gap, unless it may be the same as the one that runs. */
static struct coroutine *find_parked(const struct stack *s, const struct branch *b)
{
	struct coroutine *coroutine =
		coroutines__find_other(&s->coroutines, b->to, COROUTINE_PARKED);
	struct held_stack begin;

	if (!coroutine)
		return NULL;
	begin = frames__show_begin(s->frames);
	for (size_t i = 0; i < coroutine->pending.n; i++)
		if (begin.n && coroutine->pending.v[i].function == begin.v[0].function)
			return NULL;
	return coroutine;
}

/*
 * Of those that wait, the one that returns there; or whose caller is not known. Where that of the
 * one that runs is not known either: one that has waited since before a gap, and returns there.
 */
bool stack__find_other(const struct stack *s, const struct branch *b, struct coroutine **other)
{
	const struct coroutines *coroutines = &s->coroutines;
	bool has_caller = frames__top(s->frames)->return_ip;

	*other = coroutines__find_other(coroutines, b->to, COROUTINE_WAITS);
	if (!*other && has_caller)
		*other = coroutines__find_other(coroutines, 0, COROUTINE_WAITS);
	if (!*other && !has_caller)
		*other = find_parked(s, b);
	/* One that has waited since before the trace began. */
	return *other || (has_caller && frames_mark__is_whole(&coroutines->mark, s->frames));
}

/* One that has waited since before the trace began. NULL: no memory, or too many. */
static struct coroutine *add_unknown(struct stack *s)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *coroutine = coroutines__add(coroutines, true);

	if (!coroutine ||
	    !frames_mark__begin_like(&coroutines->mark, s->frames, &coroutine->frames))
		return NULL;
	coroutine->is_goroutine = coroutines->running->is_goroutine;
	coroutine->is_fiber = coroutines->running->is_fiber;
	coroutine->generation = ++coroutines->n_begun;
	coroutine->waits_at = coroutine->began_at = coroutines->mark.waits_at;
	coroutine->is_loose = true;
	return coroutine;
}

static void wait_since(struct frames *frames, uint64_t time_ns)
{
	frames__push(frames, &(struct call){.start_ns = time_ns, .kind = CALL_SWITCHED});
}

/*
 * The top frame returns to where it does not: it turns out that another stack has run all the time
 * since the last switch, which now does instead, and to which that return belongs.
 */
static void run_other(struct stack *s, struct coroutine *other)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *running = coroutines->running;
	struct frames *frames = s->frames;

	if (other)
		frames_mark__go_on(&coroutines->mark, coroutines__frames_of(coroutines, other));
	else
		other = add_unknown(s);
	if (!other)
		return;
	stack__resume_other(s, other);
	stack__switch_to(s, other);
	if (frames_mark__move(&coroutines->mark, frames, s->frames))
		s->frames->failed = true;
	running->state = COROUTINE_WAITS;
	if (coroutines->mark.n_above == 1)
		wait_since(frames, coroutines->mark.time_ns);
}

bool stack__apply_switch(struct stack *s, const struct branch *b, const struct event *e)
{
	switch ((enum event_kind)e->rule->event) {
	case EVENT_SWITCH:
		resume(s, b, e->coroutine);
		return false;
	case EVENT_SWITCH_BACK:
		come_back(s, b);
		return false;
	case EVENT_SWITCH_LANDING:
		land_elsewhere(s, b, e->coroutine);
		return false;
	case EVENT_SWITCH_NEW:
		return !begin(s, b, frames__top(s->frames)->role == ROLE_GOGO);
	case EVENT_NO_SWITCH:
		stack__give_back(frames__top(s->frames));
		return true;
	case EVENT_OTHER_STACK:
		run_other(s, e->coroutine);
		return true;
	case EVENT_GO_MCALL:
		stack__on_mcall(s, b, e->function);
		return false;
	case EVENT_GO_RECOVERY:
		stack__recover(s, b, e->function);
		return false;
	default:
		return stack__apply_effect(s, b, e);
	}
}
