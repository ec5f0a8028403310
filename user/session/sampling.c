// SPDX-License-Identifier: MIT
#include "session/sampling.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/steal.h"
#include "kernel/syscalls.h"
#include "sampled/settle_calls.h"
#include "target/cpu_quota.h"
#include "target/socket_name.h"
#include "util/log.h"
#include "util/units.h"

#define LOAD_MS 200
#define OWN_LOG (64u << 10)
/* What the default may cost, where a timer's interrupt is dear: some hypervisors' are. */
#define DEFAULT_PPM 50000

unsigned int sampling__rate(const struct sample_options *o, const struct sample_cost *cost,
			    const struct sample_load *load)
{
	bool is_asked = o->rate != SAMPLE_RATE_AUTO;
	unsigned int wanted = is_asked ? (unsigned int)o->rate : SAMPLE_RATE_DEFAULT, hz;

	if (is_asked && !o->max_overhead_ppm)
		return wanted;
	/* The default is about stacks alone. */
	hz = o->max_overhead_ppm ? sample_cost__rate(cost, load, o->max_overhead_ppm)
				 : sample_cost__rate(cost, &(struct sample_load){0}, DEFAULT_PPM);
	if (hz > wanted)
		return wanted;
	return hz < SAMPLE_RATE_LEAST ? SAMPLE_RATE_LEAST : hz;
}

bool sampling__is_kept(const struct sample_options *o, const struct sample_cost *cost,
		       const struct sample_load *load)
{
	return sample_cost__rate(cost, load, o->max_overhead_ppm) >= SAMPLE_RATE_LEAST;
}

void sampling__warn_broken(const struct sample_options *o)
{
	log__warn("-max-overhead %s cannot be kept: %d samples a second, the least, and the "
		  "target's context switches and hits cost more",
		  o->max_overhead, SAMPLE_RATE_LEAST);
}

static void say_rate(const struct sample_options *o, const struct sample_cost *cost,
		     unsigned int hz)
{
	char sample[UNITS_TEXT_SIZE], sw[UNITS_TEXT_SIZE];

	units__format_duration(sample, cost->sample_ns);
	if (o->rate == SAMPLE_RATE_AUTO && !o->max_overhead_ppm && hz < SAMPLE_RATE_DEFAULT) {
		log__info("sample: %u stacks a second, since one costs %s here: %.1f %% of a "
			  "thread's time (-sample-rate %u insists)",
			  hz, sample, 100 * sample_cost__share(cost, hz), SAMPLE_RATE_DEFAULT);
		return;
	}
	if (!o->max_overhead_ppm) {
		log__info(
			"sample: %u stacks a second; one costs %s here: %.1f %% of a thread's time",
			hz, sample, 100 * sample_cost__share(cost, hz));
		return;
	}
	log__info("sample: a stack costs %s here, a context switch %s: %u samples a second, for "
		  "-max-overhead %s",
		  sample, units__format_duration(sw, cost->switch_ns), hz, o->max_overhead);
}

static int refuse_unmeasured(int err)
{
	log__error("cannot measure what a sample costs: %s", strerror(-err));
	log__hint("-sample-rate HZ says how many to take, without measuring");
	return err;
}

static void set_recorder(void *ctx, bool on)
{
	struct recorder *recorder = ctx;

	if (on)
		recorder__begin(recorder);
	else
		recorder__stop(recorder);
}

/* As it will be recorded: on a thread of ours, by a recorder of our process. */
static int measure(uint32_t stack, bool kernel, struct sample_cost *cost)
{
	const struct recorder_config config = {.tgid = getpid(), .log_size = OWN_LOG};
	struct recorder *recorder = recorder__new(&config);
	struct sample_kernel half = {.set = set_recorder, .ctx = recorder};
	int err;

	if (!recorder)
		return sample_cost__measure(stack, kernel, NULL, cost);
	half.gate = recorder__gate(recorder);
	half.stacks = recorder__stack_events(recorder);
	err = sample_cost__measure(stack, kernel, &half, cost);
	recorder__free(recorder);
	return err;
}

