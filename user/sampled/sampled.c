// SPDX-License-Identifier: MIT
#include "sampled/sampled.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/branch.h"
#include "decode/images.h"
#include "kernel/kernel.h"
#include "sampled/events.h"
#include "sampled/goroutines.h"
#include "sampled/sample_stack.h"
#include "sampled/slices.h"
#include "stack/stack.h"
#include "target/code_map.h"
#include "util/names.h"
#include "util/meter.h"

struct known_probe {
	uint64_t ip;
	bool is_of_calls; /* each call is recorded from start to end */
	uint64_t end_ns;  /* of the latest call; 0: not known */
	/* Cached: valid for the mappings up to next_map. */
	const struct function *function;
	uint64_t entry; /* the function's first instruction */
	size_t next_map;
};

/* The state while one thread's events become its tree. */
struct sampled_thread {
	const struct recording *rec;
	struct images *images;
	struct sampled_totals *totals; /* counts samples and copies */
	struct code_map *map;
	size_t next_map; /* see images__apply() */
	pid_t pid, tid;
	int cpu;	    /* its last CPU according to switches; -1: not known */
	size_t next_hit;    /* index of the hit that ends the current snapshot */
	struct span region; /* the current region; dropped at a new snapshot if it is over */
	const struct function *probed; /* the trigger's function; NULL: none, or not known */
	uint64_t returns_to;	       /* its usual return address; 0: not known */
	uint64_t trampoline;	       /* of return probes; 0: none */
	struct slices slices;
	struct call_tree tree;
	VEC(struct seen) stack;
	bool is_at_hit;			/* `stack` was read at a hit */
	bool is_doubtful;		/* `stack` may lack the innermost function's caller */
	VEC(struct known_probe) probes; /* one per probed address */
	probed_calls calls;		/* buffer of find_calls() */
};

static const struct function *function_at(struct sampled_thread *t, uint64_t ip)
{
	struct code_place place;

	return ip && code_map__find(t->map, ip, &place) ? place.function : NULL;
}

/* True for code that the kernel has put into the process for its probes. */
static bool is_of_probes(struct sampled_thread *t, uint64_t ip)
{
	struct code_place place;

	return code_map__find(t->map, ip, &place) && !strcmp(place.function->module, "[uprobes]");
}

/* True for the address that a return probe puts in place of the caller's: the start of the
 * kernel's page. */
static bool is_trampoline(struct sampled_thread *t, uint64_t ip)
{
	return !(ip % 4096) && is_of_probes(t, ip);
}

static enum exact_end end_of(const struct mt_entry *entry)
{
	if (entry->end_ns)
		return entry->kind == MT_ENTRY_LEFT ? END_AT_MOST : END_KNOWN;
	return entry->kind == MT_ENTRY_CALL ? END_OPEN : END_UNKNOWN;
}

/*
 * The hit shows the return address of the trigger's function. The first call may be logged before
 * the mapping of the trampoline is.
 */
static uint64_t return_of(struct sampled_thread *t, const struct mt_entry *entry,
			  const struct function *function)
{
	if (entry->returns_to && entry->returns_to != t->trampoline)
		return entry->returns_to;
	return function == t->probed ? t->returns_to : 0;
}

static struct known_probe *find_probe(struct sampled_thread *t, uint64_t ip)
{
	for (size_t i = 0; i < t->probes.n; i++)
		if (t->probes.v[i].ip == ip)
			return &t->probes.v[i];
	return NULL;
}

static int note_probes(struct sampled_thread *t, const struct event *events, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct mt_entry *entry;
		struct known_probe *probe;

		if (events[i].kind != EVENT_ENTRY)
			continue;
		entry = &t->rec->entries.v[events[i].index];
		probe = find_probe(t, entry->ip);
		if (!probe) {
			probe = VEC_PUSH(&t->probes);
			if (!probe)
				return -ENOMEM;
			*probe = (struct known_probe){.ip = entry->ip, .next_map = SIZE_MAX};
		}
		probe->is_of_calls |=
			entry->kind != MT_ENTRY_HIT && entry->kind != MT_ENTRY_SYSCALL;
	}
	return 0;
}

