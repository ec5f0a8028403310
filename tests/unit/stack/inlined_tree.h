/* SPDX-License-Identifier: MIT */
/* A tree whose calls come from sites with inlined code around them. */
#ifndef MTBPF_TESTS_INLINED_TREE_H
#define MTBPF_TESTS_INLINED_TREE_H

#include "tree_text.h"

#include <string.h>

#include "stack/tree_passes.h"

/* main has `a` in it, which has `b`; and again `b`, by itself. */
static const struct function inlined_a = {.name = "a", .kind = FUNCTION_INLINED};
static const struct function inlined_b = {.name = "b", .kind = FUNCTION_INLINED};
static const struct inlined a_in_main = {
	.function = &inlined_a, .call = {"main.c", 10}, .depth = 0};
static const struct inlined b_in_a = {
	.function = &inlined_b, .outer = &a_in_main, .call = {"a.h", 20}, .depth = 1};
static const struct inlined b_in_main = {.function = &inlined_b, .depth = 0};
static const struct function physical = {.name = "f"};

/* Addresses of calls. */
enum { IN_MAIN = 0x1000, IN_A = 0x2000, IN_B = 0x3000, IN_OTHER_B = 0x4000, NOT_KNOWN = 0x5000 };

static inline void add_site(struct call_sites *sites, uint64_t ip, const struct inlined *inlined)
{
	struct site_place *place = call_sites__place(sites, ip);

	*place = (struct site_place){ip, calloc(1, sizeof(*place->site))};
	*place->site = (struct call_site){.function = &physical, .inlined = inlined};
	sites->n++;
	sites->n_known++;
	sites->n_inlined += inlined != NULL;
}

static inline void add_sites(struct call_tree *tree)
{
	tree->sites.n_places = 64;
	tree->sites.places = calloc(64, sizeof(*tree->sites.places));
	add_site(&tree->sites, IN_MAIN, NULL);
	add_site(&tree->sites, IN_A, &a_in_main);
	add_site(&tree->sites, IN_B, &b_in_a);
	add_site(&tree->sites, IN_OTHER_B, &b_in_main);
	*call_sites__place(&tree->sites, NOT_KNOWN) = (struct site_place){.ip = NOT_KNOWN};
}

/* Behind what is there: in pre-order. */
static inline struct call *add_call(struct call_tree *tree, uint32_t depth, uint64_t start_ns,
				    uint64_t end_ns, uint64_t call_ip)
{
	uint32_t parent = (uint32_t)tree->calls.n - 1;
	struct call *call = VEC_PUSH(&tree->calls);

	while (depth && tree->calls.v[parent].depth >= depth)
		parent--;
	*call = (struct call){.start_ns = start_ns,
			      .end_ns = end_ns,
			      .call_ip = call_ip,
			      .function = &physical,
			      .parent = depth ? parent : CALL_NO_PARENT,
			      .depth = depth};
	return call;
}

static inline void free_tree(struct call_tree *tree)
{
	VEC_FINI(&tree->calls);
	VEC_FINI(&tree->unwinds);
	VEC_FINI(&tree->done_by);
	call_sites__fini(&tree->sites);
}

#endif