static int measure_load(const struct pid_set *pids, struct sample_load *load)
{
	int err = 0;

	*load = (struct sample_load){0};
	for (size_t i = 0; i < pids->n; i++) {
		struct sample_load one;

		err = sample_load__measure(pids->v[i], LOAD_MS / (unsigned int)pids->n + 1, &one);
		if (err)
			continue;
		load->cpu_ns += one.cpu_ns * pids->n;
		load->switches += one.switches * pids->n;
	}
	return load->cpu_ns ? 0 : err;
}

int sampling__choose_rate(const struct sample_options *o, uint32_t stack, bool kernel,
			  const struct pid_set *pids, struct overhead *overhead)
{
	struct sample_load load = {0};
	int err = measure(stack, kernel, &overhead->cost);

	if (!err && pids->n)
		err = measure_load(pids, &load);
	if (err && o->max_overhead_ppm)
		return refuse_unmeasured(err);
	overhead->hz = overhead->first_hz = sampling__rate(o, &overhead->cost, &load);
	if (err)
		return 0;
	overhead->in_second = (struct overhead_counts){
		.cpu_ns = load.cpu_ns * 1000 / LOAD_MS,
		.switches = load.switches * 1000 / LOAD_MS,
		.stacks = (uint64_t)((double)load.cpu_ns / LOAD_MS / 1e6 * overhead->hz),
	};
	overhead->is_broken = o->max_overhead_ppm && !sampling__is_kept(o, &overhead->cost, &load);
	if (overhead->is_broken)
		sampling__warn_broken(o);
	say_rate(o, &overhead->cost, overhead->hz);
	return 0;
}

static int add_name(struct recording *rec, const struct mt_record *record)
{
	struct rec_thread by = {.pid = (pid_t)record->by_tgid,
				.tid = (pid_t)record->by_tid,
				.start_ns = record->time_ns};

	snprintf(by.comm, sizeof(by.comm), "%.15s", record->by_comm);
	return recording__find_thread(rec, by.pid, by.tid) ? 0 : recording__add_thread(rec, &by);
}

/* While the process has them: what the file that it waits for is. */
static int add_open_file(struct recording *rec, const struct mt_record *record)
{
	char link[64], path[PATH_MAX], name[SOCKET_NAME_SIZE];
	ssize_t len;

	if (!syscall__is_of_file((int)record->syscall) || record->arg > INT_MAX ||
	    recording__find_open_file(rec, (pid_t)record->tgid, (int)record->arg))
		return 0;
	snprintf(link, sizeof(link), "/proc/%u/fd/%llu", record->tgid,
		 (unsigned long long)record->arg);
	len = readlink(link, path, sizeof(path) - 1);
	if (len < 0)
		return 0;
	path[len] = '\0';
	if (!strncmp(path, "socket:", strlen("socket:")) &&
	    !socket_name__find((pid_t)record->tgid, (int)record->arg, path, name))
		return recording__add_open_file(rec, (pid_t)record->tgid, (int)record->arg, name);
	return recording__add_open_file(rec, (pid_t)record->tgid, (int)record->arg, path);
}

/* Whose doing it was. */
static int add_by(struct recording *rec, const struct mt_record *record, enum mt_sched_kind kind)
{
	struct mt_sched by = {.time_ns = record->time_ns,
			      .tid = record->tid,
			      .tgid = record->tgid,
			      .by_tid = record->by_tid,
			      .by_tgid = record->by_tgid,
			      .kind = kind};
	int err;

	memcpy(by.by_comm, record->by_comm, sizeof(by.by_comm));
	err = recording__add_sched_by(rec, &by);
	return err || !by.by_tid ? err : add_name(rec, record);
}

static int add_syscall(struct recording *rec, const struct mt_record *record)
{
	struct mt_sched call = {.time_ns = record->time_ns,
				.tid = record->tid,
				.tgid = record->tgid,
				.syscall = record->syscall};
	int err;

	if (record->syscall == MT_NO_SYSCALL)
		return 0;
	if (record->kind == MT_RECORD_LONG) {
		call.kind = MT_SCHED_LONG;
		call.took.arg = record->arg;
		call.took.end_ns = record->end_ns;
	} else {
		call.kind = MT_SCHED_SYSCALL;
		call.in.arg = record->arg;
		call.in.owner = record->owner;
	}
	err = recording__add_sched_by(rec, &call);
	return err ? err : add_open_file(rec, record);
}

