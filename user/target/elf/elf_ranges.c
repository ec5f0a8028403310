// SPDX-License-Identifier: MIT
/*
 * From an address to its function: a table of what is known by name, and, from the first miss on,
 * a second one that has the holes too. Stripped code is then as fast to look up as any other.
 */
#include "target/elf/elf_internal.h"

#include <errno.h>
#include <stdlib.h>

void function_table__free(struct function_table *table)
{
	if (!table)
		return;
	free(table->starts);
	free(table->ranges);
	free(table);
}

/* Takes the ranges over, which are disjoint and ascending. NULL where memory ran out. */
static struct function_table *new_table(function_range_vec *ranges)
{
	struct function_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->n = ranges->n;
	table->starts = malloc((ranges->n + 1) * sizeof(*table->starts));
	if (!table->starts) {
		free(table);
		return NULL;
	}
	for (size_t i = 0; i < ranges->n; i++)
		table->starts[i] = ranges->v[i].start;
	table->ranges = ranges->v;
	*ranges = (function_range_vec){0};
	return table;
}

struct function_range *function_table__find(const struct function_table *table, uint64_t vaddr)
{
	const uint64_t *base = table->starts;
	size_t n = table->n, i;

	if (!n || vaddr < base[0])
		return NULL;
	/* No branch that depends on the data: about as fast as the caches allow. */
	while (n > 1) {
		size_t half = n / 2;

		base = base[half] <= vaddr ? base + half : base;
		n -= half;
	}
	i = (size_t)(base - table->starts);
	return vaddr < table->ranges[i].end ? &table->ranges[i] : NULL;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct function_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (int)x->entry->function.kind - (int)y->entry->function.kind;
}

/* Sorts, and drops what begins within another; of two at one address the symbol wins. */
static void make_disjoint(function_range_vec *ranges)
{
	size_t out = 0;

	VEC_SORT(ranges, compare_ranges);
	for (size_t i = 0; i < ranges->n; i++) {
		struct function_range *range = &ranges->v[i];

		if (!out || range->start >= ranges->v[out - 1].end)
			ranges->v[out++] = *range;
	}
	ranges->n = out;
}

static int add_ranges(function_range_vec *ranges, function_entry_vec *entries)
{
	uint64_t last = UINT64_MAX;

	for (size_t i = 0; i < entries->n; i++) {
		struct function *f = &entries->v[i].function;
		struct function_range *range;

		/* Aliases follow the one that speaks for the address. */
		if (f->vaddr == last)
			continue;
		last = f->vaddr;
		range = VEC_PUSH(ranges);
		if (!range)
			return -ENOMEM;
		*range = (struct function_range){f->vaddr, f->vaddr + f->size, &entries->v[i]};
	}
	return 0;
}

static int build_known(struct elf_image *image)
{
	function_range_vec ranges = {0};
	struct function_table *table;
	int err = elf_image__load_symbols(image);

	if (!err && !image->stubs.n)
		err = elf_image__load_stubs(image);
	if (!err)
		err = add_ranges(&ranges, &image->symbols);
	if (!err)
		err = add_ranges(&ranges, &image->stubs);
	make_disjoint(&ranges);
	table = err ? NULL : new_table(&ranges);
	VEC_FINI(&ranges);
	if (!table)
		return -ENOMEM;
	err = elf_image__resolve_cold(image, table);
	if (err)
		function_table__free(table);
	else
		__atomic_store_n(&image->known, table, __ATOMIC_RELEASE);
	return err;
}

static int add_unknown(struct elf_image *image, uint64_t start, uint64_t end)
{
	struct function_entry *entry;

	if (start >= end)
		return 0;
	entry = VEC_PUSH(&image->unknown);
	if (!entry)
		return -ENOMEM;
	*entry = (struct function_entry){.function = {.image = image,
						      .module = image->module,
						      .vaddr = start,
						      .size = end - start,
						      .kind = FUNCTION_UNKNOWN}};
	/* So linkers call where a program begins, with or without a symbol there. */
	if (image->entry && start == image->entry)
		function_entry__set_name(entry, "_start");
	if (image->main && start == image->main)
		function_entry__set_name(entry, "main");
	return 0;
}

/* What the search for holes carries along: frames[next] is the first that may matter still. */
struct hole_search {
	struct elf_image *image;
	elf_frame_vec frames;
	size_t next;
};

