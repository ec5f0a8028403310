// SPDX-License-Identifier: MIT
#include "target/symbols/jit_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/elf_internal.h"
#include "target/symbols/perf_map.h"
#include "util/cleanup.h"

static int compare_pieces(const void *a, const void *b)
{
	const struct jit_piece *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Sorted; of two that overlap the second begins behind the first. The bytes of all of them. */
static size_t settle(struct jit_piece *pieces, size_t n)
{
	uint64_t end = 0;
	size_t total = 0;

	qsort(pieces, n, sizeof(*pieces), compare_pieces);
	for (size_t i = 0; i < n; i++) {
		struct jit_piece *piece = &pieces[i];
		uint64_t skip = piece->start < end ? end - piece->start : 0;

		if (skip > piece->size)
			skip = piece->size;
		piece->start += skip;
		piece->bytes += skip;
		piece->size -= skip;
		if (piece->size)
			end = piece->start + piece->size;
		total += piece->size;
	}
	return total;
}

/* Adjacent pieces, of two mappings, become one segment: functions may reach over the border. */
static size_t join(const struct jit_piece *pieces, size_t n, struct elf_segment *segments,
		   uint8_t *bytes)
{
	size_t out = 0, at = 0;

	for (size_t i = 0; i < n; i++) {
		const struct jit_piece *piece = &pieces[i];

		if (!piece->size)
			continue;
		if (out && segments[out - 1].vaddr + segments[out - 1].size == piece->start)
			segments[out - 1].size += piece->size;
		else
			segments[out++] = (struct elf_segment){piece->start, at, piece->size};
		memcpy(bytes + at, piece->bytes, piece->size);
		at += piece->size;
	}
	return out;
}

static int add_function(struct elf_image *image, const struct perf_map_entry *named)
{
	struct function_entry *entry;
	char *name;

	if (!elf_image__segment(image, named->start))
		return 0;
	name = elf_image__keep(image, named->name, named->name_len);
	entry = name ? VEC_PUSH(&image->symbols) : NULL;
	if (!entry)
		return -ENOMEM;
	*entry = (struct function_entry){.function = {.image = image,
						      .module = image->module,
						      .vaddr = named->start,
						      .size = named->size}};
	function_entry__set_name(entry, name);
	return 0;
}

static int name_functions(struct elf_image *image, const char *perf_map)
{
	_cleanup_free_ struct perf_map_entry *entries = NULL;
	size_t n = 0;
	int err = perf_map__parse(perf_map ? perf_map : "", &entries, &n);

	for (size_t i = 0; i < n && !err; i++)
		err = add_function(image, &entries[i]);
	if (!err)
		elf_image__settle_symbols(image);
	return err;
}

struct elf_image *jit_image__new(const struct jit_piece *pieces, size_t n, const char *perf_map)
{
	_cleanup_free_ struct jit_piece *sorted = calloc(n + 1, sizeof(*sorted));
	_cleanup_free_ struct elf_segment *segments = calloc(n + 1, sizeof(*segments));
	_cleanup_free_ uint8_t *bytes = NULL;
	struct elf_image *image;
	size_t total, n_segments;
	int err;

	if (!sorted || !segments)
		return NULL;
	if (n)
		memcpy(sorted, pieces, n * sizeof(*sorted));
	total = settle(sorted, n);
	bytes = malloc(total + 1);
	if (!bytes)
		return NULL;
	n_segments = join(sorted, n, segments, bytes);
	errno = ENOENT;
	image = n_segments
			? elf_image__from_segments(bytes, total, segments, n_segments, JIT_MODULE)
			: NULL;
	err = image ? name_functions(image, perf_map) : 0;
	if (!err)
		return image;
	elf_image__free(image);
	errno = -err;
	return NULL;
}

int jit_image__map(struct elf_image *jit, uint64_t start, uint64_t len, struct code_map *map)
{
	int err = 0;

	for (size_t i = 0; i < jit->n_segments && err != -ENOMEM; i++) {
		const struct elf_segment *segment = &jit->segments[i];
		uint64_t from = segment->vaddr > start ? segment->vaddr : start;
		uint64_t to = segment->vaddr + segment->size;

		if (to > start + len)
			to = start + len;
		if (from < to)
			err = code_map__add(map, from, to - from,
					    segment->offset + (from - segment->vaddr), jit);
	}
	return err == -ENOMEM ? err : 0;
}
