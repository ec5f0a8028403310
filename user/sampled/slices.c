// SPDX-License-Identifier: MIT
#include "sampled/slices_internal.h"

#include <stddef.h>

void slices__fini(struct slices *s)
{
	VEC_FINI(&s->open);
	VEC_FINI(&s->entered);
	VEC_FINI(&s->long_calls);
}

/*
 * Between two stacks that differ, the change is taken to lie in the middle: so a frame that n
 * samples show is n periods long. Where they lie far apart, each is good for half a period only.
 */
static uint64_t edge_behind(const struct slices *s, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t between = to_ns - from_ns;

	if (!from_ns)
		return to_ns;
	if (s->period_ns && between > 2 * s->period_ns)
		return from_ns + s->period_ns / 2;
	return from_ns + between / 2;
}

static uint64_t edge_before(const struct slices *s, uint64_t from_ns, uint64_t to_ns)
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

/* Calls whose return was seen, up to now. */
void slices__leave_returned(struct slices *s, uint64_t time_ns)
{
	for (size_t i = 0; i < s->open.n && !s->off; i++) {
		uint64_t exit_ns = s->open.v[i].exit_ns;

		if (!exit_ns || exit_ns > time_ns || exit_ns < s->last_ns)
			continue;
		slices__pop_to(s, i + 1, edge_behind(s, s->last_ns, exit_ns), CALL_INFERRED_END);
		slices__pop_to(s, i, exit_ns, 0);
	}
}

/* The same function, called from the same place: as far as two stacks show, the same call. */
static bool is_same(const struct seen *a, const struct seen *b)
{
	return a->kind == b->kind && a->function == b->function && a->return_ip == b->return_ip &&
	       (a->function || a->kind != CALL_FUNCTION || a->ip == b->ip);
}

struct common {
	size_t open, stack; /* so many of either */
};

static struct common common(const struct slices *s, const struct seen *stack, size_t n)
{
	struct common c = {0};

	for (; c.open < s->open.n; c.open++) {
		if (s->open.v[c.open].is_hidden)
			continue;
		if (c.stack == n || !is_same(&s->open.v[c.open].seen, &stack[c.stack]))
			break;
		c.stack++;
	}
	return c;
}

/*
 * The activation of the probed function that was entered last; n where there is none. Of a
 * recursion where returns are known that is the outermost one that is new, else the innermost.
 */
static size_t find_probed(const struct slices *s, const struct seen *stack, size_t n,
			  bool returns_known)
{
	size_t from = returns_known ? common(s, stack, n).stack : n;

	for (size_t i = from; i < n; i++)
		if (stack[i].function == s->probed)
			return i;
	for (size_t i = n; i-- > 0;)
		if (stack[i].function == s->probed)
			return i;
	return n;
}

/* An activation too short for any sample: nothing is known of it but what the probe saw. */
static void add_unseen(struct slices *s, const struct entered *e)
{
	struct seen seen = {.function = s->probed, .kind = CALL_FUNCTION};
	bool ended = e->end_ns != 0;

	if (slices__push(s, &seen, e->start_ns, 0))
		slices__pop_to(s, s->open.n - 1, ended ? e->end_ns : e->start_ns,
			       ended ? 0 : CALL_INFERRED_END);
}

/* What a stack has beyond what was known before. */
static void push_rest(struct slices *s, const struct seen *stack, size_t from, size_t to,
		      uint64_t time_ns)
{
	uint64_t start_ns = edge_before(s, s->last_ns, time_ns);

	for (size_t i = from; i < to; i++)
		slices__push(s, &stack[i], start_ns, CALL_INFERRED_START);
}

/* The latest activation; `seen` is its frame, or what stands for it. */
static void push_entered(struct slices *s, const struct seen *seen, bool is_hidden)
{
	const struct entered *last = &s->entered.v[s->entered.n - 1];
	struct open_slice *open = slices__push(s, seen, last->start_ns, 0);

	if (!open)
		return;
	open->exit_ns = last->end_ns;
	open->is_hidden = is_hidden;
	s->last_ns = last->start_ns;
}

/* What a tail call has put into the probed function's frame: it returns where that would. */
static size_t find_heir(const struct slices *s, const struct seen *stack, size_t from, size_t n)
{
	for (size_t i = from; i < n && s->returns_to; i++)
		if (stack[i].return_ip == s->returns_to)
			return i;
	return from;
}

/*
 * The probed function was entered since the last stack, the last time for the activation that
 * stands at `probed` in this one. At n there is none, and yet that may not have returned: what it
 * called at its end has its frame (a tail call).
 */
