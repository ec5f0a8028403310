// SPDX-License-Identifier: MIT
#include "tree_walk.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int add_walk(walk_vec *walks, const struct call_tree *tree)
{
	struct walk *walk = VEC_PUSH(walks);

	if (!walk)
		return -1;
	*walk = (struct walk){.tree = *tree};
	return 0;
}

int walks__init(walk_vec *walks, struct stack *stack)
{
	struct call_tree tree = {0};
	int err = stack__finish(stack, &tree), more;

	if (!err)
		err = add_walk(walks, &tree);
	while (!err && (more = stack__finish_next(stack, &tree)))
		err = more < 0 ? more : add_walk(walks, &tree);
	return err;
}

void walks__fini(walk_vec *walks)
{
	for (size_t i = 0; i < walks->n; i++) {
		call_tree__fini(&walks->v[i].tree);
		VEC_FINI(&walks->v[i].path);
		VEC_FINI(&walks->v[i].frames);
	}
	VEC_FINI(walks);
}

bool walk__is_goexit(const struct function *function)
{
	return function && (!strcmp(function->name, "runtime.goexit") ||
			    !strcmp(function->name, "runtime.goexit.abi0"));
}

/* False where another stack runs. */
static bool walk_to(struct walk *w, uint64_t now)
{
	for (; w->next < w->tree.calls.n && w->tree.calls.v[w->next].start_ns <= now; w->next++) {
		const struct call *call = &w->tree.calls.v[w->next], **at;

		w->path.n = call->depth;
		at = VEC_PUSH(&w->path);
		if (!at)
			abort();
		*at = call;
	}
	while (w->path.n && w->path.v[w->path.n - 1]->end_ns <= now)
		w->path.n--;
	w->frames.n = 0;
	for (size_t i = 0; i < w->path.n; i++) {
		const struct function **frame;

		if (w->path.v[i]->kind > CALL_KERNEL ||
		    (!w->frames.n && walk__is_goexit(w->path.v[i]->function)))
			continue;
		frame = VEC_PUSH(&w->frames);
		if (!frame)
			abort();
		*frame = w->path.v[i]->function;
	}
	return w->path.n && w->path.v[w->path.n - 1]->kind != CALL_SWITCHED;
}

const struct walk *walks__find_running(walk_vec *walks, uint64_t now)
{
	const struct walk *running = &walks->v[0];

	for (size_t i = 0; i < walks->n; i++)
		if (walk_to(&walks->v[i], now))
			running = &walks->v[i];
	return running;
}

void walks__rewind(walk_vec *walks)
{
	for (size_t i = 0; i < walks->n; i++) {
		struct walk *walk = &walks->v[i];

		walk->next = walk->path.n = walk->frames.n = 0;
	}
}
