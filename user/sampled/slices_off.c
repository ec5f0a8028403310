// SPDX-License-Identifier: MIT
/* Time off the CPU: exact slices, and whose doing they are. */
#include "sampled/slices_internal.h"

#include <stdlib.h>

static void push_off(struct slices *s, uint64_t time_ns, uint8_t reason)
{
	struct seen seen = {.kind = CALL_OFF_CPU};
	struct open_slice *open = slices__push(s, &seen, time_ns, 0);

	if (!open)
		return;
	s->tree->calls.v[open->call].reason = reason;
	s->last_ns = time_ns;
	s->off = true;
}

/* The innermost slice is somebody's doing, or so much of it. */
static void add_by(struct slices *s, const struct done_by *by, uint64_t ns)
{
	uint32_t call = s->open.v[s->open.n - 1].call;
	struct done_by *out;

	for (size_t i = s->tree->done_by.n; i-- > 0 && s->tree->done_by.v[i].call == call;) {
		if (s->tree->done_by.v[i].tid == by->tid) {
			s->tree->done_by.v[i].ns += ns;
			return;
		}
	}
	out = by->tid ? VEC_PUSH(&s->tree->done_by) : NULL;
	if (!out)
		return;
	*out = *by;
	out->call = call;
	out->ns = ns;
}

void slices__waits(struct slices *s, const struct waits_for *wait)
{
	s->wait = *wait;
	s->has_wait = true;
}

void slices__off(struct slices *s, uint64_t time_ns, uint8_t reason)
{
	if (s->off)
		slices__on(s, time_ns);
	slices__take_entered(s, time_ns, &(struct view){0});
	slices__fill_unknown(s, slices__count_exact(s), time_ns);
	s->off_ns = time_ns;
	push_off(s, time_ns, reason);
	if (reason == OFF_BLOCKED && s->has_wait)
		slices__add_wait(s, &s->wait);
	s->has_wait = false;
	s->next_ns = time_ns;
}

/* Whoever ran in its place until now. */
static void add_runner(struct slices *s, uint64_t until_ns)
{
	add_by(s, &s->next, until_ns > s->next_ns ? until_ns - s->next_ns : 0);
}

static bool waits_for_cpu(const struct slices *s)
{
	return s->off && s->tree->calls.v[s->open.v[s->open.n - 1].call].reason != OFF_BLOCKED;
}

void slices__replaced(struct slices *s, uint64_t time_ns, const struct done_by *by)
{
	if (waits_for_cpu(s))
		add_runner(s, time_ns);
	s->next = *by;
	s->next_ns = time_ns;
}

static int by_time(const void *a, const void *b)
{
	const struct done_by *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

/* The one who ran for the longest first. */
static void sort_runners(struct slices *s)
{
	uint32_t call = s->open.v[s->open.n - 1].call;
	size_t n = 0, all = s->tree->done_by.n;

	while (n < all && s->tree->done_by.v[all - n - 1].call == call)
		n++;
	if (n > 1)
		qsort(&s->tree->done_by.v[all - n], n, sizeof(struct done_by), by_time);
}

void slices__woken(struct slices *s, uint64_t time_ns, const struct done_by *by)
{
	size_t n = s->open.n;

	/* It may come before the thread has left its CPU, and then it does not. */
	if (!s->off || s->tree->calls.v[s->open.v[n - 1].call].reason != OFF_BLOCKED)
		return;
	add_by(s, by, time_ns - s->tree->calls.v[s->open.v[n - 1].call].start_ns);
	slices__pop_to(s, n - 1, time_ns, 0);
	push_off(s, time_ns, OFF_RUNNABLE);
	/* Whoever runs there by now is whom it waits for. */
	s->next_ns = time_ns;
}

void slices__on(struct slices *s, uint64_t time_ns)
{
	/* It may be told of one that nobody saw leave. */
	if (!s->off)
		return;
	if (waits_for_cpu(s)) {
		add_runner(s, time_ns);
		sort_runners(s);
	}
	slices__pop_to(s, s->open.n - 1, time_ns, 0);
	s->off = false;
	s->next.tid = 0;
	s->last_ns = time_ns;
	/* What ran when it left runs on. */
	if (s->known_ns)
		s->known_ns += time_ns - s->off_ns;
}
