// SPDX-License-Identifier: MIT
#include "trigger/recorder.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/kernel.h"
#include "recorder.skel.h"
#include "trigger.skel.h"
#include "trigger/trigger_internal.h"
#include "util/clock.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/vec.h"

#define PROGRAM(name) offsetof(struct recorder_bpf, progs.name)

/* The tracepoints at both ends of what takes time from the current thread. */
static const struct tracepoints {
	const char *begin, *end;
	size_t on_begin, on_end; /* the programs, in the skeleton */
} tracepoints[] = {
	{"irq_handler_entry", "irq_handler_exit", PROGRAM(on_hard_begin), PROGRAM(on_hard_end)},
	{"local_timer_entry", "local_timer_exit", PROGRAM(on_hard_begin), PROGRAM(on_hard_end)},
	/* Requests from other CPUs: mostly TLB flushes. */
	{"call_function_entry", "call_function_exit", PROGRAM(on_hard_begin), PROGRAM(on_hard_end)},
	{"call_function_single_entry", "call_function_single_exit", PROGRAM(on_hard_begin),
	 PROGRAM(on_hard_end)},
	{"softirq_entry", "softirq_exit", PROGRAM(on_soft_begin), PROGRAM(on_soft_end)},
	{"mm_vmscan_memcg_reclaim_begin", "mm_vmscan_memcg_reclaim_end", PROGRAM(on_reclaim_begin),
	 PROGRAM(on_cgroup_reclaim_end)},
	{"mm_vmscan_direct_reclaim_begin", "mm_vmscan_direct_reclaim_end",
	 PROGRAM(on_reclaim_begin), PROGRAM(on_direct_reclaim_end)},
	{"mm_compaction_begin", "mm_compaction_end", PROGRAM(on_reclaim_begin),
	 PROGRAM(on_compaction_end)},
};
#define TRACEPOINTS (sizeof(tracepoints) / sizeof(tracepoints[0]))
/* The first INTERRUPTS of `tracepoints` are those of interrupts. */
#define INTERRUPTS 5

struct recorder {
	struct recorder_bpf *skel;
	struct bpf_link *links[TRACEPOINTS][2];
	struct children *children;
	struct mt_cpu *cpus; /* mapped */
	const struct mt_record *logs;
	size_t n_cpus;	   /* CPUs that the kernel may have */
	size_t n_slots;	   /* online */
	uint32_t log_size; /* records of each */
	/*
	 * Rings of stacks, each with room for one more stack after its end (ring_step: with that
	 * room). ring_size is 0 without rings.
	 */
	const uint8_t *rings;
	size_t ring_size, ring_step;
	uint64_t since_ns;
	bool from_exec; /* the next recorder__begin() waits for an execve */
	bool counts_interrupts;
};

/*
 * True if the recorder uses the trigger's set of processes, which includes those forked since it
 * was made.
 */
static bool shares_targets(const struct recorder_config *config)
{
	return config->trigger && config->n_tgids;
}

/* Shares the trigger's maps: its freezer, its targets, and the threads in regions. */
static int share(struct recorder_bpf *skel, const struct recorder_config *config)
{
	const struct trigger_bpf *trigger = config->trigger ? trigger__skel(config->trigger) : NULL;
	bool has_regions = trigger && config->with_regions;
	int err =
		trigger ? bpf_map__reuse_fd(skel->maps.freezer, bpf_map__fd(trigger->maps.freezer))
			: 0;

	if (!err && shares_targets(config))
		err = bpf_map__reuse_fd(skel->maps.target_tgids,
					bpf_map__fd(trigger->maps.target_tgids));
	skel->rodata->has_regions = has_regions;
	if (!err && has_regions)
		err = bpf_map__reuse_fd(skel->maps.open_regions,
					bpf_map__fd(trigger->maps.open_regions));
	else if (!err)
		err = bpf_map__set_autocreate(skel->maps.open_regions, false);
	return err;
}

/* The verifier refuses offsets of more than 512 MiB in a map's value (BPF_MAX_VAR_OFF). */
#define RING_MAX (256u << 20)

static int size_maps(struct recorder *r, const struct recorder_config *config)
{
	const size_t longest =
		config->stack_copy ? MT_STACK_MAX : sizeof(struct mt_stack) + 8 * MT_STACK_IPS;
	struct recorder_bpf *skel = r->skel;
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	int err, n = libbpf_num_possible_cpus();

	if (n < 0)
		return n;
	r->n_cpus = (size_t)n;
	r->n_slots = online > 0 && online < n ? (size_t)online : (size_t)n;
	r->log_size = 1;
	while (r->log_size * sizeof(struct mt_record) < config->log_size)
		r->log_size *= 2;
	skel->rodata->log_size = r->log_size;
	err = bpf_map__set_max_entries(skel->maps.cpus, (uint32_t)n);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.cpu_logs,
					       (uint32_t)r->n_slots * r->log_size);
	if (err || !config->stacks_size)
		return err;
	r->ring_size = 4096;
	while (r->ring_size < config->stacks_size && r->ring_size < RING_MAX)
		r->ring_size *= 2;
	r->ring_step = r->ring_size + (longest + 7) / 8 * 8;
	skel->rodata->stacks_size = r->ring_size;
	skel->rodata->stack_copy = config->stack_copy;
	err = bpf_map__set_value_size(skel->maps.stacks, (uint32_t)r->ring_step);
	return err ? err : bpf_map__set_max_entries(skel->maps.stacks, (uint32_t)r->n_slots);
}

