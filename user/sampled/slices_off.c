// SPDX-License-Identifier: MIT
/* Time off the CPU: exact slices, and whose doing they are. */
#include "sampled/slices_internal.h"

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

/* It was somebody who did that to the innermost slice. */
static void note_by(struct slices *s, const struct done_by *by)
{
	struct done_by *out = by->tid && s->open.n ? VEC_PUSH(&s->tree->done_by) : NULL;

	if (!out)
		return;
	*out = *by;
	out->call = s->open.v[s->open.n - 1].call;
}

void slices__off(struct slices *s, uint64_t time_ns, uint8_t reason)
{
	if (s->off)
		slices__on(s, time_ns);
	slices__leave_returned(s, time_ns);
	slices__flush_entered(s, time_ns);
	push_off(s, time_ns, reason);
	s->runners.n = 0;
	s->next_ns = time_ns;
}

/* Whoever ran in its place until now. */
static void add_runner(struct slices *s, uint64_t until_ns)
{
	uint64_t ns = until_ns > s->next_ns ? until_ns - s->next_ns : 0;
	struct runner *runner;

	for (size_t i = 0; i < s->runners.n; i++) {
		if (s->runners.v[i].by.tid == s->next.tid) {
			s->runners.v[i].ns += ns;
			return;
		}
	}
	runner = s->next.tid ? VEC_PUSH(&s->runners) : NULL;
	if (runner)
		*runner = (struct runner){s->next, ns};
}

void slices__replaced(struct slices *s, uint64_t time_ns, const struct done_by *by)
{
	if (s->off)
		add_runner(s, time_ns);
	s->next = *by;
	s->next_ns = time_ns;
}

/* Of those who ran in its place the one who did for the longest is named. */
static void note_runner(struct slices *s, uint64_t time_ns)
{
	const struct runner *longest = NULL;

	add_runner(s, time_ns);
	for (size_t i = 0; i < s->runners.n; i++)
		if (!longest || s->runners.v[i].ns > longest->ns)
			longest = &s->runners.v[i];
	if (longest)
		note_by(s, &longest->by);
	s->runners.n = 0;
}

void slices__woken(struct slices *s, uint64_t time_ns, const struct done_by *by)
{
	size_t n = s->open.n;

	/* It may come before the thread has left its CPU, and then it does not. */
	if (!s->off || s->tree->calls.v[s->open.v[n - 1].call].reason != OFF_BLOCKED)
		return;
	note_by(s, by);
	slices__pop_to(s, n - 1, time_ns, 0);
	push_off(s, time_ns, OFF_RUNNABLE);
	/* Whoever runs there by now is whom it waits for. */
	s->runners.n = 0;
	s->next_ns = time_ns;
}

void slices__on(struct slices *s, uint64_t time_ns)
{
	if (s->off && s->tree->calls.v[s->open.v[s->open.n - 1].call].reason != OFF_BLOCKED)
		note_runner(s, time_ns);
	if (s->off)
		slices__pop_to(s, s->open.n - 1, time_ns, 0);
	s->off = false;
	s->next.tid = 0;
	s->last_ns = time_ns;
}
