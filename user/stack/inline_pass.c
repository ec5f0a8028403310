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

/* The innermost inlined function that the call was made in, if known. */
static const struct inlined *place_of(const struct inline_pass *p, const struct call *call,
				      const struct inline_level *caller)
{
	const struct call_site *site;

	/*
	 * A tail call counts as made where the call was that it replaced, and a handler where its
	 * thread was interrupted: in the slices that are open.
	 */
	if (call->flags & CALL_BY_JUMP || call->kind == CALL_SIGNAL)
		return caller->open;
	site = call_sites__find(&p->tree->sites, call->call_ip);
	return site ? site->inlined : NULL;
}

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

static void begin_slice(struct inline_pass *p, struct inline_level *level,
			const struct inlined *inlined, const struct call *first)
{
	struct inline_slice *slice = VEC_PUSH(&p->slices);

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

/*
 * Begins outer slices before inner ones. The recursion is as deep as the debug info's nesting,
 * which has bounds.
 */
static void begin_slices(struct inline_pass *p, struct inline_level *level,
			 const struct inlined *inlined, const struct call *first)
{
	if (inlined->outer != level->open)
		begin_slices(p, level, inlined->outer, first);
	if (!p->failed)
		begin_slice(p, level, inlined, first);
}

/* Replaces the open slices of `level` by those that contain the call. */
static void enter(struct inline_pass *p, struct inline_level *level, const struct call *call)
{
	const struct inlined *inlined;

	if (call->told_before)
		end_slices(p, level, NULL);
	inlined = place_of(p, call, level);
	if (inlined != level->open) {
		end_slices(p, level, common(inlined, level->open));
		if (inlined != level->open)
			begin_slices(p, level, inlined, call);
	}
	level->last_ns = call->end_ns;
}

/* The level of a call at this depth. The call that had it before has ended. NULL: no memory. */
static struct inline_level *level_at(struct inline_pass *p, uint32_t depth)
{
	struct inline_level *level;

	if (depth < p->path.n) {
		level = &p->path.v[depth];
		end_slices(p, level, NULL);
		return level;
	}
	level = VEC_PUSH(&p->path);
	if (level)
		*level = (struct inline_level){0};
	return level;
}

/* Each call gets the parent and the depth that it will have. */
static int walk(struct inline_pass *p)
{
	for (; p->at < p->tree->calls.n; p->at++) {
		struct call *call = &p->tree->calls.v[p->at];
		struct inline_level *level = level_at(p, call->depth + p->above);

		if (!level)
			return -ENOMEM;
		if (call->depth + p->above) {
			enter(p, level - 1, call);
			call->parent = inner_index(p, level - 1);
			call->depth = inner_depth(level - 1);
		}
		level->index = p->at + (uint32_t)p->slices.n;
		level->depth = call->depth;
	}
	for (size_t i = 0; i < p->path.n; i++)
		end_slices(p, &p->path.v[i], NULL);
	return p->failed ? -ENOMEM : 0;
}

/* The call's index after the insertions. */
static uint32_t new_index(const struct inline_pass *p, uint32_t index)
{
	size_t n = VEC_PARTITION_POINT(&p->slices, e, e->before <= index);

	return index + (uint32_t)n;
}

/* Updates the indices in unwinds and done_by. Trees of followed calls lack `waits`. */
static void follow_calls(const struct inline_pass *p)
{
	struct call_tree *tree = p->tree;

	for (size_t i = 0; i < tree->unwinds.n; i++) {
		tree->unwinds.v[i].from = new_index(p, tree->unwinds.v[i].from);
		tree->unwinds.v[i].to = new_index(p, tree->unwinds.v[i].to);
	}
	for (size_t i = 0; i < tree->done_by.n; i++)
		tree->done_by.v[i].call = new_index(p, tree->done_by.v[i].call);
}

static int make_room(struct call_tree *tree, size_t n)
{
	struct call *bigger;

	if (n >= CALL_NO_PARENT)
		return -ENOMEM;
	if (n <= tree->calls.cap)
		return 0;
	bigger = memory_limit__allows((n - tree->calls.cap) * sizeof(*bigger))
			 ? realloc(tree->calls.v, n * sizeof(*bigger))
			 : NULL;
	if (!bigger)
		return -ENOMEM;
	tree->calls.v = bigger;
	tree->calls.cap = n;
	huge_pages__use(bigger);
	return 0;
}

static int put_in(const struct inline_pass *p)
{
	struct call_tree *tree = p->tree;
	const struct inline_slice *slices = p->slices.v;
	size_t end = tree->calls.n, n = p->slices.n;
	struct call *calls;
	int err = make_room(tree, end + n);

	if (err)
		return err;
	follow_calls(p);
	calls = tree->calls.v;
	tree->calls.n += n;
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

static int run(struct call_tree *tree)
{
	struct inline_pass pass = {.tree = tree};
	int err = 0;

	if (tree->sites.n_inlined)
		err = walk(&pass);
	if (!err && pass.slices.n)
		err = put_in(&pass);
	inline_pass__fini(&pass);
	return err;
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

	for (size_t i = 0; i < n && !err; i++)
		err = run(&trees[i]);
	return err;
}