static int configure(struct recorder *r, const struct recorder_config *config)
{
	struct recorder_bpf *skel = r->skel;
	bool logs_calls = config->syscall_thresh_ns != 0;
	struct stat st = {0};
	int err;

	skel->rodata->target_tgid = (uint32_t)config->tgid;
	skel->rodata->of_several = config->n_tgids != 0;
	if (!config->tgid && !config->n_tgids) {
		if (fstat(config->cgroup_fd, &st))
			return -errno;
		skel->rodata->target_cgroup_id = st.st_ino;
		skel->rodata->target_cgroup_level = cgroup__level(config->cgroup_fd);
	}
	r->from_exec = config->from_exec;
	err = bpf_program__set_autoload(skel->progs.on_exec, config->from_exec);
	if (!err)
		err = bpf_map__set_autocreate(skel->maps.target_cgroups, false);
	/*
	 * The tracepoints of system calls slow down every process of the machine, so they are
	 * loaded only if needed.
	 */
	skel->rodata->syscall_thresh_ns = config->syscall_thresh_ns;
	if (!err)
		err = bpf_program__set_autoload(skel->progs.on_sys_enter, logs_calls);
	if (!err)
		err = bpf_program__set_autoload(skel->progs.on_sys_exit, logs_calls);
	if (!err)
		err = bpf_map__set_autocreate(skel->maps.begun_calls, logs_calls);
	if (!err)
		err = share(skel, config);
	return err ? err : size_maps(r, config);
}

/* Returns NULL, with errno, on failure. */
static void *map(const struct bpf_map *map, size_t size, int prot)
{
	void *p = mmap(NULL, size, prot, MAP_SHARED, bpf_map__fd(map), 0);

	return p == MAP_FAILED ? NULL : p;
}

static void detach(struct recorder *r, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < 2; k++) {
			bpf_link__destroy(r->links[i][k]);
			r->links[i][k] = NULL;
		}
	}
}

static const struct bpf_program *program_at(const struct recorder *r, size_t offset)
{
	return *(struct bpf_program *const *)((const char *)r->skel + offset);
}

static bool attach_pair(struct recorder *r, size_t i)
{
	const struct tracepoints *t = &tracepoints[i];

	/* An end without a begin counts nothing: this order leaves no begin without its end. */
	r->links[i][1] = bpf_program__attach_raw_tracepoint(program_at(r, t->on_end), t->end);
	if (r->links[i][1])
		r->links[i][0] =
			bpf_program__attach_raw_tracepoint(program_at(r, t->on_begin), t->begin);
	if (!r->links[i][0])
		log__debug("time in %s is not counted: %s", t->begin, strerror(errno));
	return r->links[i][0] != NULL;
}

static int load(struct recorder *r, const struct recorder_config *config)
{
	struct recorder_bpf *skel;
	uint32_t slot = 0;
	int err;

	skel = r->skel = recorder_bpf__open();
	if (!skel)
		return -errno;
	err = configure(r, config);
	if (!err)
		err = recorder_bpf__load(skel);
	/* libbpf does not map the data if one of its feature probes has failed. */
	if (!err && !skel->data)
		err = -ENOMEM;
	if (err)
		return err;
	r->cpus = map(skel->maps.cpus, r->n_cpus * sizeof(*r->cpus), PROT_READ | PROT_WRITE);
	r->logs = r->cpus ? map(skel->maps.cpu_logs,
				r->n_slots * r->log_size * sizeof(struct mt_record), PROT_READ)
			  : NULL;
	if (r->logs && r->ring_size)
		r->rings = map(skel->maps.stacks, r->n_slots * r->ring_step, PROT_READ);
	if (!r->logs || (r->ring_size && !r->rings))
		return -errno;
	/* Slots are only for CPUs that are online. */
	for (size_t cpu = 0; cpu < r->n_cpus && slot < r->n_slots; cpu++) {
		char path[64];

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%zu/online", cpu);
		/* Stacks begin at 8, because position 0 in a record means that it has no stack. */
		r->cpus[cpu].stacks_end = 8;
		if (fs__read_number(path, 1) == 1)
			r->cpus[cpu].slot = ++slot;
	}
	return 0;
}

