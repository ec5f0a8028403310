// SPDX-License-Identifier: MIT
#include "sampled/hit_stack.h"

#include <errno.h>

#include "sampled/sample_stack.h"

static int add(struct unwound *out, uint64_t ip)
{
	uint64_t *slot = VEC_PUSH(&out->ips);

	if (!slot)
		return -ENOMEM;
	*slot = ip;
	return 0;
}

static int unwind(const struct recording *rec, const struct mt_hit *hit, struct code_map *map,
		  struct unwound *out)
{
	struct rec_user user = recording__hit_user(rec, hit);
	struct unwind_start start = sample_stack__start(&user);

	return user.stack ? unwind__stack(map, &start, out) : add(out, hit->ip);
}

/* Behind which entry of the chain the list would go on; the chain's length where nowhere. */
static uint32_t find_junction(const struct mt_hit *hit, const struct unwound *out)
{
	uint64_t last = out->ips.v[out->ips.n - 1];
	uint32_t i = 0;

	while (i < hit->stack_depth && hit->stack[i] != last)
		i++;
	return i;
}

/* Registers that hold something else than a frame pointer lead anywhere. */
static int append_chain(const struct mt_hit *hit, struct code_map *map, struct unwound *out)
{
	int err = 0;

	for (uint32_t i = find_junction(hit, out) + 1; !err && i < hit->stack_depth; i++) {
		if (!unwind__is_behind_call(map, hit->stack[i]))
			break;
		err = add(out, hit->stack[i]);
	}
	return err;
}

int hit_stack__find(const struct recording *rec, const struct mt_hit *hit, struct images *images,
		    struct unwound *out)
{
	struct code_map *map = code_map__new();
	size_t next = 0;
	int err;

	*out = (struct unwound){0};
	err = map ? images__apply(images, (pid_t)hit->tgid, hit->time_ns, &next, map) : -ENOMEM;
	if (!err)
		err = unwind(rec, hit, map, out);
	if (!err && !out->is_whole)
		err = append_chain(hit, map, out);
	code_map__free(map);
	return err;
}
