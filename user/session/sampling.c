// SPDX-License-Identifier: MIT
#include "session/session_internal.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/kernel.h"
#include "sampled/sample_stack.h"
#include "target/cgroup.h"
#include "target/socket_name.h"
#include "trigger/recorder.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/units.h"
#include "util/vec.h"

int open_file__add(struct recording *rec, pid_t pid, uint32_t syscall, uint64_t arg)
{
	char link[32], path[PATH_MAX], name[SOCKET_NAME_SIZE];

	if (!syscall__is_of_file((int)syscall) || arg > INT_MAX ||
	    recording__find_open_file(rec, pid, (int)arg))
		return 0;
	snprintf(link, sizeof(link), "fd/%d", (int)arg);
	if (fs__read_proc_link(pid, link, path))
		return 0;
	if (!strncmp(path, "socket:", strlen("socket:")) &&
	    !socket_name__find(pid, (int)arg, path, name))
		return recording__add_open_file(rec, pid, (int)arg, name);
	return recording__add_open_file(rec, pid, (int)arg, path);
}

static struct mt_sched sched_of(const struct mt_record *record, enum mt_sched_kind kind)
{
	return (struct mt_sched){
		.time_ns = record->time_ns, .tid = record->tid, .tgid = record->tgid, .kind = kind};
}

/* Adds the thread that woke the record's thread, or replaced it on its CPU. */
static int add_by(struct recording *rec, const struct mt_record *record, enum mt_sched_kind kind)
{
	struct mt_sched by = sched_of(record, kind);
	struct rec_thread thread = {.pid = (pid_t)record->by_tgid,
				    .tid = (pid_t)record->by_tid,
				    .start_ns = record->time_ns};
	int err;

	by.by_tid = record->by_tid;
	by.by_tgid = record->by_tgid;
	memcpy(by.by_comm, record->by_comm, sizeof(by.by_comm));
	err = recording__add_sched_by(rec, &by);
	if (err || !by.by_tid || recording__find_thread(rec, thread.pid, thread.tid))
		return err;
	snprintf(thread.comm, sizeof(thread.comm), "%.15s", record->by_comm);
	return recording__add_thread(rec, &thread);
}

static int add_syscall(struct recording *rec, const struct mt_record *record)
{
	bool is_long = record->kind == MT_RECORD_LONG;
	struct mt_sched call = sched_of(record, is_long ? MT_SCHED_LONG : MT_SCHED_SYSCALL);
	int err;

	if (record->syscall == MT_NO_SYSCALL)
		return 0;
	call.syscall = record->syscall;
	if (is_long) {
		call.took.arg = record->arg;
		call.took.end_ns = record->end_ns;
	} else {
		call.in.arg = record->arg;
		call.in.owner = record->owner;
	}
	err = recording__add_sched_by(rec, &call);
	return err ? err : open_file__add(rec, (pid_t)record->tgid, record->syscall, record->arg);
}

static int add_sched(struct recording *rec, const struct mt_record *record,
		     enum rec_sched_what what)
{
	struct rec_sched sched = {.time_ns = record->time_ns,
				  .pid = (pid_t)record->tgid,
				  .tid = (pid_t)record->tid,
				  .cpu = record->cpu,
				  .what = what};

	return VEC_ADD(&rec->scheds, sched);
}

/* Adds something that took time: from the record's time to its end. */
static int add_took(struct recording *rec, const struct mt_record *record, enum mt_sched_kind kind)
{
	struct mt_sched taken = sched_of(record, kind);

	taken.took.arg = record->arg;
	taken.took.end_ns = record->end_ns;
	return recording__add_sched_by(rec, &taken);
}

static int note_quota(struct recording *rec, pid_t pid, bool of_memory)
{
	struct cpu_quota quota;

	if (recording__find_quota(rec, pid, of_memory) ||
	    (of_memory ? memory_limit__find("/proc", pid, &quota)
		       : cpu_quota__find("/proc", pid, &quota)) ||
	    !quota.text[0])
		return 0;
	return recording__set_quota(rec, pid, of_memory, quota.text);
}