/* Attaches the programs to the scheduler, and to what takes time from threads. */
static int attach(struct recorder *r, const struct recorder_config *config)
{
	int err, tgids = bpf_map__fd(r->skel->maps.target_tgids);
	const uint8_t value = 1;

	for (size_t i = 0; i < config->n_tgids && !shares_targets(config); i++)
		if (bpf_map_update_elem(tgids, &config->tgids[i], &value, BPF_ANY))
			return -errno;
	if (config->with_children && !shares_targets(config)) {
		r->children = children__new(tgids);
		if (!r->children)
			return -errno;
	}
	err = recorder_bpf__attach(r->skel);
	if (err)
		return err;
	/*
	 * If one of the tracepoints is missing, the interrupt time would be too short: none is
	 * counted.
	 */
	r->counts_interrupts = true;
	for (size_t i = 0; i < INTERRUPTS && r->counts_interrupts; i++)
		r->counts_interrupts = attach_pair(r, i);
	if (!r->counts_interrupts)
		detach(r, INTERRUPTS);
	for (size_t i = INTERRUPTS; i < TRACEPOINTS; i++)
		attach_pair(r, i);
	return 0;
}

struct recorder *recorder__new(const struct recorder_config *config)
{
	struct recorder *r;
	uint64_t dev, ino;
	int err;

	/*
	 * The BPF programs use ids of the initial pid namespace, which differ from ours in another
	 * one.
	 */
	if (pid_namespace__is_own(&dev, &ino)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	libbpf_set_print(trigger__print_libbpf);
	err = load(r, config);
	if (!err)
		err = attach(r, config);
	if (!err)
		return r;
	log__debug("no recorder in the kernel: %s", strerror(-err));
	recorder__free(r);
	errno = -err;
	return NULL;
}

void recorder__free(struct recorder *r)
{
	if (!r)
		return;
	children__free(r->children);
	detach(r, TRACEPOINTS);
	if (r->cpus)
		munmap(r->cpus, r->n_cpus * sizeof(struct mt_cpu));
	if (r->logs)
		munmap((void *)r->logs, r->n_slots * r->log_size * sizeof(struct mt_record));
	if (r->rings)
		munmap((void *)r->rings, r->n_slots * r->ring_step);
	recorder_bpf__destroy(r->skel);
	free(r);
}

struct recorder_abilities recorder__abilities(const struct recorder *r)
{
	return (struct recorder_abilities){.interrupts = r->counts_interrupts,
					   .throttled = r->skel->bss->counts_throttled,
					   .stolen = r->skel->bss->counts_stolen};
}

int recorder__gate(const struct recorder *r)
{
	return bpf_program__fd(r->skel->progs.on_clock);
}

int recorder__switch_gate(const struct recorder *r)
{
	return bpf_program__fd(r->skel->progs.on_switch_stack);
}

void recorder__begin(struct recorder *r)
{
	for (size_t i = 0; i < r->n_cpus; i++)
		r->cpus[i].interrupts_ns = 0;
	for (size_t i = 0; i < r->n_cpus; i++)
		r->cpus[i].stacks_begun = r->cpus[i].stacks_end;
	r->since_ns = clock__now_ns();
	if (!r->from_exec)
		r->skel->data->stopped = 0;
	r->from_exec = false;
}

void recorder__stop(struct recorder *r)
{
	r->skel->data->stopped = 1;
}

int recorder__count(const struct recorder *r, struct recorder_counts *counts)
{
	*counts = (struct recorder_counts){0};
	for (size_t i = 0; i < r->n_cpus; i++) {
		counts->switches += r->cpus[i].n_left;
		counts->samples += r->cpus[i].n_clock;
	}
	return 0;
}

typedef VEC(struct mt_record) record_vec;

size_t recorder__ring_size(const struct recorder *r)
{
	return r->ring_size;
}

uint64_t recorder__lookback_ns(const struct recorder *r)
{
	uint64_t ran_ns = clock__now_ns() - r->since_ns, most = 0;

	for (size_t i = 0; i < r->n_cpus; i++) {
		uint64_t written = r->cpus[i].stacks_end - r->cpus[i].stacks_begun;

		most = written > most ? written : most;
	}
	return most ? (uint64_t)((double)ran_ns * (double)r->ring_size / (double)most) : UINT64_MAX;
}

/*
 * Converts a record's `stack` (the lower 32 bits of a position in units of 8 bytes) to the position
 * in bytes, counted since the ring was created.
 */
static uint64_t place_of(const struct mt_cpu *cpu, uint32_t stack)
{
	uint64_t end = cpu->stacks_end / 8;
	uint64_t at = (end & ~(uint64_t)UINT32_MAX) | stack;

	if (at >= end && at > UINT32_MAX)
		at -= (uint64_t)UINT32_MAX + 1;
	return 8 * at;
}

bool recorder__find_stack(const struct recorder *r, const struct mt_record *record,
			  struct recorder_stack *out)
{
	bool has_one = record->kind == MT_RECORD_BLOCKED || record->kind == MT_RECORD_PREEMPTED;
	const struct mt_cpu *cpu = record->cpu < r->n_cpus ? &r->cpus[record->cpu] : NULL;
	const struct mt_stack *stack;
	uint64_t at;