/* A hole within one section: each frame that begins in it is a function. */
static int split_at_frames(struct hole_search *search, uint64_t start, uint64_t end)
{
	int err = 0;

	while (search->next < search->frames.n && search->frames.v[search->next].start < start)
		search->next++;
	for (; !err && search->next < search->frames.n; search->next++) {
		struct elf_frame frame = search->frames.v[search->next];

		if (frame.start >= end)
			break;
		/* Overlapping frames are damaged ones; the first has its way. */
		if (frame.start < start)
			continue;
		if (frame.end > end)
			frame.end = end;
		err = add_unknown(search->image, start, frame.start);
		if (!err)
			err = add_unknown(search->image, frame.start, frame.end);
		start = frame.end;
	}
	return err ? err : add_unknown(search->image, start, end);
}

/* A hole; sections are of different making (.init, .text, ...), so that it ends with its own. */
static int split_at_sections(struct hole_search *search, uint64_t start, uint64_t end)
{
	int err = 0;

	while (!err && start < end) {
		uint64_t border = elf_image__section_end(search->image, start);

		if (border > end || border <= start)
			border = end;
		err = split_at_frames(search, start, border);
		start = border;
	}
	return err;
}

static int find_holes(struct hole_search *search)
{
	struct elf_image *image = search->image;
	const struct function_table *known = image->known;
	size_t r = 0;
	int err = 0;

	for (size_t i = 0; !err && i < image->n_segments; i++) {
		uint64_t at = image->segments[i].vaddr, end = at + image->segments[i].size;

		for (; !err && r < known->n && known->ranges[r].start < end; r++) {
			err = split_at_sections(search, at, known->ranges[r].start);
			at = known->ranges[r].end;
		}
		if (!err)
			err = split_at_sections(search, at, end);
	}
	return err;
}

static int build_full(struct elf_image *image)
{
	struct hole_search search = {.image = image};
	function_range_vec ranges = {0};
	struct function_table *table = NULL;
	int err = elf_image__load_frames(image, &search.frames);

	if (!err)
		err = find_holes(&search);
	VEC_FINI(&search.frames);
	for (size_t i = 0; !err && i < image->known->n; i++) {
		struct function_range *range = VEC_PUSH(&ranges);

		if (range)
			*range = image->known->ranges[i];
		else
			err = -ENOMEM;
	}
	if (!err)
		err = add_ranges(&ranges, &image->unknown);
	make_disjoint(&ranges);
	table = err ? NULL : new_table(&ranges);
	VEC_FINI(&ranges);
	if (!table) {
		VEC_FINI(&image->unknown);
		return -ENOMEM;
	}
	elf_image__resolve_pads(image, table);
	__atomic_store_n(&image->full, table, __ATOMIC_RELEASE);
	return 0;
}

/* The table of that kind, built by the first who asks. NULL where memory ran out. */
static const struct function_table *
get_table(struct elf_image *image, struct function_table **which, int (*build)(struct elf_image *))
{
	struct function_table *table = __atomic_load_n(which, __ATOMIC_ACQUIRE);

	if (table)
		return table;
	pthread_mutex_lock(&image->lock);
	if (!*which)
		build(image);
	table = *which;
	pthread_mutex_unlock(&image->lock);
	return table;
}

const struct function *elf_image__function_at(struct elf_image *image, uint64_t vaddr)
{
	const struct function_table *table;
	struct function_range *range;

	if (image->named)
		return named_image__function_at(image->named, vaddr);
	table = get_table(image, &image->known, build_known);
	range = table ? function_table__find(table, vaddr) : NULL;

	if (!range) {
		if (!elf_image__segment(image, vaddr))
			return NULL;
		table = table ? get_table(image, &image->full, build_full) : NULL;
		range = table ? function_table__find(table, vaddr) : NULL;
	}
	return function_entry__named(range ? range->entry : &image->fallback);
}

const struct function *elf_image__part_at(struct elf_image *image, uint64_t vaddr, uint64_t *start,
					  uint64_t *end)
{
	const struct function_table *table =
		image->named ? NULL : get_table(image, &image->known, build_known);
	const struct function_range *range = table ? function_table__find(table, vaddr) : NULL;

	if (!range)
		return NULL;
	*start = range->start;
	*end = range->end;
	return function_entry__named(range->entry);
}

/* Whether the symbols are there to be read. */
static bool has_symbols(struct elf_image *image)
{
	return get_table(image, &image->known, build_known) != NULL;
}

size_t elf_image__function_count(struct elf_image *image)
{
	return has_symbols(image) ? image->symbols.n : 0;
}

const struct function *elf_image__function(struct elf_image *image, size_t index)
{
	return function_entry__named(&image->symbols.v[index]);
}

const char *elf_image__raw_name(const struct elf_image *image, size_t index)
{
	return image->symbols.v[index].function.raw_name;
}
