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

/* A thread is on its way to sleep for no longer than that. */
#define EARLY_NS 100000

void slices__off(struct slices *s, uint64_t time_ns, uint8_t reason)
{
	slices__found(s, time_ns);
	if (reason != OFF_BLOCKED || s->woken_ns + EARLY_NS < time_ns)
		s->woken_ns = 0;
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
	uint8_t reason =
		s->off ? s->tree->calls.v[s->open.v[s->open.n - 1].call].reason : OFF_BLOCKED;

	return reason == OFF_PREEMPTED || reason == OFF_RUNNABLE;
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

	/* It may come before the thread has left its CPU: then it does not, or is ready at once. */
	s->woken_ns = time_ns;
	if (!s->off || s->tree->calls.v[s->open.v[n - 1].call].reason != OFF_BLOCKED)
		return;
	add_by(s, by, time_ns - s->tree->calls.v[s->open.v[n - 1].call].start_ns);
	slices__pop_to(s, n - 1, time_ns, 0);
	push_off(s, time_ns, OFF_RUNNABLE);
	/* Whoever runs there by now is whom it waits for. */
	s->next_ns = time_ns;
}

uint64_t slices__waits_since(const struct slices *s)
{
	return waits_for_cpu(s) ? s->tree->calls.v[s->open.v[s->open.n - 1].call].start_ns : 0;
}

/* Who ran meanwhile took nothing from it. */
static void forget_runners(struct slices *s)
{
	uint32_t call = s->open.v[s->open.n - 1].call;

	while (s->tree->done_by.n && s->tree->done_by.v[s->tree->done_by.n - 1].call == call)
		s->tree->done_by.n--;
	s->next.tid = 0;
}

void slices__throttled(struct slices *s, uint64_t time_ns, uint64_t ns, const char *text)
{
	struct waits_for wait = {.fd = -1, .text = text};
	uint64_t start_ns = slices__waits_since(s);

	forget_runners(s);
	s->tree->calls.v[s->open.v[s->open.n - 1].call].reason = OFF_THROTTLED;
	if (text)
		slices__add_wait(s, &wait);
	if (start_ns + ns >= time_ns)
		return;
	slices__pop_to(s, s->open.n - 1, start_ns + ns, 0);
	push_off(s, start_ns + ns, OFF_RUNNABLE);
	s->next_ns = start_ns + ns;
}

void slices__stolen(struct slices *s, uint64_t start_ns, uint64_t end_ns)
{
	if (s->off || start_ns < s->last_ns)
		return;
	slices__off(s, start_ns, OFF_STOLEN);
	s->stolen_until_ns = end_ns;
}

/* Nobody runs again without a wake-up: if that came before the switch the thread was ready all the
 * time. */
static void settle_early_wake(struct slices *s)
{
	uint32_t call = s->open.v[s->open.n - 1].call;

	if (!s->woken_ns || s->tree->calls.v[call].reason != OFF_BLOCKED)
		return;
	s->woken_ns = 0;
	s->tree->calls.v[call].reason = OFF_RUNNABLE;
	if (s->tree->waits.n && s->tree->waits.v[s->tree->waits.n - 1].call == call)
		s->tree->waits.n--;
}

void slices__found(struct slices *s, uint64_t time_ns)
{
	/* How long it was ready before that is not known. */
	if (s->off && s->tree->calls.v[s->open.v[s->open.n - 1].call].reason == OFF_BLOCKED)
		s->woken_ns = 0;
	slices__on(s, time_ns);
}

void slices__on(struct slices *s, uint64_t time_ns)
{
	/* It may be told of one that nobody saw leave. */
	if (!s->off)
		return;
	settle_early_wake(s);
	if (s->stolen_until_ns && s->stolen_until_ns < time_ns)
		time_ns = s->stolen_until_ns;
	s->stolen_until_ns = 0;
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
