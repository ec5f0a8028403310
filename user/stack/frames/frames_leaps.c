// SPDX-License-Identifier: MIT
/* Leaps over frames, which name their calls before it is known where the tree will have them. */
#include "stack/frames/frames_internal.h"

#include <stdlib.h>

void frames__add_leap(struct frames *frames, const struct leap *leap, struct frame *to)
{
	struct leap *added = VEC_PUSH(&frames->leaps);

	if (!added) {
		frames->failed = true;
		return;
	}
	*added = *leap;
	added->to = frame__id(to);
	to->leap = (uint32_t)frames->leaps.n;
}

struct leap *frames__leap_into(const struct frames *frames, const struct frame *frame)
{
	return frame->leap ? &frames->leaps.v[frame->leap - 1] : NULL;
}

void frames__move_leap(struct frames *frames, struct leap *leap, struct frame *to, uint64_t time_ns)
{
	leap->to = frame__id(to);
	leap->end_ns = time_ns;
	to->leap = (uint32_t)(leap - frames->leaps.v) + 1;
}

static int compare_wanted(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return (x->place > y->place) - (x->place < y->place);
}

/* An id's place, to be asked for when the call that lies there has moved. */
static void want(struct wanted *wanted, uint32_t *id)
{
	*wanted = (struct wanted){*id & ROOT_BIT ? UINT32_MAX : *id, id};
}

struct wanted *frames__list_wanted(struct frames *frames)
{
	size_t n = 0;
	struct wanted *v = malloc((2 * frames->leaps.n + 1) * sizeof(*v));

	if (!v)
		return NULL;
	for (size_t i = 0; i < frames->leaps.n; i++) {
		want(&v[n++], &frames->leaps.v[i].from);
		want(&v[n++], &frames->leaps.v[i].to);
	}
	v[n++] = (struct wanted){.place = UINT32_MAX};
	qsort(v, n, sizeof(*v), compare_wanted);
	return v;
}

static void settle(const struct frames *frames, uint32_t *id)
{
	if (*id & ROOT_BIT)
		*id = frames->roots.v[*id & ~ROOT_BIT].index;
}

static int compare_leaps(const void *a, const void *b)
{
	const struct leap *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

/*
 * What a leap left and no branch showed has come to the tree since: a caller that was put between,
 * on the way from one to the other, and ends where they do.
 */
static void mark_inserted(const struct call_tree *tree, const struct leap *leap)
{
	uint32_t i = leap->from;

	while (i != CALL_NO_PARENT && i != leap->to)
		i = tree->calls.v[i].parent;
	if (i == CALL_NO_PARENT)
		return;
	for (i = leap->from; i != leap->to; i = tree->calls.v[i].parent) {
		struct call *call = &tree->calls.v[i];

		if (call->left_by || !(call->flags & CALL_INFERRED_END) ||
		    call->end_ns < leap->start_ns || call->end_ns > leap->end_ns)
			continue;
		call->left_by = leap->left_by;
		call->flags |= CALL_CUT_SHORT;
		call->flags &= (uint8_t)~CALL_INFERRED_END;
	}
}

void frames__hand_over_leaps(struct frames *frames, struct call_tree *tree)
{
	for (size_t i = 0; i < frames->leaps.n; i++) {
		settle(frames, &frames->leaps.v[i].from);
		settle(frames, &frames->leaps.v[i].to);
	}
	VEC_SORT(&frames->leaps, compare_leaps);
	tree->leaps.v = frames->leaps.v;
	tree->leaps.n = frames->leaps.n;
	tree->leaps.cap = frames->leaps.cap;
	frames->leaps.v = NULL;
	frames->leaps.n = frames->leaps.cap = 0;
	for (size_t i = 0; i < tree->leaps.n; i++)
		mark_inserted(tree, &tree->leaps.v[i]);
}
