// SPDX-License-Identifier: MIT
/* Which files exactly were mapped, as perf.data tells it. */
#include <limits.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "capture/recording/perf_data.h"

/* struct perf_record_header_build_id, tools/lib/perf/include/perf/event.h; the name follows. */
struct build_id_record {
	struct perf_event_header header;
	int32_t pid;
	uint8_t id[20], size, pad[3];
};
#define MISC_BUILD_ID_SIZE (1u << 15) /* of its header: the size is given */

void rec_map__set_build_id(struct rec_map *map, const uint8_t *id, size_t size)
{
	if (2 * size >= sizeof(map->build_id))
		return;
	for (size_t i = 0; i < size; i++)
		snprintf(map->build_id + 2 * i, 3, "%02x", id[i]);
}

static void apply(struct recording *rec, const struct build_id_record *record, const char *path,
		  size_t path_size)
{
	size_t size = sizeof(record->id);

	if (record->header.misc & MISC_BUILD_ID_SIZE)
		size = record->size;
	for (size_t i = 0; i < rec->maps.n; i++) {
		struct rec_map *map = &rec->maps.v[i];

		if (!map->build_id[0] && strlen(map->path) < path_size && !strcmp(map->path, path))
			rec_map__set_build_id(map, record->id, size);
	}
}

void perf_data__read_build_ids(struct recording *rec, const uint8_t *bytes, size_t size)
{
	struct build_id_record record;

	while (size >= sizeof(record)) {
		const char *path = (const char *)bytes + sizeof(record);

		memcpy(&record, bytes, sizeof(record));
		if (record.header.size <= sizeof(record) || record.header.size > size)
			return;
		if (memchr(path, 0, record.header.size - sizeof(record)))
			apply(rec, &record, path, record.header.size - sizeof(record));
		bytes += record.header.size;
		size -= record.header.size;
	}
}

static bool is_put(const struct recording *rec, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (!strcmp(rec->files.v[j].path, rec->files.v[i].path))
			return true;
	return false;
}

static void put_build_id(const struct rec_file *file, FILE *out)
{
	/* tools/perf/util/build-id.c: write_buildid(), NAME_ALIGN */
	size_t len = (strlen(file->path) + 1 + 63) & ~(size_t)63;
	struct build_id_record record = {
		.header = {.misc = PERF_RECORD_MISC_USER | MISC_BUILD_ID_SIZE}, .pid = -1};
	char name[PATH_MAX + 64] = {0};
	unsigned int byte;

	if (len > sizeof(name))
		return;
	while (record.size < sizeof(record.id) &&
	       sscanf(file->build_id + 2 * record.size, "%2x", &byte) == 1)
		record.id[record.size++] = (uint8_t)byte;
	record.header.size = (uint16_t)(sizeof(record) + len);
	strcpy(name, file->path);
	fwrite(&record, sizeof(record), 1, out);
	fwrite(name, len, 1, out);
}

void perf_data__write_build_ids(const struct recording *rec, FILE *out)
{
	for (size_t i = 0; i < rec->files.n; i++)
		if (rec->files.v[i].build_id[0] && !is_put(rec, i))
			put_build_id(&rec->files.v[i], out);
}
