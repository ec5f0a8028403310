// SPDX-License-Identifier: MIT
#include "pipeline/early_calls.h"

#include <errno.h>
#include <stdlib.h>

/* Other code has come to lie where code was. */
static void retire_sites(struct early_calls *early)
{
	struct call_sites *retired = VEC_PUSH(&early->retired);

	if (!retired) {
		early->failed = true;
		return;
	}
	*retired = early->part.sites;
	early->part.sites = (struct call_sites){0};
	early->site_ip = 0;
}

/* The outermost inlined call around the site; NULL: none. */
static const struct inlined *outermost_of(const struct call_site *site)
{
	const struct inlined *inlined = site ? site->inlined : NULL;

	while (inlined && inlined->outer)
		inlined = inlined->outer;
	return inlined;
}

static const struct inlined *outermost(void *ctx, const struct call *call)
{
	struct early_calls *early = ctx;

	if (code_map__replaced(early->map) != early->replaced) {
		early->replaced = code_map__replaced(early->map);
		retire_sites(early);
	}
	early->site_ip = call->call_ip;
	early->site = call_sites__find_in(&early->part.sites, call->call_ip, early->map);
	return early->no_inline ? NULL : outermost_of(early->site);
}

static const struct call_site *site_of(const struct early_calls *early, const struct call *call)
{
	if (call->call_ip == early->site_ip && call->kind != CALL_INLINED)
		return early->site;
	return call__site(call, &early->part.sites);
}

/* Hands on one call. Its depth is relative to the first one. */
static int hand_on(struct early_calls *early, const struct call *call, uint32_t depth)
{
	struct call *out = early_queue__add(early->queue, site_of(early, call));

	if (!out)
		return -ENOMEM;
	*out = *call;
	out->depth = depth;
	early->n++;
	return 0;
}

/* Each slice of inlined code before its first call. */
static int hand_on_with_inlined(struct early_calls *early)
{
	const struct call_tree *part = &early->part;
	const struct inline_slice *slice, *end;
	int err = inline_pass__find(&early->inlined, &early->part);

	slice = early->inlined.slices.v;
	end = slice + early->inlined.slices.n;
	for (uint32_t i = 0; i < part->calls.n && !err; i++) {
		for (; slice < end && slice->before == i && !err; slice++)
			err = hand_on(early, &slice->call, slice->call.depth);
		if (!err)
			err = hand_on(early, &part->calls.v[i], part->calls.v[i].depth);
	}
	return err;
}

static bool may_have_inlined(const struct early_calls *early)
{
	const struct call_tree *part = &early->part;
	const struct call_site *site;

	if (early->no_inline || !part->sites.n_inlined)
		return false;
	site = site_of(early, part->calls.v);
	return part->calls.n > 1 || (site && site->inlined);
}

static int take(void *ctx, struct call *calls, size_t n)
{
	struct early_calls *early = ctx;
	uint32_t depth = calls->depth;
	int err = early->failed ? -ENOMEM : 0;

	early->part.calls.v = calls;
	early->part.calls.n = n;
	early_queue__begin(early->queue, &(struct early_owner){early->part.pid, early->part.tid,
							       *early->base_ns});
	if (!err && may_have_inlined(early))
		return hand_on_with_inlined(early);
	for (size_t i = 0; i < n && !err; i++)
		err = hand_on(early, &calls[i], calls[i].depth - depth);
	return err;
}

struct early_calls *early_calls__new(struct early_queue *queue, pid_t pid, pid_t tid,
				     struct code_map *map)
{
	struct early_calls *early = malloc(sizeof(*early));

	if (!early)
		return NULL;
	*early = (struct early_calls){
		.consumer = {.take = take, .outermost = outermost, .ctx = early},
		.queue = queue,
		.map = map,
		.replaced = code_map__replaced(map),
		.part = {.pid = pid, .tid = tid},
	};
	return early;
}

void early_calls__free(struct early_calls *early)
{
	if (!early)
		return;
	for (size_t i = 0; i < early->retired.n; i++)
		call_sites__fini(&early->retired.v[i]);
	VEC_FINI(&early->retired);
	inline_pass__fini(&early->inlined);
	call_sites__fini(&early->part.sites);
	free(early);
}
