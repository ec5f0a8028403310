// SPDX-License-Identifier: MIT
#include "target/code_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/elf_callers.h"
#include "util/vec.h"

struct code_range {
	uint64_t start, end; /* [start, end): no range contains the address UINT64_MAX */
	uint64_t pgoff;	     /* file offset of start */
	struct elf_image *image;
};

struct code_patch {
	uint64_t start;
	size_t len;
	uint8_t bytes[CODE_PATCH_MAX];
};

struct code_map {
	VEC(struct code_range) ranges;	/* disjoint, ascending */
	VEC(struct code_patch) patches; /* few, if any */
	/* The index found last. It is only a hint, so threads may race for it. */
	size_t last;
	unsigned int replaced;
};

struct code_map *code_map__new(void)
{
	return calloc(1, sizeof(struct code_map));
}

void code_map__free(struct code_map *map)
{
	if (!map)
		return;
	VEC_FINI(&map->ranges);
	VEC_FINI(&map->patches);
	free(map);
}

bool code_map__is_empty(const struct code_map *map)
{
	return !map->ranges.n;
}

bool code_map__others_name(const struct code_map *map, const struct elf_image *image,
			   const char *text)
{
	return VEC_FIND(&map->ranges, range,
			range->image != image && elf_image__may_hold_text(range->image, text));
}

/* The first range that ends after ip. */
static size_t first_behind(const struct code_map *map, uint64_t ip)
{
	return VEC_PARTITION_POINT(&map->ranges, e, e->end <= ip);
}

static void cut_front(struct code_range *range, uint64_t start)
{
	range->pgoff += start - range->start;
	range->start = start;
}

/* Puts `range` in the place of ranges[from, to). The room is there. */
static void replace(struct code_map *map, size_t from, size_t to, struct code_range range)
{
	struct code_range *v = map->ranges.v;

	memmove(&v[from + 1], &v[to], (map->ranges.n - to) * sizeof(*v));
	v[from] = range;
	map->ranges.n = map->ranges.n - (to - from) + 1;
}

int code_map__patch(struct code_map *map, uint64_t start, const uint8_t *bytes, size_t len)
{
	struct code_patch *patch;

	if (!len || len > CODE_PATCH_MAX || start > UINT64_MAX - len)
		return -EINVAL;
	patch = VEC_PUSH(&map->patches);
	if (!patch)
		return -ENOMEM;
	*patch = (struct code_patch){.start = start, .len = len};
	memcpy(patch->bytes, bytes, len);
	map->replaced++;
	return 0;
}

int code_map__add(struct code_map *map, uint64_t start, uint64_t len, uint64_t pgoff,
		  struct elf_image *image)
{
	struct code_range added = {start, start + len, pgoff, image};
	size_t from, to;

	if (!len || start > UINT64_MAX - len || pgoff > UINT64_MAX - len)
		return -EINVAL;
	/* Room for two more: the new range and the rest of a split one. */
	if (vec__grow(&map->ranges.v, &map->ranges.cap, map->ranges.n + 1, sizeof(*map->ranges.v)))
		return -ENOMEM;
	VEC_DROP(&map->patches, patch,
		 patch->start < added.end && patch->start + patch->len > start);
	from = first_behind(map, start);
	if (from < map->ranges.n && map->ranges.v[from].start < added.end)
		map->replaced++;
	if (from < map->ranges.n && map->ranges.v[from].start < start) {
		struct code_range *old = &map->ranges.v[from], rest = *old;

		/* A hole in the middle of the old one leaves two. */
		if (old->end > added.end) {
			cut_front(&rest, added.end);
			replace(map, from + 1, from + 1, rest);
			old = &map->ranges.v[from];
		}
		old->end = start;
		from++;
	}
	to = from;
	while (to < map->ranges.n && map->ranges.v[to].end <= added.end)
		to++;
	if (to < map->ranges.n && map->ranges.v[to].start < added.end)
		cut_front(&map->ranges.v[to], added.end);
	replace(map, from, to, added);
	return 0;
}

unsigned int code_map__replaced(const struct code_map *map)
{
	return map->replaced;
}

static const struct code_range *find_range(struct code_map *map, uint64_t ip)
{
	size_t i = __atomic_load_n(&map->last, __ATOMIC_RELAXED);

	if (i < map->ranges.n &&
	    ip - map->ranges.v[i].start < map->ranges.v[i].end - map->ranges.v[i].start)
		return &map->ranges.v[i];
	i = first_behind(map, ip);
	if (i == map->ranges.n || map->ranges.v[i].start > ip)
		return NULL;
	__atomic_store_n(&map->last, i, __ATOMIC_RELAXED);
	return &map->ranges.v[i];
}

bool code_map__find(struct code_map *map, uint64_t ip, struct code_place *place)
{
	const struct code_range *range = find_range(map, ip);

	if (!range)
		return false;
	place->image = range->image;
	place->vaddr = elf_image__vaddr_of_offset(range->image, range->pgoff + (ip - range->start));
	if (place->vaddr == UINT64_MAX)
		return false;
	place->function = elf_image__function_at(range->image, place->vaddr);
	if (!place->function)
		return false;
	place->entry = ip - place->vaddr + place->function->vaddr;
	return true;
}

size_t code_map__read(struct code_map *map, uint64_t ip, uint8_t *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		const struct code_range *range = find_range(map, ip + done);
		size_t n, in_file;
		const uint8_t *bytes;

		if (!range)
			break;
		bytes = elf_image__bytes(range->image, range->pgoff + (ip + done - range->start),
					 &in_file);
		n = len - done;
		if (n > range->end - (ip + done))
			n = range->end - (ip + done);
		if (n > in_file)
			n = in_file;
		if (!n)
			break;
		memcpy(buf + done, bytes, n);
		done += n;
	}
	VEC_EACH(&map->patches, patch)
		for (size_t j = 0; j < patch->len; j++)
			if (patch->start + j - ip < done)
				buf[patch->start + j - ip] = patch->bytes[j];
	return done;
}

bool code_map__piece(struct code_map *map, uint64_t ip, struct code_piece *piece)
{
	const struct code_range *range = find_range(map, ip);
	size_t in_file;

	if (!range || map->patches.n)
		return false;
	piece->start = range->start;
	piece->len = range->end - range->start;
	piece->bytes = elf_image__bytes(range->image, range->pgoff, &in_file);
	if (piece->len > in_file)
		piece->len = in_file;
	return ip - piece->start < piece->len;
}
