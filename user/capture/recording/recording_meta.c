// SPDX-License-Identifier: MIT
#include "capture/recording/recording.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/json.h"
#include "util/names.h"

/* JSON's numbers are doubles: addresses and times are written as hexadecimal strings. */
static void add_u64(cJSON *object, const char *name, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%#" PRIx64, value);
	cJSON_AddStringToObject(object, name, text);
}

static uint64_t get_u64(const cJSON *object, const char *name)
{
	const char *text = json__text(object, name);

	return text ? strtoull(text, NULL, 16) : 0;
}

/* Returns a copy of a text, cleaned to be shown, which the caller frees. NULL: no such text. */
static char *get_label(const cJSON *object, const char *name)
{
	const char *text = json__text(object, name);
	char *copy = text ? strdup(text) : NULL;

	if (copy)
		label__clean_in_place(copy);
	return copy;
}

void recording_image__file(size_t i, char name[static 32])
{
	snprintf(name, 32, "images/%zu", i);
}

void recording_perf_map__file(pid_t pid, char name[static 64])
{
	snprintf(name, 64, "images/perf-%d.map", (int)pid);
}

/* Skips hexadecimal digits. True if there were at least `least`. */
static bool take_hex(const char **text, size_t least)
{
	size_t n = strspn(*text, "0123456789abcdef");

	*text += n;
	return n >= least;
}

/*
 * True for the names that recording_dir.c gives to copies of files. Others, in an untrusted
 * recording, could lead out of it.
 */
static bool is_file_name(const char *name)
{
	if (strncmp(name, "images/", 7))
		return false;
	name += 7;
	if (!strncmp(name, ".build-id/", 10)) {
		name += 10;
		return take_hex(&name, 2) && *name++ == '/' && take_hex(&name, 1) &&
		       (!strcmp(name, "/elf") || !strcmp(name, "/debug"));
	}
	return take_hex(&name, 1) && (!*name || !strcmp(name, ".debug"));
}

/* 0: not a number, or too large. */
static uint32_t get_u32(const cJSON *object, const char *name)
{
	const cJSON *item = json__item(object, name);
	bool is_one =
		cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= UINT32_MAX;

	return is_one ? (uint32_t)item->valuedouble : 0;
}

static int get_int(const cJSON *object, const char *name)
{
	const cJSON *item = json__item(object, name);

	return cJSON_IsNumber(item) ? item->valueint : 0;
}

static bool get_flag(const cJSON *object, const char *name)
{
	return cJSON_IsTrue(json__item(object, name));
}

/* The lists, each with the functions that write and read an element. */

/* The function that reads an image's bytes: see recording_meta__parse(). */
struct image_reader {
	int (*read)(void *ctx, const char *file, char **data, size_t *size);
	void *ctx;
};

static void add_image(const struct recording *rec, size_t i, cJSON *item)
{
	const struct rec_image *image = &rec->images.v[i];
	char file[32];

	recording_image__file(i, file);
	cJSON_AddStringToObject(item, "path", image->path);
	cJSON_AddStringToObject(item, "file", file);
	add_u64(item, "start", image->start);
	cJSON_AddBoolToObject(item, "elf", image->is_elf);
	if (image->pid)
		cJSON_AddNumberToObject(item, "pid", image->pid);
}

static int parse_image(struct recording *rec, const cJSON *item, const struct image_reader *reader)
{
	const char *path = json__text(item, "path");
	const char *file = json__text(item, "file");
	struct rec_image image = {.path = (char *)path,
				  .start = get_u64(item, "start"),
				  .is_elf = get_flag(item, "elf"),
				  .pid = get_int(item, "pid")};
	char *data;
	int err;

	/* "images/0": any other name could lead out of an untrusted recording. */
	if (!path || !file || strncmp(file, "images/", 7) || !file[7] ||
	    file[7 + strspn(file + 7, "0123456789")])
		return -EINVAL;
	err = reader->read(reader->ctx, file, &data, &image.size);
	if (err)
		return err;
	image.data = (uint8_t *)data;
	err = recording__add_image(rec, &image);
	free(data);
	return err;
}

static void add_file(const struct recording *rec, size_t i, cJSON *item)
{
	const struct rec_file *file = &rec->files.v[i];

	cJSON_AddStringToObject(item, "path", file->path);
	add_u64(item, "inode", file->ino);
	cJSON_AddStringToObject(item, "build_id", file->build_id);
	json__add_text(item, "file", file->name);
	json__add_text(item, "debug", file->debug_name);
}

