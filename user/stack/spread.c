// SPDX-License-Identifier: MIT
#include "stack/spread.h"

#include <errno.h>

void spread__init(struct spread *s, branch_fn fn, void *ctx, const uint64_t *hits, size_t n_hits)
{
	*s = (struct spread){
		.fn = fn, .ctx = ctx, .hits = hits, .n_hits = n_hits, .now_ns = UINT64_MAX};
}

void spread__fini(struct spread *s)
{
	VEC_FINI(&s->held);
}

static bool goes_outside(const struct branch *b)
{
	return b->kind == BRANCH_END_SYSCALL || b->kind == BRANCH_END_ASYNC ||
	       b->kind == BRANCH_END;
}

static uint32_t weight(const struct spread *s, const struct branch *b)
{
	return s->by_branches ? 1 : b->n_insns;
}

/* len * part / whole */
static uint64_t share(uint64_t len, uint64_t part, uint64_t whole)
{
	/* Few divisions need to be of the slow kind. */
	if (len <= UINT32_MAX && part <= UINT32_MAX)
		return len * part / whole;
	return (uint64_t)((unsigned __int128)len * part / whole);
}

/* The next hit behind the run's time; UINT64_MAX: none. */
static uint64_t next_hit(struct spread *s)
{
	while (s->n_hits && *s->hits <= s->now_ns) {
		s->hits++;
		s->n_hits--;
	}
	return s->n_hits ? *s->hits : UINT64_MAX;
}

/* How long the run's instructions took at the speed of others; 0 where that is not known. */
static uint64_t usual_ns(const struct spread *s)
{
	if (!s->known_insns)
		return 0;
	return share(s->known_ns, s->insns, s->known_insns);
}

/* How long the run took, whose end is not later than end_ns. */
static uint64_t run_ns(struct spread *s, uint64_t end_ns)
{
	uint64_t hit_ns = next_hit(s), len, usual;

	len = (hit_ns < end_ns ? hit_ns : end_ns) - s->now_ns;
	if (!s->is_outside)
		return len;
	usual = usual_ns(s);
	return usual < len ? usual : len;
}

/* Hands on what is held, spread over len. */
static int hand_on(struct spread *s, uint64_t len)
{
	uint64_t insns = 0;
	int err = 0;

	for (size_t i = 0; i < s->held.n && !err; i++) {
		struct branch *b = &s->held.v[i];

		insns += weight(s, b);
		if (len && s->insns)
			b->time_ns = s->now_ns + share(len, insns, s->insns);
		err = s->fn(s->ctx, b);
	}
	s->held.n = 0;
	return err;
}

/* `b` is the first of its time. */
static int begin_run(struct spread *s, const struct branch *b)
{
	bool has_end = s->now_ns < b->time_ns;
	int err = 0;

	s->insns += weight(s, b);
	if (has_end && !s->is_outside) {
		s->known_ns += b->time_ns - s->now_ns;
		s->known_insns += s->insns;
	}
	if (s->held.n)
		err = hand_on(s, has_end ? run_ns(s, b->time_ns) : 0);
	s->now_ns = b->time_ns;
	s->insns = 0;
	s->is_outside = goes_outside(b);
	s->is_long = false;
	return err ? err : s->fn(s->ctx, b);
}

/* Nothing is known of what lies behind it. */
static int take_gap(struct spread *s, const struct branch *b)
{
	int err = hand_on(s, 0);

	s->now_ns = b->time_ns;
	s->insns = 0;
	s->is_outside = true;
	s->is_long = false;
	return err ? err : s->fn(s->ctx, b);
}

static int hold(struct spread *s, const struct branch *b)
{
	struct branch *held;

	if (s->held.n == SPREAD_MAX)
		s->is_long = true;
	if (s->is_long) {
		int err = hand_on(s, 0);

		return err ? err : s->fn(s->ctx, b);
	}
	held = VEC_PUSH(&s->held);
	if (!held)
		return -ENOMEM;
	*held = *b;
	s->insns += weight(s, b);
	s->is_outside |= goes_outside(b);
	return 0;
}

int spread__branch(void *spread, const struct branch *b)
{
	struct spread *s = spread;

	if (b->kind == BRANCH_GAP)
		return take_gap(s, b);
	if (b->time_ns != s->now_ns || s->has_begun) {
		/* A begin is no branch: the one behind it is the run's first. */
		s->has_begun = s->by_branches && b->kind == BRANCH_BEGIN;
		return begin_run(s, b);
	}
	return hold(s, b);
}

int spread__settle(struct spread *s, uint64_t time_ns, uint32_t n_insns)
{
	int err = 0;

	s->insns += n_insns;
	if (s->held.n)
		err = hand_on(s, s->now_ns < time_ns ? run_ns(s, time_ns) : 0);
	/* The next branch counts them again. */
	s->insns = 0;
	return err;
}

/* A hit is the last that is known of time, and the thread went outside at it. */
int spread__finish(struct spread *s)
{
	uint64_t hit_ns = next_hit(s);

	s->is_outside = true;
	return hand_on(s, hit_ns == UINT64_MAX ? 0 : run_ns(s, hit_ns));
}
