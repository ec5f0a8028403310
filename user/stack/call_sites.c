// SPDX-License-Identifier: MIT
#include "stack/call_sites.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "stack/call_tree.h"
#include "target/code_map.h"

#define FIRST_PLACES 1024

static int grow(struct call_sites *sites)
{
	struct call_sites bigger = *sites;

	bigger.n_places = sites->n_places ? 2 * sites->n_places : FIRST_PLACES;
	bigger.places = calloc(bigger.n_places, sizeof(*bigger.places));
	if (!bigger.places)
		return -ENOMEM;
	for (size_t i = 0; i < sites->n_places; i++)
		if (sites->places[i].ip)
			*call_sites__place(&bigger, sites->places[i].ip) = sites->places[i];
	free(sites->places);
	*sites = bigger;
	return 0;
}

/* NULL where nothing is known, or memory ran out. */
static struct call_site *look_up(uint64_t ip, struct code_map *map)
{
	struct call_site found = {0}, *site;
	struct code_place place;

	if (!code_map__find(map, ip, &place))
		return NULL;
	found.function = place.function;
	found.inlined = elf_image__inlined_at(place.image, place.vaddr);
	if (!elf_image__source_at(place.image, place.vaddr, &found.source))
		found.source.file = NULL;
	site = found.inlined || found.source.file ? malloc(sizeof(*site)) : NULL;
	if (site)
		*site = found;
	return site;
}

/*
 * The code that made the call is its caller's; what a tail call has replaced is not among its
 * parents.
 */
static bool is_of(const struct call_site *site, const struct call_tree *tree,
		  const struct call *call)
{
	if (call->flags & CALL_BY_JUMP || call->parent == CALL_NO_PARENT)
		return true;
	return tree->calls.v[call->parent].function == site->function;
}

/* The place of ip, or a free one; NULL: no memory. */
static struct site_place *find_place(struct call_sites *sites, uint64_t ip)
{
	if (2 * sites->n >= sites->n_places && grow(sites))
		return NULL;
	return call_sites__place(sites, ip);
}

static void take_place(struct call_sites *sites, struct site_place *place, uint64_t ip,
		       struct call_site *site)
{
	*place = (struct site_place){ip, site};
	sites->n++;
	sites->n_known += site != NULL;
	sites->n_inlined += site && site->inlined;
}

static struct site_place *add_place(struct call_sites *sites, uint64_t ip, struct code_map *map)
{
	struct site_place *place = find_place(sites, ip);

	if (place && !place->ip)
		take_place(sites, place, ip, look_up(ip, map));
	return place;
}

static int add_known(struct call_sites *sites, uint64_t ip, const struct call_site *known)
{
	struct site_place *place = find_place(sites, ip);
	struct call_site *site;

	if (!place)
		return -ENOMEM;
	if (place->ip)
		return 0;
	site = known ? malloc(sizeof(*site)) : NULL;
	if (known && !site)
		return -ENOMEM;
	if (site)
		*site = *known;
	take_place(sites, place, ip, site);
	return 0;
}

int call_sites__add_all(struct call_sites *sites, const struct call_sites *from)
{
	int err = 0;

	for (size_t i = 0; i < from->n_places && !err; i++)
		if (from->places[i].ip)
			err = add_known(sites, from->places[i].ip, from->places[i].site);
	return err;
}

const struct call_site *call_sites__find_in(struct call_sites *sites, uint64_t ip,
					    struct code_map *map)
{
	struct site_place *place = ip ? add_place(sites, ip, map) : NULL;

	return place ? place->site : NULL;
}

static int add(struct call_sites *sites, const struct call_tree *tree, const struct call *call,
	       struct code_map *map)
{
	struct site_place *place = add_place(sites, call->call_ip, map);

	if (!place)
		return -ENOMEM;
	/* Code has come to lie where other code was. */
	if (place->site && code_map__replaced(map) && !is_of(place->site, tree, call)) {
		sites->n_known--;
		sites->n_inlined -= place->site->inlined != NULL;
		free(place->site);
		place->site = NULL;
	}
	return 0;
}

int call_sites__find_all(struct call_sites *sites, const struct call_tree *tree,
			 struct code_map *map)
{
	int err = 0;

	for (size_t i = 0; i < tree->calls.n && !err; i++)
		if (tree->calls.v[i].call_ip)
			err = add(sites, tree, &tree->calls.v[i], map);
	return err;
}

void call_sites__fini(struct call_sites *sites)
{
	for (size_t i = 0; i < sites->n_places; i++)
		free(sites->places[i].site);
	free(sites->places);
	*sites = (struct call_sites){0};
}
