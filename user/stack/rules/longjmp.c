// SPDX-License-Identifier: MIT
/*
 * setjmp() and longjmp(): a frame that calls setjmp() is remembered with the address behind that
 * call, where longjmp() lands. A jmp_buf is in no packet: of several frames with the same address,
 * as in a recursion, the innermost that lives is taken.
 */
#include "stack/stack_internal.h"

#include <string.h>

static bool lives(const struct frames *frames, const struct landing *landing)
{
	const struct frame *frame;

	if (landing->depth >= frames->open.n)
		return false;
	frame = &frames->open.v[landing->depth];
	return frame->index == landing->index && frame->is_root == landing->is_root;
}

static enum left_by left_by_of(enum function_role role)
{
	switch (role) {
	case ROLE_SETJMP:
		return LEFT_BY_LONGJMP;
	case ROLE_SIGSETJMP:
		return LEFT_BY_SIGLONGJMP;
	default:
		return LEFT_BY_UNKNOWN;
	}
}

/* Those of frames that have ended lie at the end: the others' lie further out than `depth`. */
static void forget_dead(struct frames *frames, size_t depth)
{
	size_t n = frames->landings.n;

	while (n && (frames->landings.v[n - 1].depth > depth ||
		     !lives(frames, &frames->landings.v[n - 1])))
		n--;
	frames->landings.n = n;
}

static bool is_known(const struct frames *frames, size_t depth, uint64_t ip)
{
	for (size_t i = frames->landings.n; i--;) {
		const struct landing *landing = &frames->landings.v[i];

		if (landing->depth != depth)
			return false;
		if (landing->ip == ip)
			return true;
	}
	return false;
}

void stack__on_setjmp(struct stack *s, const struct branch *b, enum function_role role)
{
	struct frames *frames = s->frames;
	const struct frame *top = frames__top(frames);
	uint64_t ip = branch__return_ip(b);
	struct landing *landing;
	size_t depth;

	if (!top)
		return;
	depth = (size_t)(top - frames->open.v);
	forget_dead(frames, depth);
	if (is_known(frames, depth, ip))
		return;
	landing = VEC_PUSH(&frames->landings);
	if (!landing) {
		frames->failed = true;
		return;
	}
	*landing = (struct landing){.ip = ip,
				    .depth = depth,
				    .index = top->index,
				    .is_root = top->is_root,
				    .left_by = (uint8_t)left_by_of(role),
				    .slack = branch__return_slack(b)};
}

static const struct landing *find(const struct frames *frames, uint64_t ip)
{
	for (size_t i = frames->landings.n; i--;) {
		const struct landing *landing = &frames->landings.v[i];

		if (ip - landing->ip <= landing->slack && lives(frames, landing))
			return landing;
	}
	return NULL;
}

bool stack__can_land(const struct frames *frames, uint64_t ip)
{
	return find(frames, ip);
}

bool stack__longjmp(struct stack *s, const struct branch *b)
{
	const struct landing *landing = find(s->frames, b->to);

	if (!landing)
		return false;
	stack__leap_to(s, b, &s->frames->open.v[landing->depth], (enum left_by)landing->left_by);
	return true;
}
