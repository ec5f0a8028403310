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
#include "sampled/goroutines.h"
#include "sampled/sample_stack.h"
#include "sampled/slices.h"
#include "stack/stack.h"
#include "target/code_map.h"
#include "util/names.h"
#include "util/page.h"
#include "util/meter.h"
#include "util/vec.h"

/* Events at the same time are in this order. */
enum event_kind { EVENT_ENTRY, EVENT_SAMPLE, EVENT_BY, EVENT_SCHED, EVENT_TAKEN, EVENT_HIT };

struct event {
	uint64_t time_ns;
	pid_t pid, tid;
	enum event_kind kind;
	uint32_t index; /* in the recording's array of that kind */
};

/* The thread's current or last region. Zero-initialise. */
struct span {
	uint64_t start_ns, end_ns; /* end_ns 0: no region; UINT64_MAX: still in it */
};

/* All events of a recording's threads, grouped by thread and sorted by time. */
typedef VEC(struct event) event_vec;

ORDER(compare, struct event,
      COMPARE(x->tid, y->tid)
	      ?: COMPARE(x->time_ns, y->time_ns)
	      ?: COMPARE(x->kind, y->kind)
	      ?: COMPARE(x->index, y->index))

/* A region may be logged twice, before and after its end: the known end wins. */
static void span__take(struct span *span, const struct mt_sched *region)
{
	uint64_t end_ns = region->took.end_ns ? region->took.end_ns : UINT64_MAX;
	bool is_known = span->end_ns && span->start_ns == region->time_ns;

	if (!is_known || end_ns < span->end_ns)
		span->end_ns = end_ns;
	span->start_ns = region->time_ns;
}

/* Drops events outside of regions: the kernel notes switches there as well. */
static void drop_outside(event_vec *events, const struct recording *rec)
{
	bool is_first = true;
	struct span span = {0};
	size_t n = 0;
	pid_t tid = 0;

	VEC_EACH(events, event) {
		const struct mt_sched *region = NULL;

		if (event->kind == EVENT_BY &&
		    rec->sched_bys.v[event->index].kind == MT_SCHED_REGION)
			region = &rec->sched_bys.v[event->index];
		if (event->tid != tid) {
			span = (struct span){0};
			is_first = true;
		}
		/*
		 * The log of regions covers more time than the ring, which lacks the events of
		 * older regions: a later region replaces them.
		 */
		if (region && is_first && n && events->v[n - 1].tid == event->tid &&
		    events->v[n - 1].time_ns < event->time_ns)
			n--;
		tid = event->tid;
		if (region)
			span__take(&span, region);
		else if (event->time_ns > span.end_ns)
			continue;
		is_first = is_first && region;
		events->v[n++] = *event;
	}
	events->n = n;
}

/* Two programs at one context switch read the clock within this time. */
#define AT_SWITCH_NS 100000

/*
 * A hit in the kernel may be in the context switch itself, such as one of sched:sched_switch, and
 * its program may run after the one that has noted the switch. The thread is off its CPU from then
 * on, and has not come back: such hits are moved to the time of the switch, before it.
 */
static void move_to_switches(event_vec *events, const struct recording *rec)
{
	uint64_t off_ns = 0;
	pid_t tid = 0;
	bool has_moved = false;

	VEC_EACH(events, event) {
		if (event->tid != tid)
			off_ns = 0;
		tid = event->tid;
		if (event->kind == EVENT_SCHED)
			off_ns = rec->scheds.v[event->index].what == REC_SCHED_IN ? 0
										  : event->time_ns;
		if (event->kind != EVENT_ENTRY || !off_ns ||
		    rec->entries.v[event->index].kind != MT_ENTRY_KERNEL ||
		    event->time_ns - off_ns > AT_SWITCH_NS)
			continue;
		event->time_ns = off_ns;
		has_moved = true;
	}
	if (has_moved)
		VEC_SORT(events, compare);
}

/*
 * If the recording has regions, collects only the events within the regions of each thread, and
 * the regions (EVENT_BY). Returns 0 or -ENOMEM; the caller frees *events in any case.
 */
