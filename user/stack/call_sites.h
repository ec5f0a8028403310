/* SPDX-License-Identifier: MIT */
/*
 * The instructions that made a tree's calls: there are millions of calls, but only thousands of
 * such instructions.
 */
#ifndef MTBPF_STACK_CALL_SITES_H
#define MTBPF_STACK_CALL_SITES_H

#include <stddef.h>
#include <stdint.h>

#include "target/elf/elf_inlined.h"

struct call_tree;
struct code_map;

/*
 * An instruction's function, inlined function and source. A site without the last two is not
 * stored.
 */
struct call_site {
	const struct function *function; /* whose code it is */
	const struct inlined *inlined;	 /* the innermost there; NULL: none */
	struct source_place source;	 /* file is NULL where not known */
};

struct call_sites {
	struct site_place {
		uint64_t ip; /* of the calling instruction; 0: a free place */
		struct call_site *site;
	} * places; /* a hash table */
	size_t n, n_places;
	size_t n_known, n_inlined; /* how many have a site, and inlined code in it */
};

/*
 * Looks up the call_ip of each call; `map` shows the code as it was at the end. Addresses at which
 * the code has changed get no site. 0 or -ENOMEM.
 */
int call_sites__find_all(struct call_sites *sites, const struct call_tree *tree,
			 struct code_map *map);
/*
 * Looks up one instruction. The first search for an ip reads the code that `map` shows now; later
 * ones return the same result.
 */
const struct call_site *call_sites__find_in(struct call_sites *sites, uint64_t ip,
					    struct code_map *map);
/* Adds the sites of `from`. 0 or -ENOMEM. */
int call_sites__add_all(struct call_sites *sites, const struct call_sites *from);
void call_sites__fini(struct call_sites *sites);

static inline struct site_place *call_sites__place(const struct call_sites *sites, uint64_t ip)
{
	size_t mask = sites->n_places - 1, at = (ip * 0x9e3779b97f4a7c15) >> 32 & mask;

	while (sites->places[at].ip != ip && sites->places[at].ip)
		at = (at + 1) & mask;
	return &sites->places[at];
}

/* Returns the site of the instruction at ip, or NULL. */
static inline const struct call_site *call_sites__find(const struct call_sites *sites, uint64_t ip)
{
	return ip && sites->n_known ? call_sites__place(sites, ip)->site : NULL;
}

#endif
