// SPDX-License-Identifier: MIT
/* Converts a perf.data file to a recording: the file, the kernel's records, and the PT bytes. */
#include "capture/recording/perf_data_samples.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/vec.h"

/* A NUL-terminated string inside the record, or NULL. */
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

/*
 * The fields that the kernel adds at the end of a record: thread, time and CPU. Zeroes if absent.
 */
struct sample_id {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu;
	bool has_cpu;
};

/* The kernel's records in a perf.data file: mappings, threads, who runs, losses, hits. */

/* TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER, in this order, eight bytes each. */
static struct sample_id read_sample_id(const struct perf_reader *r, const uint8_t *end, size_t len)
{
	static const uint64_t behind_time =
		PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	const struct perf_reader_event *event;
	struct sample_id id = {0};
	uint64_t value;
	size_t cpu_at, time_at, tid_at;

	if (len < 8)
		return id;
	memcpy(&value, end - 8, 8);
	event = perf_reader__find_event(r, value);
	time_at = 8 * (size_t)__builtin_popcountll(event->sample_type & behind_time);
	if (event->sample_type & PERF_SAMPLE_TIME)
		time_at += 8;
	tid_at = time_at + (event->sample_type & PERF_SAMPLE_TID ? 8 : 0);
	if (tid_at > len)
		return id;
	cpu_at = event->sample_type & PERF_SAMPLE_IDENTIFIER ? 16 : 8;
	id.has_cpu = event->sample_type & PERF_SAMPLE_CPU;
	if (id.has_cpu)
		memcpy(&id.cpu, end - cpu_at, sizeof(id.cpu));
	if (event->sample_type & PERF_SAMPLE_TIME)
		memcpy(&id.time_ns, end - time_at, 8);
	if (event->sample_type & PERF_SAMPLE_TID)
		memcpy(&id.pid, end - tid_at, 8);
	return id;
}

/* Ignores an id that is longer than the maximum. */
static void set_build_id(struct rec_map *map, const uint8_t *id, size_t size)
{
	if (2 * size >= sizeof(map->build_id))
		return;
	for (size_t i = 0; i < size; i++)
		snprintf(map->build_id + 2 * i, 3, "%02x", id[i]);
}

