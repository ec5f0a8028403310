// SPDX-License-Identifier: MIT
/* Which files exactly were mapped, as perf.data tells it. */
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "capture/perf_data.h"

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
