// SPDX-License-Identifier: MIT
/* The kernel's records in a perf.data file: mappings, threads, who runs, losses, hits. */
#include "capture/recording/perf_data_internal.h"

#include <stdlib.h>

#include "util/label.h"

/* Whose record is it? By the id at its end, or at the start of a sample. */
const struct perf_reader_event *perf_reader__find_event(const struct perf_reader *r, uint64_t id)
{
	for (size_t i = 0; i < r->events.n; i++)
		if (r->events.v[i].id == id)
			return &r->events.v[i];
	return &r->events.v[0];
}

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
	label__clean_in_place(thread.comm);
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

static int read_sample(struct perf_reader *r, const struct perf_event_header *header,
		       struct cursor *c)
{
	struct cursor start = *c;
	const struct perf_reader_event *event = perf_reader__find_event(r, take_u64(c));

	if (event->type != PERF_TYPE_SOFTWARE || event->config != PERF_COUNT_SW_BPF_OUTPUT)
		return perf_reader__stack(r, header, &start);
	if (event->own != PERF_OWN_HIT)
		return perf_reader__own(r, c, event->own);
	return perf_reader__sample(r, event, c);
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
	struct perf_reader_switch *sw;

	/* A thread's own record of it says no CPU, and its ring needs none. */
	if (!id->has_cpu)
		return 0;
	sw = VEC_PUSH(&r->switches);
	if (!sw)
		return -ENOMEM;
	*sw = (struct perf_reader_switch){
		.sw = {id->time_ns, (int)id->cpu, (pid_t)pid, (pid_t)tid},
		.order = r->switches.n,
	};
	return 0;
}

/* Who comes is the record's own; who follows a leaving one has a record of its own. */
static int read_switch(struct perf_reader *r, bool out, const struct sample_id *id)
{
	return add_switch(r, id, out ? 0 : id->pid, out ? 0 : id->tid);
}

static int read_itrace_start(struct perf_reader *r, struct cursor *c, const struct sample_id *id)
{
	uint32_t pid = take_u32(c), tid = take_u32(c);

	if (c->failed)
		return damaged(r, "the record of a trace's start is damaged");
	return add_switch(r, id, pid, tid);
}

static int compare_switches(const void *a, const void *b)
{
	const struct perf_reader_switch *x = a, *y = b;

	if (x->sw.time_ns != y->sw.time_ns)
		return x->sw.time_ns < y->sw.time_ns ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

int perf_reader__finish_switches(struct perf_reader *r)
{
	int err = 0;

	if (!recording__is_by_cpu(r->rec) || !r->switches.n)
		return 0;
	VEC_SORT(&r->switches, compare_switches);
	for (size_t i = 0; i < r->switches.n && !err; i++)
		err = recording__add_switch(r->rec, &r->switches.v[i].sw);
	return err;
}

int perf_reader__kernel_record(struct perf_reader *r, const struct perf_event_header *header,
			       struct cursor *c)
{
	struct sample_id id = read_sample_id(r, c->end, (size_t)(c->end - c->at));

	switch (header->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		/* Its code is in kcore_dir. */
		if ((header->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL)
			return 0;
		/* No code: of perf record -d, or for its unwinding. */
		if (header->misc & PERF_RECORD_MISC_MMAP_DATA)
			return 0;
		return read_mmap(r, c, header, id.time_ns);
	case PERF_RECORD_COMM:
		return read_comm(r, c, id.time_ns);
	case PERF_RECORD_FORK:
		return read_fork(r, c, &id);
	case PERF_RECORD_SWITCH:
		if (!r->have_info)
			return perf_reader__sched(r, header, &id);
		/* fallthrough */
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return read_switch(r, header->misc & PERF_RECORD_MISC_SWITCH_OUT, &id);
	case PERF_RECORD_ITRACE_START:
		return read_itrace_start(r, c, &id);
	case PERF_RECORD_AUX:
	case PERF_RECORD_LOST:
		return read_loss(r, c, header->type == PERF_RECORD_AUX, &id);
	case PERF_RECORD_SAMPLE:
		return read_sample(r, header, c);
	}
	return 0;
}
