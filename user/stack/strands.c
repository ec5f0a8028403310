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

void strands__init(struct strands *strands, struct frames *own_frames)
{
	*strands = (struct strands){
		.own_frames = own_frames, .own.state = STRAND_RUNS, .system_index = UINT32_MAX};
	strands->running = &strands->own;
}

void strands__fini(struct strands *strands)
{
	for (size_t i = 0; i < strands->others.n; i++) {
		frames__fini(&strands->others.v[i]->frames);
		VEC_FINI(&strands->others.v[i]->pending);
		free(strands->others.v[i]);
	}
	VEC_FINI(&strands->others);
	VEC_FINI(&strands->own.pending);
	VEC_FINI(&strands->system_base);
	frames_mark__fini(&strands->mark);
}

static struct strand *later(struct strand *best, struct strand *strand)
{
	return !best || strand->since > best->since ? strand : best;
}

static bool waits_at(const struct strand *strand, uint64_t ip, enum strand_state state)
{
	return strand->state == state && strand->waits_at && ip - strand->waits_at <= strand->slack;
}

bool strands__has_parked(const struct strands *strands)
{
	for (size_t i = 0; i < strands__count(strands); i++)
		if (strands__at(strands, i)->state == STRAND_PARKED)
			return true;
	return false;
}

struct strand *strands__find_first_waiting(const struct strands *strands, uint64_t ip)
{
	struct strand *best = NULL;

	for (size_t i = 0; ip && i < strands__count(strands); i++) {
		struct strand *strand = strands__at(strands, i);

		if (waits_at(strand, ip, STRAND_WAITS) && (!best || strand->since < best->since))
			best = strand;
	}
	return best;
}

struct strand *strands__find_waiting(const struct strands *strands, uint64_t ip)
{
	struct strand *best = NULL;

	for (size_t i = 0; ip && i < strands__count(strands); i++) {
		struct strand *strand = strands__at(strands, i);

		if (waits_at(strand, ip, STRAND_WAITS))
			best = later(best, strand);
	}
	return best;
}

struct strand *strands__find_other(const struct strands *strands, uint64_t return_ip,
				   enum strand_state state)
{
	struct strand *running = strands->running, *best = NULL;
	struct frames *frames = strands__frames_of(strands, running);

	for (size_t i = 0; i < strands__count(strands); i++) {
		struct strand *strand = strands__at(strands, i);

		if (waits_at(strand, strands->mark.waits_at, state) &&
		    frames_mark__fits(&strands->mark, frames, strands__frames_of(strands, strand),
				      return_ip))
			best = later(best, strand);
	}
	return best;
}

static bool is_free(const struct strand *strand, bool is_loose)
{
	return strand->state == STRAND_OVER && !strand->is_loose &&
	       (!is_loose || !strand->frames.parts.n);
}

/* Of the one that was there before it keeps its track only. */
static struct strand *use_again(struct strands *strands, struct strand *strand)
{
	if (strands->system == strand)
		strands->system = NULL;
	if (strands->lost_system == strand)
		strands->lost_system = NULL;
	frames__forget(&strand->frames);
	strand->is_fiber = strand->is_rootless = false;
	strand->parent = strand->child = strand->performed = NULL;
	return strand;
}

struct strand *strands__add(struct strands *strands, bool is_loose)
{
	struct strand **place, *strand;

	/* From here on, what was taken for the thread's own may turn out to be another's. */
	strands->own_frames->taker = NULL;
	for (size_t i = 0; i < strands->others.n; i++)
		if (is_free(strands->others.v[i], is_loose))
			return use_again(strands, strands->others.v[i]);
	if (strands->others.n == STRANDS_MAX)
		return NULL;
	strand = calloc(1, sizeof(*strand));
	place = strand ? VEC_PUSH(&strands->others) : NULL;
	if (!place) {
		free(strand);
		return NULL;
	}
	*place = strand;
	frames__init(&strand->frames);
	strand->frames.stitcher.is_off = strands->own_frames->stitcher.is_off;
	strand->number = (uint32_t)strands->others.n;
	return strand;
}

struct strand *strands__take_next(struct strands *strands)
{
	while (strands->n_taken < strands->others.n) {
		struct strand *strand = strands->others.v[strands->n_taken++];

		if (strand->frames.parts.n)
			return strand;
	}
	return NULL;
}

void strands__name(const struct strands *strands, const struct strand *strand, char *buf,
		   size_t size)
{
	const char *kind = strand->is_goroutine ? "goroutine"
			   : strand->is_fiber	? "fiber"
						: "coroutine";

	if (strand == strands->system)
		snprintf(buf, size, "g0");
	else
		snprintf(buf, size, "%s %" PRIu32, kind, strand->number);
}

/* The thread's own is never over, and getcontext() may have remembered where another goes on. */
static void leave(struct stack *s, const struct branch *b)
{
	struct strand *strand = s->strands.running;
	const struct frame *top = frames__top(s->frames);
	bool comes_back = top->role == ROLE_SWITCH || top->role == ROLE_MAY_SWITCH;

	if (top->role == ROLE_GOGO) {
		stack__leave_system(s, b);
		return;
	}
	if (comes_back || strand == &s->strands.own || s->frames->landings.n)
		stack__suspend(s, b->time_ns, comes_back ? top->resume_ip : 0);
	else
		stack__end(s, b->time_ns, CALL_CUT_SHORT);
}

void stack__mark(struct stack *s, uint64_t time_ns, uint64_t waits_at, size_t n_above)
{
	s->strands.has_mark = true;
	s->own_frames.taker = NULL;
	if (frames_mark__set(&s->strands.mark, s->frames, time_ns, waits_at, n_above))
		s->frames->failed = true;
}

