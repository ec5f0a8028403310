// SPDX-License-Identifier: MIT
#include "capture/perf_data.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* One event of the file: how its records are laid out. */
struct perf_reader_event {
	uint32_t type;
	uint64_t config, sample_type;
	uint64_t id;
};

struct perf_reader {
	struct recording *rec;
	const uint8_t *data;
	size_t size;
	const char *why;
	VEC(struct perf_reader_event) events;
	bool have_info; /* Intel PT's AUXTRACE_INFO was there */
};

/* A record's bytes still to be read. */
struct cursor {
	const uint8_t *at, *end;
	bool failed;
};

static void take(struct cursor *c, void *out, size_t n)
{
	if ((size_t)(c->end - c->at) < n) {
		c->failed = true;
		memset(out, 0, n);
		return;
	}
	memcpy(out, c->at, n);
	c->at += n;
}

static uint32_t take_u32(struct cursor *c)
{
	uint32_t value;

	take(c, &value, sizeof(value));
	return value;
}

static uint64_t take_u64(struct cursor *c)
{
	uint64_t value;

	take(c, &value, sizeof(value));
	return value;
}

/* A NUL-terminated string inside the record; NULL where there is none. */
static const char *take_string(struct cursor *c)
{
	const uint8_t *nul = memchr(c->at, 0, (size_t)(c->end - c->at));
	const char *text = (const char *)c->at;

	if (!nul) {
		c->failed = true;
		return NULL;
	}
	c->at = nul + 1;
	return text;
}

static int damaged(struct perf_reader *r, const char *why)
{
	r->why = why;
	return -EINVAL;
}

static bool inside(const struct perf_reader *r, struct perf_data_section s)
{
	return s.offset <= r->size && s.size <= r->size - s.offset;
}

static int read_attrs(struct perf_reader *r, const struct perf_data_header *header)
{
	uint64_t n;

	if (header->attr_size < 64 + sizeof(struct perf_data_section) || header->attr_size > 4096 ||
	    !inside(r, header->attrs))
		return damaged(r, "its list of events is cut");
	n = header->attrs.size / header->attr_size;
	for (uint64_t i = 0; i < n; i++) {
		const uint8_t *entry = r->data + header->attrs.offset + i * header->attr_size;
		struct perf_event_attr attr = {0};
		struct perf_data_section ids;
		struct perf_reader_event *event;
		size_t attr_len = header->attr_size - sizeof(ids);

		memcpy(&attr, entry, attr_len < sizeof(attr) ? attr_len : sizeof(attr));
		memcpy(&ids, entry + attr_len, sizeof(ids));
		if (!inside(r, ids))
			return damaged(r, "an event's ids lie outside of the file");
		for (uint64_t at = 0; at == 0 || at + 8 <= ids.size; at += 8) {
			/* Each id has its 8 bytes; many sections over the same ones are no file. */
			if (r->events.n > r->size / 8)
				return damaged(r, "its lists of ids overlap");
			event = VEC_PUSH(&r->events);
			if (!event)
				return -ENOMEM;
			*event = (struct perf_reader_event){.type = attr.type,
							    .config = attr.config,
							    .sample_type = attr.sample_type};
			if (at + 8 <= ids.size)
				memcpy(&event->id, r->data + ids.offset + at, 8);
		}
	}
	return r->events.n ? 0 : damaged(r, "it has no events");
}

/* Whose record is it? By the id at its end, or at the start of a sample. */
static const struct perf_reader_event *find_event(const struct perf_reader *r, uint64_t id)
{
	for (size_t i = 0; i < r->events.n; i++)
		if (r->events.v[i].id == id)
			return &r->events.v[i];
	return &r->events.v[0];
}

/* What the kernel put at a record's end: whose it is, and when. Zeroes where it did not. */
struct sample_id {
	uint32_t pid, tid;
	uint64_t time_ns;
};

/* TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER, in this order, eight bytes each. */
static struct sample_id read_sample_id(const struct perf_reader *r, const uint8_t *end, size_t len)
{
	static const uint64_t behind_time =
		PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	const struct perf_reader_event *event;
	struct sample_id id = {0};
	uint64_t value;
	size_t time_at, tid_at;