static void see_entered(struct slices *s, uint64_t time_ns, const struct seen *stack, size_t n,
			size_t probed)
{
	const struct entered *last = &s->entered.v[s->entered.n - 1];
	bool is_hidden = probed == n && last->end_ns > time_ns;
	size_t unseen = s->entered.n - (probed < n || is_hidden);
	struct common same = common(s, stack, n);

	/* Another activation, even if it looks the same. */
	while (same.stack > probed || (same.open && s->open.v[same.open - 1].is_hidden)) {
		same.open--;
		same.stack -= !s->open.v[same.open].is_hidden;
	}
	slices__pop_to(s, same.open, edge_behind(s, s->last_ns, s->entered.v[0].start_ns),
		       CALL_INFERRED_END);
	for (size_t i = 0; i < unseen; i++)
		add_unseen(s, &s->entered.v[i]);
	if (probed < n) {
		push_rest(s, stack, same.stack, probed, last->start_ns);
		push_entered(s, &stack[probed], false);
		same.stack = probed + 1;
	} else if (is_hidden) {
		size_t heir = find_heir(s, stack, same.stack, n);

		push_rest(s, stack, same.stack, heir, last->start_ns);
		same.stack = heir;
		push_entered(s, &(struct seen){.function = s->probed, .kind = CALL_FUNCTION}, true);
	}
	push_rest(s, stack, same.stack, n, time_ns);
	s->entered.n = 0;
}

static void see_plain(struct slices *s, uint64_t time_ns, const struct seen *stack, size_t n)
{
	uint64_t start_ns = edge_before(s, s->last_ns, time_ns);
	struct common same = common(s, stack, n);

	slices__pop_to(s, same.open, edge_behind(s, s->last_ns, time_ns), CALL_INFERRED_END);
	for (size_t i = same.stack; i < n; i++)
		slices__push(s, &stack[i], start_ns, CALL_INFERRED_START);
}

/* It is not in the stack, and has not returned: what it called at its end has its frame. */
static void hide_left(struct slices *s, uint64_t time_ns, const struct seen *stack, size_t n)
{
	size_t first = common(s, stack, n).open;

	if (first < s->open.n && s->open.v[first].exit_ns > time_ns)
		s->open.v[first].is_hidden = true;
}

void slices__see_stack(struct slices *s, uint64_t time_ns, const struct seen *stack, size_t n)
{
	hide_left(s, time_ns, stack, n);
	if (!s->entered.n) {
		see_plain(s, time_ns, stack, n);
	} else {
		uint64_t end_ns = s->entered.v[s->entered.n - 1].end_ns;

		/* What has returned is not what this stack shows. */
		see_entered(s, time_ns, stack, n,
			    end_ns && end_ns <= time_ns ? n : find_probed(s, stack, n, end_ns));
	}
	s->last_ns = time_ns;
}

void slices__see(struct slices *s, uint64_t time_ns, const struct seen *stack, size_t n)
{
	if (s->off)
		slices__on(s, time_ns);
	slices__leave_returned(s, time_ns);
	slices__begin_long_call(s, time_ns, stack, n);
	slices__see_stack(s, time_ns, stack, n);
}

/* No stack shows what was entered last: only what had called it is known to run on. */
void slices__flush_entered(struct slices *s, uint64_t time_ns)
{
	VEC(struct seen) stack = {0};

	for (size_t i = 0; s->entered.n && i < s->open.n; i++) {
		struct seen *out;

		if (s->open.v[i].seen.function == s->probed)
			break;
		out = VEC_PUSH(&stack);
		if (!out) {
			s->failed = true;
			break;
		}
		*out = s->open.v[i].seen;
	}
	if (s->entered.n && !s->failed)
		see_entered(s, time_ns, stack.v, stack.n, stack.n);
	VEC_FINI(&stack);
}

/* Recursion: of the calls whose returns are known, the outermost counts. */
static bool is_nested(const struct slices *s, uint64_t start_ns)
{
	if (s->entered.n && s->entered.v[s->entered.n - 1].end_ns > start_ns)
		return true;
	for (size_t i = 0; i < s->open.n; i++)
		if (s->open.v[i].exit_ns > start_ns)
			return true;
	return false;
}

void slices__enter(struct slices *s, const struct entered *entered)
{
	struct entered *out;

	if (is_nested(s, entered->start_ns))
		return;
	if (s->off)
		slices__on(s, entered->start_ns);
	slices__leave_returned(s, entered->start_ns);
	out = VEC_PUSH(&s->entered);
	if (out)
		*out = *entered;
	else
		s->failed = true;
}

void slices__end(struct slices *s, uint64_t time_ns)
{
	slices__leave_returned(s, time_ns);
	if (!s->off)
		slices__flush_entered(s, time_ns);
	slices__pop_to(s, 0, time_ns > s->last_ns ? time_ns : s->last_ns, CALL_INFERRED_END);
	s->entered.n = s->long_calls.n = 0;
	s->off = false;
	s->last_ns = 0;
}

void slices__gap(struct slices *s, uint64_t start_ns, uint64_t end_ns, uint8_t reason)
{
	struct seen seen = {.kind = CALL_GAP};
	struct open_slice *open = slices__push(s, &seen, start_ns, 0);

	if (!open)
		return;
	s->tree->calls.v[open->call].reason = reason;
	slices__pop_to(s, 0, end_ns, 0);
	s->last_ns = 0;
}
