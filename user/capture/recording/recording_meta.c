// SPDX-License-Identifier: MIT
#include "capture/recording/recording.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/label.h"

static cJSON *add_item(cJSON *array)
{
	cJSON *item = cJSON_CreateObject();

	cJSON_AddItemToArray(array, item);
	return item;
}

/* JSON's numbers are doubles: addresses and times go as hexadecimal strings. */
static void add_u64(cJSON *object, const char *name, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%#" PRIx64, value);
	cJSON_AddStringToObject(object, name, text);
}

/* NULL: it has none. */
static const char *text_of(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

static uint64_t get_u64(const cJSON *object, const char *name)
{
	const char *text = text_of(object, name);

	return text ? strtoull(text, NULL, 16) : 0;
}

static char *get_string(const cJSON *object, const char *name)
{
	const char *text = text_of(object, name);

	return text ? strdup(text) : NULL;
}

/* One that is shown, and opens nothing. */
static char *get_label(const cJSON *object, const char *name)
{
	char *text = get_string(object, name);

	if (text)
		label__clean_in_place(text);
	return text;
}

void recording_image__file(size_t i, char name[static 32])
{
	snprintf(name, 32, "images/%zu", i);
}

static void add_images(const struct recording *rec, cJSON *meta)
{
	cJSON *images = cJSON_AddArrayToObject(meta, "images");

	for (size_t i = 0; i < rec->images.n; i++) {
		cJSON *image = add_item(images);
		char file[32];

		recording_image__file(i, file);
		cJSON_AddStringToObject(image, "path", rec->images.v[i].path);
		cJSON_AddStringToObject(image, "file", file);
		add_u64(image, "start", rec->images.v[i].start);
		cJSON_AddBoolToObject(image, "elf", rec->images.v[i].is_elf);
		if (rec->images.v[i].pid)
			cJSON_AddNumberToObject(image, "pid", rec->images.v[i].pid);
	}
}

void recording_perf_map__file(pid_t pid, char name[static 64])
{
	snprintf(name, 64, "images/perf-%d.map", (int)pid);
}

static void add_perf_maps(const struct recording *rec, cJSON *meta)
{
	cJSON *maps = cJSON_AddArrayToObject(meta, "perf_maps");

	for (size_t i = 0; i < rec->perf_maps.n; i++) {
		cJSON *map = add_item(maps);
		char file[64];

		recording_perf_map__file(rec->perf_maps.v[i].pid, file);
		cJSON_AddNumberToObject(map, "pid", rec->perf_maps.v[i].pid);
		cJSON_AddStringToObject(map, "file", file);
	}
}

static void add_files(const struct recording *rec, cJSON *meta)
{
	cJSON *files = cJSON_AddArrayToObject(meta, "files");

	for (size_t i = 0; i < rec->files.n; i++) {
		const struct rec_file *file = &rec->files.v[i];
		cJSON *item = add_item(files);

		cJSON_AddStringToObject(item, "path", file->path);
		add_u64(item, "inode", file->ino);
		cJSON_AddStringToObject(item, "build_id", file->build_id);
		if (file->name)
			cJSON_AddStringToObject(item, "file", file->name);
		if (file->debug_name)
			cJSON_AddStringToObject(item, "debug", file->debug_name);
	}
}

static void add_open_files(const struct recording *rec, cJSON *meta)
{
	cJSON *files = cJSON_AddArrayToObject(meta, "open_files");

	for (size_t i = 0; i < rec->open_files.n; i++) {
		cJSON *item = add_item(files);

		cJSON_AddNumberToObject(item, "pid", rec->open_files.v[i].pid);
		cJSON_AddNumberToObject(item, "fd", rec->open_files.v[i].fd);
		cJSON_AddStringToObject(item, "path", rec->open_files.v[i].path);
	}
}

static void add_taken(const struct recording *rec, cJSON *meta)
{
	cJSON *list = cJSON_AddArrayToObject(meta, "taken");

	for (size_t i = 0; i < rec->taken.n; i++) {
		const struct rec_taken *taken = &rec->taken.v[i];
		cJSON *item = add_item(list);

		cJSON_AddNumberToObject(item, "pid", taken->pid);
		cJSON_AddNumberToObject(item, "tid", taken->tid);
		cJSON_AddBoolToObject(item, "by_quota", taken->by_quota);
		add_u64(item, "until_ns", taken->until_ns);
		add_u64(item, "ns", taken->ns);
	}
	if (rec->steal != REC_STEAL_NOT_ASKED)
		cJSON_AddBoolToObject(meta, "steal_is_told", rec->steal == REC_STEAL_TOLD);
	list = cJSON_AddArrayToObject(meta, "quotas");
	for (size_t i = 0; i < rec->quotas.n; i++) {
		cJSON *item = add_item(list);

		cJSON_AddNumberToObject(item, "pid", rec->quotas.v[i].pid);
		cJSON_AddStringToObject(item, "of", rec->quotas.v[i].text);
		if (rec->quotas.v[i].of_memory)
			cJSON_AddTrueToObject(item, "of_memory");
	}
}

static void add_stops(const struct recording *rec, cJSON *meta)
{
	cJSON *stops = cJSON_AddArrayToObject(meta, "stops");

	for (size_t i = 0; i < rec->stops.n; i++) {
		const struct rec_place *place = &rec->stops.v[i];
		cJSON *item = add_item(stops);

		add_u64(item, "inode", place->ino);
		add_u64(item, "offset", place->offset);
		cJSON_AddNumberToObject(item, "major", place->maj);
		cJSON_AddNumberToObject(item, "minor", place->min);
	}
}

static void add_drops(const struct recording *rec, cJSON *meta)
{
	cJSON *drops = cJSON_CreateObject();

	for (int i = 0; i < DROPS; i++)
		if (rec->drops[i])
			add_u64(drops, drop__name((enum drop)i), rec->drops[i]);
	cJSON_AddItemToObject(meta, "dropped", drops);
}

char *recording_meta__print(const struct recording *rec)
{
	cJSON *meta = cJSON_CreateObject();
	char *text;

	cJSON_AddNumberToObject(meta, "version", RECORDING_VERSION);
	cJSON_AddStringToObject(meta, "tool", "mtbpf " MTBPF_VERSION);
	cJSON_AddStringToObject(meta, "source", rec->source ? rec->source : "");
	cJSON_AddStringToObject(meta, "freeze", rec->freeze ? rec->freeze : "");
	cJSON_AddStringToObject(meta, "trigger", rec->trigger ? rec->trigger : "");
	cJSON_AddStringToObject(meta, "command", rec->command ? rec->command : "");
	cJSON_AddNumberToObject(meta, "pid", rec->pid);
	cJSON_AddNumberToObject(meta, "reason", rec->reason);
	add_u64(meta, "threshold_ns", rec->threshold_ns);
	add_u64(meta, "frozen_ns", rec->frozen_ns);
	add_u64(meta, "unix_zero_ns", rec->unix_zero_ns);
	add_u64(meta, "probe_ip", rec->probe_ip);
	if (rec->ring_bytes)
		add_u64(meta, "ring_bytes", rec->ring_bytes);
	add_images(rec, meta);
	add_files(rec, meta);
	add_perf_maps(rec, meta);
	if (rec->open_files.n)
		add_open_files(rec, meta);
	if (rec->knows_taken)
		add_taken(rec, meta);
	if (rec->knows_interrupts)
		cJSON_AddTrueToObject(meta, "interrupts_are_counted");
	if (rec->stops.n)
		add_stops(rec, meta);
	add_drops(rec, meta);
	text = cJSON_Print(meta);
	cJSON_Delete(meta);
	return text;
}

/* A name of ours: "images/0". Anything else in a recording somebody sent would leave it. */
static bool is_image_file(const char *file)
{
	return file && !strncmp(file, "images/", 7) && file[7] &&
	       strspn(file + 7, "0123456789") == strlen(file + 7);
}

/* 0: not a number, or too large. */
static uint32_t get_u32(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
	bool is_one =
		cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= UINT32_MAX;

	return is_one ? (uint32_t)item->valuedouble : 0;
}

static int get_int(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsNumber(item) ? item->valueint : 0;
}

/* Reading the bytes of images. */
struct image_reader {
	int (*read)(void *ctx, const char *file, char **data, size_t *size);
	void *ctx;
};

static int parse_image(struct recording *rec, const cJSON *item, const struct image_reader *reader)
{
	const char *path = text_of(item, "path");
	const char *file = text_of(item, "file");
	struct rec_image image = {
		.path = (char *)path, .start = get_u64(item, "start"), .pid = get_int(item, "pid")};
	char *data;
	int err;

	if (!path || !is_image_file(file))
		return -EINVAL;
	image.is_elf = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "elf"));
	err = reader->read(reader->ctx, file, &data, &image.size);
	if (err)
		return err;
	image.data = (uint8_t *)data;
	err = recording__add_image(rec, &image);
	free(data);
	return err;
}