static const struct function *function_of(struct sampled_thread *t, struct known_probe *probe)
{
	struct code_place place;

	if (probe->next_map == t->next_map)
		return probe->function;
	probe->next_map = t->next_map;
	probe->function = NULL;
	if (code_map__find(t->map, probe->ip, &place)) {
		probe->function = place.function;
		probe->entry = place.entry;
	}
	return probe->function;
}

static bool has_calls(struct sampled_thread *t, const struct function *function)
{
	for (size_t i = 0; i < t->probes.n; i++)
		if (t->probes.v[i].is_of_calls && function_of(t, &t->probes.v[i]) == function)
			return true;
	return false;
}

/* A probe further than this from the function's first instruction is not at its entry. */
#define ENTRY_BYTES 64
/* A probe takes some microseconds, but its thread may lose its CPU meanwhile. */
#define AT_END_NS 1000000

/* The number of frames of t->stack that are the function's. */
static size_t count_frames(const struct sampled_thread *t, const struct function *function)
{
	size_t n = 0;

	for (size_t i = 0; i < t->stack.n; i++)
		n += t->stack.v[i].function == function;
	return n;
}

/*
 * True if the call has not begun: the probe at its entry is being handled. The thread is then at
 * the probe or one byte (the int3) after it. If the probe is not on the first instruction, the
 * function's return probe may run before it. If the function has two probes, one of them may have
 * recorded the call already: each frame has a call then.
 */
static bool is_before(struct sampled_thread *t, struct known_probe *probe, const struct seen *seen,
		      uint64_t time_ns)
{
	return seen->ip <= probe->ip + 1 && function_of(t, probe) == seen->function &&
	       probe->ip - probe->entry < ENTRY_BYTES &&
	       slices__count_calls(&t->slices, seen->function, time_ns) <
		       count_frames(t, seen->function);
}

/* True if a call of the function ended just now: its return probe is being handled. */
static bool is_behind(struct sampled_thread *t, struct known_probe *probe,
		      const struct function *function, uint64_t time_ns)
{
	return probe->end_ns && probe->end_ns <= time_ns && time_ns - probe->end_ns < AT_END_NS &&
	       function_of(t, probe) == function &&
	       !slices__has_call(&t->slices, function, time_ns);
}

static bool is_at_probe(struct sampled_thread *t, const struct seen *seen, uint64_t time_ns)
{
	for (size_t i = 0; i < t->probes.n && seen->function; i++)
		if (is_before(t, &t->probes.v[i], seen, time_ns) ||
		    is_behind(t, &t->probes.v[i], seen->function, time_ns))
			return true;
	return false;
}

/*
 * Drops the innermost user frame of t->stack if its call has not begun or is over: the probe at its
 * entry or return is being handled.
 */
static void drop_at_probe(struct sampled_thread *t, uint64_t time_ns)
{
	size_t n = seen__user(t->stack.v, t->stack.n);

	if (!n || !is_at_probe(t, &t->stack.v[n - 1], time_ns))
		return;
	memmove(&t->stack.v[n - 1], &t->stack.v[n], (t->stack.n - n) * sizeof(*t->stack.v));
	t->stack.n--;
}

static void on_entry(struct sampled_thread *t, const struct mt_entry *entry, uint64_t start_ns)
{
	struct entered call = {.function = function_at(t, entry->ip),
			       .start_ns = start_ns,
			       .end_ns = entry->end_ns,
			       .end = end_of(entry),
			       .kind = CALL_FUNCTION,
			       .is_innermost = entry->kind == MT_ENTRY_SYSCALL};
	struct known_probe *probe = find_probe(t, entry->ip);

	/* Damaged files may contain calls that return before they begin. */
	if (call.end_ns < call.start_ns && (call.end == END_KNOWN || call.end == END_AT_MOST))
		call.end = END_UNKNOWN;
	/* If whole calls are recorded, a hit adds nothing. */
	if (!call.function || (entry->kind == MT_ENTRY_HIT && probe->is_of_calls))
		return;
	probe->end_ns = call.end == END_KNOWN ? call.end_ns : 0;
	if (!call.is_innermost)
		call.returns_to = return_of(t, entry, call.function);
	call.is_usual = call.returns_to != entry->returns_to;
	call.caller = function_at(t, call.returns_to ? call.returns_to - 1 : 0);
	slices__enter(&t->slices, &call);
}

