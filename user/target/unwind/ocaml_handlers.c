// SPDX-License-Identifier: MIT
#include "target/unwind/ocaml_handlers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/elf_internal.h"
#include "target/unwind/ocaml_flow.h"
#include "target/unwind/ocaml_note.h"

struct handling_function {
	uint64_t vaddr;
	handler_site_vec sites;
};

/* Those that have been asked for. */
struct ocaml_table {
	struct ocaml_note note;
	VEC(struct handling_function) functions; /* ascending */
};

void ocaml_table__free(struct ocaml_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->functions.n; i++)
		VEC_FINI(&table->functions.v[i].sites);
	VEC_FINI(&table->functions);
	ocaml_note__fini(&table->note);
	free(table);
}

/* Wants the lock. NULL: no memory. */
static struct ocaml_table *get_table(struct elf_image *image)
{
	struct ocaml_table *table = image->ocaml;

	if (table)
		return table;
	table = calloc(1, sizeof(*table));
	if (!table)
		return NULL;
	if (ocaml_note__read(image, &table->note)) {
		ocaml_table__free(table);
		return NULL;
	}
	return image->ocaml = table;
}

/* The index of the function at vaddr, or where it belongs. */
static size_t lower_bound(const struct ocaml_table *table, uint64_t vaddr)
{
	return VEC_PARTITION_POINT(&table->functions, e, e->vaddr < vaddr);
}

static const struct handling_function *find_function(const struct ocaml_table *table,
						     uint64_t vaddr)
{
	size_t i = lower_bound(table, vaddr);

	if (i == table->functions.n || table->functions.v[i].vaddr != vaddr)
		return NULL;
	return &table->functions.v[i];
}

/* Wants the lock. Takes the sites over; two threads may have found the same. */
static void keep(struct ocaml_table *table, uint64_t vaddr, handler_site_vec *sites)
{
	size_t i = lower_bound(table, vaddr);
	bool is_known = find_function(table, vaddr) != NULL;
	struct handling_function *v = is_known ? NULL : VEC_PUSH(&table->functions);

	if (!v) {
		VEC_FINI(sites);
		return;
	}
	v = table->functions.v;
	memmove(&v[i + 1], &v[i], (table->functions.n - 1 - i) * sizeof(*v));
	v[i] = (struct handling_function){.vaddr = vaddr};
	memcpy(&v[i].sites, sites, sizeof(*sites));
}

static uint64_t find_site(const struct handling_function *function, uint64_t vaddr)
{
	size_t n = VEC_PARTITION_POINT(&function->sites, e, e->end <= vaddr);

	if (n == function->sites.n || function->sites.v[n].start > vaddr)
		return 0;
	return function->sites.v[n].handler;
}

/* Looks through the function, without the lock: names are asked for. */
static void find_sites(struct elf_image *image, const struct function *function,
		       struct ocaml_table *table)
{
	handler_site_vec sites = {0};

	if (ocaml_flow__find_sites(image, function, &table->note, &sites)) {
		VEC_FINI(&sites);
		return;
	}
	pthread_mutex_lock(&image->lock);
	keep(table, function->vaddr, &sites);
	pthread_mutex_unlock(&image->lock);
}

/* What `ask` says of vaddr and the function that holds it. */
static uint64_t ask_function(struct elf_image *image, uint64_t vaddr,
			     uint64_t (*ask)(const struct handling_function *, uint64_t))
{
	const struct function *function = elf_image__function_at(image, vaddr);
	const struct handling_function *known = NULL;
	uint64_t answer = 0;

	for (int tries = 0; function && !known && tries < 2; tries++) {
		struct ocaml_table *table;

		pthread_mutex_lock(&image->lock);
		table = get_table(image);
		known = table ? find_function(table, function->vaddr) : NULL;
		answer = known ? ask(known, vaddr) : 0;
		pthread_mutex_unlock(&image->lock);
		if (!table)
			return 0;
		if (!known)
			find_sites(image, function, table);
	}
	return answer;
}

static uint64_t is_handler(const struct handling_function *function, uint64_t vaddr)
{
	for (size_t i = 0; i < function->sites.n; i++)
		if (function->sites.v[i].handler == vaddr)
			return 1;
	return 0;
}

uint64_t ocaml_handlers__find(struct elf_image *image, uint64_t vaddr)
{
	return ask_function(image, vaddr, find_site);
}

bool ocaml_handlers__is_one(struct elf_image *image, uint64_t vaddr)
{
	return ask_function(image, vaddr, is_handler);
}