	if (!has_one || !record->stack || !cpu || !cpu->slot || !r->ring_size)
		return false;
	at = place_of(cpu, record->stack);
	stack = (const struct mt_stack *)(r->rings + (cpu->slot - 1) * r->ring_step +
					  (at & (r->ring_size - 1)));
	if (at + r->ring_size < cpu->stacks_end || stack->time_ns != record->time_ns ||
	    stack->tid != record->tid || stack->n_ips > MT_STACK_IPS ||
	    stack->n_copied > MT_COPY_MAX)
		return false;
	*out = (struct recorder_stack){.ips = stack->ips,
				       .n_ips = stack->n_ips,
				       .regs = stack->regs,
				       .copy = (const uint8_t *)&stack->ips[stack->n_ips],
				       .size = stack->n_copied};
	return true;
}

ORDER(by_time, struct mt_record, COMPARE(x->time_ns, y->time_ns))

/*
 * Adds the CPU's records. Raises *since_ns to the time from which on they are complete: if the log
 * has wrapped, when its oldest record was written; if the ring of stacks has, the time of its
 * oldest stack.
 */
static int copy_log(const struct recorder *r, const struct mt_cpu *cpu, record_vec *out,
		    uint64_t *since_ns)
{
	const struct mt_record *log = &r->logs[(size_t)(cpu->slot - 1) * r->log_size];
	bool is_round = cpu->n_records > r->log_size;
	bool is_ring_round = r->ring_size && cpu->stacks_end - cpu->stacks_begun > r->ring_size;
	uint64_t oldest_ns = UINT64_MAX, oldest_stack_ns = UINT64_MAX;
	struct recorder_stack stack;
	size_t first = out->n;

	for (uint32_t i = 0; i < r->log_size && (is_round || i < cpu->n_records); i++) {
		struct mt_record *record = VEC_PUSH(out);
		uint64_t written_ns;

		if (!record)
			return -ENOMEM;
		if (!log_entry__copy(record, &log[i], sizeof(*record))) {
			out->n--;
			continue;
		}
		/* A record of something that took time was written at its end. */
		written_ns = record->kind == MT_RECORD_LONG ||
					     record->kind == MT_RECORD_INTERRUPTS ||
					     record->kind == MT_RECORD_RECLAIM
				     ? record->end_ns
				     : record->time_ns;
		if (written_ns < oldest_ns)
			oldest_ns = written_ns;
		if (written_ns < r->since_ns)
			out->n--;
	}
	if (is_round && oldest_ns != UINT64_MAX && oldest_ns > *since_ns)
		*since_ns = oldest_ns;
	for (size_t i = first; i < out->n && is_ring_round; i++)
		if (out->v[i].time_ns < oldest_stack_ns &&
		    recorder__find_stack(r, &out->v[i], &stack))
			oldest_stack_ns = out->v[i].time_ns;
	if (oldest_stack_ns != UINT64_MAX && oldest_stack_ns > *since_ns)
		*since_ns = oldest_stack_ns;
	return 0;
}

int recorder__take(struct recorder *r, uint64_t *since_ns,
		   int (*take)(void *ctx, const struct mt_record *record), void *ctx)
{
	record_vec records = {0};
	int err = 0;

	recorder__stop(r);
	*since_ns = r->since_ns;
	for (size_t i = 0; i < r->n_cpus && !err; i++) {
		const struct mt_cpu *cpu = &r->cpus[i];
		/* The interrupt time that was not yet recorded when the recorder stopped. */
		const struct mt_record interrupts = {.time_ns = cpu->interrupts_from_ns,
						     .end_ns = cpu->interrupts_to_ns,
						     .arg = cpu->interrupts_ns,
						     .tid = cpu->interrupts_tid,
						     .tgid = cpu->interrupts_tgid,
						     .kind = MT_RECORD_INTERRUPTS,
						     .syscall = MT_NO_SYSCALL};

		if (!cpu->slot)
			continue;
		err = copy_log(r, cpu, &records, since_ns);
		if (!err && cpu->interrupts_ns)
			err = VEC_ADD(&records, interrupts);
	}
	VEC_SORT(&records, by_time);
	for (size_t i = 0; i < records.n && !err; i++)
		err = take(ctx, &records.v[i]);
	VEC_FINI(&records);
	return err;
}
