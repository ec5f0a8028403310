// SPDX-License-Identifier: MIT
#include "capture/pt/sideband.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define RECORD_MAX     65536
#define SAMPLE_ID_SIZE sizeof(struct record_id)

/* The records' own layouts (include/uapi/linux/perf_event.h: enum perf_event_type). */
struct mmap2_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
	char filename[];
};

struct comm_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	char comm[];
};

struct task_record {
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};

struct lost_record {
	struct perf_event_header header;
	uint64_t id, lost;
};

/* At every record's end: TID, TIME, CPU, IDENTIFIER, as pt_thread.c asks for them. */
struct record_id {
	uint32_t pid, tid;
	uint64_t time_ns, cpu, identifier;
};

struct aux_record {
	struct perf_event_header header;
	uint64_t aux_offset, aux_size, flags;
};

void sideband__fini(struct sideband *s)
{
	VEC_FINI(&s->started);
	VEC_FINI(&s->ended);
}

static uint64_t time_of(const uint8_t *record, size_t size)
{
	const struct record_id *id = (const void *)(record + size - SAMPLE_ID_SIZE);

	return id->time_ns;
}

static int on_loss(struct sideband *s, const uint8_t *record, size_t size)
{
	const struct record_id *id = (const void *)(record + size - SAMPLE_ID_SIZE);
	const struct perf_event_header *header = (const void *)record;
	struct rec_loss loss = {
		.time_ns = id->time_ns, .pid = (pid_t)id->pid, .tid = (pid_t)id->tid};

	if (header->type == PERF_RECORD_AUX)
		loss.aux_flags =
			((const struct aux_record *)record)->flags &
			(PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_COLLISION);
	else
		loss.records = ((const struct lost_record *)record)->lost;
	return loss.aux_flags || loss.records ? recording__add_loss(s->rec, &loss) : 0;
}

static int on_mmap2(struct sideband *s, const struct mmap2_record *r, uint64_t time_ns)
{
	struct rec_map map = {.time_ns = time_ns,
			      .start = r->addr,
			      .len = r->len,
			      .pgoff = r->pgoff,
			      .ino = r->ino,
			      .maj = r->maj,
			      .min = r->min,
			      .pid = (pid_t)r->pid,
			      .tid = (pid_t)r->tid,
			      .path = (char *)r->filename};

	if ((pid_t)r->pid != s->pid || !(r->prot & PROT_EXEC))
		return 0;
	return recording__add_map(s->rec, &map);
}

static int on_comm(struct sideband *s, const struct comm_record *r, uint64_t time_ns)
{
	struct rec_thread thread = {
		.pid = (pid_t)r->pid, .tid = (pid_t)r->tid, .start_ns = time_ns};

	if ((pid_t)r->pid != s->pid)
		return 0;
	snprintf(thread.comm, sizeof(thread.comm), "%s", r->comm);
	for (size_t i = 0; i < s->rec->threads.n; i++) {
		struct rec_thread *known = &s->rec->threads.v[i];

		if (known->tid == thread.tid) {
			memcpy(known->comm, thread.comm, sizeof(known->comm));
			return 0;
		}
	}
	return recording__add_thread(s->rec, &thread);
}

static int note(pid_t **v, size_t *n, size_t *cap, pid_t tid)
{
	if (vec__grow(v, cap, *n, sizeof(**v)))
		return -ENOMEM;
	(*v)[(*n)++] = tid;
	return 0;
}

static int on_record(struct sideband *s, const uint8_t *record, size_t size)
{
	const struct perf_event_header *header = (const void *)record;
	const struct task_record *task = (const void *)record;

	if (size < sizeof(*header) + SAMPLE_ID_SIZE)
		return 0;
	switch (header->type) {
	case PERF_RECORD_MMAP2:
		return on_mmap2(s, (const void *)record, time_of(record, size));
	case PERF_RECORD_COMM:
		return on_comm(s, (const void *)record, time_of(record, size));
	case PERF_RECORD_FORK:
		/* A new process is its parent's no more. */
		if ((pid_t)task->pid == s->pid && task->tid != task->pid)
			return note(&s->started.v, &s->started.n, &s->started.cap,
				    (pid_t)task->tid);
		return 0;
	case PERF_RECORD_EXIT:
		if ((pid_t)task->pid == s->pid)
			return note(&s->ended.v, &s->ended.n, &s->ended.cap, (pid_t)task->tid);
		return 0;
	case PERF_RECORD_LOST:
	case PERF_RECORD_AUX:
		return on_loss(s, record, size);
	}
	return 0;
}

int sideband__drain(struct sideband *s, struct perf_ring *ring)
{
	uint8_t record[RECORD_MAX] __attribute__((aligned(8)));
	int n, err = 0;

	while (!err && (n = perf_ring__next(ring, record, sizeof(record))) != 0)
		if (n > 0)
			err = on_record(s, record, (size_t)n);
	return err;
}
