// SPDX-License-Identifier: MIT
#include "stack/frames.h"

#include <errno.h>
#include <stdlib.h>

void frames__init(struct frames *frames)
{
	*frames = (struct frames){.top = FRAME_NONE, .sentinel = FRAME_NONE};
}

void frames__fini(struct frames *frames)
{
	VEC_FINI(&frames->nodes);
}

/* The index of a new node, or FRAME_NONE. Pointers to nodes are no good after it. */
static uint32_t add_node(struct frames *frames, uint32_t parent, bool is_sentinel)
{
	struct frame *frame = frames->nodes.n < FRAME_NONE - 1 ? VEC_PUSH(&frames->nodes) : NULL;

	if (!frame) {
		frames->failed = true;
		return FRAME_NONE;
	}
	*frame = (struct frame){.parent = parent, .is_sentinel = is_sentinel};
	return (uint32_t)(frames->nodes.n - 1);
}

void frames__begin_segment(struct frames *frames, uint64_t time_ns)
{
	frames->sentinel = add_node(frames, FRAME_NONE, true);
	frames->top = frames->sentinel;
	if (frames->sentinel != FRAME_NONE)
		frames->nodes.v[frames->sentinel].call.start_ns = time_ns;
	frames->start_ns = time_ns;
}

void frames__begin_nested(struct frames *frames, uint64_t time_ns)
{
	uint32_t index = add_node(frames, frames->top, true);

	if (index == FRAME_NONE)
		return;
	frames->nodes.v[index].call.start_ns = time_ns;
	frames->sentinel = frames->top = index;
}

static struct frame *at(const struct frames *frames, uint32_t index)
{
	if (index == FRAME_NONE || frames->nodes.v[index].is_sentinel)
		return NULL;
	return &frames->nodes.v[index];
}

struct frame *frames__top(const struct frames *frames)
{
	return at(frames, frames->top);
}

struct frame *frames__parent(const struct frames *frames, const struct frame *frame)
{
	uint32_t index = frame->parent;

	while (index != FRAME_NONE && frames->nodes.v[index].is_sentinel)
		index = frames->nodes.v[index].parent;
	return at(frames, index);
}

struct frame *frames__below(const struct frames *frames)
{
	if (frames->top == FRAME_NONE || frames__top(frames))
		return NULL;
	return frames__parent(frames, &frames->nodes.v[frames->top]);
}

/* A nested part without frames is over. False where the top is the segment's sentinel. */
static bool join(struct frames *frames)
{
	uint32_t index =
		frames->top == FRAME_NONE ? FRAME_NONE : frames->nodes.v[frames->top].parent;

	if (index == FRAME_NONE)
		return false;
	frames->top = index;
	while (!frames->nodes.v[index].is_sentinel)
		index = frames->nodes.v[index].parent;
	frames->sentinel = index;
	return true;
}

struct frame *frames__push(struct frames *frames, const struct call *call)
{
	uint32_t index = add_node(frames, frames->top, false);

	if (index == FRAME_NONE)
		return NULL;
	frames->nodes.v[index].call = *call;
	frames->top = index;
	frames->level++;
	return &frames->nodes.v[index];
}

void frames__pop(struct frames *frames, uint64_t time_ns, uint8_t flags)
{
	struct frame *top = frames__top(frames);

	if (!top)
		return;
	top->call.end_ns = time_ns;
	top->call.flags |= flags;
	frames->top = top->parent;
	frames->level--;
}

void frames__unwind_to(struct frames *frames, const struct frame *frame, uint64_t time_ns,
		       uint8_t flags)
{
	uint32_t index = (uint32_t)(frame - frames->nodes.v);

	do {
		while (frames->top != index && frames__top(frames))
			frames__pop(frames, time_ns, flags);
	} while (frames->top != index && join(frames));
}

void frames__pop_to(struct frames *frames, const struct frame *frame, uint64_t time_ns)
{
	frames__unwind_to(frames, frame, time_ns, CALL_CUT_SHORT);
}

void frames__close_all(struct frames *frames, uint64_t time_ns, uint8_t flags)
{
	do {
		while (frames__top(frames))
			frames__pop(frames, time_ns, flags);
	} while (join(frames));
}

