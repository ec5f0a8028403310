// SPDX-License-Identifier: MIT
#include "pipeline/early_calls.h"

#include <errno.h>
#include <stdlib.h>

#include "stack/tree_passes.h"

/* Other code has come to lie where code was. */
static void retire_sites(struct early_calls *early)
{
	struct call_sites *retired = VEC_PUSH(&early->retired);

	if (!retired) {
		early->failed = true;
		return;
	}
	*retired = early->one.sites;
	early->one.sites = (struct call_sites){0};
	early->site_ip = 0;
}

/*
 * A tail call has taken the place of a call that lay there, and a signal's handler is not called:
 * both lie where the call before them does.
 */
static bool is_in_inlined(void *ctx, const struct call *call)
{
	struct early_calls *early = ctx;

	if (code_map__replaced(early->map) != early->replaced) {
		early->replaced = code_map__replaced(early->map);
		retire_sites(early);
	}
	early->site_ip = call->call_ip;
	early->site = call_sites__find_in(&early->one.sites, call->call_ip, early->map);
	return early->site && early->site->inlined && !early->no_inline &&
	       !(call->flags & CALL_BY_JUMP) && call->kind != CALL_SIGNAL;
}

/* As a tree of their own, in which slices of inlined functions find room. */
static int copy(struct early_calls *early, const struct call *calls, size_t n)
{
	early->calls.n = 0;
	for (size_t i = 0; i < n; i++) {
		struct call *call = VEC_PUSH(&early->calls);

		if (!call)
			return -ENOMEM;
		*call = calls[i];
		call->depth -= calls[0].depth;
		call->parent = CALL_NO_PARENT;
	}
	return 0;
}

static int put_inlined_in(struct early_calls *early, const struct call *calls, size_t n)
{
	int err = copy(early, calls, n);

	if (err)
		return err;
	early->one.calls.v = early->calls.v;
	early->one.calls.n = early->calls.n;
	early->one.calls.cap = early->calls.cap;
	err = inline_pass__run(&early->one, 1);
	early->calls.v = early->one.calls.v;
	early->calls.cap = early->one.calls.cap;
	return err;
}

static const struct call_site *site_of(const struct early_calls *early, const struct call *call)
{
	if (call->call_ip == early->site_ip && call->kind != CALL_INLINED)
		return early->site;
	return call__site(call, &early->one.sites);
}

static int hand_on(struct early_calls *early)
{
	const struct call_tree *one = &early->one;
	const struct early_owner owner = {one->pid, one->tid, *early->base_ns};

	early->call_sites.n = 0;
	for (size_t i = 0; i < one->calls.n; i++) {
		const struct call_site **site = VEC_PUSH(&early->call_sites);

		if (!site)
			return -ENOMEM;
		*site = site_of(early, &one->calls.v[i]);
	}
	early->n += one->calls.n;
	return early_queue__add(early->queue, &owner, one->calls.v, early->call_sites.v,
				one->calls.n);
}

static int take(void *ctx, const struct call *calls, size_t n)
{
	struct early_calls *early = ctx;
	int err = early->failed ? -ENOMEM : 0;

	early->one.calls.v = (struct call *)calls;
	early->one.calls.n = n;
	if (n > 1 && early->one.sites.n_inlined && !early->no_inline)
		err = err ? err : put_inlined_in(early, calls, n);
	return err ? err : hand_on(early);
}

struct early_calls *early_calls__new(struct early_queue *queue, pid_t pid, pid_t tid,
				     struct code_map *map)
{
	struct early_calls *early = malloc(sizeof(*early));

	if (!early)
		return NULL;
	*early = (struct early_calls){
		.taker = {.take = take, .is_in_inlined = is_in_inlined, .ctx = early},
		.queue = queue,
		.map = map,
		.replaced = code_map__replaced(map),
		.one = {.pid = pid, .tid = tid},
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
	VEC_FINI(&early->calls);
	VEC_FINI(&early->call_sites);
	call_sites__fini(&early->one.sites);
	free(early);
}