/* Largest difference between readings of two clocks at the same moment. */
#define SAME_MOMENT_NS 100000

/* The time since since_ns during which the quota of the thread's cgroup throttled it. */
static uint64_t throttled_ns(const struct sampled_thread *t, uint64_t since_ns, uint64_t now_ns)
{
	const struct recording *rec = t->rec;
	size_t i = VEC_PARTITION_POINT(&rec->taken, e, e->until_ns <= since_ns);

	for (; i < rec->taken.n && rec->taken.v[i].until_ns <= now_ns + SAME_MOMENT_NS; i++)
		if (rec->taken.v[i].by_quota && rec->taken.v[i].tid == t->tid)
			return rec->taken.v[i].ns;
	return 0;
}

static void take_throttled(struct sampled_thread *t, uint64_t now_ns)
{
	uint64_t since_ns = slices__waits_since(&t->slices);
	uint64_t ns = since_ns ? throttled_ns(t, since_ns, now_ns) : 0;

	if (ns)
		slices__throttled(&t->slices, now_ns, ns,
				  recording__find_quota(t->rec, t->pid, false));
}

static void on_taken(struct sampled_thread *t, const struct rec_taken *taken)
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

static void on_sched(struct sampled_thread *t, const struct rec_sched *sched)
{
	note_move(t, sched);
	/* A thread that is switched out was running, even if its start was not recorded. */
	take_throttled(t, sched->time_ns);
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

	/* Damaged files may contain calls that end before they begin. */
	if (call.end_ns >= call.start_ns)
		slices__enter(&t->slices, &call);
}

/* Memory reclaim happens within a system call or a page fault; its times are exact. */
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

static void on_by(struct sampled_thread *t, const struct mt_sched *sched)
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

/* A return address may be the next function's first byte: the call is in the byte before. */
static struct seen look_up(struct sampled_thread *t, uint64_t ip, bool is_return)
{
	struct seen seen = {.ip = ip, .kind = CALL_FUNCTION};
	struct code_place place;

	if (code_map__find(t->map, ip - is_return, &place))
		seen.function = place.function;
	return seen;
}

static int add_seen(struct sampled_thread *t, const struct seen *seen)
{
	return VEC_ADD(&t->stack, *seen);
}

/* Without the kernel's symbols its addresses cannot be named. */
static bool has_kernel_stack(const struct sampled_thread *t, const struct rec_sample *sample)
{
	return sample->n_kernel && images__has_kernel(t->images);
}

/*
 * Adds kernel frames after the user frames. Without a kernel stack it adds one frame without a
 * function; at a switch none, since all switches happen in the kernel.
 */
static int add_kernel(struct sampled_thread *t, const struct rec_sample *sample, uint64_t return_ip)
{
	bool is_known = has_kernel_stack(t, sample);
	int err = 0;

	if (is_known || (sample->in_kernel && !sample->at_switch))
		err = add_seen(t, &(struct seen){.kind = CALL_IN_KERNEL});
	for (uint32_t i = is_known ? sample->n_kernel : 0; i-- > 0 && !err;) {
		uint64_t ip = t->rec->sample_ips.v[sample->first_kernel + i];
		struct seen seen = look_up(t, ip, i != 0);

		seen.kind = CALL_IN_KERNEL;
		seen.return_ip = return_ip;
		return_ip = ip;
		if (seen.function)
			err = add_seen(t, &seen);
	}
	return err;
}

/* At a function's first instruction BPF adds the caller to the hit's chain. */
static bool is_complete_hit(struct sampled_thread *t, uint64_t ip)
{
	struct code_place at;

	return t->is_at_hit && code_map__find(t->map, ip, &at) && at.entry == ip;
}

/* In a recording with copies of stacks a timed sample without one has its stack from the CPU. */
static bool may_be_by_cpu(const struct sampled_thread *t, const struct rec_sample *sample)
{
	return t->rec->sample_users.n && !sample->at_switch;
}