static int add_taken(struct recording *rec, const struct mt_record *record)
{
	struct rec_taken taken = {.pid = (pid_t)record->tgid,
				  .tid = (pid_t)record->tid,
				  .by_quota = record->kind == MT_RECORD_THROTTLED,
				  .until_ns = record->time_ns,
				  .ns = record->arg};
	int err = VEC_ADD(&rec->taken, taken);

	return err || !taken.by_quota ? err : note_quota(rec, taken.pid, false);
}

struct record_reader {
	struct recording *rec;
	const struct recorder *recorder;
};

/* Adds the stack of a switch, if the recorder has taken it. */
static int add_stack(const struct record_reader *reader, const struct mt_record *record)
{
	struct rec_sample sample = {.time_ns = record->time_ns,
				    .pid = (pid_t)record->tgid,
				    .tid = (pid_t)record->tid,
				    .cpu = record->cpu,
				    .at_switch = true,
				    .in_kernel = true};
	uint64_t chain[MT_STACK_IPS];
	struct rec_user user = {0};
	struct recorder_stack stack;
	int err;

	if (!recorder__find_stack(reader->recorder, record, &stack))
		return 0;
	/* Without frame pointers the chain contains arbitrary values. Drop kernel addresses, which
	 * perf.data uses as context marks. */
	for (uint32_t i = 0; i < stack.n_ips; i++)
		if (!address__is_kernel(stack.ips[i]))
			chain[sample.n_ips++] = stack.ips[i];
	err = recording__add_sample(reader->rec, &sample, chain);
	if (err || !stack.size)
		return err;
	_Static_assert(offsetof(struct rec_user, stack) == sizeof(((struct mt_stack *)0)->regs),
		       "the same registers in the same order");
	memcpy(&user, stack.regs, offsetof(struct rec_user, stack));
	user.stack = (uint8_t *)stack.copy;
	user.size = stack.size;
	return recording__add_sample_user(reader->rec, &user);
}

static int take(void *ctx, const struct mt_record *record)
{
	const struct record_reader *reader = ctx;
	struct recording *rec = reader->rec;
	int err;

	if (record->time_ns > rec->frozen_ns)
		return 0;
	err = add_stack(reader, record);
	if (err)
		return err;
	switch (record->kind) {
	case MT_RECORD_IN:
		return add_sched(rec, record, REC_SCHED_IN);
	case MT_RECORD_BLOCKED:
		err = add_syscall(rec, record);
		return err ? err : add_sched(rec, record, REC_SCHED_BLOCKED);
	case MT_RECORD_PREEMPTED:
		err = add_by(rec, record, MT_SCHED_REPLACED);
		return err ? err : add_sched(rec, record, REC_SCHED_PREEMPTED);
	case MT_RECORD_WOKEN:
		return add_by(rec, record, MT_SCHED_WOKEN);
	case MT_RECORD_REPLACED:
		return add_by(rec, record, MT_SCHED_REPLACED);
	case MT_RECORD_LONG:
		return add_syscall(rec, record);
	case MT_RECORD_INTERRUPTS:
		return add_took(rec, record, MT_SCHED_INTERRUPTS);
	case MT_RECORD_RECLAIM:
		err = add_took(rec, record, MT_SCHED_RECLAIM);
		return err || record->arg != MT_RECLAIM_CGROUP
			       ? err
			       : note_quota(rec, (pid_t)record->tgid, true);
	case MT_RECORD_THROTTLED:
	case MT_RECORD_STOLEN:
		return add_taken(rec, record);
	}
	return 0;
}

int sampling__settle_calls(struct recording *rec)
{
	struct images *images = images__new(rec);
	int err = images ? settle_calls(rec, images) : -ENOMEM;

	images__free(images);
	return err;
}

