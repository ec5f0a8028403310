// SPDX-License-Identifier: MIT
/* Remembers the callers of frames that ended without a return. */
#include "stack/stitch.h"

#include <errno.h>

/* No runtime needs more. */
#define MAX_EDGES 16384
/* Functions that one frame may be. */
#define STEP_MAX 32

void call_edges__fini(struct call_edges *edges)
{
	VEC_FINI(&edges->all);
	hash_index__fini(&edges->index);
}

static uint64_t hash_callee(const struct function *callee)
{
	return hash__mix(0, (uintptr_t)callee);
}

static uint64_t hash_both(const struct call_edge *edge)
{
	return hash__mix(hash_callee(edge->callee), (uintptr_t)edge->caller);
}

int call_edges__learn(struct call_edges *edges, const struct call_edge *edge)
{
	uint32_t number;
	size_t at = 0;

	while ((number = hash_index__next(&edges->index, hash_both(edge), &at))) {
		struct call_edge *known = &edges->all.v[number - 1];

		if (known->callee == edge->callee && known->caller == edge->caller) {
			known->is_passed |= edge->is_passed;
			return 0;
		}
	}
	if (!edge->caller || !edge->callee || edges->all.n == MAX_EDGES)
		return 0;
	number = (uint32_t)edges->all.n + 1;
	if (VEC_ADD(&edges->all, *edge) || hash_index__add(&edges->index, hash_both(edge), number))
		return -ENOMEM;
	return hash_index__add(&edges->index, hash_callee(edge->callee), number);
}

/* The functions that may be a given number of calls below the end. */
struct step {
	const struct function *function[STEP_MAX];
	bool is_on_path[STEP_MAX]; /* a path from `from` in call_edges__pass() leads to it */
	size_t n;
};

static size_t find_in(const struct step *step, const struct function *function)
{
	size_t i = 0;

	while (i < step->n && step->function[i] != function)
		i++;
	return i;
}

/*
 * The next edge to the callee that exceptions pass, or in whose caller one has landed; NULL: no
 * more. *at begins as 0.
 */
static const struct call_edge *next_edge(const struct call_edges *edges,
					 const struct function *callee, bool has_landed, size_t *at)
{
	uint32_t number;

	while ((number = hash_index__next(&edges->index, hash_callee(callee), at))) {
		const struct call_edge *edge = &edges->all.v[number - 1];

		if (edge->callee == callee && (has_landed || edge->is_passed))
			return edge;
	}
	return NULL;
}

/*
 * Lists all functions that may have called those in `above`. Returns false if there are too many.
 */
static bool step_down(const struct call_edges *edges, const struct step *above, bool has_landed,
		      struct step *below)
{
	const struct call_edge *edge;

	below->n = 0;
	for (size_t i = 0; i < above->n; i++) {
		size_t at = 0;

		while ((edge = next_edge(edges, above->function[i], has_landed, &at))) {
			if (find_in(below, edge->caller) < below->n)
				continue;
			if (below->n == STEP_MAX)
				return false;
			below->is_on_path[below->n] = false;
			below->function[below->n++] = edge->caller;
		}
	}
	return true;
}

/*
 * Marks the functions in `above` that can be reached from `below`. Returns what is known of the
 * function if there is only one.
 */
static struct held step_up(const struct call_edges *edges, const struct step *below,
			   struct step *above, bool has_landed)
{
	const struct call_edge *edge;
	struct held held = {0};
	size_t n = 0, n_edges = 0;

	for (size_t i = 0; i < above->n; i++) {
		size_t at = 0;

		above->is_on_path[i] = false;
		while ((edge = next_edge(edges, above->function[i], has_landed, &at))) {
			size_t from = find_in(below, edge->caller);

			if (from == below->n || !below->is_on_path[from])
				continue;
			above->is_on_path[i] = true;
			held.return_ip = edge->return_ip;
			n_edges++;
		}
		n += above->is_on_path[i];
		if (above->is_on_path[i])
			held.function = above->function[i];
	}
	if (n_edges != 1)
		held.return_ip = 0;
	return n == 1 ? held : (struct held){0};
}

bool call_edges__pass(const struct call_edges *edges, const struct function *from, bool has_landed,
		      const struct function *to, struct held between[BETWEEN_MAX], size_t n)
{
	struct step steps[BETWEEN_MAX + 2];
	size_t last = n + 1, at;

	if (n > BETWEEN_MAX || !from || !to)
		return false;
	steps[0] = (struct step){.function = {to}, .n = 1};
	for (size_t i = 1; i <= last; i++)
		if (!step_down(edges, &steps[i - 1], i == last && has_landed, &steps[i]))
			return false;
	at = find_in(&steps[last], from);
	if (at == steps[last].n)
		return false;
	steps[last].is_on_path[at] = true;
	for (size_t i = last; i > 0; i--) {
		struct held held =
			step_up(edges, &steps[i], &steps[i - 1], i == last && has_landed);

		/* A frame was first seen at the place where its callee returned to. */
		if (i < last)
			between[n - i].entry_ip = held.return_ip;
		if (i > 1)
			between[n + 1 - i] = held;
	}
	return true;
}
