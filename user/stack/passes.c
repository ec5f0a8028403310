// SPDX-License-Identifier: MIT
/*
 * Segments end where the trace breaks off, and begin where it goes on. What is known only later is
 * found in between, by passes over what has ended: its calls, and what each segment shows of the
 * stacks at its two ends.
 */
#include "stack/stack_internal.h"

/* Where there is one stack only, it is the one that goes on; but others may have begun meanwhile.
 */
static bool has_others(struct strands *strands)
{
	if (strands->n_switches != strands->n_at_gap)
		return true;
	for (size_t i = 0; i < strands__count(strands); i++) {
		const struct strand *strand = strands__at(strands, i);

		if (strand != strands->running && strand->state != STRAND_OVER)
			return true;
	}
	return false;
}

static void park_all(struct stack *s)
{
	struct strands *strands = &s->strands;

	for (size_t i = 0; i < strands__count(strands); i++) {
		struct strand *strand = strands__at(strands, i);

		if (strand->state == STRAND_OVER)
			strand->pending.n = 0;
		if (strand->state != STRAND_RUNS && strand->state != STRAND_WAITS)
			continue;
		/* Whatever it does, it begins anew each time. */
		if (strand == strands->system && strand->state == STRAND_WAITS)
			continue;
		frames__list_pending(strands__frames_of(strands, strand), &strand->pending);
		if (strand->state == STRAND_RUNS)
			strand->waits_at = 0;
		strand->parent = strand->child = strand->performed = NULL;
		strand->state = STRAND_PARKED;
	}
	if (strands->system && strands->system->state == STRAND_PARKED) {
		strands->lost_system = strands->system;
		strands->system = NULL;
	}
	strands->recovering = NULL;
	strands->performer = strands->resumer = NULL;
	strands->is_lost = true;
	strands->n_before_gap = strands->n_switches;
}

/* Much may have happened meanwhile. */
static void forget_all(struct stack *s, uint64_t time_ns)
{
	struct strands *strands = &s->strands;

	strands->system = strands->lost_system = strands->recovering = NULL;
	for (size_t i = 0; i < strands__count(strands); i++) {
		struct strand *strand = strands__at(strands, i);
		struct frames *frames = strands__frames_of(strands, strand);

		if (strand->state == STRAND_WAITS || strand->state == STRAND_PARKED)
			frames__pop_to(frames, NULL, time_ns, CALL_INFERRED_END);
		strand->state = STRAND_OVER;
		strand->is_loose = false;
		/* Another coroutine with the same functions is not the same one. */
		if (i)
			frames->held.n = 0;
	}
	stack__switch_to(s, &strands->own);
}

/*
 * What the first pass has not found again may be any stack, and which of them runs behind the gap
 * is not known.
 */
static void park(struct stack *s, const struct segment_end *end)
{
	struct strands *strands = &s->strands;

	strands->has_mark = false;
	for (size_t i = 0; i < strands->others.n; i++) {
		struct strand *strand = strands->others.v[i];

		strand->is_rootless |= strand->is_loose;
		strand->is_loose = false;
	}
	if (!s->in_gap)
		return;
	if (s->gap_reason == GAP_BETWEEN)
		forget_all(s, s->gap_ns);
	else if (has_others(strands))
		park_all(s);
	strands->n_at_gap = strands->n_switches;
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
	struct strands *strands = &s->strands;
	struct strand *strand = strands__add(strands, true);

	strands->is_lost = false;
	strands->running->left_ns = b->time_ns;
	if (!strand) {
		strands->running->state = STRAND_RUNS;
		return;
	}
	strand->generation = ++strands->n_begun;
	strand->is_loose = true;
	strand->began_at = 0;
	stack__switch_to(s, strand);
}

void stack__start_segment(struct stack *s, const struct branch *b)
{
	run_passes(s, &(struct segment_end){.before_ns = b->time_ns});
	if (s->in_gap)
		frames__add_gap(s->frames, s->gap_ns, b->time_ns, s->gap_reason);
	if (s->strands.is_lost)
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