ORDER(by_thread, struct rec_sched, COMPARE(x->tid, y->tid) ?: COMPARE(x->time_ns, y->time_ns))

/*
 * Maximum time from a switch to perf's sample of its stack, and to a timed sample that was due
 * then.
 */
#define STACK_LATE_NS 1000000
#define CLOCK_LATE_NS 20000

/*
 * Moves perf's stack of a switch to the time of the recorder's record of that switch: a later time
 * would mean that the thread runs again.
 */
static void settle_stacks(struct recording *rec, size_t first_sample, size_t first_sched)
{
	size_t n = rec->scheds.n - first_sched;
	struct rec_sched *scheds;

	if (!n)
		return;
	scheds = &rec->scheds.v[first_sched];
	qsort(scheds, n, sizeof(*scheds), by_thread);
	for (size_t i = first_sample; i < rec->samples.n; i++) {
		struct rec_sample *s = &rec->samples.v[i];
		const struct rec_sched key = {.time_ns = s->time_ns, .tid = s->tid};
		size_t at = PARTITION_POINT(scheds, n, sched, by_thread(sched, &key) <= 0);
		const struct rec_sched *left = at ? &scheds[at - 1] : NULL;

		if ((s->at_switch || s->in_kernel) && left && left->tid == s->tid &&
		    left->what != REC_SCHED_IN &&
		    s->time_ns - left->time_ns < (s->at_switch ? STACK_LATE_NS : CLOCK_LATE_NS)) {
			s->time_ns = left->time_ns;
			s->at_switch = true;
		}
	}
}

#define DROP_BEFORE(vec, first, member, since_ns)                                                  \
	do {                                                                                       \
		size_t kept_ = (first);                                                            \
                                                                                                   \
		for (size_t i_ = (first); i_ < (vec)->n; i_++)                                     \
			if ((vec)->v[i_].member >= (since_ns))                                     \
				(vec)->v[kept_++] = (vec)->v[i_];                                  \
		(vec)->n = kept_;                                                                  \
	} while (0)

/*
 * Records older than the oldest that all CPUs still have are dropped: otherwise a thread that moved
 * between CPUs would have gaps that cannot be seen.
 */
int sampling__take_records(struct recorder *recorder, struct recording *rec, size_t first_sample)
{
	size_t first_sched = rec->scheds.n, first_by = rec->sched_bys.n;
	size_t first_taken = rec->taken.n;
	struct recorder_abilities counts;
	struct steal_facts facts;
	uint64_t since_ns;
	struct record_reader reader = {rec, recorder};
	int err = recorder ? recorder__take(recorder, &since_ns, take, &reader) : 0;

	if (err || !recorder)
		return err;
	counts = recorder__abilities(recorder);
	rec->knows_interrupts = counts.interrupts;
	rec->knows_taken = counts.throttled;
	facts = steal__facts();
	/* The kernel must count stolen time, and the hypervisor must report it. */
	rec->steal = (!facts.is_guest || counts.stolen) && steal__is_told(&facts)
			     ? REC_STEAL_TOLD
			     : REC_STEAL_NOT_TOLD;
	if (since_ns > rec->complete_ns) {
		rec->complete_ns = since_ns;
		if (recorder__ring_size(recorder) > rec->ring_bytes)
			rec->ring_bytes = recorder__ring_size(recorder);
	}
	DROP_BEFORE(&rec->samples, first_sample, time_ns, rec->complete_ns);
	DROP_BEFORE(&rec->scheds, first_sched, time_ns, rec->complete_ns);
	DROP_BEFORE(&rec->sched_bys, first_by, time_ns, rec->complete_ns);
	DROP_BEFORE(&rec->taken, first_taken, until_ns, rec->complete_ns);
	settle_stacks(rec, first_sample, first_sched);
	return 0;
}