/*
 * Copies the name of a file's copy in images/; NULL if it is absent. 0; -EINVAL: not a name that
 * recording_dir.c gives; or -ENOMEM.
 */
static int get_name(const cJSON *item, const char *key, char **name)
{
	const char *text = json__text(item, key);

	*name = NULL;
	if (!text)
		return 0;
	if (!is_file_name(text))
		return -EINVAL;
	*name = strdup(text);
	return *name ? 0 : -ENOMEM;
}

static int parse_file(struct recording *rec, const cJSON *item, const struct image_reader *reader)
{
	const char *path = json__text(item, "path");
	const char *id = json__text(item, "build_id");
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

static void add_perf_map(const struct recording *rec, size_t i, cJSON *item)
{
	char file[64];

	recording_perf_map__file(rec->perf_maps.v[i].pid, file);
	cJSON_AddNumberToObject(item, "pid", rec->perf_maps.v[i].pid);
	cJSON_AddStringToObject(item, "file", file);
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

static void add_open_file(const struct recording *rec, size_t i, cJSON *item)
{
	cJSON_AddNumberToObject(item, "pid", rec->open_files.v[i].pid);
	cJSON_AddNumberToObject(item, "fd", rec->open_files.v[i].fd);
	cJSON_AddStringToObject(item, "path", rec->open_files.v[i].path);
}

static int parse_open_file(struct recording *rec, const cJSON *item,
			   const struct image_reader *reader)
{
	const char *path = json__text(item, "path");
	const cJSON *fd = json__item(item, "fd");

	if (!path || !cJSON_IsNumber(fd))
		return -EINVAL;
	return recording__add_open_file(rec, get_int(item, "pid"), fd->valueint, path);
}

static void add_stop(const struct recording *rec, size_t i, cJSON *item)
{
	const struct rec_place *place = &rec->stops.v[i];

	add_u64(item, "inode", place->ino);
	add_u64(item, "offset", place->offset);
	cJSON_AddNumberToObject(item, "major", place->maj);
	cJSON_AddNumberToObject(item, "minor", place->min);
}

static int parse_stop(struct recording *rec, const cJSON *item, const struct image_reader *reader)
{
	return VEC_ADD(&rec->stops, (struct rec_place){.ino = get_u64(item, "inode"),
						       .offset = get_u64(item, "offset"),
						       .maj = get_u32(item, "major"),
						       .min = get_u32(item, "minor")});
}

static void add_taken(const struct recording *rec, size_t i, cJSON *item)
{
	const struct rec_taken *taken = &rec->taken.v[i];

	cJSON_AddNumberToObject(item, "pid", taken->pid);
	cJSON_AddNumberToObject(item, "tid", taken->tid);
	cJSON_AddBoolToObject(item, "by_quota", taken->by_quota);
	add_u64(item, "until_ns", taken->until_ns);
	add_u64(item, "ns", taken->ns);
}

static int parse_taken(struct recording *rec, const cJSON *item, const struct image_reader *reader)
{
	const struct rec_taken taken = {.pid = get_int(item, "pid"),
					.tid = get_int(item, "tid"),
					.by_quota = get_flag(item, "by_quota"),
					.until_ns = get_u64(item, "until_ns"),
					.ns = get_u64(item, "ns")};

	return taken.ns <= taken.until_ns ? VEC_ADD(&rec->taken, taken) : -EINVAL;
}

static void add_quota(const struct recording *rec, size_t i, cJSON *item)
{
	cJSON_AddNumberToObject(item, "pid", rec->quotas.v[i].pid);
	cJSON_AddStringToObject(item, "of", rec->quotas.v[i].text);
	if (rec->quotas.v[i].of_memory)
		cJSON_AddTrueToObject(item, "of_memory");
}

static int parse_quota(struct recording *rec, const cJSON *item, const struct image_reader *reader)
{
	char *text = get_label(item, "of");
	bool of_memory = get_flag(item, "of_memory");
	int err = text ? recording__set_quota(rec, get_int(item, "pid"), of_memory, text) : -EINVAL;

	free(text);
	return err;
}

static void add_thread_state(const struct recording *rec, size_t i, cJSON *item)
{
	const struct rec_thread_state *state = &rec->thread_states.v[i];
	cJSON *ips;
	char text[32];

	cJSON_AddNumberToObject(item, "hit", (double)state->hit);
	cJSON_AddNumberToObject(item, "pid", state->pid);
	cJSON_AddNumberToObject(item, "tid", state->tid);
	cJSON_AddStringToObject(item, "comm", state->comm);
	cJSON_AddBoolToObject(item, "on_cpu", state->is_on_cpu);
	cJSON_AddBoolToObject(item, "ready", state->is_ready);
	cJSON_AddBoolToObject(item, "stopped", state->is_stopped);
	if (state->syscall != MT_NO_SYSCALL) {
		cJSON_AddNumberToObject(item, "syscall", state->syscall);
		add_u64(item, "arg", state->arg);
	}
	if (state->owner)
		cJSON_AddNumberToObject(item, "owner", state->owner);
	cJSON_AddBoolToObject(item, "whole", state->is_whole);
	ips = cJSON_AddArrayToObject(item, "stack");
	for (uint32_t k = 0; k < state->n_ips; k++) {
		snprintf(text, sizeof(text), "%#" PRIx64, rec->state_ips.v[state->first_ip + k]);
		json__append_text(ips, text);
	}
}

/* The maximum number of addresses read per thread: the file may come from someone else. */
#define STATE_IPS_MAX 4096

static int parse_thread_state(struct recording *rec, const cJSON *item,
			      const struct image_reader *reader)
{
	struct rec_thread_state state = {.hit = get_u32(item, "hit"),
					 .pid = get_int(item, "pid"),
					 .tid = get_int(item, "tid"),
					 .is_on_cpu = get_flag(item, "on_cpu"),
					 .is_ready = get_flag(item, "ready"),
					 .is_stopped = get_flag(item, "stopped"),
					 .syscall = MT_NO_SYSCALL,
					 .arg = get_u64(item, "arg"),
					 .owner = get_int(item, "owner"),
					 .is_whole = get_flag(item, "whole")};
	char *comm = get_label(item, "comm");
	uint64_t ips[STATE_IPS_MAX];
	const cJSON *ip;

	if (cJSON_HasObjectItem(item, "syscall"))
		state.syscall = get_u32(item, "syscall");
	snprintf(state.comm, sizeof(state.comm), "%s", comm ? comm : "?");
	free(comm);
	cJSON_ArrayForEach(ip, json__item(item, "stack")) {
		const char *text = cJSON_GetStringValue(ip);

		if (!text || state.n_ips >= STATE_IPS_MAX)
			return -EINVAL;
		ips[state.n_ips++] = strtoull(text, NULL, 16);
	}
	return recording__add_thread_state(rec, &state, ips);
}

static void add_label(const struct recording *rec, size_t i, cJSON *item)
{
	cJSON_AddStringToObject(item, "key", rec->labels.v[i].key);
	cJSON_AddStringToObject(item, "value", rec->labels.v[i].value);
}

static int parse_label(struct recording *rec, const cJSON *item, const struct image_reader *reader)
{
	const char *key = json__text(item, "key"), *value = json__text(item, "value");

	return key && value ? recording__set_label(rec, key, value) : -EINVAL;
}

static const struct {
	const char *name;
	size_t n_at; /* offset in struct recording of the number of elements */
	void (*add)(const struct recording *rec, size_t i, cJSON *item);
	int (*parse)(struct recording *rec, const cJSON *item, const struct image_reader *reader);
} lists[] = {
	{"images", offsetof(struct recording, images.n), add_image, parse_image},
	{"files", offsetof(struct recording, files.n), add_file, parse_file},
	{"perf_maps", offsetof(struct recording, perf_maps.n), add_perf_map, parse_perf_map},
	{"open_files", offsetof(struct recording, open_files.n), add_open_file, parse_open_file},
	{"taken", offsetof(struct recording, taken.n), add_taken, parse_taken},
	{"quotas", offsetof(struct recording, quotas.n), add_quota, parse_quota},
	{"threads_at_stall", offsetof(struct recording, thread_states.n), add_thread_state,
	 parse_thread_state},
	{"labels", offsetof(struct recording, labels.n), add_label, parse_label},
	{"stops", offsetof(struct recording, stops.n), add_stop, parse_stop},
};

char *recording_meta__print(const struct recording *rec)
{
	cJSON *meta = cJSON_CreateObject(), *drops, *prints = NULL;

	cJSON_AddNumberToObject(meta, "version", RECORDING_VERSION);
	cJSON_AddStringToObject(meta, "tool", "mtbpf " MTBPF_VERSION);
	cJSON_AddStringToObject(meta, "source", rec->source ? rec->source : "");
	cJSON_AddStringToObject(meta, "freeze", rec->freeze ? rec->freeze : "");
	cJSON_AddStringToObject(meta, "trigger", rec->trigger ? rec->trigger : "");
	cJSON_AddStringToObject(meta, "command", rec->command ? rec->command : "");
	cJSON_AddNumberToObject(meta, "pid", rec->pid);
	cJSON_AddNumberToObject(meta, "reason", rec->reason);
	add_u64(meta, "threshold_ns", rec->threshold_ns);
	if (rec->cpu_measure)
		cJSON_AddNumberToObject(meta, "cpu_measure", rec->cpu_measure);
	if (rec->stall_thresh_ns) {
		add_u64(meta, "stall_thresh_ns", rec->stall_thresh_ns);
		cJSON_AddNumberToObject(meta, "stall_from", rec->stall_from);
	}
	json__add_text(meta, "key", rec->key);
	if (rec->prints.n)
		prints = cJSON_AddArrayToObject(meta, "prints");
	for (size_t i = 0; i < rec->prints.n; i++)
		json__append_text(prints, rec->prints.v[i]);
	add_u64(meta, "frozen_ns", rec->frozen_ns);
	add_u64(meta, "unix_zero_ns", rec->unix_zero_ns);
	add_u64(meta, "probe_ip", rec->probe_ip);
	if (rec->ring_bytes)
		add_u64(meta, "ring_bytes", rec->ring_bytes);
	if (rec->knows_taken && rec->steal != REC_STEAL_NOT_ASKED)
		cJSON_AddBoolToObject(meta, "steal_is_told", rec->steal == REC_STEAL_TOLD);
	if (rec->knows_interrupts)
		cJSON_AddTrueToObject(meta, "interrupts_are_counted");
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		size_t n = *(const size_t *)(const void *)((const char *)rec + lists[i].n_at);
		/* An empty "taken" says that no time was taken; other empty lists are left out. */
		bool is_known = lists[i].add == add_taken && rec->knows_taken;
		cJSON *array = n || is_known ? cJSON_AddArrayToObject(meta, lists[i].name) : NULL;

		for (size_t k = 0; k < n; k++)
			lists[i].add(rec, k, json__append_object(array));
	}
	drops = cJSON_AddObjectToObject(meta, "dropped");
	for (int i = 0; i < DROPS; i++)
		if (rec->drops[i])
			add_u64(drops, drop__name((enum drop)i), rec->drops[i]);
	return json__finish(meta);
}

static int parse_object(struct recording *rec, const cJSON *meta, const struct image_reader *reader)
{
	const cJSON *version = json__item(meta, "version");
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
	rec->key = get_label(meta, "key");
	cJSON_ArrayForEach(item, json__item(meta, "prints")) {
		if (!cJSON_IsString(item) || rec->prints.n == MT_PRINTS)
			return -EINVAL;
		err = recording__add_print(rec, item->valuestring);
		if (err)
			return err;
	}
	rec->pid = get_int(meta, "pid");
	rec->reason = get_u32(meta, "reason");
	rec->threshold_ns = get_u64(meta, "threshold_ns");
	rec->stall_thresh_ns = get_u64(meta, "stall_thresh_ns");
	rec->stall_from = get_u32(meta, "stall_from");
	rec->cpu_measure = get_u32(meta, "cpu_measure");
	rec->frozen_ns = get_u64(meta, "frozen_ns");
	rec->unix_zero_ns = get_u64(meta, "unix_zero_ns");
	rec->probe_ip = get_u64(meta, "probe_ip");
	rec->ring_bytes = get_u64(meta, "ring_bytes");
	for (int i = 0; i < DROPS; i++)
		rec->drops[i] = get_u64(json__item(meta, "dropped"), drop__name((enum drop)i));
	rec->knows_interrupts = get_flag(meta, "interrupts_are_counted");
	rec->knows_taken = json__item(meta, "taken") != NULL;
	item = json__item(meta, "steal_is_told");
	if (rec->knows_taken && cJSON_IsBool(item))
		rec->steal = cJSON_IsTrue(item) ? REC_STEAL_TOLD : REC_STEAL_NOT_TOLD;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		cJSON_ArrayForEach(item, json__item(meta, lists[i].name)) {
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
