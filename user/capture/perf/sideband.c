// SPDX-License-Identifier: MIT
#include "capture/perf/sideband.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "target/process.h"
#include "util/clock.h"
#include "util/vec.h"

void switch_log__fini(struct switch_log *log)
{
	VEC_FINI_EACH(&log->cpus, e, VEC_FINI(&e->list));
}

/* Finds the CPU's switches, or adds an empty list. NULL: out of memory. */
static struct cpu_switches *of_cpu(struct switch_log *log, int cpu)
{
	struct cpu_switches *c = VEC_FIND(&log->cpus, e, e->cpu == cpu);

	if (c)
		return c;
	c = VEC_PUSH(&log->cpus);
	if (c)
		*c = (struct cpu_switches){.cpu = cpu, .last_ns = log->start_ns};
	return c;
}

int switch_log__note(struct switch_log *log, enum switch_event event, const struct rec_switch *sw)
{
	struct cpu_switches *c = of_cpu(log, sw->cpu);
	struct rec_switch add = *sw, before = *sw;
	int err = 0;

	if (!c)
		return -ENOMEM;
	if (event == SWITCH_BEGAN && c->list.n)
		return 0;
	/* The first record of a CPU tells who ran before it. */
	before.time_ns = log->start_ns;
	/* The tid is -1 if the thread has exited and the kernel is releasing it. */
	if (event == SWITCH_OFF && !c->list.n && sw->pid > 0 && sw->tid > 0 &&
	    sw->time_ns > log->start_ns)
		err = VEC_ADD(&c->list, before);
	if (event == SWITCH_OFF || event == SWITCH_LOST)
		add.pid = add.tid = 0;
	if (event == SWITCH_LOST)
		add.time_ns = c->last_ns;
	c->last_ns = sw->time_ns;
	return err ? err : VEC_ADD(&c->list, add);
}

/*
 * The head is an offset in the ring (perf_aux_output_end()), so a whole round since the last time
 * goes unseen: less is forgotten then than could be.
 */
int switch_log__traced(struct switch_log *log, int cpu, uint64_t time_ns, uint64_t head)
{
	struct cpu_switches *c = of_cpu(log, cpu);
	size_t n = 0;

	if (!c)
		return -ENOMEM;
	c->written += (head - c->head) & (log->ring_size - 1);
	c->head = head;
	if (c->written - c->mark_written < log->ring_size)
		return 0;
	/* Keeps the latest switch before mark_ns: its thread ran at mark_ns. */
	while (n + 1 < c->list.n && c->list.v[n + 1].time_ns <= c->mark_ns)
		n++;
	memmove(c->list.v, c->list.v + n, (c->list.n - n) * sizeof(*c->list.v));
	c->list.n -= n;
	c->mark_written = c->written;
	c->mark_ns = time_ns;
	return 0;
}

bool switch_log__has(const struct switch_log *log, pid_t pid)
{
	VEC_EACH(&log->cpus, c)
		if (VEC_FIND(&c->list, sw, sw->pid == pid))
			return true;
	return false;
}

int switch_log__add_to(const struct switch_log *log, struct recording *rec)
{
	size_t *next = calloc(log->cpus.n + 1, sizeof(*next));
	int err = next ? 0 : -ENOMEM;

	while (!err) {
		const struct rec_switch *earliest = NULL;
		size_t from = 0;

		for (size_t i = 0; i < log->cpus.n; i++) {
			const struct cpu_switches *c = &log->cpus.v[i];

			if (next[i] >= c->list.n ||
			    (earliest && c->list.v[next[i]].time_ns >= earliest->time_ns))
				continue;
			earliest = &c->list.v[next[i]];
			from = i;
		}
		if (!earliest)
			break;
		next[from]++;
		err = recording__add_switch(rec, earliest);
	}
	free(next);
	return err;
}

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

/* At every record's end: TID, TIME, CPU, IDENTIFIER, as sideband_ring__open() and pt_source.c ask
 * for them. */
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
	VEC_FINI(&s->executed);
	VEC_FINI(&s->joined);
	VEC_FINI(&s->gone);
	VEC_FINI(&s->bytes);
	VEC_FINI(&s->waiting);
	switch_log__fini(&s->log);
}