struct frame *frames__emplace_root(struct frames *frames, const struct function *function,
				   uint64_t ip)
{
	uint32_t index = frames->sentinel;
	uint32_t parent = index == FRAME_NONE ? FRAME_NONE : frames->nodes.v[index].parent;
	uint32_t below = add_node(frames, parent, true);
	uint64_t start_ns;
	struct frame *root;

	if (index == FRAME_NONE || below == FRAME_NONE)
		return NULL;
	root = &frames->nodes.v[index];
	start_ns = root->call.start_ns;
	frames->nodes.v[below].call.start_ns = start_ns;
	/* In a nested part it is one more on the frame below. */
	frames->level += parent != FRAME_NONE;
	*root = (struct frame){
		.parent = below,
		.call = {.start_ns = start_ns,
			 .entry_ip = ip,
			 .function = function,
			 .flags = CALL_INFERRED_START},
	};
	frames->sentinel = below;
	frames->top = index;
	return root;
}

void frames__add_gap(struct frames *frames, uint64_t start_ns, uint64_t end_ns, uint8_t reason)
{
	uint32_t index = add_node(frames, FRAME_NONE, false);

	if (index == FRAME_NONE)
		return;
	frames->nodes.v[index].call = (struct call){
		.start_ns = start_ns, .end_ns = end_ns, .kind = CALL_GAP, .reason = reason};
}

/* Children of each node, in the order of their creation, which is that of time. */
struct links {
	uint32_t *first, *last, *next;
	uint32_t first_root, last_root;
};

static void append(struct links *links, uint32_t *first, uint32_t *last, uint32_t index)
{
	if (*first == FRAME_NONE)
		*first = index;
	else
		links->next[*last] = index;
	*last = index;
}

/*
 * A sentinel stands for its segment among the roots, a nested one for its part among the children
 * of the frame it stands on: their nodes hang below it, and it is itself left out of the tree.
 */
static void link_all(const struct frames *frames, struct links *links)
{
	links->first_root = links->last_root = FRAME_NONE;
	for (uint32_t i = 0; i < frames->nodes.n; i++)
		links->first[i] = links->last[i] = links->next[i] = FRAME_NONE;
	for (uint32_t i = 0; i < frames->nodes.n; i++) {
		uint32_t parent = frames->nodes.v[i].parent;

		if (parent == FRAME_NONE)
			append(links, &links->first_root, &links->last_root, i);
		else
			append(links, &links->first[parent], &links->last[parent], i);
	}
}

struct waiting {
	uint32_t node, parent, depth;
};

struct walk {
	const struct frames *frames;
	const struct links *links;
	struct call_tree *tree;
	VEC(struct waiting) todo;
};

static int defer(struct walk *w, uint32_t node, uint32_t parent, uint32_t depth)
{
	struct waiting *item;

	if (node == FRAME_NONE)
		return 0;
	item = VEC_PUSH(&w->todo);
	if (!item)
		return -ENOMEM;
	*item = (struct waiting){node, parent, depth};
	return 0;
}

/* Depth first without recursion: a node's next sibling waits while its children are walked. */
static int walk_all(struct walk *w)
{
	int err = defer(w, w->links->first_root, CALL_NO_PARENT, 0);

	while (!err && w->todo.n) {
		struct waiting item = w->todo.v[--w->todo.n];
		const struct frame *frame = &w->frames->nodes.v[item.node];
		struct call *call;

		err = defer(w, w->links->next[item.node], item.parent, item.depth);
		if (err)
			break;
		if (frame->is_sentinel) {
			err = defer(w, w->links->first[item.node], item.parent, item.depth);
			continue;
		}
		call = VEC_PUSH(&w->tree->calls);
		if (!call)
			return -ENOMEM;
		*call = frame->call;
		call->parent = item.parent;
		call->depth = item.depth;
		err = defer(w, w->links->first[item.node], (uint32_t)(w->tree->calls.n - 1),
			    item.depth + 1);
	}
	return err;
}

int frames__finish(struct frames *frames, struct call_tree *tree)
{
	size_t n = frames->nodes.n ? frames->nodes.n : 1;
	uint32_t *memory = frames->failed ? NULL : malloc(3 * n * sizeof(*memory));
	struct links links = {memory, memory + n, memory + 2 * n, 0, 0};
	struct walk walk = {.frames = frames, .links = &links, .tree = tree};
	int err;

	if (!memory)
		return -ENOMEM;
	link_all(frames, &links);
	err = walk_all(&walk);
	VEC_FINI(&walk.todo);
	free(memory);
	return err;
}
