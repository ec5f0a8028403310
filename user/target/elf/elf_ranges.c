// SPDX-License-Identifier: MIT
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/elf_image.h"
#include "target/elf/elf_internal.h"
#include "util/vec.h"

/*
 * Compilers move the unlikely half of foo away and call it "foo.cold", or "foo.cold.1". Two units
 * may each have a local foo: the STT_FILE symbol before them tells which cold part is whose.
 */

struct cold_part {
	struct function_range *range;
	const char *name; /* of the hot part, not terminated */
	size_t len;
	struct function_entry *hot; /* NULL until found */
};
typedef VEC(struct cold_part) cold_part_vec;

/* The length of "foo" in "foo.cold" and "foo.cold.1", or 0 in any other name. */
static size_t hot_length(const char *name)
{
	const char *at = strstr(name, ".cold");

	if (!at || at == name)
		return 0;
	if (at[5] == '\0')
		return (size_t)(at - name);
	return at[5] == '.' && at[6] && !at[6 + strspn(at + 6, "0123456789")] ? (size_t)(at - name)
									      : 0;
}

static int compare_names(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order ? order : (a_len > b_len) - (a_len < b_len);
}

ORDER(compare_parts, struct cold_part, compare_names(x->name, x->len, y->name, y->len))

static int resolve_cold(struct elf_image *image, struct function_table *table)
{
	cold_part_vec parts = {0};
	int err = 0;

	for (size_t i = 0; i < table->n && !err; i++) {
		const char *name = table->ranges[i].entry->function.raw_name;
		size_t len = hot_length(name);

		if (len)
			err = VEC_ADD(&parts,
				      (struct cold_part){&table->ranges[i], name, len, NULL});
	}
	VEC_SORT(&parts, compare_parts);
	/* A local function can only have the cold parts of its own unit. */
	for (size_t i = 0; !err && parts.n && i < image->symbols.n; i++) {
		struct function_entry *hot = &image->symbols.v[i];
		const char *name = hot->function.raw_name;
		size_t len = strlen(name);
		size_t k = VEC_PARTITION_POINT(&parts, e,
					       compare_names(e->name, e->len, name, len) < 0);

		for (; k < parts.n; k++) {
			struct cold_part *part = &parts.v[k];

			if (compare_names(part->name, part->len, name, len))
				break;
			if (hot->unit == part->range->entry->unit || (!hot->unit && !part->hot))
				part->hot = hot;
		}
	}
	/* By address, so that cold and hot code get the same one of several aliases. */
	for (size_t i = 0; !err && i < parts.n; i++)
		if (parts.v[i].hot)
			parts.v[i].range->entry =
				elf_image__symbol_at(image, parts.v[i].hot->function.vaddr);
	VEC_FINI(&parts);
	return err;
}

/*
 * Maps addresses to functions: by a table of named code and, from the first miss on, by a second
 * one that also has the holes. Stripped code is then as fast to look up as any other.
 */

void function_table__free(struct function_table *table)
{
	if (!table)
		return;
	free(table->starts);
	free(table->ranges);
	free(table);
}

/* Takes the ranges over, which are disjoint and ascending. NULL if memory ran out. */
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

ORDER(compare_ranges, struct function_range,
      COMPARE(x->start, y->start) ?: (int)x->entry->function.kind - (int)y->entry->function.kind)

/* Sorts, and drops what begins within another; of two at one address the symbol wins. */
static void make_disjoint(function_range_vec *ranges)
{
	size_t out = 0;

	VEC_SORT(ranges, compare_ranges);
	VEC_EACH(ranges, range)
		if (!out || range->start >= ranges->v[out - 1].end)
			ranges->v[out++] = *range;
	ranges->n = out;
}

static int add_ranges(function_range_vec *ranges, function_entry_vec *entries)
{
	uint64_t last = UINT64_MAX;

	for (size_t i = 0; i < entries->n; i++) {
		struct function *f = &entries->v[i].function;

		/* Aliases follow the one that speaks for the address. */
		if (f->vaddr == last)
			continue;
		last = f->vaddr;
		if (VEC_ADD(ranges,
			    (struct function_range){f->vaddr, f->vaddr + f->size, &entries->v[i]}))
			return -ENOMEM;
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
	err = resolve_cold(image, table);
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
	entry = function_entry__add(&image->unknown, image, start, end - start, NULL);
	if (!entry)
		return -ENOMEM;
	entry->function.kind = FUNCTION_UNKNOWN;
	/* So linkers call where a program begins, with or without a symbol there. */
	if (image->entry && start == image->entry)
		function_entry__set_name(entry, "_start");
	if (image->main && start == image->main)
		function_entry__set_name(entry, "main");
	return 0;
}

/*
 * Splits a stretch without symbols into functions: at the borders of sections, and there one per
 * FDE, and one for each rest between. *next is the first FDE that may matter.
 */
static int split(struct elf_image *image, const elf_frame_vec *frames, size_t *next, uint64_t start,
		 uint64_t end)
{
	int err = 0;

	while (!err && start < end) {
		uint64_t border = elf_image__section_end(image, start);

		if (border > end || border <= start)
			border = end;
		while (*next < frames->n && frames->v[*next].start < start)
			(*next)++;
		for (; !err && *next < frames->n && frames->v[*next].start < border; (*next)++) {
			struct elf_frame frame = frames->v[*next];

			/* Overlapping FDEs are damaged; the first one counts. */
			if (frame.start < start)
				continue;
			if (frame.end > border)
				frame.end = border;
			err = add_unknown(image, start, frame.start);
			if (!err)
				err = add_unknown(image, frame.start, frame.end);
			start = frame.end;
		}
		if (!err)
			err = add_unknown(image, start, border);
		start = border;
	}
	return err;
}

static int find_holes(struct elf_image *image, const elf_frame_vec *frames)
{
	const struct function_table *known = image->known;
	size_t r = 0, next = 0;
	int err = 0;

	for (size_t i = 0; !err && i < image->n_segments; i++) {
		uint64_t at = image->segments[i].vaddr, end = at + image->segments[i].size;

		for (; !err && r < known->n && known->ranges[r].start < end; r++) {
			err = split(image, frames, &next, at, known->ranges[r].start);
			at = known->ranges[r].end;
		}
		if (!err)
			err = split(image, frames, &next, at, end);
	}
	return err;
}

static int build_full(struct elf_image *image)
{
	elf_frame_vec frames = {0};
	function_range_vec ranges = {0};
	struct function_table *table = NULL;
	int err = elf_image__load_frames(image, &frames);

	if (!err)
		err = find_holes(image, &frames);
	VEC_FINI(&frames);
	for (size_t i = 0; !err && i < image->known->n; i++)
		err = VEC_ADD(&ranges, image->known->ranges[i]);
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

/* The table of that kind, built at the first call. NULL: out of memory. */
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

size_t elf_image__function_count(struct elf_image *image)
{
	return get_table(image, &image->known, build_known) ? image->symbols.n : 0;
}

const struct function *elf_image__function(struct elf_image *image, size_t index)
{
	return function_entry__named(&image->symbols.v[index]);
}

const char *elf_image__raw_name(const struct elf_image *image, size_t index)
{
	return image->symbols.v[index].function.raw_name;
}