static bool is_foreign(const struct sideband *s, uint32_t pid)
{
	return s->pids && !pid_set__has(s->pids, (pid_t)pid);
}

static int on_loss(struct sideband *s, const struct perf_event_header *header,
		   const struct record_id *id)
{
	struct rec_loss loss = {
		.time_ns = id->time_ns, .pid = (pid_t)id->pid, .tid = (pid_t)id->tid};

	if (header->type == PERF_RECORD_AUX)
		loss.aux_flags =
			((const struct aux_record *)(const void *)header)->flags &
			(PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_COLLISION);
	else
		loss.records = ((const struct lost_record *)(const void *)header)->lost;
	/* A ring that overflows for weeks is one loss. */
	for (size_t i = s->rec->losses.n; i-- > 0 && loss.records;) {
		struct rec_loss *known = &s->rec->losses.v[i];

		if (known->records && known->pid == loss.pid && known->tid == loss.tid) {
			known->records += loss.records;
			return 0;
		}
	}
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

	if (is_foreign(s, r->pid) || !(r->prot & PROT_EXEC))
		return 0;
	return recording__add_map(s->rec, &map);
}

static int on_comm(struct sideband *s, const struct comm_record *r, const struct record_id *id)
{
	struct rec_thread thread = {
		.pid = (pid_t)r->pid, .tid = (pid_t)r->tid, .start_ns = id->time_ns};
	const struct executed executed = {thread.pid, id->identifier, id->time_ns};

	if (is_foreign(s, r->pid))
		return 0;
	if (r->header.misc & PERF_RECORD_MISC_COMM_EXEC && s->pids && !s->of_cpus &&
	    VEC_ADD(&s->executed, executed))
		return -ENOMEM;
	snprintf(thread.comm, sizeof(thread.comm), "%s", r->comm);
	return recording__add_thread(s->rec, &thread);
}

static int on_task_begin(struct sideband *s, const struct task_record *r)
{
	struct rec_thread child = {.pid = (pid_t)r->pid, .tid = (pid_t)r->tid, .start_ns = r->time};
	bool is_process = r->pid != r->ppid;
	int err = 0;

	/* A forked process is followed only if children are. */
	if (s->pids && (is_foreign(s, r->ppid) || (is_process && !s->children)))
		return 0;
	if (s->pids && is_process)
		err = pid_set__add(s->pids, child.pid);
	if (!err && (!s->pids || is_process || s->of_cpus))
		err = recording__add_fork(s->rec, &child, (pid_t)r->ppid, (pid_t)r->ptid);
	if (!err && s->pids && (is_process || !s->of_cpus))
		err = VEC_ADD(&s->started, child);
	return err;
}

static int on_task_end(struct sideband *s, const struct task_record *r)
{
	const struct gone_task task = {(pid_t)r->pid, (pid_t)r->tid, r->time};
	int err;

	if (s->of_cpus && is_foreign(s, r->pid))
		return 0;
	err = VEC_ADD(&s->gone, task);
	/*
	 * This does not check the pid: is_alive() may have removed the process from pids before
	 * this record is read.
	 */
	return err || !s->pids || s->of_cpus ? err : VEC_ADD(&s->ended, task);
}

/*
 * For a cgroup: enters into the switch log what the record tells about who ran on its CPU, and when
 * that CPU was traced.
 */