/*
 * To itself, or to one that is not known yet and waits at the same address. What only looks like a
 * switch does not undo what is known of one.
 */
static void come_back(struct stack *s, const struct branch *b)
{
	const struct frame *top = frames__top(s->frames);

	if (top->role == ROLE_SWITCH || !s->strands.has_mark ||
	    s->strands.switched_by == top->call.function) {
		s->strands.switched_by = top->call.function;
		s->strands.running->waits_at = top->resume_ip;
		s->strands.running->slack = top->slack;
		stack__mark(s, b->time_ns, b->to, 1);
	}
	frames__pop(s->frames, b->time_ns, 0);
}

/* Its switch has come back, unless it is another one's that waits there. */
static void resume(struct stack *s, const struct branch *b, struct strand *strand)
{
	leave(s, b);
	stack__switch_to(s, strand);
	stack__mark(s, b->time_ns, b->to, 2);
	frames__pop(s->frames, b->time_ns, 0); /* the slice of the time switched out */
	s->strands.switched_by = frames__top(s->frames)->call.function;
	frames__pop(s->frames, b->time_ns, 0);
}

/* To a frame of another strand that called getcontext() or setjmp(). */
static void land_elsewhere(struct stack *s, const struct branch *b, struct strand *strand)
{
	struct departure by;
	struct frame *frame;

	leave(s, b);
	stack__switch_to(s, strand);
	if (unwinding__find_setjmp(s, b, &frame, &by))
		stack__land(s, b, frame, by);
}

static bool begin(struct stack *s, const struct branch *b, bool is_goroutine)
{
	const struct function *function;
	struct strand *strand;
	bool is_entry;

	function = stack__function_at(s, b->to, &is_entry);
	strand = strands__add(&s->strands, !function || !is_entry);
	if (!strand)
		return false;
	strand->is_goroutine = is_goroutine;
	leave(s, b);
	stack__begin_at(s, b->time_ns, strand, b->to);
	return true;
}

/* One that has waited since before a gap, unless it may be the same as the one that runs. */
static struct strand *find_parked(const struct stack *s, const struct branch *b)
{
	struct strand *strand = strands__find_other(&s->strands, b->to, STRAND_PARKED);
	struct held_stack begin;

	if (!strand)
		return NULL;
	begin = frames__show_begin(s->frames);
	for (size_t i = 0; i < strand->pending.n; i++)
		if (begin.n && strand->pending.v[i].function == begin.v[0].function)
			return NULL;
	return strand;
}

/*
 * Of those that wait, the one that returns there; or whose caller is not known. Where that of the
 * one that runs is not known either: one that has waited since before a gap, and returns there.
 */
bool stack__find_other(const struct stack *s, const struct branch *b, struct strand **other)
{
	const struct strands *strands = &s->strands;
	bool has_caller = frames__top(s->frames)->return_ip;

	*other = strands__find_other(strands, b->to, STRAND_WAITS);
	if (!*other && has_caller)
		*other = strands__find_other(strands, 0, STRAND_WAITS);
	if (!*other && !has_caller)
		*other = find_parked(s, b);
	/* One that has waited since before the trace began. */
	return *other || (has_caller && frames_mark__is_whole(&strands->mark, s->frames));
}

/* One that has waited since before the trace began. NULL: no memory, or too many. */
static struct strand *add_unknown(struct stack *s)
{
	struct strands *strands = &s->strands;
	struct strand *strand = strands__add(strands, true);

	if (!strand || !frames_mark__begin_like(&strands->mark, s->frames, &strand->frames))
		return NULL;
	strand->is_goroutine = strands->running->is_goroutine;
	strand->is_fiber = strands->running->is_fiber;
	strand->generation = ++strands->n_begun;
	strand->waits_at = strand->began_at = strands->mark.waits_at;
	strand->is_loose = true;
	return strand;
}

static void wait_since(struct frames *frames, uint64_t time_ns)
{
	frames__push(frames, &(struct call){.start_ns = time_ns, .kind = CALL_SWITCHED});
}

/*
 * The top frame returns to where it does not: it turns out that another stack has run all the time
 * since the last switch, which now does instead, and to which that return belongs.
 */
static void run_other(struct stack *s, struct strand *other)
{
	struct strands *strands = &s->strands;
	struct strand *running = strands->running;
	struct frames *frames = s->frames;

	if (other)
		frames_mark__go_on(&strands->mark, strands__frames_of(strands, other));
	else
		other = add_unknown(s);
	if (!other)
		return;
	stack__resume_other(s, other);
	stack__switch_to(s, other);
	if (frames_mark__move(&strands->mark, frames, s->frames))
		s->frames->failed = true;
	running->state = STRAND_WAITS;
	if (strands->mark.n_above == 1)
		wait_since(frames, strands->mark.time_ns);
}

bool stack__apply_switch(struct stack *s, const struct branch *b, const struct event *e)
{
	switch ((enum event_kind)e->rule->event) {
	case EVENT_SWITCH:
		resume(s, b, e->strand);
		return false;
	case EVENT_SWITCH_BACK:
		come_back(s, b);
		return false;
	case EVENT_SWITCH_LANDING:
		land_elsewhere(s, b, e->strand);
		return false;
	case EVENT_SWITCH_NEW:
		return !begin(s, b, frames__top(s->frames)->role == ROLE_GOGO);
	case EVENT_NO_SWITCH:
		stack__give_back(frames__top(s->frames));
		return true;
	case EVENT_OTHER_STACK:
		run_other(s, e->strand);
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
