// SPDX-License-Identifier: MIT
/*
 * DW_TAG_inlined_subroutine (DWARF 5, 3.3.8.2). Of a unit the first question makes an index of its
 * functions, and of a function the list of what is inlined in it: only code that ran is read.
 */
#include "target/elf/inlined.h"

#include <dwarf.h>
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/die_walk.h"
#include "target/elf/elf_inlined.h"

/* Bytes of entries that are read of one image, a second's worth. Real code needs a small part. */
#define BUDGET ((uint64_t)1 << 29)
/* What it costs, in such bytes, to read and to keep an inlined call, or a range. */
#define NODE_COST  128
#define RANGE_COST 128

struct inline_range {
	uint64_t start, end;
	const struct inlined *inlined;
};

/* A function that has code. */
struct inline_body {
	Dwarf_Die die;
	bool is_read;
	VEC(struct inline_range) ranges; /* outer before inner */
};

struct body_range {
	uint64_t start, end;
	size_t body;
};

struct inline_unit {
	const void *die; /* Dwarf_Die.addr: offsets are of one file, and there may be several */
	VEC(struct inline_body) bodies;
	VEC(struct body_range) ranges; /* ascending by start */
};

struct inline_tables {
	void *units; /* a tsearch() tree */
	struct inline_names names;
	uint64_t budget;
};

static struct inline_tables *new_tables(struct elf_image *image)
{
	struct inline_tables *tables = calloc(1, sizeof(*tables));

	if (!tables)
		return NULL;
	tables->budget = BUDGET;
	inline_names__init(&tables->names, image, &tables->budget);
	return tables;
}

static void free_unit(void *node)
{
	struct inline_unit *unit = node;

	for (size_t i = 0; i < unit->bodies.n; i++)
		VEC_FINI(&unit->bodies.v[i].ranges);
	VEC_FINI(&unit->bodies);
	VEC_FINI(&unit->ranges);
	free(unit);
}

void inline_tables__free(struct inline_tables *tables)
{
	if (!tables)
		return;
	tdestroy(tables->units, free_unit);
	inline_names__fini(&tables->names);
	free(tables);
}

static int compare_units(const void *a, const void *b)
{
	const struct inline_unit *x = a, *y = b;

	return (x->die > y->die) - (x->die < y->die);
}

static int compare_bodies(const void *a, const void *b)
{
	const struct body_range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int add_body(struct die_walk *walk, Dwarf_Die *die, struct inline_unit *unit)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;
	size_t n = unit->ranges.n;
	struct inline_body *body;

	while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
		struct body_range *range;

		if (!die_walk__spend(walk, RANGE_COST))
			return -E2BIG;
		if (start >= end)
			continue;
		range = VEC_PUSH(&unit->ranges);
		if (!range)
			return -ENOMEM;
		*range = (struct body_range){start, end, unit->bodies.n};
	}
	if (n == unit->ranges.n)
		return 0;
	body = VEC_PUSH(&unit->bodies);
	if (!body)
		return -ENOMEM;
	*body = (struct inline_body){.die = *die};
	return 0;
}

/* Functions lie in the unit, or in namespaces (of Rust, modules): those of a class are declared. */
static int enter_unit(struct die_walk *walk, Dwarf_Die *die, const void **scope)
{
	int tag = dwarf_tag(die);

	if (tag == DW_TAG_namespace || tag == DW_TAG_module)
		return DIE_DESCEND;
	if (tag != DW_TAG_subprogram)
		return DIE_SKIP;
	return add_body(walk, die, walk->ctx);
}

static void index_unit(struct inline_tables *tables, struct inline_unit *unit, Dwarf_Die *die)
{
	struct die_walk walk = {.enter = enter_unit, .ctx = unit, .budget = &tables->budget};

	if (die_walk__children(&walk, die, NULL))
		unit->ranges.n = 0;
	VEC_SORT(&unit->ranges, compare_bodies);
}

static struct inline_unit *find_unit(struct inline_tables *tables, Dwarf_Die *die)
{
	struct inline_unit key = {.die = die->addr}, **found, *unit;