static int on_cpu_record(struct sideband *s, const struct perf_event_header *header,
			 const struct record_id *id, bool of_pt)
{
	const struct aux_record *aux = (const void *)header;
	const struct rec_switch sw = {.time_ns = id->time_ns,
				      .cpu = (int)id->cpu,
				      .pid = (pid_t)id->pid,
				      .tid = (pid_t)id->tid};
	const struct rec_thread thread = {.pid = sw.pid, .tid = sw.tid, .start_ns = sw.time_ns};

	switch (header->type) {
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		if (header->misc & PERF_RECORD_MISC_SWITCH_OUT)
			return switch_log__note(&s->log, SWITCH_OFF, &sw);
		/* A thread without a record of its begin was moved into the cgroup. */
		if (!recording__find_thread(s->rec, sw.pid, sw.tid) && VEC_ADD(&s->joined, thread))
			return -ENOMEM;
		return switch_log__note(&s->log, SWITCH_ON, &sw);
	case PERF_RECORD_ITRACE_START:
		/*
		 * The record names the current thread, which during a switch between cgroups is
		 * still the old one (kernel/events/core.c: perf_cgroup_switch).
		 */
		return recording__find_thread(s->rec, sw.pid, sw.tid)
			       ? switch_log__note(&s->log, SWITCH_BEGAN, &sw)
			       : 0;
	case PERF_RECORD_AUX:
		return switch_log__traced(&s->log, sw.cpu, sw.time_ns, aux->aux_offset);
	case PERF_RECORD_LOST:
		return of_pt ? 0 : switch_log__note(&s->log, SWITCH_LOST, &sw);
	}
	return 0;
}

static int on_record(struct sideband *s, const uint8_t *record, size_t size, bool of_pt)
{
	const struct record_id *id = (const void *)(record + size - SAMPLE_ID_SIZE);
	const struct perf_event_header *header = (const void *)record;
	int err = 0;

	if (size < sizeof(*header) + SAMPLE_ID_SIZE)
		return 0;
	if (!s->pids)
		err = on_cpu_record(s, header, id, of_pt);
	if (err)
		return err;
	switch (header->type) {
	case PERF_RECORD_MMAP2:
		return on_mmap2(s, (const void *)record, id->time_ns);
	case PERF_RECORD_COMM:
		return on_comm(s, (const void *)record, id);
	case PERF_RECORD_FORK:
		return on_task_begin(s, (const void *)record);
	case PERF_RECORD_EXIT:
		return on_task_end(s, (const void *)record);
	case PERF_RECORD_LOST:
	case PERF_RECORD_AUX:
		return on_loss(s, header, id);
	}
	return 0;
}

static int keep_waiting(struct sideband *s, const uint8_t *record, size_t size)
{
	const struct record_id *id = (const void *)(record + size - SAMPLE_ID_SIZE);

	if (size < sizeof(struct perf_event_header) + SAMPLE_ID_SIZE)
		return 0;
	while (s->bytes.n + size > s->bytes.cap)
		if (vec__grow(&s->bytes.v, &s->bytes.cap, s->bytes.cap, 1))
			return -ENOMEM;
	if (VEC_ADD(&s->waiting, (struct waiting_record){id->time_ns, s->bytes.n}))
		return -ENOMEM;
	memcpy(s->bytes.v + s->bytes.n, record, size);
	s->bytes.n += size;
	return 0;
}

static int read_all(struct sideband *s, struct perf_ring *ring, bool waits)
{
	uint8_t record[RECORD_MAX] __attribute__((aligned(8)));
	int n, err = 0;

	while (!err && (n = perf_ring__next(ring, record, sizeof(record))) != 0)
		if (n > 0)
			err = waits ? keep_waiting(s, record, (size_t)n)
				    : on_record(s, record, (size_t)n, ring->aux != NULL);
	return err;
}

int sideband__drain(struct sideband *s, struct perf_ring *ring)
{
	return read_all(s, ring, false);
}

int sideband__collect(struct sideband *s, struct perf_ring *ring)
{
	if (!s->collect_ns)
		s->collect_ns = clock__now_ns();
	return read_all(s, ring, true);
}

/* Records of the same time keep the order in which they were collected. */
ORDER(by_time, struct waiting_record, COMPARE(x->time_ns, y->time_ns) ?: COMPARE(x->at, y->at))