/* A string of ours: absent, or a file's name in images/. */
static int get_name(const cJSON *item, const char *key, char **name)
{
	*name = get_string(item, key);
	if (!*name || recording_files__is_name(*name))
		return 0;
	free(*name);
	*name = NULL;
	return -EINVAL;
}

static int parse_file(struct recording *rec, const cJSON *item, const struct image_reader *reader)
{
	const char *path = text_of(item, "path");
	const char *id = text_of(item, "build_id");
	struct rec_file file = {
		.path = (char *)path, .ino = get_u64(item, "inode"), .fd = -1, .debug_fd = -1};
	int err;

	if (!path || !id || strlen(id) >= sizeof(file.build_id))
		return -EINVAL;
	strcpy(file.build_id, id);
	err = get_name(item, "file", &file.name);
	if (!err)
		err = get_name(item, "debug", &file.debug_name);
	if (!err)
		return recording__add_file(rec, &file);
	free(file.name);
	return err;
}

static int parse_perf_map(struct recording *rec, const cJSON *item,
			  const struct image_reader *reader)
{
	char name[64], *text;
	size_t size;
	int err;

	recording_perf_map__file(get_int(item, "pid"), name);
	err = reader->read(reader->ctx, name, &text, &size);
	if (err)
		return err;
	err = recording__add_perf_map(rec, get_int(item, "pid"), text);
	free(text);
	return err;
}