/*
 * Adds the caller of an innermost function without a frame (most of libc, and any function at its
 * first instructions and at its return), which frame pointers miss. That caller is the function
 * called by the instruction before the first return address, or unknown if the call is indirect. A
 * stack from the CPU (LBR) misses no caller: the called function is the innermost one itself, and
 * nothing is added.
 */
static int add_missed(struct sampled_thread *t, const struct rec_sample *sample, uint64_t ip,
		      uint64_t *return_ip)
{
	struct seen seen = {.return_ip = *return_ip, .kind = CALL_FUNCTION};
	struct code_place caller;

	if (!*return_ip || is_complete_hit(t, ip) ||
	    !unwind__misses_caller(t->map, ip, *return_ip, &caller))
		return 0;
	if (!caller.function && may_be_by_cpu(t, sample))
		return 0;
	/* The kernel adds the caller while it handles the probe, and not before or after that. */
	if (!caller.function && find_probe(t, ip)) {
		t->is_doubtful = true;
		return 0;
	}
	/* Its calls are exact, and none is running: it ended by a tail call. */
	if (caller.function && has_calls(t, caller.function) &&
	    !slices__has_call(&t->slices, caller.function, sample->time_ns))
		return 0;
	seen.function = caller.function;
	seen.ip = caller.entry;
	*return_ip = 0;
	return add_seen(t, &seen);
}

/* False for perf's recordings: it is not known how perf found their stacks. */
static bool is_own(const struct recording *rec)
{
	return rec->source && !strcmp(rec->source, "sample");
}

/*
 * While a return probe is handled the thread is at the return address already (kernel/events/
 * uprobes.c: uprobe_handle_trampoline), which the kernel then also puts in place of the next
 * trampoline's address in the chain. In recursions the same address may be right.
 */
static bool repeats_return(const struct rec_sample *sample, const uint64_t *ips, size_t n)
{
	for (size_t i = 1; i < n && sample->in_kernel; i++)
		if (ips[i] == ips[0])
			return true;
	return false;
}

/* Fills t->stack, outermost frame first, without the trampolines of return probes. */
static int add_stack(struct sampled_thread *t, const struct rec_sample *sample, const uint64_t *ips,
		     size_t n, bool is_cut)
{
	bool by_frame_pointers =
		!sample->user && n > 1 && is_own(t->rec) && !is_trampoline(t, ips[1]);
	uint64_t return_ip = 0;
	int err;

	t->stack.n = 0;
	t->is_doubtful = n && (is_of_probes(t, ips[0]) || repeats_return(sample, ips, n));
	err = is_cut ? add_seen(t, &SEEN_NO_CALLERS) : 0;
	for (size_t i = n; i-- > 0 && !err;) {
		struct seen seen = look_up(t, ips[i], i != 0);

		if (is_trampoline(t, ips[i]))
			continue;
		if (!i && by_frame_pointers)
			err = add_missed(t, sample, ips[i], &return_ip);
		seen.return_ip = return_ip;
		return_ip = ips[i];
		if (!err)
			err = add_seen(t, &seen);
	}
	return err ? err : add_kernel(t, sample, return_ip);
}

/*
 * False if frame pointers show no callers. Either the innermost function uses %rbp for something
 * else, and the first address follows no call; or the process needs copies of stacks, and this
 * one's copy could not be made.
 */
static bool leads_to_callers(struct sampled_thread *t, const struct rec_sample *sample,
			     const uint64_t *ips, size_t n)
{
	if (!n || !is_own(t->rec))
		return true;
	if (sample->at_switch && t->rec->sample_users.n)
		return !unwind__has_rules(t->map, ips[0]);
	return !unwind__reuses_frame_pointer(t->map, ips[0]) ||
	       (n > 1 && (is_trampoline(t, ips[1]) || unwind__is_behind_call(t->map, ips[1])));
}

static int add_chain(struct sampled_thread *t, const struct rec_sample *sample)
{
	const uint64_t *ips = sample->n_ips ? &t->rec->sample_ips.v[sample->first_ip] : NULL;

	return leads_to_callers(t, sample, ips, sample->n_ips)
		       ? add_stack(t, sample, ips, sample->n_ips, false)
		       : add_stack(t, sample, ips, 1, true);
}