int sideband__settle(struct sideband *s, bool last)
{
	uint64_t until_ns = last ? UINT64_MAX : s->collect_ns;
	size_t begin = s->bytes.n, n = 0, i = 0;
	int err = 0;

	s->collect_ns = 0;
	if (!s->waiting.n)
		return 0;
	VEC_SORT(&s->waiting, by_time);
	for (; i < s->waiting.n && !err && s->waiting.v[i].time_ns < until_ns; i++) {
		const uint8_t *record = s->bytes.v + s->waiting.v[i].at;

		err = on_record(s, record,
				((const struct perf_event_header *)(const void *)record)->size,
				false);
	}
	/* The other records are kept, with their bytes. */
	for (size_t k = i; k < s->waiting.n; k++)
		if (s->waiting.v[k].at < begin)
			begin = s->waiting.v[k].at;
	for (; i < s->waiting.n; i++, n++)
		s->waiting.v[n] = (struct waiting_record){s->waiting.v[i].time_ns,
							  s->waiting.v[i].at - begin};
	memmove(s->bytes.v, s->bytes.v + begin, s->bytes.n - begin);
	s->bytes.n -= begin;
	s->waiting.n = n;
	return err;
}

ORDER(by_tid, struct gone_task, COMPARE(x->tid, y->tid))

/* Finds the tid in `gone`, which is sorted by tid. */
static const struct gone_task *find_gone(const struct gone_task *gone, size_t n, pid_t tid)
{
	struct gone_task key = {.tid = tid};

	return n ? bsearch(&key, gone, n, sizeof(*gone), by_tid) : NULL;
}

static bool is_gone(const struct rec_thread *thread, const struct gone_task *gone, size_t n)
{
	const struct gone_task *task = find_gone(gone, n, thread->tid);

	/* A thread that began since then only has the same number. */
	return task && task->pid == thread->pid && thread->start_ns <= task->time_ns;
}

/* Drops as many as it keeps, so that the cost per task does not depend on the number of tasks. */
int sideband__tidy(struct sideband *s, bool (*holds)(const struct source *source, pid_t pid),
		   const struct source *source)
{
	size_t n = 0, n_processes = 0, old = s->gone.n - SIDEBAND_GONE_MAX, kept = 0;
	struct gone_task *gone, *processes;

	if (s->gone.n < 2 * SIDEBAND_GONE_MAX)
		return 0;
	gone = calloc(2 * old, sizeof(*gone));
	if (!gone)
		return -ENOMEM;
	processes = gone + old;
	for (size_t i = 0; i < s->gone.n; i++) {
		const struct gone_task *task = &s->gone.v[i];
		bool is_main = task->tid == task->pid;

		/*
		 * A process may outlive its main thread, or another process may have its number by
		 * now.
		 */
		if (i >= old || (holds && holds(source, task->pid)) ||
		    (is_main && process__alive(task->pid))) {
			s->gone.v[kept++] = *task;
			continue;
		}
		gone[n++] = *task;
		if (!is_main)
			continue;
		processes[n_processes++] = *task;
		if (s->of_cpus)
			pid_set__remove(s->pids, task->pid);
	}
	s->gone.n = kept;
	qsort(gone, n, sizeof(*gone), by_tid);
	qsort(processes, n_processes, sizeof(*processes), by_tid);
	VEC_DROP_EACH(&s->rec->maps, map, find_gone(processes, n_processes, map->pid),
		      free(map->path));
	VEC_DROP(&s->rec->threads, thread, is_gone(thread, gone, n));
	free(gone);
	return 0;
}

int sideband_ring__open(struct sideband_ring *r, const struct event_place *place,
			const struct sideband_ring_config *config)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
			       PERF_SAMPLE_IDENTIFIER, /* struct record_id */
		.sample_id_all = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.context_switch = config->switches,
		.use_clockid = config->monotonic,
		.clockid = config->monotonic ? CLOCK_MONOTONIC : 0,
		.watermark = 1,
		.wakeup_watermark = config->at_once ? 1 : (__u32)config->size / 4,
	};
	int err;

	*r = (struct sideband_ring){.event = event_place__open(place, &attr, -1)};
	if (r->event < 0)
		return r->event;
	err = perf_ring__map(&r->ring, r->event, config->size, 0, PERF_RING_NORMAL);
	if (err)
		sideband_ring__close(r);
	return err;
}

void sideband_ring__close(struct sideband_ring *r)
{
	perf_ring__unmap(&r->ring);
	if (r->event >= 0)
		close(r->event);
	r->event = -1;
}