static int collect_events(event_vec *events, const struct recording *rec)
{
	bool has_regions = false;
	int err = 0;

	for (uint32_t i = 0; i < rec->samples.n && !err; i++) {
		const struct rec_sample *s = &rec->samples.v[i];

		if (!s->at_park)
			err = VEC_ADD(events,
				      (struct event){s->time_ns, s->pid, s->tid, EVENT_SAMPLE, i});
	}
	for (uint32_t i = 0; i < rec->scheds.n && !err; i++) {
		const struct rec_sched *s = &rec->scheds.v[i];

		err = VEC_ADD(events, (struct event){s->time_ns, s->pid, s->tid, EVENT_SCHED, i});
	}
	for (uint32_t i = 0; i < rec->sched_bys.n && !err; i++) {
		const struct mt_sched *b = &rec->sched_bys.v[i];

		has_regions |= b->kind == MT_SCHED_REGION;
		err = VEC_ADD(events, (struct event){b->time_ns, (pid_t)b->tgid, (pid_t)b->tid,
						     EVENT_BY, i});
	}
	for (uint32_t i = 0; i < rec->taken.n && !err; i++) {
		const struct rec_taken *t = &rec->taken.v[i];

		/* take_throttled() looks for throttling when the thread runs again. */
		if (!t->by_quota)
			err = VEC_ADD(events, (struct event){t->until_ns - t->ns, t->pid, t->tid,
							     EVENT_TAKEN, i});
	}
	for (uint32_t i = 0; i < rec->entries.n && !err; i++) {
		const struct mt_entry *e = &rec->entries.v[i];

		/* Goroutines have trees of their own: goroutines.h. */
		if (!e->goroutine)
			err = VEC_ADD(events, (struct event){e->start_ns, (pid_t)e->tgid,
							     (pid_t)e->tid, EVENT_ENTRY, i});
	}
	for (uint32_t i = 0; i < rec->hits.n && !err; i++) {
		const struct mt_hit *h = &rec->hits.v[i];

		err = VEC_ADD(events, (struct event){h->time_ns, (pid_t)h->tgid, (pid_t)h->tid,
						     EVENT_HIT, i});
	}
	if (err)
		return err;
	VEC_SORT(events, compare);
	move_to_switches(events, rec);
	if (has_regions)
		drop_outside(events, rec);
	return 0;
}

