// SPDX-License-Identifier: MIT
#include "stack/stitch/ways.h"

#include <errno.h>

/* More is no runtime's doing. */
#define MAX_WAYS  16384
#define MAX_STEPS 4096

/* Looks for ways of so many calls, from the end on. */
struct search {
	const struct ways *ways;
	const struct function *from;
	const struct way *path[WAY_MAX + 1]; /* the last that was found */
	const struct way *at[WAY_MAX + 1];
	size_t n, n_found, n_steps;
};

void ways__fini(struct ways *ways)
{
	VEC_FINI(&ways->all);
	hash_index__fini(&ways->index);
}

static uint64_t hash_callee(const struct function *callee)
{
	return hash__mix(0, (uintptr_t)callee);
}

static uint64_t hash_both(const struct way *way)
{
	return hash__mix(hash_callee(way->callee), (uintptr_t)way->caller);
}

static bool is_known(const struct ways *ways, const struct way *way)
{
	size_t at = 0;
	uint32_t number;

	while ((number = hash_index__next(&ways->index, hash_both(way), &at))) {
		const struct way *known = &ways->all.v[number - 1];

		if (known->callee == way->callee && known->caller == way->caller)
			return true;
	}
	return false;
}

int ways__learn(struct ways *ways, const struct way *way)
{
	struct way *added;
	uint32_t number;

	if (!way->caller || !way->callee || ways->all.n == MAX_WAYS || is_known(ways, way))
		return 0;
	added = VEC_PUSH(&ways->all);
	if (!added)
		return -ENOMEM;
	*added = *way;
	number = (uint32_t)ways->all.n;
	if (hash_index__add(&ways->index, hash_both(way), number))
		return -ENOMEM;
	return hash_index__add(&ways->index, hash_callee(way->callee), number);
}

static void find(struct search *search, const struct function *callee, size_t n_left)
{
	const struct ways *ways = search->ways;
	size_t at = 0;
	uint32_t number;

	while ((number = hash_index__next(&ways->index, hash_callee(callee), &at))) {
		const struct way *way = &ways->all.v[number - 1];

		if (way->callee != callee)
			continue;
		if (++search->n_steps > MAX_STEPS)
			return;
		search->at[n_left - 1] = way;
		if (n_left > 1) {
			find(search, way->caller, n_left - 1);
		} else if (way->caller == search->from) {
			search->n_found++;
			for (size_t i = 0; i < search->n; i++)
				search->path[i] = search->at[i];
		}
	}
}

size_t ways__between(const struct ways *ways, const struct function *from,
		     const struct function *to, struct held between[WAY_MAX])
{
	struct search search = {.ways = ways, .from = from};

	while (!search.n_found && search.n <= WAY_MAX && search.n_steps <= MAX_STEPS) {
		search.n++;
		find(&search, to, search.n);
	}
	if (search.n_found != 1 || search.n_steps > MAX_STEPS)
		return 0;
	for (size_t i = 0; i + 1 < search.n; i++)
		between[i] = (struct held){.function = search.path[i]->callee,
					   .return_ip = search.path[i]->return_ip,
					   .entry_ip = search.path[i + 1]->return_ip};
	return search.n - 1;
}