/* The calls whose return addresses return probes have replaced: t->calls. */
static void find_calls(struct sampled_thread *t, uint64_t time_ns)
{
	struct probed_call usual = {.function = t->probed, .returns_to = t->returns_to};

	t->calls.n = 0;
	slices__running(&t->slices, time_ns, &t->calls);
	if (VEC_ADD(&t->calls, usual))
		t->slices.failed = true;
}

/* Unwinds the copy of the stack if there is one; otherwise uses the frame pointers' addresses. */
static int take_stack(struct sampled_thread *t, const struct rec_sample *sample)
{
	struct unwound unwound;
	size_t size;
	int err;

	if (!sample->user)
		return add_chain(t, sample);
	size = t->rec->sample_users.v[sample->user - 1].size;
	find_calls(t, sample->time_ns);
	err = sample_stack__unwind(t->rec, sample, t->map, &t->calls, &unwound);
	if (!err)
		err = add_stack(t, sample, unwound.ips.v, unwound.ips.n, !unwound.is_whole);
	t->totals->copies++;
	t->totals->cut_copies += unwound.is_cut && !unwound.is_whole;
	if (size > t->totals->copy_size)
		t->totals->copy_size = size;
	unwound__fini(&unwound);
	return err;
}

/* Adds the sample's page faults to the innermost function. */
static int add_faults(struct sampled_thread *t, const struct rec_sample *sample)
{
	struct fault_mark *mark = sample->faults ? VEC_PUSH(&t->tree.faults) : NULL;

	if (!mark)
		return sample->faults ? -ENOMEM : 0;
	*mark = (struct fault_mark){
		.time_ns = sample->time_ns, .n = sample->faults, .is_major = sample->is_major};
	for (size_t i = t->stack.n; i-- > 0 && !mark->function;)
		mark->function = t->stack.v[i].function;
	return 0;
}

/* True if the stack shows no function: the sample was taken in a trampoline or at a probe. */
static bool tells_nothing(const struct sampled_thread *t)
{
	return t->stack.n && t->stack.v[0].kind == CALL_NO_CALLERS &&
	       seen__user(t->stack.v, t->stack.n) == 1;
}

/*
 * A sample in the kernel's code for probes lacks the function whose instruction is executed there,
 * or that a return probe returns to; and in its chain the kernel replaces the trampoline's
 * address by the return addresses of calls that are over (kernel/events/callchain.c:
 * fixup_uretprobe_trampoline_entries, since Linux 6.11). Such a sample, like one that may lack a
 * caller, would end the slices of functions that go on: it is not used, and they do go on.
 */
static bool is_usable(const struct sampled_thread *t)
{
	return !t->is_doubtful && !tells_nothing(t);
}

/*
 * A page fault's stack is not used: it would split the function's time in the kernel, far too
 * often.
 */
static int on_sample(struct sampled_thread *t, const struct rec_sample *sample)
{
	int err = take_stack(t, sample);

	if (err || sample->faults)
		return err ? err : add_faults(t, sample);
	take_throttled(t, sample->time_ns);
	drop_at_probe(t, sample->time_ns);
	if (is_usable(t))
		slices__see(&t->slices, sample->time_ns, t->stack.v, t->stack.n);
	return 0;
}

/* At a hit by duration the function is over, even if its return instruction was probed. */
static void leave_probed(struct sampled_thread *t, const struct mt_hit *hit)
{
	if (hit->reason == MT_HIT_DURATION && t->stack.n && t->probed &&
	    t->stack.v[t->stack.n - 1].function == t->probed)
		t->stack.n--;
}

/* Finds callers as the samples do: another method would find other outermost frames. */
static int take_hit_stack(struct sampled_thread *t, const struct mt_hit *hit)
{
	struct rec_sample moment = {.time_ns = hit->time_ns};
	struct unwound unwound = {0};
	int err;

	if (t->rec->samples.n && !t->rec->sample_users.n)
		return add_stack(t, &moment, hit->stack, hit->stack_depth, false);
	err = hit_stack__find(t->rec, hit, t->images, &unwound);
	if (!err)
		err = add_stack(t, &moment, unwound.ips.v, unwound.ips.n,
				!unwound.is_whole && unwound.ips.n > 1);
	unwound__fini(&unwound);
	return err;
}

