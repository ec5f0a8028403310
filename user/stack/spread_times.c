// SPDX-License-Identifier: MIT
#include "stack/spread_times.h"

#include <errno.h>
#include <stdbool.h>

/* A call's begin or end. */
struct event {
	uint32_t call : 31;
	uint32_t is_end : 1;
};

typedef VEC(uint32_t) leap_ends;

struct spread {
	struct call *calls;
	const struct known_times *known;
	size_t next_fixed; /* the first that may matter still */
	uint64_t run_ns;
	struct event first;
	VEC(struct event) run; /* of the same time; empty where the first is all there is */
};

static uint64_t *time_of(const struct spread *s, struct event event)
{
	struct call *call = &s->calls[event.call];

	return event.is_end ? &call->end_ns : &call->start_ns;
}

static bool is_outside(const struct call *call)
{
	return call->kind == CALL_SYSCALL || call->kind == CALL_UNTRACED;
}

/* The same branch did both, or the event is none: what runs at the start of a segment. */
static bool is_together(const struct spread *s, struct event before, struct event event)
{
	const uint8_t no_return = CALL_CUT_SHORT | CALL_INFERRED_END;
	const struct call *call = &s->calls[event.call], *last = &s->calls[before.call];

	if (!event.is_end && call->flags & CALL_INFERRED_START)
		return true;
	if (!before.is_end)
		return false;
	if (call->kind == CALL_SIGNAL && is_outside(last))
		return true;
	return event.is_end ? last->flags & no_return : call->flags & CALL_BY_JUMP;
}

/* Up to when the run may reach, whose next event is at next_ns. */
static uint64_t run_end(struct spread *s, uint64_t next_ns)
{
	const struct known_times *known = s->known;

	while (s->next_fixed < known->n_fixed && known->fixed[s->next_fixed] <= s->run_ns)
		s->next_fixed++;
	if (s->next_fixed < known->n_fixed && known->fixed[s->next_fixed] < next_ns)
		next_ns = known->fixed[s->next_fixed];
	return next_ns - s->run_ns < known->step_ns ? next_ns : s->run_ns + known->step_ns;
}

/* A step is what one branch did. */
static uint64_t count_steps(const struct spread *s)
{
	uint64_t steps = 1;

	for (size_t i = 1; i < s->run.n; i++)
		steps += !is_together(s, s->run.v[i - 1], s->run.v[i]);
	return steps;
}

static uint64_t share(uint64_t len, uint64_t step, uint64_t steps)
{
	/* Few divisions need to be the slow kind. */
	if (len <= UINT32_MAX)
		return len * step / steps;
	return (uint64_t)((unsigned __int128)len * step / steps);
}

static void spread_run(struct spread *s, uint64_t next_ns)
{
	uint64_t len = run_end(s, next_ns) - s->run_ns, steps = count_steps(s), step = 0;

	for (size_t i = 1; i < s->run.n; i++) {
		step += !is_together(s, s->run.v[i - 1], s->run.v[i]);
		*time_of(s, s->run.v[i]) = s->run_ns + share(len, step, steps);
	}
}

static bool add_to_run(struct spread *s, struct event event)
{
	struct event *place = VEC_PUSH(&s->run);

	if (place)
		*place = event;
	return place;
}

static int take(struct spread *s, struct event event)
{
	uint64_t now = *time_of(s, event);

	if (now != s->run_ns || s->calls[event.call].kind == CALL_GAP) {
		if (s->run.n && now > s->run_ns)
			spread_run(s, now);
		s->run.n = 0;
		s->run_ns = now;
		s->first = event;
		return 0;
	}
	if (!s->run.n && !add_to_run(s, s->first))
		return -ENOMEM;
	return add_to_run(s, event) ? 0 : -ENOMEM;
}

/* The calls that are open end, up to the one that the next call lies in. */
static int end_calls(struct spread *s, uint32_t *open, uint32_t until)
{
	int err = 0;

	for (; !err && *open != CALL_NO_PARENT && *open != until; *open = s->calls[*open].parent)
		err = take(s, (struct event){.call = *open, .is_end = 1});
	return err;
}

/* A leap landed when what its landing frame had called ended. */
static uint32_t callee_of_landing(const struct call_tree *tree, const struct leap *leap)
{
	uint32_t index = leap->from;

	while (tree->calls.v[index].parent != leap->to &&
	       tree->calls.v[index].parent != CALL_NO_PARENT)
		index = tree->calls.v[index].parent;
	return index;
}

/* Before times are spread: which ends of calls the leaps' ends are. 0 or -ENOMEM. */
static int bind_leaps(const struct call_tree *tree, leap_ends *ends)
{
	for (size_t i = 0; i < tree->leaps.n; i++) {
		uint32_t *end = VEC_PUSH(ends);

		if (!end)
			return -ENOMEM;
		*end = callee_of_landing(tree, &tree->leaps.v[i]);
		if (tree->calls.v[*end].end_ns != tree->leaps.v[i].end_ns)
			*end = CALL_NO_PARENT;
	}
	return 0;
}

/* They begin with a call, and move with it. */
static void move_leaps(struct call_tree *tree, const leap_ends *ends)
{
	for (size_t i = 0; i < tree->leaps.n; i++) {
		struct leap *leap = &tree->leaps.v[i];

		leap->start_ns = tree->calls.v[leap->from].start_ns;
		if (ends->v[i] != CALL_NO_PARENT)
			leap->end_ns = tree->calls.v[ends->v[i]].end_ns;
	}
}

static int spread_calls(struct call_tree *tree, const struct known_times *known)
{
	struct spread s = {.calls = tree->calls.v, .known = known, .run_ns = UINT64_MAX};
	uint32_t open = CALL_NO_PARENT;
	int err = 0;

	for (size_t i = 0; i < tree->calls.n && !err; i++) {
		err = end_calls(&s, &open, tree->calls.v[i].parent);
		if (!err)
			err = take(&s, (struct event){.call = (uint32_t)i});
		open = (uint32_t)i;
	}
	if (!err)
		err = end_calls(&s, &open, CALL_NO_PARENT);
	VEC_FINI(&s.run);
	return err;
}

int call_tree__spread_times(struct call_tree *tree, const struct known_times *known)
{
	leap_ends ends = {0};
	int err = bind_leaps(tree, &ends);

	if (!err)
		err = spread_calls(tree, known);
	if (!err)
		move_leaps(tree, &ends);
	VEC_FINI(&ends);
	return err;
}