struct known_probe {
	uint64_t ip;
	bool is_of_calls; /* each call is recorded from start to end */
	uint64_t end_ns;  /* of the latest call of the probe's function; 0: not known */
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
	probed_calls calls;		/* buffer of take_stack() */
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

static struct known_probe *find_probe(struct sampled_thread *t, uint64_t ip)
{
	return VEC_FIND(&t->probes, e, e->ip == ip);
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
		probe->is_of_calls |= entry->kind != MT_ENTRY_HIT && entry->kind != MT_ENTRY_KERNEL;
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
	return VEC_FIND(&t->probes, e, e->is_of_calls && function_of(t, e) == function);
}

/* A probe further than this from the function's first instruction is not at its entry. */
#define ENTRY_BYTES 64
/* A probe takes some microseconds, but its thread may lose its CPU meanwhile. */
#define AT_END_NS 1000000

/* True if the frame belongs to no call: a probe at the entry or return of its function is handled.
 */
static bool is_at_probe(struct sampled_thread *t, const struct seen *seen, uint64_t time_ns)
{
	for (size_t i = 0; i < t->probes.n && seen->function; i++) {
		struct known_probe *probe = &t->probes.v[i];
		size_t n_calls, n_frames = 0;

		if (function_of(t, probe) != seen->function)
			continue;
		n_calls = slices__count_calls(&t->slices, seen->function, time_ns);
		/* The call ended just now: its return probe is being handled. */
		if (probe->end_ns && probe->end_ns <= time_ns &&
		    time_ns - probe->end_ns < AT_END_NS && !n_calls)
			return true;
		/*
		 * The call has not begun: the thread is at the probe at the function's entry, or
		 * one byte (the int3) after it. If the probe is not on the first instruction, the
		 * function's return probe may run before it. If the function has two probes, one of
		 * them may have recorded the call already: each frame has a call then.
		 */
		if (seen->ip > probe->ip + 1 || probe->ip - probe->entry >= ENTRY_BYTES)
			continue;
		for (size_t k = 0; k < t->stack.n; k++)
			n_frames += t->stack.v[k].function == seen->function;
		if (n_calls < n_frames)
			return true;
	}
	return false;
}

static void on_entry(struct sampled_thread *t, const struct mt_entry *entry, uint64_t start_ns)
{
	struct entered call = {.function = function_at(t, entry->ip),
			       .start_ns = start_ns,
			       .end_ns = entry->end_ns,
			       .end = entry->kind == MT_ENTRY_CALL ? END_OPEN : END_UNKNOWN,
			       .kind = CALL_FUNCTION,
			       .is_innermost = entry->kind == MT_ENTRY_KERNEL};
	struct known_probe *probe = find_probe(t, entry->ip);

	/* Damaged files may contain calls that return before they begin. */
	if (entry->end_ns && entry->end_ns < start_ns)
		call.end = END_UNKNOWN;
	else if (entry->end_ns)
		call.end = entry->kind == MT_ENTRY_LEFT ? END_AT_MOST : END_KNOWN;
	/* If whole calls are recorded, a hit adds nothing. */
	if (!call.function || (entry->kind == MT_ENTRY_HIT && probe->is_of_calls))
		return;
	probe->end_ns = call.end == END_KNOWN ? call.end_ns : 0;
	/*
	 * The return address of the entered call; 0: not known. If a return probe has replaced it,
	 * the hits show that of the trigger's function. Compares with t->trampoline, because the
	 * first call may be logged before the trampoline's mapping.
	 */
	if (!call.is_innermost && entry->returns_to && entry->returns_to != t->trampoline)
		call.returns_to = entry->returns_to;
	else if (!call.is_innermost && call.function == t->probed)
		call.returns_to = t->returns_to;
	call.is_usual = call.returns_to != entry->returns_to;
	call.caller = function_at(t, call.returns_to ? call.returns_to - 1 : 0);
	slices__enter(&t->slices, &call);
}

/* Largest difference between readings of two clocks at the same moment. */
#define SAME_MOMENT_NS 100000

/* Takes the time that the thread has waited while the quota of its cgroup throttled it. */
static void take_throttled(struct sampled_thread *t, uint64_t now_ns)
{
	const struct recording *rec = t->rec;
	uint64_t since_ns = slices__waits_since(&t->slices);
	size_t i = VEC_PARTITION_POINT(&rec->taken, e, e->until_ns <= since_ns);

	for (; since_ns && i < rec->taken.n; i++) {
		const struct rec_taken *taken = &rec->taken.v[i];

		if (taken->until_ns > now_ns + SAME_MOMENT_NS)
			return;
		if (!taken->by_quota || taken->tid != t->tid)
			continue;
		if (taken->ns)
			slices__throttled(&t->slices, now_ns, taken->ns,
					  recording__find_quota(rec, t->pid, false));
		return;
	}
}

static void on_sched(struct sampled_thread *t, const struct rec_sched *sched)
{
	const struct fault_mark move = {.time_ns = sched->time_ns, .n = 1, .is_move = true};

	if (t->cpu >= 0 && sched->cpu >= 0 && t->cpu != sched->cpu &&
	    VEC_ADD(&t->tree.faults, move))
		t->slices.failed = true;
	t->cpu = sched->cpu;
	/* A thread that is switched out was running, even if its start was not recorded. */
	take_throttled(t, sched->time_ns);
	if (sched->what == REC_SCHED_IN)
		slices__on(&t->slices, sched->time_ns);
	else
		slices__off(&t->slices, sched->time_ns,
			    sched->what == REC_SCHED_BLOCKED ? OFF_BLOCKED : OFF_PREEMPTED);
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

/* Why memory was reclaimed; NULL: not known. */
static const char *reclaim_text(const struct sampled_thread *t, const struct mt_sched *sched)
{
	static const char *const texts[] = {
		[MT_RECLAIM_CGROUP] = "the limit of a cgroup",
		[MT_RECLAIM_MACHINE] = "the machine is short of memory",
		[MT_RECLAIM_COMPACTION] = "compaction for larger pages",
	};
	const char *limit = sched->took.arg == MT_RECLAIM_CGROUP
				    ? recording__find_quota(t->rec, t->pid, true)
				    : NULL;

	if (!limit && sched->took.arg < sizeof(texts) / sizeof(texts[0]))
		return texts[sched->took.arg];
	return limit;
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

static void on_by(struct sampled_thread *t, const struct mt_sched *sched)
{
	const struct interrupts_mark interrupts = {
		.start_ns = sched->time_ns, .end_ns = sched->took.end_ns, .ns = sched->took.arg};
	struct entered call = {.start_ns = sched->time_ns,
			       .end_ns = sched->took.end_ns,
			       .end = END_KNOWN,
			       .kind = CALL_SYSCALL};
	struct done_by by = {.pid = (pid_t)sched->by_tgid, .tid = (pid_t)sched->by_tid};
	const struct rec_thread *owner = NULL;
	struct waits_for wait;

	snprintf(by.comm, sizeof(by.comm), "%.15s", sched->by_comm);
	label__clean_in_place(by.comm);
	switch (sched->kind) {
	case MT_SCHED_SYSCALL:
		wait = syscall_of(t, sched, sched->in.arg);
		if (sched->in.owner)
			owner = recording__find_thread(t->rec, t->pid, (pid_t)sched->in.owner);
		if (owner && owner->tid != t->tid) {
			wait.owner = owner->tid;
			snprintf(wait.owner_comm, sizeof(wait.owner_comm), "%s", owner->comm);
		}
		slices__waits(&t->slices, &wait);
		break;
	case MT_SCHED_LONG:
		call.what = syscall_of(t, sched, sched->took.arg);
		/* Damaged files may contain calls that end before they begin. */
		if (call.end_ns >= call.start_ns)
			slices__enter(&t->slices, &call);
		break;
	case MT_SCHED_RECLAIM:
		/* Memory reclaim happens within a system call or a page fault. */
		call.reason = SYSCALL_RECLAIM;
		call.what = (struct waits_for){.fd = -1, .text = reclaim_text(t, sched)};
		if (call.what.text && call.end_ns >= call.start_ns)
			slices__enter(&t->slices, &call);
		break;
	case MT_SCHED_INTERRUPTS:
		if (call_tree__add_interrupts(&t->tree, &interrupts))
			t->slices.failed = true;
		break;
	case MT_SCHED_REPLACED:
		slices__replaced(&t->slices, sched->time_ns, &by);
		break;
	case MT_SCHED_WOKEN:
		slices__woken(&t->slices, sched->time_ns, &by);
		break;
	case MT_SCHED_REGION:
		on_region(t, sched);
		break;
	}
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

/*
 * Adds a frame without a function for the kernel, and the kernel's frames, after the user frames.
 * Without a kernel stack, or without the kernel's symbols, it adds only the former, if the sample
 * is in the kernel; at a switch nothing, since all switches happen in the kernel.
 */
static int add_kernel(struct sampled_thread *t, const struct rec_sample *sample, uint64_t return_ip)
{
	bool is_known = sample->n_kernel && images__has_kernel(t->images);
	int err = 0;

	if (is_known || (sample->in_kernel && !sample->at_switch))
		err = VEC_ADD(&t->stack, (struct seen){.kind = CALL_IN_KERNEL});
	for (uint32_t i = is_known ? sample->n_kernel : 0; i-- > 0 && !err;) {
		uint64_t ip = t->rec->sample_ips.v[sample->first_kernel + i];
		struct seen seen = look_up(t, ip, i != 0);

		seen.kind = CALL_IN_KERNEL;
		seen.return_ip = return_ip;
		return_ip = ip;
		if (seen.function)
			err = VEC_ADD(&t->stack, seen);
	}
	return err;
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

	/* At a function's first instruction BPF adds the caller to the hit's chain. */
	if (!*return_ip ||
	    (t->is_at_hit && code_map__find(t->map, ip, &caller) && caller.entry == ip))
		return 0;
	if (!unwind__misses_caller(t->map, ip, *return_ip, &caller))
		return 0;
	/* A timed sample without a copy, in a recording that has copies, is from the CPU. */
	if (!caller.function && t->rec->sample_users.n && !sample->at_switch)
		return 0;
	/* The kernel adds the caller while it handles the probe, and not before or after that. */
	if (!caller.function && find_probe(t, ip)) {
		t->is_doubtful = true;
		return 0;
	}
	/* The caller's calls are exact, and none is running: the caller ended by a tail call. */
	if (caller.function && has_calls(t, caller.function) &&
	    !slices__count_calls(&t->slices, caller.function, sample->time_ns))
		return 0;
	seen.function = caller.function;
	seen.ip = caller.entry;
	*return_ip = 0;
	return VEC_ADD(&t->stack, seen);
}

/* False for perf's recordings: it is not known how perf found their stacks. */
static bool is_own(const struct recording *rec)
{
	return rec->source && !strcmp(rec->source, "sample");
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
	t->is_doubtful = n && is_of_probes(t, ips[0]);
	/*
	 * While a return probe is handled the thread is at the return address already
	 * (kernel/events/uprobes.c: uprobe_handle_trampoline), which the kernel then also puts in
	 * place of the next trampoline's address in the chain. In recursions the same address may
	 * be right.
	 */
	for (size_t i = 1; i < n && sample->in_kernel; i++)
		t->is_doubtful |= ips[i] == ips[0];
	err = is_cut ? VEC_ADD(&t->stack, SEEN_NO_CALLERS) : 0;
	for (size_t i = n; i-- > 0 && !err;) {
		struct seen seen = look_up(t, ips[i], i != 0);

		if (is_trampoline(t, ips[i]))
			continue;
		if (!i && by_frame_pointers)
			err = add_missed(t, sample, ips[i], &return_ip);
		seen.return_ip = return_ip;
		return_ip = ips[i];
		if (!err)
			err = VEC_ADD(&t->stack, seen);
	}
	return err ? err : add_kernel(t, sample, return_ip);
}

/*
 * False if frame pointers show no callers. Either the innermost function uses %rbp for something
 * else, and the first address follows no call; or the process needs copies of stacks, and this
 * stack could not be copied.
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

/*
 * A copy ends before a page that is not mapped at that moment. The sizes that are asked for are
 * mostly whole pages: a complete copy ends at a page only if it begins at one.
 */
static bool ends_at_page(const struct rec_user *user)
{
	return user->sp % (uint64_t)PAGE && !((user->sp + user->size) % (uint64_t)PAGE);
}

/* Unwinds the copy of the stack if there is one; otherwise uses the frame pointers' addresses. */
static int take_stack(struct sampled_thread *t, const struct rec_sample *sample)
{
	const uint64_t *ips = sample->n_ips ? &t->rec->sample_ips.v[sample->first_ip] : NULL;
	const struct probed_call usual = {.function = t->probed, .returns_to = t->returns_to};
	const struct rec_user *user;
	struct unwound unwound;
	int err;

	if (!sample->user)
		return leads_to_callers(t, sample, ips, sample->n_ips)
			       ? add_stack(t, sample, ips, sample->n_ips, false)
			       : add_stack(t, sample, ips, 1, true);
	user = &t->rec->sample_users.v[sample->user - 1];
	/* The calls whose return addresses return probes have replaced. */
	t->calls.n = 0;
	slices__running(&t->slices, sample->time_ns, &t->calls);
	if (VEC_ADD(&t->calls, usual))
		t->slices.failed = true;
	err = sample_stack__unwind(t->rec, sample, t->map, &t->calls, &unwound);
	if (!err)
		err = add_stack(t, sample, unwound.ips.v, unwound.ips.n, !unwound.is_whole);
	t->totals->copies++;
	if (unwound.is_cut && !unwound.is_whole)
		(*(ends_at_page(user) ? &t->totals->torn_copies : &t->totals->cut_copies))++;
	if (user->size > t->totals->copy_size)
		t->totals->copy_size = user->size;
	unwound__fini(&unwound);
	return err;
}

/* True if the stack shows no function: the sample was taken in a trampoline or at a probe. */
static bool tells_nothing(const struct sampled_thread *t)
{
	return t->stack.n && t->stack.v[0].kind == CALL_NO_CALLERS &&
	       seen__user(t->stack.v, t->stack.n) == 1;
}

/*
 * A page fault's stack becomes no slices, because these would split the function's slices far too
 * often. The innermost function gets the faults.
 */
static int on_fault(struct sampled_thread *t, const struct rec_sample *sample)
{
	struct fault_mark mark = {
		.time_ns = sample->time_ns, .n = sample->faults, .is_major = sample->is_major};
	int err = take_stack(t, sample);

	for (size_t i = t->stack.n; i-- > 0 && !mark.function;)
		mark.function = t->stack.v[i].function;
	return err ? err : VEC_ADD(&t->tree.faults, mark);
}

/*
 * A sample in the kernel's code for probes lacks the function whose instruction is executed there,
 * or that a return probe returns to; and in its chain the kernel replaces the trampoline's
 * address by the return addresses of calls that are over (kernel/events/callchain.c:
 * fixup_uretprobe_trampoline_entries, since Linux 6.11). Such a sample, like one that may lack a
 * caller, would end the slices of functions that go on: it is not used, and they do go on.
 */
static int on_sample(struct sampled_thread *t, const struct rec_sample *sample)
{
	int err = take_stack(t, sample);
	size_t n = seen__user(t->stack.v, t->stack.n);

	if (err)
		return err;
	take_throttled(t, sample->time_ns);
	/* The innermost call may not have begun, or be over. */
	if (n && is_at_probe(t, &t->stack.v[n - 1], sample->time_ns))
		VEC_REMOVE(&t->stack, n - 1);
	if (!t->is_doubtful && !tells_nothing(t))
		slices__see(&t->slices, sample->time_ns, t->stack.v, t->stack.n);
	return 0;
}

/* Adds the hit's own stack, which ends the snapshot, with or without samples. */
static int on_hit(struct sampled_thread *t, const struct mt_hit *hit)
{
	struct rec_sample moment = {.time_ns = hit->time_ns};
	struct unwound unwound = {0};
	int err;

	if (!hit->stack_depth)
		return 0;
	t->is_at_hit = true;
	/* Finds callers as the samples do: another method would find other outermost frames. */
	if (t->rec->samples.n && !t->rec->sample_users.n) {
		err = add_stack(t, &moment, hit->stack, hit->stack_depth, false);
	} else {
		err = hit_stack__find(t->rec, hit, t->images, &unwound);
		if (!err)
			err = add_stack(t, &moment, unwound.ips.v, unwound.ips.n,
					!unwound.is_whole && unwound.ips.n > 1);
		unwound__fini(&unwound);
	}
	t->is_at_hit = false;
	if (err)
		return err;
	/* At a hit by duration the function is over, even if its return instruction was probed. */
	if (hit->reason == MT_HIT_DURATION && t->stack.n && t->probed &&
	    t->stack.v[t->stack.n - 1].function == t->probed)
		t->stack.n--;
	if (!tells_nothing(t))
		slices__see(&t->slices, hit->time_ns, t->stack.v, t->stack.n);
	return 0;
}

static uint64_t within_region(const struct sampled_thread *t, uint64_t time_ns)
{
	return t->region.end_ns && t->region.end_ns < time_ns ? t->region.end_ns : time_ns;
}

static int on_event(struct sampled_thread *t, const struct event *event)
{
	const struct recording *rec = t->rec;
	const struct rec_taken *taken;
	int err = 0;

	switch (event->kind) {
	case EVENT_ENTRY:
		on_entry(t, &rec->entries.v[event->index], event->time_ns);
		break;
	case EVENT_BY:
		on_by(t, &rec->sched_bys.v[event->index]);
		break;
	case EVENT_SCHED:
		on_sched(t, &rec->scheds.v[event->index]);
		break;
	case EVENT_TAKEN:
		taken = &rec->taken.v[event->index];
		slices__stolen(&t->slices, taken->until_ns - taken->ns, taken->until_ns);
		break;
	case EVENT_SAMPLE:
		err = rec->samples.v[event->index].faults
			      ? on_fault(t, &rec->samples.v[event->index])
			      : on_sample(t, &rec->samples.v[event->index]);
		break;
	case EVENT_HIT:
		err = on_hit(t, &rec->hits.v[event->index]);
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

static int follow_maps(struct sampled_thread *t, uint64_t time_ns)
{
	const struct recording *rec = t->rec;
	size_t before = t->next_map;
	int err = images__apply(t->images, t->pid, time_ns, &t->next_map, t->map);

	if (err || (t->next_map == before && t->probed))
		return err;
	/* The trigger's function by the current mappings; with several triggers, the last hit's. */
	t->probed =
		function_at(t, rec->hits.n ? recording__probe_of(rec, &rec->hits.v[rec->hits.n - 1])
					   : rec->probe_ip);
	return 0;
}

static uint64_t last_time(const struct recording *rec, const struct event *events, size_t n)
{
	uint64_t last_ns = events[n - 1].time_ns;

	return rec->frozen_ns > last_ns ? rec->frozen_ns : last_ns;
}

static int read_events(struct sampled_thread *t, const struct event *events, size_t n)
{
	int err = note_probes(t, events, n);
	size_t first = 0;

	/*
	 * The time of the first event that is not from a BPF program's log: mappings were noted
	 * when the rings started, after the BPF programs had begun.
	 */
	while (first + 1 < n &&
	       (events[first].kind == EVENT_ENTRY || events[first].kind == EVENT_BY))
		first++;
	if (!err)
		err = follow_maps(t, events[first].time_ns);
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
	const struct rec_thread *known;
	int err = t.map ? 0 : -ENOMEM;

	t.slices = (struct slices){.tree = &t.tree, .period_ns = rec->sample_period_ns};
	t.returns_to = sample_stack__returns_to(rec, t.tid, events->time_ns);
	t.trampoline = sample_stack__trampoline(rec, t.pid);
	t.tree.pid = t.pid;
	t.tree.tid = t.tid;
	known = recording__find_thread(rec, t.pid, t.tid);
	if (known)
		snprintf(t.tree.comm, sizeof(t.tree.comm), "%s", known->comm);
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

static int make_trees(const struct recording *rec, struct images *images, const event_vec *events,
		      sampled_taker take, void *ctx, struct sampled_totals *totals,
		      struct thread_trees *threads)
{
	const struct sampled_thread blank = {.rec = rec, .images = images, .totals = totals};
	int err = 0;

	for (size_t i = 0, n; i < events->n && !err; i += n) {
		const struct event *first = &events->v[i];
		struct call_tree tree = {0};
		uint64_t first_ns, last_ns;

		for (n = 1; i + n < events->n && first[n].tid == first->tid; n++)
			;
		last_ns = last_time(rec, first, n);
		err = make_tree(&blank, first, n, &tree);
		if (!err)
			err = VEC_ADD(threads, tree);
		if (err) {
			call_tree__fini(&tree);
			return err;
		}
		/* Wake-ups and replacements may be older than the first slice: they do not count.
		 */
		first_ns = tree.calls.n ? tree.calls.v[0].start_ns : last_ns;
		if (!totals->first_ns || first_ns < totals->first_ns)
			totals->first_ns = first_ns;
		if (last_ns > totals->last_ns)
			totals->last_ns = last_ns;
		err = take(ctx, &tree);
	}
	return err;
}

int sampled__trees(const struct recording *rec, struct images *images, sampled_taker take,
		   void *ctx, struct sampled_totals *totals)
{
	struct thread_trees threads = {0};
	event_vec events = {0};
	int err = collect_events(&events, rec);

	for (size_t i = 0; i < rec->samples.n; i++)
		totals->samples += !rec->samples.v[i].at_park;
	totals->switches += rec->scheds.n;
	if (!err)
		err = make_trees(rec, images, &events, take, ctx, totals, &threads);
	if (!err)
		err = goroutines__trees(rec, images, &threads, take, ctx, &totals->first_ns);
	VEC_FINI(&threads);
	VEC_FINI(&events);
	return err;
}
