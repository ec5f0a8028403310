// SPDX-License-Identifier: MIT
/*
 * Calls are in pre-order, so that one walk finds all slices that are to be inserted, and where each
 * call will be then: a call's new index is its old one plus the number of slices before it. Calls
 * are moved there from the last to the first, each at most once.
 */
#include "stack/tree_passes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernel.h"
#include "util/vec.h"

/* The innermost inlined function that contains both, or is both. */
static const struct inlined *common(const struct inlined *a, const struct inlined *b)
{
	while (a != b) {
		if (a && (!b || a->depth >= b->depth))
			a = a->outer;
		else
			b = b->outer;
	}
	return a;
}

static void end_slices(struct inline_pass *p, struct inline_level *level,
		       const struct inlined *until)
{
	for (; level->open != until; level->open = level->open->outer) {
		p->slices.v[level->inner].call.end_ns = level->last_ns;
		level->inner = p->slices.v[level->inner].outer;
	}
}

/* The new index and depth of the next callee there. */
static uint32_t inner_index(const struct inline_pass *p, const struct inline_level *level)
{
	return level->open ? p->slices.v[level->inner].before + level->inner : level->index;
}

static uint32_t inner_depth(const struct inline_level *level)
{
	return level->depth + 1 + (level->open ? level->open->depth + 1 : 0);
}

/*
 * Begins outer slices before inner ones. The recursion is as deep as the debug info's nesting,
 * which has bounds.
 */
static void begin_slices(struct inline_pass *p, struct inline_level *level,
			 const struct inlined *inlined, const struct call *first)
{
	struct inline_slice *slice;

	if (inlined->outer != level->open)
		begin_slices(p, level, inlined->outer, first);
	slice = p->failed ? NULL : VEC_PUSH(&p->slices);
	if (!slice) {
		p->failed = true;
		return;
	}
	*slice = (struct inline_slice){
		.before = p->at,
		.outer = level->inner,
		.call = {.start_ns = first->start_ns,
			 .entry_ip = first->call_ip,
			 .inlined = inlined,
			 .function = inlined->function,
			 .kind = CALL_INLINED,
			 .flags = CALL_INFERRED_START | CALL_INFERRED_END,
			 .parent = inner_index(p, level),
			 .depth = inner_depth(level)},
	};
	level->inner = (uint32_t)(p->slices.n - 1);
	level->open = inlined;
}

/* Replaces the open slices of `level` by those that contain the call. */
static void enter(struct inline_pass *p, struct inline_level *level, const struct call *call)
{
	const struct inlined *inlined;

	if (call->told_before)
		end_slices(p, level, NULL);
	/*
	 * A tail call counts as made where the call was that it replaced, and a handler where its
	 * thread was interrupted: in the slices that are open.
	 */
	inlined = level->open;
	if (!(call->flags & CALL_BY_JUMP) && call->kind != CALL_SIGNAL) {
		const struct call_site *site = call_sites__find(&p->tree->sites, call->call_ip);

		inlined = site ? site->inlined : NULL;
	}
	if (inlined != level->open) {
		end_slices(p, level, common(inlined, level->open));
		if (inlined != level->open)
			begin_slices(p, level, inlined, call);
	}
	level->last_ns = call->end_ns;
}

/* Each call gets the parent and the depth that it will have. */
static int walk(struct inline_pass *p)
{
	for (; p->at < p->tree->calls.n; p->at++) {
		struct call *call = &p->tree->calls.v[p->at];
		uint32_t depth = call->depth + p->above;
		struct inline_level *level;

		if (depth < p->path.n) {
			/* The call that had this depth before has ended. */
			end_slices(p, &p->path.v[depth], NULL);
		} else if (VEC_ADD(&p->path, (struct inline_level){0})) {
			return -ENOMEM;
		}
		level = &p->path.v[depth];
		if (depth) {
			enter(p, level - 1, call);
			call->parent = inner_index(p, level - 1);
			call->depth = inner_depth(level - 1);
		}
		level->index = p->at + (uint32_t)p->slices.n;
		level->depth = call->depth;
	}
	VEC_EACH(&p->path, level)
		end_slices(p, level, NULL);
	return p->failed ? -ENOMEM : 0;
}

/* The call's index after the insertions. */
static uint32_t new_index(const struct inline_pass *p, uint32_t index)
{
	size_t n = VEC_PARTITION_POINT(&p->slices, e, e->before <= index);

	return index + (uint32_t)n;
}

static int put_in(const struct inline_pass *p)
{
	struct call_tree *tree = p->tree;
	const struct inline_slice *slices = p->slices.v;
	size_t end = tree->calls.n, n = p->slices.n, all = end + n;
	struct call *calls = tree->calls.v;

	if (all >= CALL_NO_PARENT)
		return -ENOMEM;
	if (all > tree->calls.cap) {
		calls = memory_limit__allows((all - tree->calls.cap) * sizeof(*calls))
				? realloc(calls, all * sizeof(*calls))
				: NULL;
		if (!calls)
			return -ENOMEM;
		tree->calls.v = calls;
		tree->calls.cap = all;
		huge_pages__use(calls);
	}
	/* Trees of followed calls lack `waits`. */
	VEC_EACH(&tree->unwinds, unwind) {
		unwind->from = new_index(p, unwind->from);
		unwind->to = new_index(p, unwind->to);
	}
	VEC_EACH(&tree->done_by, done_by)
		done_by->call = new_index(p, done_by->call);
	tree->calls.n = all;
	while (n--) {
		size_t first = slices[n].before;

		memmove(&calls[first + n + 1], &calls[first], (end - first) * sizeof(*calls));
		calls[first + n] = slices[n].call;
		end = first;
	}
	return 0;
}

void inline_pass__fini(struct inline_pass *p)
{
	VEC_FINI(&p->slices);
	VEC_FINI(&p->path);
}

int inline_pass__find(struct inline_pass *p, struct call_tree *part)
{
	struct inline_level *caller;

	p->tree = part;
	p->at = 0;
	p->slices.n = p->path.n = 0;
	p->above = 1 - part->calls.v[0].depth;
	caller = VEC_PUSH(&p->path);
	if (!caller)
		return -ENOMEM;
	/* Its callees have the depth 0. */
	*caller = (struct inline_level){.index = CALL_NO_PARENT, .depth = UINT32_MAX};
	return walk(p);
}

int inline_pass__run(struct call_tree *trees, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		struct inline_pass pass = {.tree = &trees[i]};

		if (trees[i].sites.n_inlined)
			err = walk(&pass);
		if (!err && pass.slices.n)
			err = put_in(&pass);
		inline_pass__fini(&pass);
	}
	return err;
}