	found = tfind(&key, &tables->units, compare_units);
	if (found)
		return *found;
	unit = malloc(sizeof(*unit));
	if (!unit)
		return NULL;
	*unit = key;
	if (!tsearch(unit, &tables->units, compare_units)) {
		free(unit);
		return NULL;
	}
	index_unit(tables, unit, die);
	return unit;
}

/* Reading one function. */
struct body_reader {
	struct inline_tables *tables;
	struct inline_body *body;
};

static int add_ranges(struct die_walk *walk, Dwarf_Die *die, struct inline_body *body,
		      const struct inlined *inlined)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;

	while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
		struct inline_range *range;

		if (!die_walk__spend(walk, RANGE_COST))
			return -E2BIG;
		if (start >= end)
			continue;
		range = VEC_PUSH(&body->ranges);
		if (!range)
			return -ENOMEM;
		*range = (struct inline_range){start, end, inlined};
	}
	return 0;
}

static int enter_body(struct die_walk *walk, Dwarf_Die *die, const void **scope)
{
	struct body_reader *reader = walk->ctx;
	const struct inlined *inlined, *outer = *scope;
	int tag = dwarf_tag(die), err;

	if (tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block)
		return DIE_DESCEND;
	if (tag != DW_TAG_inlined_subroutine)
		return DIE_SKIP;
	if (!die_walk__spend(walk, NODE_COST))
		return -E2BIG;
	err = inline_names__add(&reader->tables->names, die, outer, &inlined);
	if (!err && inlined != outer)
		err = add_ranges(walk, die, reader->body, inlined);
	*scope = inlined;
	return err ? err : DIE_DESCEND;
}

static void read_body(struct elf_debug *debug, struct inline_body *body)
{
	struct body_reader reader = {debug->inlines, body};
	struct die_walk walk = {
		.enter = enter_body, .ctx = &reader, .budget = &debug->inlines->budget};

	body->is_read = true;
	if (die_walk__children(&walk, &body->die, NULL))
		body->ranges.n = 0;
}

/* The function whose code begins nearest before vaddr. */
static struct inline_body *find_body(struct inline_unit *unit, uint64_t vaddr)
{
	size_t n = VEC_PARTITION_POINT(&unit->ranges, e, e->start <= vaddr);

	if (!n || vaddr >= unit->ranges.v[n - 1].end)
		return NULL;
	return &unit->bodies.v[unit->ranges.v[n - 1].body];
}

/* Inner ones follow what they lie in. One that sticks out of that is not believed there. */
static const struct inlined *search_body(const struct inline_body *body, uint64_t vaddr)
{
	const struct inlined *found = NULL;

	for (size_t i = 0; i < body->ranges.n; i++) {
		const struct inline_range *range = &body->ranges.v[i];

		if (vaddr - range->start < range->end - range->start &&
		    range->inlined->outer == found)
			found = range->inlined;
	}
	return found;
}

static const struct inlined *look_up(struct elf_image *image, uint64_t vaddr)
{
	struct elf_debug *debug = elf_image__debug(image);
	struct inline_unit *unit;
	struct inline_body *body;
	Dwarf_Die die;

	if (!debug || !elf_debug__unit_at(debug, vaddr, &die))
		return NULL;
	elf_debug__go_to_split(&die);
	if (!debug->inlines)
		debug->inlines = new_tables(image);
	if (!debug->inlines)
		return NULL;
	unit = find_unit(debug->inlines, &die);
	body = unit ? find_body(unit, vaddr) : NULL;
	if (body && !body->is_read)
		read_body(debug, body);
	return body ? search_body(body, vaddr) : NULL;
}

const struct inlined *elf_image__inlined_at(struct elf_image *image, uint64_t vaddr)
{
	const struct inlined *found;

	pthread_mutex_lock(&image->source_lock);
	found = look_up(image, vaddr);
	for (const struct inlined *i = found; i; i = i->outer)
		inline_names__make_readable(i);
	pthread_mutex_unlock(&image->source_lock);
	return found;
}