static int read_mmap(struct perf_reader *r, struct cursor *c,
		     const struct perf_event_header *header, uint64_t time_ns)
{
	struct rec_map map = {.time_ns = time_ns};
	uint8_t id[24]; /* the id's length, 3 reserved bytes, the id */

	map.pid = (pid_t)take_u32(c);
	map.tid = (pid_t)take_u32(c);
	map.start = take_u64(c);
	map.len = take_u64(c);
	map.pgoff = take_u64(c);
	if (header->type == PERF_RECORD_MMAP2) {
		/* The file's identity: its inode or, with perf's --buildid-mmap, its build id. */
		if (header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
			cursor__take(c, id, sizeof(id));
			if (id[0] <= 20)
				set_build_id(&map, id + 4, id[0]);
		} else {
			map.maj = take_u32(c);
			map.min = take_u32(c);
			map.ino = take_u64(c);
			take_u64(c); /* inode generation */
		}
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

/* Adds the context switch of a recording of samples. 0 or -ENOMEM. */
static int read_sched(struct perf_reader *r, const struct perf_event_header *header,
		      const struct sample_id *id)
{
	struct rec_sched sched = {
		.time_ns = id->time_ns,
		.pid = (pid_t)id->pid,
		.tid = (pid_t)id->tid,
		.cpu = (int)id->cpu,
		.what = !(header->misc & PERF_RECORD_MISC_SWITCH_OUT)	     ? REC_SCHED_IN
			: header->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? REC_SCHED_PREEMPTED
									     : REC_SCHED_BLOCKED,
	};

	return VEC_ADD(&r->rec->scheds, sched);
}

/* A thread or process begins: PID, PPID, TID, PTID, TIME. */
static int read_fork(struct perf_reader *r, struct cursor *c, const struct sample_id *id)
{
	struct rec_thread child = {.start_ns = id->time_ns};
	pid_t parent_pid, parent_tid;

	child.pid = (pid_t)take_u32(c);
	parent_pid = (pid_t)take_u32(c);
	child.tid = (pid_t)take_u32(c);
	parent_tid = (pid_t)take_u32(c);
	if (c->failed)
		return damaged(r, "a thread's record is damaged");
	return recording__add_fork(r->rec, &child, parent_pid, parent_tid);
}

static int add_switch(struct perf_reader *r, const struct sample_id *id, uint32_t pid, uint32_t tid)
{
	const struct perf_reader_switch sw = {
		.sw = {id->time_ns, (int)id->cpu, (pid_t)pid, (pid_t)tid},
		.order = r->switches.n,
	};

	/* In a recording with rings per thread, switches lack CPUs and are not needed. */
	return id->has_cpu ? VEC_ADD(&r->switches, sw) : 0;
}

ORDER(compare_switches, struct perf_reader_switch,
      COMPARE(x->sw.time_ns, y->sw.time_ns) ?: COMPARE(x->order, y->order))

/* Reads records of the kernel. 0 or -errno, with r->why. Ignores other types. */
static int read_kernel_record(struct perf_reader *r, const struct perf_event_header *header,
			      struct cursor *c)
{
	struct sample_id id = read_sample_id(r, c->end, (size_t)(c->end - c->at));

	switch (header->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		/* The kernel's code is in kcore_dir. */
		if ((header->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL)
			return 0;
		/* Mappings of data, of perf record -d or for its unwinding, contain no code. */
		if (header->misc & PERF_RECORD_MISC_MMAP_DATA)
			return 0;
		return read_mmap(r, c, header, id.time_ns);
	case PERF_RECORD_COMM:
		return read_comm(r, c, id.time_ns);
	case PERF_RECORD_FORK:
		return read_fork(r, c, &id);
	case PERF_RECORD_SWITCH:
		if (!r->have_info)
			return read_sched(r, header, &id);
		/* fallthrough */
	case PERF_RECORD_SWITCH_CPU_WIDE:
		/* The thread that runs next has a record of its own. */
		return header->misc & PERF_RECORD_MISC_SWITCH_OUT
			       ? add_switch(r, &id, 0, 0)
			       : add_switch(r, &id, id.pid, id.tid);
	case PERF_RECORD_ITRACE_START: {
		uint32_t pid = take_u32(c), tid = take_u32(c);

		if (c->failed)
			return damaged(r, "the record of a trace's start is damaged");
		return add_switch(r, &id, pid, tid);
	}
	case PERF_RECORD_AUX:
	case PERF_RECORD_LOST:
		return read_loss(r, c, header->type == PERF_RECORD_AUX, &id);
	case PERF_RECORD_SAMPLE:
		return perf_reader__sample(r, header, c);
	}
	return 0;
}

/* Intel PT's own records in a perf.data file: how to decode it, and the bytes. */

/* Reads the record of Intel PT's settings. 0 or -errno, with r->why. */
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
		if (r->events.v[i].type == info[PT_INFO_PMU_TYPE]) {
			pt->config = r->events.v[i].config;
			r->rec->kernel_only = r->events.v[i].exclude_user;
		}
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
	r->by_cpu = info[PT_INFO_PER_CPU_MMAPS] && info[PT_INFO_HAVE_SCHED_SWITCH];
	r->have_info = true;
	return 0;
}

static const uint8_t *find_psb(const uint8_t *from, const uint8_t *end)
{
	static const uint8_t psb[16] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
					2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};

	return memmem(from, (size_t)(end - from), psb, sizeof(psb));
}

/* A PSB is followed by its time: two PSBs with this many equal bytes are probably the same one. */
#define PSB_TELLS 64
/* The most PSBs that are compared in full: a limit for hostile streams. */
#define MAX_TRIES 16

/*
 * A snapshot may begin with bytes with which the last snapshot of its ring ends (tools/perf/util/
 * intel-pt-decoder/intel-pt-decoder.c: intel_pt_find_overlap()): the bytes from one of the PSBs of
 * the last snapshot up to its end are the same as those from the first PSB of the new one on.
 * Returns how many of the new bytes are known already.
 */
static size_t find_overlap(const struct rec_aux *last, const struct rec_aux *next)
{
	const uint8_t *end = last->data + last->size, *next_end = next->data + next->size;
	const uint8_t *first = find_psb(next->data, next_end);
	const uint8_t *at = first ? find_psb(last->data, end) : NULL;

	for (unsigned int tries = 0; at && tries < MAX_TRIES; at = find_psb(at + 1, end)) {
		size_t n = (size_t)(end - at);

		if (n > (size_t)(next_end - first) ||
		    memcmp(at, first, n < PSB_TELLS ? n : PSB_TELLS))
			continue;
		tries++;
		if (!memcmp(at, first, n))
			return (size_t)(first - next->data) + n;
	}
	return 0;
}

/* Appends `more`, whose first `known` bytes the stream has already. Frees it. 0 or -ENOMEM. */
static int continue_stream(struct perf_reader *r, struct perf_reader_stream *s, size_t known,
			   struct rec_aux *more, uint64_t end)
{
	struct rec_aux *aux = &r->rec->aux.v[s->aux];
	size_t n = more->size - known;
	uint8_t *data = realloc(aux->is_mapped ? NULL : aux->data, aux->size + n + 1);

	if (data) {
		if (aux->is_mapped)
			memcpy(data, aux->data, aux->size);
		memcpy(data + aux->size, more->data + known, n);
		aux->is_mapped = false;
		aux->data = data;
		aux->size += n;
		aux->tsc = more->tsc;
		s->end = end;
	}
	rec_aux__fini(more);
	return data ? 0 : -ENOMEM;
}

static int add_bytes(struct perf_reader *r, struct rec_aux *aux, uint64_t offset)
{
	struct perf_reader_stream *s =
		VEC_FIND(&r->streams, e, e->tid == aux->tid && e->cpu == aux->cpu);
	struct rec_aux *last = s ? &r->rec->aux.v[s->aux] : NULL;
	uint64_t end = offset + aux->size;
	size_t known;

	/*
	 * True if the data at `offset` continues the stream. perf writes whole words of 8 bytes:
	 * the bytes beyond `offset` are padding.
	 */
	if (s && offset && s->end >= offset && s->end - offset < 8 &&
	    s->end - offset <= last->size) {
		last->size -= s->end - offset;
		return continue_stream(r, s, 0, aux, end);
	}
	known = s ? find_overlap(last, aux) : 0;
	if (known)
		return continue_stream(r, s, known, aux, end);
	/* A snapshot that does not continue the one before is a stream of its own. */
	if (!s)
		s = VEC_PUSH(&r->streams);
	if (!s) {
		rec_aux__fini(aux);
		return -ENOMEM;
	}
	*s = (struct perf_reader_stream){
		.tid = aux->tid, .cpu = aux->cpu, .aux = r->rec->aux.n, .end = end};
	return recording__add_aux(r->rec, aux);
}

/* Reads the PT bytes after the record, and sets *size to their number, at most `left`. */
static int read_auxtrace(struct perf_reader *r, struct cursor *c, const uint8_t *data,
			 uint64_t left, uint64_t *size)
{
	const struct rec_thread *thread;
	struct rec_aux aux = {0};
	uint64_t offset;

	*size = take_u64(c);
	offset = take_u64(c);
	aux.tsc = take_u64(c);
	take_u32(c); /* index */
	aux.tid = (pid_t)take_u32(c);
	aux.cpu = (int)take_u32(c);
	if (c->failed || *size > left)
		return damaged(r, "its Intel PT data is cut");
	/*
	 * recording__add_aux() would not keep the empty data, and the stream's entry would have the
	 * index of the next data.
	 */
	if (!*size)
		return 0;
	/* 'perf record -p' writes the first thread's tid into the record of each CPU. */
	if (aux.tid == -1 || (r->by_cpu && aux.cpu >= 0))
		aux.tid = 0;
	else
		aux.cpu = 0;
	aux.pid = aux.tid;
	thread = aux.tid ? VEC_FIND(&r->rec->threads, e, e->tid == aux.tid) : NULL;
	if (thread)
		aux.pid = thread->pid;
	aux.size = *size;
	aux.is_mapped = r->rec->mapped.data == r->data;
	aux.data = aux.is_mapped ? (uint8_t *)data : malloc(*size);
	if (!aux.data)
		return -ENOMEM;
	if (!aux.is_mapped)
		memcpy(aux.data, data, *size);
	return add_bytes(r, &aux, offset);
}

static bool inside(const struct perf_reader *r, struct perf_data_section s)
{
	return s.offset <= r->size && s.size <= r->size - s.offset;
}

static uint64_t period_of(const struct perf_event_attr *attr)
{
	if (attr->freq)
		return attr->sample_freq ? 1000000000 / attr->sample_freq : 0;
	return attr->type == PERF_TYPE_SOFTWARE && (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
						    attr->config == PERF_COUNT_SW_TASK_CLOCK)
		       ? attr->sample_period
		       : 0;
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
			/* Each id takes 8 bytes; sections that overlap are damage. */
			if (r->events.n > r->size / 8)
				return damaged(r, "its lists of ids overlap");
			event = VEC_PUSH(&r->events);
			if (!event)
				return -ENOMEM;
			*event = (struct perf_reader_event){
				.type = attr.type,
				.config = attr.config,
				.sample_type = attr.sample_type,
				.regs_user = attr.sample_regs_user,
				.own = attr.config1,
				.exclude_user = attr.exclude_user,
				.period_ns = period_of(&attr),
				.period = attr.freq ? 0 : attr.sample_period};
			/*
			 * Set even if no sample of this event follows: the report tells from it how
			 * exact times are.
			 */
			if (event->period_ns && event->sample_type & PERF_SAMPLE_CALLCHAIN)
				r->rec->sample_period_ns = event->period_ns;
			if (at + 8 <= ids.size)
				memcpy(&event->id, r->data + ids.offset + at, 8);
		}
	}
	return r->events.n ? 0 : damaged(r, "events are missing");
}

