// SPDX-License-Identifier: (GPL-2.0-only OR MIT)
/*
 * What takes time from threads that could run, by the kernel's own books: a cgroup's quota (CFS
 * bandwidth), and the hypervisor (steal). Of all processes, since it is rare: user space picks the
 * target's. An object of its own, since it needs the kernel's BTF, and a scheduler with groups.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "logs.bpf.h"
#include "mtbpf_shared.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The members that are read here; where they are libbpf finds out from the kernel's BTF. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct rq {
	u64 prev_steal_time_rq; /* with CONFIG_PARAVIRT_TIME_ACCOUNTING */
};

struct cfs_rq {
	struct rq *rq;
	int throttle_count;	       /* so many of the groups above it have no time left */
	u64 throttled_clock_self_time; /* since Linux 6.6: how long that has been, in all */
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

struct task_struct {
	unsigned int __state;
	int pid;
	int tgid;
	struct sched_entity se;
};
#pragma clang attribute pop

/* How many have been written. */
__u64 n_written;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MT_PRESSURE_LOG);
	__type(key, u32);
	__type(value, struct mt_pressure);
} pressure_log SEC(".maps");

static __always_inline void note(struct task_struct *task, u32 kind, u64 ns, u64 now)
{
	u32 key = __sync_fetch_and_add(&n_written, 1) % MT_PRESSURE_LOG;
	struct mt_pressure *entry = bpf_map_lookup_elem(&pressure_log, &key);

	if (!entry)
		return;
	begin_write(&entry->time_ns);
	entry->ns = ns;
	entry->tid = task->pid;
	entry->tgid = task->tgid;
	entry->kind = kind;
	end_write(&entry->time_ns, now);
}

/* A thread that is ready to run, but whose groups have no time left. */
struct waiting {
	u64 since_ns;
	u64 cfs_rq, self_time; /* as they were then */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct waiting);
} waiting SEC(".maps");

/* While there are none, nobody is looked for. One that dies as it waits is counted on. */
volatile __u64 n_waiting;

static __always_inline u64 self_time(struct cfs_rq *cfs_rq)
{
	return bpf_core_field_exists(cfs_rq->throttled_clock_self_time)
		       ? cfs_rq->throttled_clock_self_time
		       : 0;
}

static __always_inline void begin_wait(struct task_struct *task)
{
	struct cfs_rq *cfs_rq = task->se.cfs_rq;
	struct waiting begin = {.cfs_rq = (u64)cfs_rq};
	u32 tid = task->pid;

	if (!cfs_rq->throttle_count)
		return;
	begin.since_ns = bpf_ktime_get_ns();
	begin.self_time = self_time(cfs_rq);
	if (!bpf_map_update_elem(&waiting, &tid, &begin, BPF_NOEXIST))
		__sync_fetch_and_add(&n_waiting, 1);
}

/*
 * It runs again. What lies between the end of the throttling and now is not the quota's doing: the
 * kernel has counted how long that was, on the run queue that the thread was on.
 */
static __always_inline void end_wait(struct task_struct *task)
{
	u32 tid = task->pid;
	struct waiting *begin = bpf_map_lookup_elem(&waiting, &tid);
	struct cfs_rq *cfs_rq = task->se.cfs_rq;
	u64 now, ns, booked;

	if (!begin)
		return;
	now = bpf_ktime_get_ns();
	ns = now - begin->since_ns;
	booked = (u64)cfs_rq == begin->cfs_rq ? self_time(cfs_rq) - begin->self_time : 0;
	if (booked && booked < ns)
		ns = booked;
	note(task, MT_PRESSURE_THROTTLED, ns, now);
	bpf_map_delete_elem(&waiting, &tid);
	__sync_fetch_and_sub(&n_waiting, 1);
}

/* Of each CPU, when its thread was switched last. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} stolen_before SEC(".maps");

/* Whether the kernel has a clock of it. */
volatile __u32 counts_stolen;

/* What is less is not worth a line. */
#define STOLEN_LEAST_NS 500000

/* Since it was put on the CPU. */
static __always_inline void note_stolen(struct task_struct *task)
{
	struct rq *rq = task->se.cfs_rq->rq;
	u64 *before, stolen;
	u32 key = 0;

	if (!bpf_core_field_exists(rq->prev_steal_time_rq))
		return;
	counts_stolen = 1;
	stolen = rq->prev_steal_time_rq;
	before = bpf_map_lookup_elem(&stolen_before, &key);
	if (!before || *before == stolen)
		return;
	if (*before && stolen - *before >= STOLEN_LEAST_NS && task->pid)
		note(task, MT_PRESSURE_STOLEN, stolen - *before, bpf_ktime_get_ns());
	*before = stolen;
}

/* (bool preempt, struct task_struct *prev, struct task_struct *next, ...) */
SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];

	note_stolen(prev);
	if (!prev->__state && prev->pid)
		begin_wait(prev);
	if (n_waiting)
		end_wait(next);
	return 0;
}

/* (struct task_struct *p): it is on the run queue soon, and may have to wait there. */
SEC("tp_btf/sched_waking")
int on_waking(u64 *ctx)
{
	begin_wait((void *)ctx[0]);
	return 0;
}
