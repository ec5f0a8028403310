// SPDX-License-Identifier: MIT
/*
 * Segments end where the trace breaks off, and begin where it goes on. What is known only later is
 * found in between, by passes over what has ended: its calls, and what each segment shows of the
 * stacks at its two ends.
 */
#include "stack/stack_internal.h"

/* Where there is one stack only, it is the one that goes on; but others may have begun meanwhile.
 */
static bool has_others(struct coroutines *coroutines)
{
	if (coroutines->n_switches != coroutines->n_at_gap)
		return true;
	for (size_t i = 0; i < coroutines__count(coroutines); i++) {
		const struct coroutine *coroutine = coroutines__at(coroutines, i);

		if (coroutine != coroutines->running && coroutine->state != COROUTINE_OVER)
			return true;
	}
	return false;
}

static void park_all(struct stack *s)
{
	struct coroutines *coroutines = &s->coroutines;

	for (size_t i = 0; i < coroutines__count(coroutines); i++) {
		struct coroutine *coroutine = coroutines__at(coroutines, i);

		if (coroutine->state == COROUTINE_OVER)
			coroutine->pending.n = 0;
		if (coroutine->state != COROUTINE_RUNS && coroutine->state != COROUTINE_WAITS)
			continue;
		/* Whatever it does, it begins anew each time. */
		if (coroutine == coroutines->system && coroutine->state == COROUTINE_WAITS)
			continue;
		frames__list_pending(coroutines__frames_of(coroutines, coroutine),
				     &coroutine->pending);
		if (coroutine->state == COROUTINE_RUNS)
			coroutine->waits_at = 0;
		coroutine->parent = coroutine->child = coroutine->performed = NULL;
		coroutine->state = COROUTINE_PARKED;
	}
	if (coroutines->system && coroutines->system->state == COROUTINE_PARKED) {
		coroutines->lost_system = coroutines->system;
		coroutines->system = NULL;
	}
	coroutines->recovering = NULL;
	coroutines->performer = coroutines->resumer = NULL;
	coroutines->is_lost = true;
	coroutines->n_before_gap = coroutines->n_switches;
}

/* Much may have happened meanwhile. */
static void forget_all(struct stack *s, uint64_t time_ns)
{
	struct coroutines *coroutines = &s->coroutines;

	coroutines->system = coroutines->lost_system = coroutines->recovering = NULL;
	for (size_t i = 0; i < coroutines__count(coroutines); i++) {
		struct coroutine *coroutine = coroutines__at(coroutines, i);
		struct frames *frames = coroutines__frames_of(coroutines, coroutine);

		if (coroutine->state == COROUTINE_WAITS || coroutine->state == COROUTINE_PARKED)
			frames__pop_to(frames, NULL, time_ns, CALL_INFERRED_END);
		coroutine->state = COROUTINE_OVER;
		coroutine->is_loose = false;
		/* Another coroutine with the same functions is not the same one. */
		if (i)
			frames->held.n = 0;
	}
	stack__switch_to(s, &coroutines->own);
}

/*
 * What the first pass has not found again may be any stack, and which of them runs behind the gap
 * is not known.
 */
static void park(struct stack *s, const struct segment_end *end)
{
	struct coroutines *coroutines = &s->coroutines;

	coroutines->has_mark = false;
	for (size_t i = 0; i < coroutines->others.n; i++) {
		struct coroutine *coroutine = coroutines->others.v[i];

		coroutine->is_rootless |= coroutine->is_loose;
		coroutine->is_loose = false;
	}
	if (!s->in_gap)
		return;
	if (s->gap_reason == GAP_BETWEEN)
		forget_all(s, s->gap_ns);
	else if (has_others(coroutines))
		park_all(s);
	coroutines->n_at_gap = coroutines->n_switches;
}

/* Stitching has a switch of its own: without it each segment stands by itself. */
static void stitch(struct stack *s, const struct segment_end *end)
{
	frames__end_segment(s->frames);
}

/* In this order. */
static const struct {
	unsigned int passes; /* enum stack_pass: runs if it is on; 0: always */
	void (*run)(struct stack *s, const struct segment_end *end);
} passes[] = {
	{PASS_COROUTINES, stack__find_coroutines},
	{0, park},
	{0, stitch},
	{PASS_HIT_STACKS, stack__use_anchors},
	{PASS_CALLERS, stack__find_callers},
};

static void run_passes(struct stack *s, const struct segment_end *end)
{
	for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++)
		if (!passes[i].passes || s->passes & passes[i].passes)
			passes[i].run(s, end);
}

/* Whichever runs now is held apart. */
static void begin_loose(struct stack *s, const struct branch *b)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *coroutine = coroutines__add(coroutines, true);

	coroutines->is_lost = false;
	coroutines->running->left_ns = b->time_ns;
	if (!coroutine) {
		coroutines->running->state = COROUTINE_RUNS;
		return;
	}
	coroutine->generation = ++coroutines->n_begun;
	coroutine->is_loose = true;
	coroutine->began_at = 0;
	stack__switch_to(s, coroutine);
}

void stack__start_segment(struct stack *s, const struct branch *b)
{
	run_passes(s, &(struct segment_end){.before_ns = b->time_ns});
	if (s->in_gap)
		frames__add_gap(s->frames, s->gap_ns, b->time_ns, s->gap_reason);
	if (s->coroutines.is_lost)
		begin_loose(s, b);
	s->in_gap = false;
	s->in_segment = true;
	s->outside = s->stopped_in_kernel = s->in_sigreturn = s->is_in_user = false;
	frames__begin_segment(s->frames, b->time_ns);
	stack__push_first(s, b->to);
}

void stack__end_segments(struct stack *s)
{
	if (!s->in_gap)
		frames__pop_to(s->frames, NULL, s->last_ns, CALL_INFERRED_END);
	run_passes(s, &(struct segment_end){.before_ns = UINT64_MAX, .is_last = true});
	if (s->in_gap)
		frames__add_gap(s->frames, s->gap_ns, s->last_ns, s->gap_reason);
	frames__pop_to(&s->own_frames, NULL, s->last_ns, CALL_INFERRED_END);
}
