// SPDX-License-Identifier: MIT
/*
 * Behind a gap it is not known which of a thread's stacks runs, nor what the others have done in
 * it. So what runs until the next gap is held apart: each stack as if the trace began there. Then
 * those are joined to the stacks from before whose frames, and the addresses that they return to,
 * are the ones that they have shown. What has shown too little stands by itself.
 */
#include <errno.h>
#include <stdlib.h>

#include "stack/parked.h"
#include "stack/stack_internal.h"

void stack__end_wait(struct stack *s, struct strand *strand, uint64_t time_ns, bool has_waited)
{
	struct frames *frames = strands__frames_of(&s->strands, strand);

	if (!frames->open.n) {
		if (time_ns > strand->left_ns)
			frames__add_wait(frames, strand->left_ns, time_ns);
		return;
	}
	if (has_waited) {
		frames__pop(frames, time_ns, 0); /* the slice of the time switched out */
		frames__pop(frames, time_ns, 0);
	}
	frames__close_all(frames, time_ns, CALL_INFERRED_END);
	frames__end_segment(frames);
}

void stack__join(struct stack *s, struct strand *loose, struct strand *strand, bool has_waited)
{
	struct strands *strands = &s->strands;
	struct frames *to = strands__frames_of(strands, strand), *from = &loose->frames;

	stack__end_wait(s, strand, from->parts.v[0].start_ns, has_waited);
	from->parts.v[0].seam = has_waited ? SEAM_WAIT : SEAM_GAP;
	if (frames__append(to, from))
		to->failed = true;
	strand->state = loose->state;
	strand->waits_at = loose->waits_at;
	strand->slack = loose->slack;
	strand->since = loose->since;
	strand->generation = loose->generation;
	strand->is_goroutine |= loose->is_goroutine;
	strand->is_fiber |= loose->is_fiber;
	loose->state = STRAND_OVER;
	loose->is_loose = false;
	if (strands->running == loose)
		strands->running = strand;
	strands->has_mark = false;
	s->frames = strands__frames_of(strands, strands->running);
}

struct ranked {
	struct strand *loose;
	size_t n_agreed;
};
typedef VEC(struct ranked) ranked_vec;

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->n_agreed != y->n_agreed)
		return x->n_agreed < y->n_agreed ? 1 : -1;
	return (x->loose->number > y->loose->number) - (x->loose->number < y->loose->number);
}

static struct likeness choose(const struct parked *parked, struct strand *loose)
{
	return parked__find(parked, frames__show_begin(&loose->frames), loose->began_at);
}

/* Those first of which most is known: what is left may be the only one that others can be. */
static int rank(struct strands *strands, const struct parked *parked, ranked_vec *all)
{
	for (size_t i = 0; i < strands->others.n; i++) {
		struct strand *loose = strands->others.v[i];
		struct ranked *ranked;

		if (!loose->is_loose)
			continue;
		ranked = VEC_PUSH(all);
		if (!ranked)
			return -ENOMEM;
		*ranked = (struct ranked){loose, choose(parked, loose).fit.n_agreed};
	}
	VEC_SORT(all, compare_ranked);
	return 0;
}

void stack__settle_strands(struct stack *s)
{
	struct strands *strands = &s->strands;
	struct parked parked = {0};
	ranked_vec all = {0};

	strands->has_mark = false;
	stack__settle_system(s);
	if (parked__list(&parked, strands) || rank(strands, &parked, &all))
		s->frames->failed = true;
	for (size_t i = 0; i < all.n; i++) {
		struct likeness like = choose(&parked, all.v[i].loose);

		all.v[i].loose->is_loose = false;
		all.v[i].loose->is_rootless = !like.group;
		if (like.group)
			stack__join(s, all.v[i].loose, parked__take(&parked, like.group),
				    like.has_waited);
	}
	VEC_FINI(&all);
	parked__fini(&parked);
}

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

void stack__on_gap(struct stack *s, const struct branch *b)
{
	struct frame *top = frames__top(s->frames);

	if (s->in_gap)
		return;
	if (top && !s->outside)
		top->call.self_insns += b->n_insns;
	stack__settle_strands(s);
	if (b->reason != GAP_BETWEEN && has_others(&s->strands))
		park_all(s);
	frames__close_all(s->frames, b->time_ns, CALL_INFERRED_END);
	if (b->reason == GAP_BETWEEN)
		stack__forget_strands(s, b->time_ns);
	s->strands.n_at_gap = s->strands.n_switches;
	s->in_segment = false;
	s->in_gap = true;
	s->gap_ns = b->time_ns;
	s->gap_reason = b->reason;
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
	stack__run_strand(s, strand);
}

void stack__start_segment(struct stack *s, const struct branch *b)
{
	stack__use_anchors(s, b->time_ns);
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
