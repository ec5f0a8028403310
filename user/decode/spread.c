// SPDX-License-Identifier: MIT
#include "decode/spread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void spread__init(struct spread *s, const uint64_t *hits, size_t n_hits)
{
	*s = (struct spread){.hits = hits, .n_hits = n_hits, .now_ns = UINT64_MAX};
}

void spread__fini(struct spread *s)
{
	VEC_FINI(&s->held);
	VEC_FINI(&s->was_held);
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
	/* A 64-bit division is much faster. */
	if (len <= UINT32_MAX && part <= UINT32_MAX)
		return len * part / whole;
	return (uint64_t)((unsigned __int128)len * part / whole);
}

/* The next hit after the run's time; UINT64_MAX: none. */
static uint64_t next_hit(struct spread *s)
{
	while (s->n_hits && *s->hits <= s->now_ns) {
		s->hits++;
		s->n_hits--;
	}
	return s->n_hits ? *s->hits : UINT64_MAX;
}

/*
 * The time that the run took. It has ended by end_ns. If the thread left user code meanwhile, the
 * run took the time of its instructions at the average speed, or none if that is not known.
 */
static uint64_t run_ns(struct spread *s, uint64_t end_ns)
{
	uint64_t hit_ns = next_hit(s), len, usual = 0;

	len = (hit_ns < end_ns ? hit_ns : end_ns) - s->now_ns;
	if (!s->is_outside)
		return len;
	if (s->known_insns)
		usual = share(s->known_ns, s->insns, s->known_insns);
	return usual < len ? usual : len;
}

/*
 * Sets the times of n branches of the run, which takes len nanoseconds. `insns` is the number of
 * the run's instructions before these branches. Returns the number before the branches after them.
 */
static uint64_t set_times(const struct spread *s, struct branch *v, size_t n, uint64_t len,
			  uint64_t insns)
{
	for (size_t i = 0; i < n; i++) {
		if (branch__is_entry(&v[i]))
			continue;
		insns += weight(s, &v[i]);
		v[i].time_ns = s->now_ns + share(len, insns, s->insns);
	}
	return insns;
}

/* Spreads the waiting branches over len nanoseconds. They are ready then. */
static void release(struct spread *s, uint64_t len)
{
	if (len && s->insns)
		set_times(s, s->v, s->n_new, len, set_times(s, s->held.v, s->held.n, len, 0));
	if (s->held.n) {
		__typeof__(s->held) empty = s->was_held;

		s->was_held = s->held;
		s->held = empty;
		s->held.n = 0;
	}
	s->n_new = 0;
	s->n_held = 0;
}

/* `b` is the first of its time. */
static void begin_run(struct spread *s, const struct branch *b)
{
	bool has_end = s->now_ns < b->time_ns;

	s->insns += weight(s, b);
	if (has_end && !s->is_outside) {
		s->known_ns += b->time_ns - s->now_ns;
		s->known_insns += s->insns;
	}
	if (s->n_held)
		release(s, has_end ? run_ns(s, b->time_ns) : 0);
	s->now_ns = b->time_ns;
	s->insns = 0;
	s->is_outside = goes_outside(b);
	s->is_long = false;
}

/* True if the branch has to wait for the end of its run. */
static bool take_branch(struct spread *s, const struct branch *b)
{
	if (b->kind == BRANCH_GAP) {
		/* Nothing is known of the time after a gap. */
		release(s, 0);
		s->now_ns = b->time_ns;
		s->insns = 0;
		s->is_outside = true;
		s->is_long = false;
		return false;
	}
	if (b->time_ns != s->now_ns || s->has_begun) {
		/* A BEGIN is not counted: the run starts with the branch after it. */
		s->has_begun = s->by_branches && b->kind == BRANCH_BEGIN;
		begin_run(s, b);
		return false;
	}
	if (s->n_held == SPREAD_MAX) {
		s->is_long = true;
		release(s, 0);
	}
	if (s->is_long)
		return false;
	s->n_held++;
	s->insns += weight(s, b);
	s->is_outside |= goes_outside(b);
	return true;
}

/* True if it has to wait. */
static bool take(struct spread *s, const struct branch *b)
{
	if (!branch__is_entry(b))
		return take_branch(s, b);
	if (b->kind != ENTRY_MAP)
		return s->n_held;
	/* The waiting branches ran in the code as it was before: they are ready. */
	s->insns += b->n_insns;
	if (s->n_held)
		release(s, s->now_ns < b->time_ns ? run_ns(s, b->time_ns) : 0);
	/* The next branch's n_insns includes these instructions. */
	s->insns = 0;
	return false;
}

int spread__take(struct spread *s, struct branch *v, size_t n,
		 struct branch_batch ready[static SPREAD_BATCHES])
{
	size_t n_ready = 0;

	s->was_held.n = 0;
	for (size_t i = 0; i < n; i++) {
		if (!take(s, &v[i])) {
			n_ready = i + 1;
			continue;
		}
		if (!s->n_new++)
			s->v = &v[i];
	}
	ready[0] = (struct branch_batch){s->was_held.v, s->was_held.n};
	ready[1] = (struct branch_batch){v, n_ready};
	/* Copies the branches that still wait: `v` is valid only during the call. */
	for (size_t i = 0; i < s->n_new; i++)
		if (VEC_ADD(&s->held, s->v[i]))
			return -ENOMEM;
	s->n_new = 0;
	return 0;
}

/* A hit is the last known time, and the thread entered the kernel there. */
void spread__finish(struct spread *s, struct branch_batch *ready)
{
	uint64_t hit_ns = next_hit(s);

	s->was_held.n = 0;
	s->is_outside = true;
	release(s, hit_ns == UINT64_MAX ? 0 : run_ns(s, hit_ns));
	*ready = (struct branch_batch){s->was_held.v, s->was_held.n};
}