	if (len < 8)
		return id;
	memcpy(&value, end - 8, 8);
	event = find_event(r, value);
	time_at = 8 * (size_t)__builtin_popcountll(event->sample_type & behind_time);
	if (event->sample_type & PERF_SAMPLE_TIME)
		time_at += 8;
	tid_at = time_at + (event->sample_type & PERF_SAMPLE_TID ? 8 : 0);
	if (tid_at > len)
		return id;
	if (event->sample_type & PERF_SAMPLE_TIME)
		memcpy(&id.time_ns, end - time_at, 8);
	if (event->sample_type & PERF_SAMPLE_TID)
		memcpy(&id.pid, end - tid_at, 8);
	return id;
}

/* Which file it is: its inode, or, where perf was told to, its build id. */
static void read_file_id(struct cursor *c, bool is_build_id, struct rec_map *map)
{
	uint8_t id[24]; /* its length, 3 reserved bytes, 20 of it */

	if (!is_build_id) {
		map->maj = take_u32(c);
		map->min = take_u32(c);
		map->ino = take_u64(c);
		take_u64(c); /* inode generation */
		return;
	}
	take(c, id, sizeof(id));
	if (id[0] <= 20)
		rec_map__set_build_id(map, id + 4, id[0]);
}

static int read_mmap(struct perf_reader *r, struct cursor *c,
		     const struct perf_event_header *header, uint64_t time_ns)
{
	struct rec_map map = {.time_ns = time_ns};

	map.pid = (pid_t)take_u32(c);
	map.tid = (pid_t)take_u32(c);
	map.start = take_u64(c);
	map.len = take_u64(c);
	map.pgoff = take_u64(c);
	if (header->type == PERF_RECORD_MMAP2) {
		read_file_id(c, header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID, &map);
		take_u64(c); /* prot, flags */
	}
	map.path = (char *)take_string(c);
	if (c->failed || !map.len || map.start + map.len < map.start)
		return damaged(r, "a mapping's record is damaged");
	return recording__add_map(r->rec, &map);
}

static int read_comm(struct perf_reader *r, struct cursor *c, uint64_t time_ns)
{
	struct rec_thread thread = {.start_ns = time_ns};
	const char *comm;

	thread.pid = (pid_t)take_u32(c);
	thread.tid = (pid_t)take_u32(c);
	comm = take_string(c);
	if (c->failed)
		return damaged(r, "a thread's record is damaged");
	snprintf(thread.comm, sizeof(thread.comm), "%s", comm);
	for (size_t i = 0; i < r->rec->threads.n; i++)
		if (r->rec->threads.v[i].tid == thread.tid) {
			memcpy(r->rec->threads.v[i].comm, thread.comm, sizeof(thread.comm));
			return 0;
		}
	return recording__add_thread(r->rec, &thread);
}

#define AUX_FLAGS_LOSS (PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_COLLISION)

/* AUX: offset, size, flags; LOST: id, records. */
static int read_loss(struct perf_reader *r, struct cursor *c, bool is_aux,
		     const struct sample_id *id)
{
	struct rec_loss loss = {
		.time_ns = id->time_ns, .pid = (pid_t)id->pid, .tid = (pid_t)id->tid};

	take_u64(c);
	if (is_aux) {
		take_u64(c);
		loss.aux_flags = take_u64(c) & AUX_FLAGS_LOSS;
	} else {
		loss.records = take_u64(c);
	}
	if (c->failed)
		return damaged(r, "a loss's record is damaged");
	return loss.aux_flags || loss.records ? recording__add_loss(r->rec, &loss) : 0;
}