/* Adds the hit's own stack, which ends the snapshot, with or without samples. */
static int on_hit(struct sampled_thread *t, const struct mt_hit *hit)
{
	int err;

	t->is_at_hit = true;
	err = hit->stack_depth ? take_hit_stack(t, hit) : 0;
	t->is_at_hit = false;
	if (err || !hit->stack_depth)
		return err;
	leave_probed(t, hit);
	if (!tells_nothing(t))
		slices__see(&t->slices, hit->time_ns, t->stack.v, t->stack.n);
	return 0;
}

static void on_region(struct sampled_thread *t, const struct mt_sched *region)
{
	uint64_t end_ns = t->region.end_ns;

	if (end_ns && end_ns < region->time_ns) {
		slices__end(&t->slices, end_ns);
		slices__gap(&t->slices, end_ns, region->time_ns, GAP_OUTSIDE);
	}
	slices__begin(&t->slices, region->time_ns);
	span__take(&t->region, region);
}

static uint64_t within_region(const struct sampled_thread *t, uint64_t time_ns)
{
	return t->region.end_ns && t->region.end_ns < time_ns ? t->region.end_ns : time_ns;
}

static int on_event(struct sampled_thread *t, const struct event *event)
{
	int err = 0;

	switch (event->kind) {
	case EVENT_ENTRY:
		on_entry(t, &t->rec->entries.v[event->index], event->time_ns);
		break;
	case EVENT_BY:
		if (event__region(t->rec, event))
			on_region(t, &t->rec->sched_bys.v[event->index]);
		on_by(t, &t->rec->sched_bys.v[event->index]);
		break;
	case EVENT_SCHED:
		on_sched(t, &t->rec->scheds.v[event->index]);
		break;
	case EVENT_TAKEN:
		on_taken(t, &t->rec->taken.v[event->index]);
		break;
	case EVENT_SAMPLE:
		err = on_sample(t, &t->rec->samples.v[event->index]);
		break;
	case EVENT_HIT:
		err = on_hit(t, &t->rec->hits.v[event->index]);
		break;
	}
	return err ? err : t->slices.failed ? -ENOMEM : 0;
}

/* Ends the snapshots before time_ns: each ends with its hit; the last one may lack a hit. */
static void end_snapshots(struct sampled_thread *t, uint64_t time_ns)
{
	const struct recording *rec = t->rec;
	uint64_t end_ns = 0;

	for (; t->next_hit < rec->hits.n && rec->hits.v[t->next_hit].time_ns < time_ns;
	     t->next_hit++)
		if (rec->hits.v[t->next_hit].time_ns > end_ns)
			end_ns = rec->hits.v[t->next_hit].time_ns;
	if (!end_ns || !t->tree.calls.n)
		return;
	slices__end(&t->slices, within_region(t, end_ns));
	slices__gap(&t->slices, end_ns, time_ns, GAP_BETWEEN);
	if (t->region.end_ns < time_ns)
		t->region = (struct span){0};
}

/* The trigger's function by the current mappings; with several triggers, the one that hit. */
static const struct function *probed_function(struct sampled_thread *t)
{
	const struct recording *rec = t->rec;

	return function_at(t, rec->hits.n ? recording__probe_of(rec, &rec->hits.v[rec->hits.n - 1])
					  : rec->probe_ip);
}

static int follow_maps(struct sampled_thread *t, uint64_t time_ns)
{
	size_t before = t->next_map;
	int err = images__apply(t->images, t->pid, time_ns, &t->next_map, t->map);

	if (!err && (t->next_map != before || !t->probed))
		t->probed = probed_function(t);
	return err;
}

/* Mappings were noted when the rings started; the BPF programs ran before that. */
static uint64_t noted_ns(const struct event *events, size_t n)
{
	size_t i = 0;

	while (i + 1 < n && (events[i].kind == EVENT_ENTRY || events[i].kind == EVENT_BY))
		i++;
	return events[i].time_ns;
}

static uint64_t last_time(const struct recording *rec, const struct event *events, size_t n)
{
	uint64_t last_ns = events[n - 1].time_ns;

	return rec->frozen_ns > last_ns ? rec->frozen_ns : last_ns;
}

