// SPDX-License-Identifier: MIT
/* System calls that took long: exact slices around what stacks show in them. */
#include <string.h>

#include "sampled/slices_internal.h"

void slices__add_wait(struct slices *s, const struct waits_for *wait)
{
	struct waits_for *out = VEC_PUSH(&s->tree->waits);

	if (!out) {
		s->failed = true;
		return;
	}
	*out = *wait;
	out->call = s->open.v[s->open.n - 1].call;
}

void slices__long_call(struct slices *s, const struct long_call *call)
{
	struct long_call *out = VEC_PUSH(&s->long_calls);

	if (out)
		*out = *call;
	else
		s->failed = true;
}

/* Those that no stack has shown are dropped: who made them is not known. */
static bool next_call(struct slices *s, uint64_t time_ns, struct long_call *call)
{
	size_t over = 0;

	if (!s->long_calls.n)
		return false;
	while (over < s->long_calls.n && s->long_calls.v[over].end_ns <= time_ns)
		over++;
	s->long_calls.n -= over;
	memmove(s->long_calls.v, s->long_calls.v + over, s->long_calls.n * sizeof(*call));
	if (!s->long_calls.n || s->long_calls.v[0].start_ns > time_ns)
		return false;
	*call = s->long_calls.v[0];
	s->long_calls.n--;
	memmove(s->long_calls.v, s->long_calls.v + 1, s->long_calls.n * sizeof(*call));
	return true;
}

/* Not before what is known to have come earlier: a damaged file may say anything. */
static uint64_t begin_of(const struct slices *s, const struct long_call *call, uint64_t time_ns)
{
	const struct entered *last = s->entered.n ? &s->entered.v[s->entered.n - 1] : NULL;
	uint64_t begin = call->start_ns > s->last_ns ? call->start_ns : s->last_ns;
	uint64_t entered = !last				     ? 0
			   : last->end_ns && last->end_ns <= time_ns ? last->end_ns
								     : last->start_ns;

	return begin > entered ? begin : entered;
}

/* The user's part of the stack stays the same from its begin to its end. */
void slices__begin_long_call(struct slices *s, uint64_t time_ns, const struct seen *stack, size_t n)
{
	struct seen seen = {.kind = CALL_SYSCALL};
	struct open_slice *open;
	struct long_call call;

	if (!next_call(s, time_ns, &call))
		return;
	if (n && stack[n - 1].kind == CALL_IN_KERNEL)
		n--;
	call.start_ns = begin_of(s, &call, time_ns);
	slices__see_stack(s, call.start_ns, stack, n);
	open = slices__push(s, &seen, call.start_ns, 0);
	if (!open)
		return;
	open->exit_ns = call.end_ns;
	slices__add_wait(s, &call.what);
}