static int add_sched(struct recording *rec, const struct mt_record *record,
		     enum rec_sched_what what)
{
	struct rec_sched sched = {.time_ns = record->time_ns,
				  .pid = (pid_t)record->tgid,
				  .tid = (pid_t)record->tid,
				  .cpu = record->cpu,
				  .what = what};

	return recording__add_sched(rec, &sched);
}

static int add_interrupts(struct recording *rec, const struct mt_record *record)
{
	return recording__add_sched_by(
		rec, &(struct mt_sched){.time_ns = record->time_ns,
					.tid = record->tid,
					.tgid = record->tgid,
					.kind = MT_SCHED_INTERRUPTS,
					.took = {.arg = record->arg, .end_ns = record->end_ns}});
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

static int add_reclaim(struct recording *rec, const struct mt_record *record)
{
	const struct mt_sched sched = {.time_ns = record->time_ns,
				       .tid = record->tid,
				       .tgid = record->tgid,
				       .kind = MT_SCHED_RECLAIM,
				       .took = {.arg = record->arg, .end_ns = record->end_ns}};
	int err = recording__add_sched_by(rec, &sched);

	return err || record->arg != MT_RECLAIM_CGROUP ? err
						       : note_quota(rec, (pid_t)record->tgid, true);
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

static int take(void *ctx, const struct mt_record *record)
{
	struct recording *rec = ctx;
	int err = 0;

	if (record->time_ns > rec->frozen_ns)
		return 0;
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
		return add_interrupts(rec, record);
	case MT_RECORD_RECLAIM:
		return add_reclaim(rec, record);
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

static int by_thread(const void *a, const void *b)
{
	const struct rec_sched *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* How long perf may take from the switch to its stack. */
#define STACK_LATE_NS 1000000

/* The stack of a switch that perf took, behind the program's record of it, is of that moment. */
static void settle_stacks(struct recording *rec, size_t first_sample, size_t first_sched)
{
	struct rec_sched *scheds = rec->scheds.v + first_sched;
	size_t n = rec->scheds.n - first_sched;

	if (n)
		qsort(scheds, n, sizeof(*scheds), by_thread);
	for (size_t i = first_sample; i < rec->samples.n && n; i++) {
		struct rec_sample *s = &rec->samples.v[i];
		const struct rec_sched key = {.time_ns = s->time_ns, .tid = s->tid};
		size_t at = PARTITION_POINT(scheds, n, sched, by_thread(sched, &key) <= 0);
		const struct rec_sched *left = at ? &scheds[at - 1] : NULL;

		if (s->at_switch && left && left->tid == s->tid && left->what != REC_SCHED_IN &&
		    s->time_ns - left->time_ns < STACK_LATE_NS)
			s->time_ns = left->time_ns;
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

/* The kernel must have been built to count it, and the machine be told. */
static enum rec_steal steal_of(const struct recorder *recorder)
{
	struct steal_facts facts = steal__facts();

	if (facts.is_guest && !recorder__counts_stolen(recorder))
		return REC_STEAL_NOT_TOLD;
	return steal__is_told(&facts) ? REC_STEAL_TOLD : REC_STEAL_NOT_TOLD;
}

/*
 * What one CPU still has, and another has overwritten, would show threads that went from the one to
 * the other with gaps that nobody sees.
 */
int sampling__take_records(struct recorder *recorder, struct recording *rec, size_t first_sample)
{
	size_t first_sched = rec->scheds.n, first_by = rec->sched_bys.n;
	size_t first_taken = rec->taken.n;
	uint64_t since_ns;
	int err = recorder ? recorder__take(recorder, &since_ns, take, rec) : 0;

	if (err || !recorder)
		return err;
	rec->knows_interrupts = recorder__counts_interrupts(recorder);
	rec->knows_taken = recorder__counts_throttled(recorder);
	rec->steal = steal_of(recorder);
	if (since_ns > rec->complete_ns)
		rec->complete_ns = since_ns;
	DROP_BEFORE(&rec->samples, first_sample, time_ns, rec->complete_ns);
	DROP_BEFORE(&rec->scheds, first_sched, time_ns, rec->complete_ns);
	DROP_BEFORE(&rec->sched_bys, first_by, time_ns, rec->complete_ns);
	DROP_BEFORE(&rec->taken, first_taken, until_ns, rec->complete_ns);
	settle_stacks(rec, first_sample, first_sched);
	return 0;
}