static int parse_open_file(struct recording *rec, const cJSON *item,
			   const struct image_reader *reader)
{
	const char *path = text_of(item, "path");
	const cJSON *fd = cJSON_GetObjectItemCaseSensitive(item, "fd");

	if (!path || !cJSON_IsNumber(fd))
		return -EINVAL;
	return recording__add_open_file(rec, get_int(item, "pid"), fd->valueint, path);
}

static int parse_stop(struct recording *rec, const cJSON *item, const struct image_reader *reader)
{
	return VEC_ADD(&rec->stops, (struct rec_place){.ino = get_u64(item, "inode"),
						       .offset = get_u64(item, "offset"),
						       .maj = get_u32(item, "major"),
						       .min = get_u32(item, "minor")});
}

static int parse_taken(struct recording *rec, const cJSON *item, const struct image_reader *reader)
{
	const struct rec_taken taken = {
		.pid = get_int(item, "pid"),
		.tid = get_int(item, "tid"),
		.by_quota = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "by_quota")),
		.until_ns = get_u64(item, "until_ns"),
		.ns = get_u64(item, "ns")};

	return taken.ns <= taken.until_ns ? VEC_ADD(&rec->taken, taken) : -EINVAL;
}

static int parse_quota(struct recording *rec, const cJSON *item, const struct image_reader *reader)
{
	char *text = get_label(item, "of");
	bool of_memory = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "of_memory"));
	int err = text ? recording__set_quota(rec, get_int(item, "pid"), of_memory, text) : -EINVAL;

	free(text);
	return err;
}

static void parse_taken_time(struct recording *rec, const cJSON *meta)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(meta, "taken"), *item;

	rec->knows_interrupts =
		cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(meta, "interrupts_are_counted"));
	rec->knows_taken = list != NULL;
	item = cJSON_GetObjectItemCaseSensitive(meta, "steal_is_told");
	if (list && cJSON_IsBool(item))
		rec->steal = cJSON_IsTrue(item) ? REC_STEAL_TOLD : REC_STEAL_NOT_TOLD;
}

static const struct {
	const char *name;
	int (*parse)(struct recording *rec, const cJSON *item, const struct image_reader *reader);
} lists[] = {
	{"images", parse_image},	 {"files", parse_file}, {"perf_maps", parse_perf_map},
	{"open_files", parse_open_file}, {"stops", parse_stop}, {"taken", parse_taken},
	{"quotas", parse_quota},
};

static int parse_object(struct recording *rec, const cJSON *meta, const struct image_reader *reader)
{
	const cJSON *version = cJSON_GetObjectItemCaseSensitive(meta, "version");
	const cJSON *item;
	int err = 0;

	if (!cJSON_IsNumber(version) || version->valueint < 1)
		return -EINVAL;
	if (version->valueint > RECORDING_VERSION)
		return -EPROTO;
	rec->source = get_label(meta, "source");
	rec->freeze = get_label(meta, "freeze");
	rec->trigger = get_label(meta, "trigger");
	rec->command = get_label(meta, "command");
	rec->pid = get_int(meta, "pid");
	rec->reason = get_u32(meta, "reason");
	rec->threshold_ns = get_u64(meta, "threshold_ns");
	rec->frozen_ns = get_u64(meta, "frozen_ns");
	rec->unix_zero_ns = get_u64(meta, "unix_zero_ns");
	rec->probe_ip = get_u64(meta, "probe_ip");
	rec->ring_bytes = get_u64(meta, "ring_bytes");
	for (int i = 0; i < DROPS; i++)
		rec->drops[i] = get_u64(cJSON_GetObjectItemCaseSensitive(meta, "dropped"),
					drop__name((enum drop)i));
	parse_taken_time(rec, meta);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(meta, lists[i].name))
		{
			if (!err)
				err = lists[i].parse(rec, item, reader);
		}
	return err;
}

int recording_meta__parse(struct recording *rec, const char *text,
			  int (*read_image)(void *ctx, const char *file, char **data, size_t *size),
			  void *ctx)
{
	cJSON *meta = cJSON_Parse(text);
	int err = meta ? parse_object(rec, meta, &(struct image_reader){read_image, ctx}) : -EINVAL;

	cJSON_Delete(meta);
	return err;
}
