// SPDX-License-Identifier: MIT
#include "tree_settle.h"

#include <errno.h>
#include <stdlib.h>

#include "decode/pt_time.h"
#include "stack/inline_pass.h"
#include "stack/spread_times.h"

typedef VEC(uint64_t) time_vec;

static int compare_times(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The thread's hits, which are to stay before what came after them. */
static int collect_hits(time_vec *times, const struct recording *rec, pid_t tid)
{
	for (size_t i = 0; i < rec->hits.n; i++) {
		uint64_t *time = (pid_t)rec->hits.v[i].tid == tid ? VEC_PUSH(times) : NULL;

		if (time)
			*time = rec->hits.v[i].time_ns;
		else if ((pid_t)rec->hits.v[i].tid == tid)
			return -ENOMEM;
	}
	if (times->n)
		qsort(times->v, times->n, sizeof(*times->v), compare_times);
	return 0;
}

static int spread_times(struct call_tree *tree, const struct recording *rec)
{
	time_vec hits = {0};
	int err = collect_hits(&hits, rec, tree->tid);

	if (!err)
		err = call_tree__spread_times(
			tree, &(struct known_times){.step_ns = pt_time__step_ns(&rec->pt),
						    .fixed = hits.v,
						    .n_fixed = hits.n});
	VEC_FINI(&hits);
	return err;
}

int tree__settle(struct call_tree *tree, struct code_map *map, const struct recording *rec,
		 const struct tree_options *options)
{
	int err = spread_times(tree, rec);

	if (!err)
		err = call_sites__find_all(&tree->sites, tree, map);
	if (!err && !options->no_inline)
		err = inline_pass__run(tree);
	return err;
}