static int read_events(struct sampled_thread *t, const struct event *events, size_t n)
{
	int err = note_probes(t, events, n);

	if (!err)
		err = follow_maps(t, noted_ns(events, n));

	for (size_t i = 0; i < n && !err; i++) {
		meter__add(t->totals->meter, events[i].kind == EVENT_SAMPLE);
		end_snapshots(t, events[i].time_ns);
		err = follow_maps(t, events[i].time_ns);
		if (!err)
			err = on_event(t, &events[i]);
	}
	if (!err)
		slices__end(&t->slices, within_region(t, last_time(t->rec, events, n)));
	return err ? err : t->slices.failed ? -ENOMEM : 0;
}

static void name_tree(const struct sampled_thread *t, struct call_tree *tree)
{
	const struct rec_thread *known = recording__find_thread(t->rec, t->pid, t->tid);

	tree->pid = t->pid;
	tree->tid = t->tid;
	if (known)
		snprintf(tree->comm, sizeof(tree->comm), "%s", known->comm);
}

static int make_tree(const struct sampled_thread *blank, const struct event *events, size_t n,
		     struct call_tree *tree)
{
	const struct recording *rec = blank->rec;
	struct sampled_thread t = {.rec = rec,
				   .images = blank->images,
				   .totals = blank->totals,
				   .map = code_map__new(),
				   .cpu = -1,
				   .pid = events->pid,
				   .tid = events->tid};
	int err = t.map ? 0 : -ENOMEM;

	t.slices = (struct slices){
		.tree = &t.tree,
		.period_ns = rec->sample_period_ns,
	};
	t.returns_to = sample_stack__returns_to(rec, t.tid, events->time_ns);
	t.trampoline = sample_stack__trampoline(rec, t.pid);
	name_tree(&t, &t.tree);
	if (!err)
		err = read_events(&t, events, n);
	*tree = t.tree;
	slices__fini(&t.slices);
	VEC_FINI(&t.stack);
	VEC_FINI(&t.probes);
	VEC_FINI(&t.calls);
	code_map__free(t.map);
	return err;
}

/* Wake-ups and replacements may be older than the first slice: they do not count. */
static void add_totals(struct sampled_totals *totals, const struct recording *rec,
		       const struct call_tree *tree, const struct event *events, size_t n)
{
	uint64_t last_ns = last_time(rec, events, n);
	uint64_t first_ns = tree->calls.n ? tree->calls.v[0].start_ns : last_ns;

	if (!totals->first_ns || first_ns < totals->first_ns)
		totals->first_ns = first_ns;
	if (last_ns > totals->last_ns)
		totals->last_ns = last_ns;
}

static int make_trees(const struct recording *rec, struct images *images,
		      const struct events *events, sampled_taker take, void *ctx,
		      struct sampled_totals *totals, struct thread_trees *threads)
{
	const struct sampled_thread blank = {.rec = rec, .images = images, .totals = totals};
	int err = 0;

	for (size_t i = 0, n; i < events->all.n && !err; i += n) {
		const struct event *first = &events->all.v[i];
		struct call_tree tree = {0}, *place;

		for (n = 1; i + n < events->all.n && first[n].tid == first->tid; n++)
			;
		err = make_tree(&blank, first, n, &tree);
		if (err) {
			call_tree__fini(&tree);
			break;
		}
		add_totals(totals, rec, &tree, first, n);
		place = VEC_PUSH(threads);
		if (!place) {
			call_tree__fini(&tree);
			return -ENOMEM;
		}
		*place = tree;
		err = take(ctx, &tree);
	}
	return err;
}

int sampled__trees(const struct recording *rec, struct images *images, sampled_taker take,
		   void *ctx, struct sampled_totals *totals)
{
	struct thread_trees threads = {0};
	struct events events = {0};
	int err = events__collect(&events, rec);

	for (size_t i = 0; i < rec->samples.n; i++)
		totals->samples += !rec->samples.v[i].at_park;
	totals->switches += rec->scheds.n;
	if (!err)
		err = make_trees(rec, images, &events, take, ctx, totals, &threads);
	if (!err)
		err = goroutines__trees(rec, images, &threads, take, ctx, &totals->first_ns);
	VEC_FINI(&threads);
	events__fini(&events);
	return err;
}