/* Our own samples carry struct mt_hit as raw data, but for its stack: that is the call chain. */
static int read_sample(struct perf_reader *r, struct cursor *c)
{
	const struct perf_reader_event *event = find_event(r, take_u64(c));
	const size_t fixed = offsetof(struct mt_hit, stack);
	struct mt_hit hit = {0};
	const uint8_t *chain;
	uint64_t depth;

	if (event->type != PERF_TYPE_SOFTWARE || event->config != PERF_COUNT_SW_BPF_OUTPUT ||
	    !(event->sample_type & PERF_SAMPLE_RAW))
		return 0;
	c->at += c->end - c->at >= 32 ? 32 : 0; /* IP, TID, TIME, CPU: mt_hit has them */
	depth = take_u64(c);
	if (c->failed || !depth || depth > 1 + MT_STACK_DEPTH ||
	    depth > (uint64_t)(c->end - c->at) / 8)
		return damaged(r, "a hit's record is damaged");
	chain = c->at;
	c->at += depth * 8;
	if (take_u32(c) < fixed)
		return damaged(r, "a hit's record is of another version");
	take(c, &hit, fixed);
	if (c->failed || hit.stack_depth != depth - 1)
		return damaged(r, "a hit's record is damaged");
	/* Behind PERF_CONTEXT_USER. */
	memcpy(hit.stack, chain + 8, 8 * hit.stack_depth);
	return recording__add_hit(r->rec, &hit);
}

static int read_auxtrace_info(struct perf_reader *r, struct cursor *c)
{
	uint64_t info[PT_INFO_COUNT];
	struct rec_pt_config *pt = &r->rec->pt;

	if (take_u32(c) != AUXTRACE_TYPE_INTEL_PT) {
		r->why = "its trace is not Intel PT";
		return -ENODATA;
	}
	take_u32(c);
	for (size_t i = 0; i < PT_INFO_COUNT; i++)
		info[i] = take_u64(c);
	if (c->failed)
		return damaged(r, "its Intel PT description is cut");
	for (size_t i = 0; i < r->events.n; i++)
		if (r->events.v[i].type == info[PT_INFO_PMU_TYPE])
			pt->config = r->events.v[i].config;
	pt->time_shift = (uint16_t)info[PT_INFO_TIME_SHIFT];
	pt->time_mult = (uint32_t)info[PT_INFO_TIME_MULT];
	pt->time_zero = info[PT_INFO_TIME_ZERO];
	pt->nom_freq = (uint32_t)info[PT_INFO_MAX_NONTURBO];
	pt->tsc_ctc_num = (uint32_t)info[PT_INFO_TSC_CTC_N];
	pt->tsc_ctc_den = (uint32_t)info[PT_INFO_TSC_CTC_D];
	if (info[PT_INFO_MTC_FREQ_BITS])
		pt->mtc_freq = (uint32_t)((pt->config & info[PT_INFO_MTC_FREQ_BITS]) >>
					  __builtin_ctzll(info[PT_INFO_MTC_FREQ_BITS]));
	if (pt->time_shift > 63)
		return damaged(r, "its clock's shift is out of range");
	r->have_info = true;
	return 0;
}

static pid_t process_of(const struct recording *rec, pid_t tid)
{
	for (size_t i = 0; i < rec->threads.n; i++)
		if (rec->threads.v[i].tid == tid)
			return rec->threads.v[i].pid;
	return tid;
}

/* The PT bytes follow the record; *size is set to how many. */
static int read_auxtrace(struct perf_reader *r, struct cursor *c, const uint8_t *data,
			 uint64_t left, uint64_t *size)
{
	struct rec_aux aux = {0};

	*size = take_u64(c);
	take_u64(c); /* offset */
	aux.tsc = take_u64(c);
	take_u32(c); /* index */
	aux.tid = (pid_t)take_u32(c);
	if (c->failed || *size > left)
		return damaged(r, "its Intel PT data is cut");
	if (aux.tid == -1) {
		r->why = "it was recorded per CPU, which is not understood yet";
		return -ENOTSUP;
	}
	aux.pid = process_of(r->rec, aux.tid);
	aux.size = *size;
	aux.data = malloc(*size ? *size : 1);
	if (!aux.data)
		return -ENOMEM;
	memcpy(aux.data, data, *size);
	return recording__add_aux(r->rec, &aux);
}