static int read_record(struct perf_reader *r, const uint8_t *at, uint64_t left, uint64_t *used)
{
	struct perf_event_header header;
	struct cursor c = {0};
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
	if (header.type == PERF_USER_AUXTRACE_INFO)
		return read_auxtrace_info(r, &c);
	if (header.type != PERF_USER_AUXTRACE)
		return read_kernel_record(r, &header, &c);
	err = read_auxtrace(r, &c, at + header.size, left - header.size, &extra);
	*used += err ? 0 : extra;
	return err;
}

void perf_data__read_build_ids(struct recording *rec, const uint8_t *bytes, size_t size)
{
	struct build_id_record record;

	while (size >= sizeof(record)) {
		const char *path = (const char *)bytes + sizeof(record);
		size_t id_size = sizeof(record.id);

		memcpy(&record, bytes, sizeof(record));
		if (record.header.size <= sizeof(record) || record.header.size > size)
			return;
		if (record.header.misc & MISC_BUILD_ID_SIZE)
			id_size = record.size;
		bytes += record.header.size;
		size -= record.header.size;
		if (!memchr(path, 0, record.header.size - sizeof(record)))
			continue;
		VEC_EACH(&rec->maps, map)
			if (!map->build_id[0] && !strcmp(map->path, path))
				set_build_id(map, record.id, id_size);
	}
}

