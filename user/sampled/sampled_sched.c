// SPDX-License-Identifier: MIT
/* What the scheduler did with a thread, what for, and whose doing it was. */
#include "sampled/sampled_internal.h"

#include <stdio.h>

#include "kernel/kernel.h"
#include "util/names.h"

/* Two clocks' readings of one moment are at most so far apart. */
#define SAME_MOMENT_NS 100000

/* How long of the time since then its cgroup had no time left; 0: it had. */
static uint64_t throttled_ns(const struct sampled_thread *t, uint64_t since_ns, uint64_t now_ns)
{
	const struct recording *rec = t->rec;
	size_t i = VEC_PARTITION_POINT(&rec->taken, e, e->until_ns <= since_ns);

	for (; i < rec->taken.n && rec->taken.v[i].until_ns <= now_ns + SAME_MOMENT_NS; i++)
		if (rec->taken.v[i].by_quota && rec->taken.v[i].tid == t->tid)
			return rec->taken.v[i].ns;
	return 0;
}

void sampled_thread__take_throttled(struct sampled_thread *t, uint64_t now_ns)
{
	uint64_t since_ns = slices__waits_since(&t->slices);
	uint64_t ns = since_ns ? throttled_ns(t, since_ns, now_ns) : 0;

	if (ns)
		slices__throttled(&t->slices, now_ns, ns,
				  recording__find_quota(t->rec, t->pid, false));
}

void sampled_thread__on_taken(struct sampled_thread *t, const struct rec_taken *taken)
{
	slices__stolen(&t->slices, taken->until_ns - taken->ns, taken->until_ns);
}

static void note_move(struct sampled_thread *t, const struct rec_sched *sched)
{
	bool has_moved = t->cpu >= 0 && sched->cpu >= 0 && t->cpu != sched->cpu;
	struct fault_mark *mark = has_moved ? VEC_PUSH(&t->tree.faults) : NULL;

	t->cpu = sched->cpu;
	if (mark)
		*mark = (struct fault_mark){.time_ns = sched->time_ns, .n = 1, .is_move = true};
	else if (has_moved)
		t->slices.failed = true;
}

void sampled_thread__on_sched(struct sampled_thread *t, const struct rec_sched *sched)
{
	note_move(t, sched);
	/* One that leaves a CPU has had it, whether or not that was seen. */
	sampled_thread__take_throttled(t, sched->time_ns);
	switch (sched->what) {
	case REC_SCHED_IN:
		slices__on(&t->slices, sched->time_ns);
		break;
	case REC_SCHED_BLOCKED:
		slices__off(&t->slices, sched->time_ns, OFF_BLOCKED);
		break;
	case REC_SCHED_PREEMPTED:
		slices__off(&t->slices, sched->time_ns, OFF_PREEMPTED);
		break;
	}
}

static struct waits_for syscall_of(const struct sampled_thread *t, const struct mt_sched *sched,
				   uint64_t arg)
{
	struct waits_for wait = {.syscall = (int)sched->syscall, .fd = -1};

	if (syscall__is_of_file(wait.syscall) && arg <= INT32_MAX) {
		wait.fd = (int)arg;
		wait.file = recording__find_open_file(t->rec, t->pid, wait.fd);
	}
	return wait;
}

static void on_long_call(struct sampled_thread *t, const struct mt_sched *sched)
{
	struct entered call = {.start_ns = sched->time_ns,
			       .end_ns = sched->took.end_ns,
			       .end = END_KNOWN,
			       .kind = CALL_SYSCALL,
			       .what = syscall_of(t, sched, sched->took.arg)};

	/* Only a damaged file has a call that ends before it begins. */
	if (call.end_ns >= call.start_ns)
		slices__enter(&t->slices, &call);
}

/* Reclaim happens within a system call or a page fault. Its edges are exact. */
static void on_reclaim(struct sampled_thread *t, const struct mt_sched *sched)
{
	static const char *const texts[] = {
		[MT_RECLAIM_CGROUP] = "the limit of a cgroup",
		[MT_RECLAIM_MACHINE] = "the machine is short of memory",
		[MT_RECLAIM_COMPACTION] = "compaction for larger pages",
	};
	const char *limit = sched->took.arg == MT_RECLAIM_CGROUP
				    ? recording__find_quota(t->rec, t->pid, true)
				    : NULL;
	struct entered call = {.start_ns = sched->time_ns,
			       .end_ns = sched->took.end_ns,
			       .end = END_KNOWN,
			       .kind = CALL_SYSCALL,
			       .reason = SYSCALL_RECLAIM,
			       .what = {.fd = -1, .text = limit}};

	if (!limit && sched->took.arg < sizeof(texts) / sizeof(texts[0]))
		call.what.text = texts[sched->took.arg];
	/* As in on_long_call(). */
	if (call.what.text && call.end_ns >= call.start_ns)
		slices__enter(&t->slices, &call);
}

static void on_syscall(struct sampled_thread *t, const struct mt_sched *sched)
{
	struct waits_for wait = syscall_of(t, sched, sched->in.arg);
	const struct rec_thread *owner =
		sched->in.owner ? recording__find_thread(t->rec, t->pid, (pid_t)sched->in.owner)
				: NULL;

	if (owner && owner->tid != t->tid) {
		wait.owner = owner->tid;
		snprintf(wait.owner_comm, sizeof(wait.owner_comm), "%s", owner->comm);
	}
	slices__waits(&t->slices, &wait);
}

static void on_interrupts(struct sampled_thread *t, const struct mt_sched *sched)
{
	const struct interrupts_mark mark = {
		.start_ns = sched->time_ns, .end_ns = sched->took.end_ns, .ns = sched->took.arg};

	if (call_tree__add_interrupts(&t->tree, &mark))
		t->slices.failed = true;
}

void sampled_thread__on_by(struct sampled_thread *t, const struct mt_sched *sched)
{
	struct done_by by = {.pid = (pid_t)sched->by_tgid, .tid = (pid_t)sched->by_tid};

	if (sched->kind == MT_SCHED_SYSCALL)
		on_syscall(t, sched);
	if (sched->kind == MT_SCHED_LONG)
		on_long_call(t, sched);
	if (sched->kind == MT_SCHED_RECLAIM)
		on_reclaim(t, sched);
	if (sched->kind == MT_SCHED_INTERRUPTS)
		on_interrupts(t, sched);
	snprintf(by.comm, sizeof(by.comm), "%.15s", sched->by_comm);
	label__clean_in_place(by.comm);
	if (sched->kind == MT_SCHED_REPLACED)
		slices__replaced(&t->slices, sched->time_ns, &by);
	else if (sched->kind == MT_SCHED_WOKEN)
		slices__woken(&t->slices, sched->time_ns, &by);
}