static int read_record(struct perf_reader *r, const uint8_t *at, uint64_t left, uint64_t *used)
{
	struct perf_event_header header;
	struct cursor c = {0};
	struct sample_id id;
	uint64_t extra;
	int err;

	if (left < sizeof(header))
		return damaged(r, "it is cut in the middle of a record");
	memcpy(&header, at, sizeof(header));
	if (header.size < sizeof(header) || header.size > left)
		return damaged(r, "a record's size is wrong");
	c.at = at + sizeof(header);
	c.end = at + header.size;
	*used = header.size;
	id = read_sample_id(r, c.end, header.size - sizeof(header));
	switch (header.type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		/* Its code is in kcore_dir. */
		if ((header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL)
			return 0;
		return read_mmap(r, &c, &header, id.time_ns);
	case PERF_RECORD_COMM:
		return read_comm(r, &c, id.time_ns);
	case PERF_RECORD_AUX:
	case PERF_RECORD_LOST:
		return read_loss(r, &c, header.type == PERF_RECORD_AUX, &id);
	case PERF_RECORD_SAMPLE:
		return read_sample(r, &c);
	case PERF_USER_AUXTRACE_INFO:
		return read_auxtrace_info(r, &c);
	case PERF_USER_AUXTRACE:
		err = read_auxtrace(r, &c, at + header.size, left - header.size, &extra);
		*used += err ? 0 : extra;
		return err;
	}
	return 0;
}

/* The CPU decides which errata a decoder works around. */
static void read_cpuid(struct perf_reader *r, struct perf_data_section s)
{
	struct rec_pt_config *pt = &r->rec->pt;
	char text[64];
	size_t n;

	n = s.size - 4 < sizeof(text) - 1 ? s.size - 4 : sizeof(text) - 1;
	memcpy(text, r->data + s.offset + 4, n);
	text[n] = 0;
	sscanf(text, "GenuineIntel,%u,%u,%u", &pt->cpu_family, &pt->cpu_model, &pt->cpu_stepping);
}

static int read_features(struct perf_reader *r, const struct perf_data_header *header)
{
	uint64_t at = header->data.offset + header->data.size;

	for (int bit = 0; bit < 64; bit++) {
		struct perf_data_section s;

		if (!(header->features[0] >> bit & 1))
			continue;
		if (at > r->size || r->size - at < sizeof(s))
			return damaged(r, "it is cut");
		memcpy(&s, r->data + at, sizeof(s));
		at += sizeof(s);
		if (!inside(r, s))
			return damaged(r, "it is cut");
		if (bit == PERF_FEATURE_CPUID && s.size >= 4)
			read_cpuid(r, s);
		if (bit == PERF_FEATURE_BUILD_ID)
			perf_data__read_build_ids(r->rec, r->data + s.offset, s.size);
	}
	return 0;
}

static int read_all(struct perf_reader *r)
{
	struct perf_data_header header;
	uint64_t at, end;
	int err;

	header = (struct perf_data_header){0};
	memcpy(&header, r->data, r->size < sizeof(header) ? r->size : sizeof(header));
	if (header.magic != PERF_DATA_MAGIC)
		return damaged(r, "it is no perf.data file");
	if (header.size == offsetof(struct perf_data_header, attr_size))
		return damaged(r, "it is of 'perf record -o -', not a file's");
	if (header.size < sizeof(header) || r->size < sizeof(header) || !inside(r, header.data))
		return damaged(r, "it is cut");
	err = read_attrs(r, &header);
	at = header.data.offset;
	end = at + header.data.size;
	while (!err && at < end) {
		uint64_t used;

		err = read_record(r, r->data + at, end - at, &used);
		at += err ? 0 : used;
	}
	if (!err)
		err = read_features(r, &header);
	if (err)
		return err;
	if (!r->have_info) {
		r->why = "there is no Intel PT in it";
		return -ENODATA;
	}
	return 0;
}

int perf_data__read(struct recording *rec, const uint8_t *data, size_t size, const char **why)
{
	struct perf_reader r = {.rec = rec, .data = data, .size = size};
	int err = read_all(&r);

	VEC_FINI(&r.events);
	*why = r.why ? r.why : "out of memory";
	return err;
}
