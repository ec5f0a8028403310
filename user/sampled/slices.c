// SPDX-License-Identifier: MIT
#include "sampled/slices_internal.h"

#include <stddef.h>

void slices__fini(struct slices *s)
{
	VEC_FINI(&s->open);
	VEC_FINI(&s->entered);
	VEC_FINI(&s->cut);
}

/*
 * Between two stacks that differ, the change is taken to lie in the middle: so a frame that n
 * samples show is n periods long. Where they lie far apart, each is good for half a period only.
 */
uint64_t slices__edge_behind(const struct slices *s, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t between = to_ns - from_ns;

	if (!from_ns)
		return to_ns;
	if (s->period_ns && between > 2 * s->period_ns)
		return from_ns + s->period_ns / 2;
	return from_ns + between / 2;
}

uint64_t slices__edge_before(const struct slices *s, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t between = to_ns - from_ns;

	if (!from_ns)
		return to_ns;
	if (s->period_ns && between > 2 * s->period_ns)
		return to_ns - s->period_ns / 2;
	return from_ns + between / 2;
}

struct open_slice *slices__push(struct slices *s, const struct seen *seen, uint64_t time_ns,
				uint8_t flags)
{
	size_t depth = s->open.n;
	struct call *call = s->failed ? NULL : VEC_PUSH(&s->tree->calls);
	struct open_slice *open = call ? VEC_PUSH(&s->open) : NULL;

	if (!open) {
		s->failed = true;
		return NULL;
	}
	*call = (struct call){.start_ns = time_ns,
			      .end_ns = time_ns,
			      .entry_ip = seen->ip,
			      .function = seen->function,
			      .kind = seen->kind,
			      .flags = flags | CALL_SAMPLED,
			      .parent = depth ? s->open.v[depth - 1].call : CALL_NO_PARENT,
			      .depth = (uint32_t)depth};
	*open = (struct open_slice){.call = (uint32_t)(s->tree->calls.n - 1), .seen = *seen};
	return open;
}

void slices__pop_to(struct slices *s, size_t n, uint64_t time_ns, uint8_t flags)
{
	while (s->open.n > n) {
		struct call *call = &s->tree->calls.v[s->open.v[--s->open.n].call];

		call->end_ns = time_ns;
		call->flags |= flags;
	}
	if (time_ns > s->last_ns)
		s->last_ns = time_ns;
}

/* The same function, called from the same place: as far as two stacks show, the same call. */
bool seen__is_same(const struct seen *a, const struct seen *b)
{
	return a->kind == b->kind && a->function == b->function && a->return_ip == b->return_ip &&
	       (a->function || a->kind != CALL_FUNCTION || a->ip == b->ip);
}

/* So many periods without a stack, on the CPU: more than a late sample. */
#define UNKNOWN_PERIODS 4

/* From when on it is not known what ran; 0: it is, up to until_ns. */
static uint64_t unknown_since(const struct slices *s, uint64_t until_ns)
{
	uint64_t since_ns = s->known_ns + s->period_ns / 2;

	if (!s->period_ns || s->off || !s->last_ns)
		return 0;
	if (!s->known_ns)
		return s->last_ns;
	if (until_ns < s->known_ns || until_ns - s->known_ns <= UNKNOWN_PERIODS * s->period_ns)
		return 0;
	return since_ns > s->last_ns ? since_ns : s->last_ns;
}

void slices__fill_unknown(struct slices *s, size_t keep, uint64_t until_ns)
{
	struct seen seen = {.kind = CALL_NOT_RECORDED};
	uint64_t since_ns = unknown_since(s, until_ns);

	if (!since_ns || since_ns >= until_ns)
		return;
	/* All that is to be known of a system call's time. */
	if (keep && s->open.v[keep - 1].seen.kind == CALL_SYSCALL)
		return;
	slices__pop_to(s, keep, since_ns, CALL_INFERRED_END);
	if (slices__push(s, &seen, since_ns, 0))
		slices__pop_to(s, s->open.n - 1, until_ns, 0);
}

void slices__push_rest(struct slices *s, const struct view *view, size_t from, size_t to,
		       uint64_t start_ns)
{
	for (size_t i = from; i < to; i++)
		slices__push(s, &view->stack[i], start_ns, CALL_INFERRED_START);
}

/* What the stack has beyond what is exact. */
static void see_rest(struct slices *s, uint64_t time_ns, const struct view *view)
{
	uint64_t start_ns = slices__edge_before(s, s->last_ns, time_ns);
	struct common same = slices__common(s, view);

	/* Near enough to what is seen now, unless nothing was seen before. */
	if (s->is_begun || time_ns - s->last_ns > s->period_ns)
		slices__fill_unknown(s, same.open, start_ns);
	slices__pop_to(s, same.open, slices__edge_behind(s, s->last_ns, time_ns),
		       CALL_INFERRED_END);
	slices__push_rest(s, view, same.stack, view->n, start_ns);
	s->last_ns = s->known_ns = time_ns;
	s->is_begun = false;
}

/* The same stack, which is known now to lack callers. */
static struct view cut_view(struct slices *s, const struct view *view)
{
	struct seen *first;

	s->cut.n = 0;
	first = VEC_PUSH(&s->cut);
	if (first)
		*first = SEEN_NO_CALLERS;
	for (size_t i = 0; i < view->n && !s->failed; i++)
		s->failed = !first || VEC_ADD(&s->cut, view->stack[i]);
	return (struct view){
		.stack = s->cut.v, .n = s->cut.n, .is_known = true, .is_cut = s->cut.n != 0};
}

void slices__see(struct slices *s, uint64_t time_ns, const struct seen *stack, size_t n)
{
	struct view view = {.stack = stack,
			    .n = n,
			    .is_known = true,
			    .is_cut = n && stack[0].kind == CALL_NO_CALLERS};

	slices__found(s, time_ns);
	if (!slices__place(s, time_ns, &view)) {
		view = cut_view(s, &view);
		slices__place(s, time_ns, &view);
	}
	slices__take_entered(s, time_ns, &view);
	see_rest(s, time_ns, &view);
}

void slices__begin(struct slices *s, uint64_t time_ns)
{
	if (s->last_ns)
		return;
	s->last_ns = time_ns;
	s->is_begun = true;
}

void slices__end(struct slices *s, uint64_t time_ns)
{
	if (s->stolen_until_ns && s->stolen_until_ns < time_ns)
		slices__on(s, time_ns);
	s->stolen_until_ns = 0;
	if (!s->off) {
		slices__take_entered(s, time_ns, &(struct view){0});
		slices__fill_unknown(s, slices__count_exact(s), time_ns);
	}
	slices__pop_to(s, 0, time_ns > s->last_ns ? time_ns : s->last_ns, CALL_INFERRED_END);
	s->entered.n = 0;
	s->off = s->is_begun = false;
	s->last_ns = s->known_ns = 0;
}

void slices__gap(struct slices *s, uint64_t start_ns, uint64_t end_ns, uint8_t reason)
{
	struct seen seen = {.kind = CALL_GAP};
	struct open_slice *open = slices__push(s, &seen, start_ns, 0);

	if (!open)
		return;
	s->tree->calls.v[open->call].reason = reason;
	slices__pop_to(s, 0, end_ns, 0);
	s->last_ns = s->known_ns = 0;
}