static int read_features(struct perf_reader *r, const struct perf_data_header *header)
{
	uint64_t at = header->data.offset + header->data.size;

	for (int bit = 0; bit < 64; bit++) {
		struct perf_data_section s;

		if (!(header->features[0] >> bit & 1))
			continue;
		if (at > r->size || r->size - at < sizeof(s))
			return damaged(r, "it is truncated");
		memcpy(&s, r->data + at, sizeof(s));
		at += sizeof(s);
		if (!inside(r, s))
			return damaged(r, "it is truncated");
		if (bit == PERF_FEATURE_CPUID && s.size >= 4) {
			/* The CPU decides which errata a decoder works around. */
			struct rec_pt_config *pt = &r->rec->pt;
			char text[64] = "";

			memcpy(text, r->data + s.offset + 4,
			       s.size - 4 < sizeof(text) - 1 ? s.size - 4 : sizeof(text) - 1);
			sscanf(text, "GenuineIntel,%u,%u,%u", &pt->cpu_family, &pt->cpu_model,
			       &pt->cpu_stepping);
		}
		if (bit == PERF_FEATURE_OSRELEASE && s.size >= 4) {
			free(r->rec->os_release);
			r->rec->os_release =
				strndup((const char *)r->data + s.offset + 4, s.size - 4);
			if (!r->rec->os_release)
				return -ENOMEM;
		}
		if (bit == PERF_FEATURE_BUILD_ID)
			perf_data__read_build_ids(r->rec, r->data + s.offset, s.size);
	}
	return 0;
}

static int read_all(struct perf_reader *r)
{
	struct perf_data_header header = {0};
	uint64_t at, end;
	int err;

	memcpy(&header, r->data, r->size < sizeof(header) ? r->size : sizeof(header));
	if (header.magic != PERF_DATA_MAGIC)
		return damaged(r, "it is not a perf.data file");
	if (header.size == offsetof(struct perf_data_header, attr_size))
		return damaged(r, "it was made by 'perf record -o -', which is not supported");
	if (header.size < sizeof(header) || r->size < sizeof(header) || !inside(r, header.data))
		return damaged(r, "it is truncated");
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
	if (!err && recording__is_by_cpu(r->rec)) {
		/* The file has switches in the order of buffers, not of time. */
		VEC_SORT(&r->switches, compare_switches);
		VEC_EACH_WHILE(&r->switches, sw, !err)
			err = recording__add_switch(r->rec, &sw->sw);
	}
	if (err)
		return err;
	if (!r->have_info && !recording__is_sampled(r->rec) && !r->rec->hits.n) {
		r->why = "it contains neither Intel PT nor call chains";
		return -ENODATA;
	}
	return 0;
}

int perf_data__read(struct recording *rec, const uint8_t *data, size_t size, const char **why)
{
	struct perf_reader r = {.rec = rec, .data = data, .size = size};
	int err = read_all(&r);

	VEC_FINI(&r.events);
	VEC_FINI(&r.streams);
	VEC_FINI(&r.switches);
	*why = r.why ? r.why : "out of memory";
	return err;
}
