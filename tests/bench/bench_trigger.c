// SPDX-License-Identifier: MIT
/*
 * What one hit below the threshold costs the target, by the instruction under the probe and by who
 * looks at the hit: our BPF program, bpftrace's, or a tracer in user space behind a hardware
 * breakpoint. Functions that differ in their first instruction, called in the same loop. Medians of
 * rounds in which all take turns, so that what else happens on the machine happens to all of them.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../live/own_code.h"
#include "bpftrace.h"
#include "breakpoint.h"
#include "trigger/trigger.h"
#include "trigger_target.h"

#define ROUNDS	9
#define FIRINGS 101
/* No round begins after BUDGET_S, and the one that runs is given up after LIMIT_S: beside busy
 * loops on all CPUs a round may take minutes. The figures are those of the rounds that ended. */
#define BUDGET_S 120
#define LIMIT_S	 300
#define HOUR_NS	 3600000000000ull

struct way {
	const char *name;
	/* Nanoseconds a call, those of the call itself included; < 0: cannot be had here. */
	double (*run)(const struct target *target, const struct way *way);
	victim_fn call;
	uintptr_t probe;
	uint32_t skip; /* of the probe, behind the function's entry */
	uint64_t count;
	uint32_t stack_copy;
};

static void expect_hits(const struct way *way, uint64_t hits)
{
	if (hits == way->count)
		return;
	fprintf(stderr, "bench_trigger: %s: %llu hits in %llu calls\n", way->name,
		(unsigned long long)hits, (unsigned long long)way->count);
	exit(1);
}

static double run_call(const struct target *target, const struct way *way)
{
	return target__call(target, way->call, way->count);
}

static int open_return(const struct target *target, const struct way *way,
		       const struct trigger_config *config)
{
	const uint8_t *code = (const uint8_t *)way->probe;
	size_t len = 0;

	if (!config->returns_by_insn)
		return own_code__probe(target->pid, way->probe, true);
	/* Ours have one. */
	while (code[len] != 0xc3)
		len++;
	return own_code__probe(target->pid, way->probe + len, false);
}

static struct trigger *attach(const struct target *target, const struct way *way,
			      struct trigger_config *config, int events[2])
{
	struct trigger *trigger;

	config->tgid = target->pid;
	trigger = trigger__new(config);
	events[0] = own_code__probe(target->pid, way->probe + way->skip, false);
	events[1] = trigger__needs_return(config) ? open_return(target, way, config) : -1;
	if (!trigger || events[0] < 0 || trigger__attach(trigger, events[0], events[1]) ||
	    trigger__arm(trigger))
		exit(1);
	return trigger;
}

static void detach(struct trigger *trigger, const int events[2])
{
	trigger__free(trigger);
	close(events[0]);
	if (events[1] >= 0)
		close(events[1]);
}

static double run_config(const struct target *target, const struct way *way,
			 struct trigger_config *config)
{
	int events[2];
	struct trigger *trigger = attach(target, way, config, events);
	struct mt_stats stats;
	double ns;

	/* The first hits of an optimised probe are not. */
	target__call(target, way->call, 100);
	ns = target__call(target, way->call, way->count);
	if (trigger__stats(trigger, &stats))
		die("counters");
	expect_hits(way, stats.hits - 100);
	detach(trigger, events);
	return ns;
}

/* Armed, at a threshold that is never reached. */
static double run_delay(const struct target *target, const struct way *way)
{
	return run_config(target, way, &(struct trigger_config){.delay_thresh_ns = HOUR_NS});
}

static double run_duration(const struct target *target, const struct way *way)
{
	return run_config(target, way, &(struct trigger_config){.duration_thresh_ns = HOUR_NS});
}

static double run_insns(const struct target *target, const struct way *way)
{
	return run_config(
		target, way,
		&(struct trigger_config){.duration_thresh_ns = HOUR_NS, .returns_by_insn = true});
}

/* The target calls getppid; `number` is what is probed. */
static double run_probed_syscall(const struct target *target, const struct way *way,
				 struct trigger_config *config, const char *name, int number)
{
	struct trigger_syscall all[] = {{.number = number, .what = {.roles = MT_SYSCALL_RETURNS}},
					{.number = number, .what = {.roles = MT_SYSCALL_HITS}}};
	bool returns = trigger__needs_return(config);
	struct trigger *trigger;
	struct mt_stats stats;
	double ns;

	strcpy(all[0].name, name);
	strcpy(all[1].name, name);
	config->tgid = target->pid;
	config->syscalls = true;
	trigger = trigger__new(config);
	if (!trigger ||
	    trigger__attach_syscalls(trigger, returns ? all : all + 1, returns ? 2 : 1) ||
	    trigger__arm(trigger))
		exit(1);
	ns = target__call(target, way->call, way->count);
	if (trigger__stats(trigger, &stats))
		die("counters");
	if (number == SYS_getppid)
		expect_hits(way, stats.hits);
	trigger__free(trigger);
	return ns;
}

static double run_syscall_delay(const struct target *target, const struct way *way)
{
	return run_probed_syscall(target, way, &(struct trigger_config){.delay_thresh_ns = HOUR_NS},
				  "getppid", SYS_getppid);
}

static double run_syscall_duration(const struct target *target, const struct way *way)
{
	return run_probed_syscall(target, way,
				  &(struct trigger_config){.duration_thresh_ns = HOUR_NS},
				  "getppid", SYS_getppid);
}

/* What all others pay where the kernel has no fentry. */
static double run_other_syscall(const struct target *target, const struct way *way)
{
	return run_probed_syscall(target, way,
				  &(struct trigger_config){.duration_thresh_ns = HOUR_NS}, "fsync",
				  SYS_fsync);
}

/* A call that is looked at by the clock, which is not attached: its cost is per look, not per hit.
 */
static double run_stall(const struct target *target, const struct way *way)
{
	return run_config(
		target, way,
		&(struct trigger_config){.stall_thresh_ns = HOUR_NS, .stall_from = MT_STALL_CALL});
}

static double run_cpu(const struct target *target, const struct way *way)
{
	return run_config(target, way,
			  &(struct trigger_config){.duration_thresh_ns = HOUR_NS,
						   .cpu_measure = MT_CPU_ON,
						   .cpu_thresh_ns = HOUR_NS});
}

/* Four terms, all of them true. */
static double run_filtered(const struct target *target, const struct way *way)
{
	static const struct mt_value arg1 = {
		.from = {.kind = MT_ARG_REGISTER, .base = 112, .size = -4}};
	static const struct mt_reads reads = {.terms = {arg1, arg1}};
	static const struct mt_term terms[MT_TERMS] = {
		{.field = MT_FIELD_ARG, .op = MT_OP_NE, .value = 0x123456},
		{.field = MT_FIELD_ARG, .op = MT_OP_NE, .value = 0x123457},
		{.field = MT_FIELD_TID, .op = MT_OP_NE, .value = 1},
		{.field = MT_FIELD_COMM, .op = MT_OP_NE},
	};

	return run_config(target, way,
			  &(struct trigger_config){.delay_thresh_ns = HOUR_NS,
						   .reads = &reads,
						   .n_reads = 1,
						   .terms = terms,
						   .n_terms = MT_TERMS});
}

/* Delays of one key, which is read behind a pointer: the stack pointer's. */
static double run_keyed(const struct target *target, const struct way *way)
{
	static const struct mt_reads reads = {
		.key = {.from = {.kind = MT_ARG_REGISTER, .base = 152, .size = 8},
			.n_derefs = 1,
			.size = 8}};

	return run_config(
		target, way,
		&(struct trigger_config){
			.delay_thresh_ns = HOUR_NS, .reads = &reads, .n_reads = 1, .by_key = true});
}

/* Durations, with a string of so many bytes that each entry reads and keeps for the return. */
static double run_printed(const struct target *target, const struct way *way)
{
	static const struct mt_reads reads = {
		.prints = {{.kind = MT_PRINT_BYTES,
			    .value = {.from = {.kind = MT_ARG_REGISTER, .base = 152, .size = 8}},
			    .length = {.from = {.kind = MT_ARG_CONSTANT, .value = 32}}}}};

	return run_config(target, way,
			  &(struct trigger_config){.duration_thresh_ns = HOUR_NS,
						   .reads = &reads,
						   .n_reads = 1,
						   .n_prints = 1});
}

/* The program decides, and nothing is hit. */
static double run_unhit(const struct target *target, const struct way *way)
{
	struct trigger_config config = {.duration_thresh_ns = HOUR_NS, .since_mark = true};
	int events[2];
	struct trigger *trigger = attach(target, way, &config, events);
	double ns = target__call(target, way->call, way->count);
	struct mt_stats stats;

	if (trigger__stats(trigger, &stats) || stats.hits)
		die("the library hit");
	detach(trigger, events);
	return ns;
}

static double run_bpftrace(const struct target *target, const struct way *way)
{
	struct bpftrace bpftrace;
	double ns;

	if (!bpftrace__start(&bpftrace, target->pid))
		return -1;
	ns = target__call(target, way->call, way->count);
	expect_hits(way, bpftrace__stop(&bpftrace));
	return ns;
}

static double run_breakpoint(const struct target *target, const struct way *way)
{
	struct breakpoint breakpoint;
	double ns;

	breakpoint__open(&breakpoint, target->pid, way->call);
	breakpoint__watch(&breakpoint);
	ns = target__call(target, way->call, way->count);
	expect_hits(way, breakpoint__close(&breakpoint));
	if (!breakpoint.bytes)
		die("no sample of the breakpoint was read");
	return ns;
}

/* Without a ring there is nothing to write and nobody to wake: the trap alone. */
static double run_bare_breakpoint(const struct target *target, const struct way *way)
{
	struct breakpoint breakpoint;
	double ns;

	breakpoint__open(&breakpoint, target->pid, way->call);
	ns = target__call(target, way->call, way->count);
	expect_hits(way, breakpoint__close(&breakpoint));
	return ns;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* A hit that fires, and copies so much of the stack: the median of some. */
static double run_firing(const struct target *target, const struct way *way)
{
	struct trigger_config config = {.stack_copy = way->stack_copy};
	const struct command command = {.call = way->call, .deep = true};
	int events[2];
	struct trigger *trigger = attach(target, way, &config, events);
	double ns[FIRINGS];
	struct mt_hit hit;

	for (int i = 0; i < FIRINGS; i++) {
		if (trigger__arm(trigger))
			exit(1);
		ns[i] = (double)target__run(target, &command);
		if (trigger__next(trigger, &hit) != 1 || hit.copied != way->stack_copy)
			die("no hit, or not its stack");
	}
	detach(trigger, events);
	qsort(ns, FIRINGS, sizeof(*ns), compare_doubles);
	return ns[FIRINGS / 2];
}

/* A way whose probe is at the function that is called. */
#define AT(function) function, (uintptr_t)function
#define LIBRARY	     (uintptr_t) mtbpf_hit

static const struct way ways[] = {
	/* The two that others are compared with. */
	{"call, no probe", run_call, AT(victim_push), 0, 5000000, 0},
	{"push (emulated)", run_delay, AT(victim_push), 0, 200000, 0},
	{"nop (emulated)", run_delay, AT(victim_nop), 0, 200000, 0},
	{"5-byte nop (optimised since 6.18)", run_delay, AT(victim_nop5), 0, 200000, 0},
	{"endbr64 skipped: the push behind it", run_delay, AT(victim_endbr64), 4, 200000, 0},
	{"endbr64 itself (single-stepped)", run_delay, AT(victim_endbr64), 0, 20000, 0},
	{"push and uretprobe: durations", run_duration, AT(victim_push), 0, 100000, 0},
	{"push and ret-insns: durations", run_insns, AT(victim_push), 0, 20000, 0},
	{"and that looked at: -stall-thresh", run_stall, AT(victim_push), 0, 100000, 0},
	{"and its time on the CPU: -cpu-thresh", run_cpu, AT(victim_push), 0, 100000, 0},
	{"push, and four terms of -if", run_filtered, AT(victim_push), 0, 200000, 0},
	{"push, and -key of a member", run_keyed, AT(victim_push), 0, 200000, 0},
	{"durations, and -print of 32 bytes", run_printed, AT(victim_push), 0, 100000, 0},
	{"library: mtbpf_take_snapshot()", run_delay, victim_library, LIBRARY, 0, 200000, 0},
	{"library: mtbpf_min_duration(), no hit", run_unhit, victim_library_if_slow, LIBRARY, 0,
	 1000000, 0},
	{"bpftrace, a latch and a compare", run_bpftrace, AT(victim_push), 0, 100000, 0},
	{"breakpoint that only counts", run_bare_breakpoint, AT(victim_push), 0, 20000, 0},
	{"breakpoint and a reader of it", run_breakpoint, AT(victim_push), 0, 20000, 0},
	{"a hit that fires", run_firing, AT(victim_push), 0, 1, 0},
	{"and copies 16 KiB of the stack", run_firing, AT(victim_push), 0, 1, 16 << 10},
	{"and copies 60 KiB of the stack", run_firing, AT(victim_push), 0, 1, 60 << 10},
	{"getppid, a system call", run_call, NULL, 0, 0, 500000, 0},
	{"getppid that is probed: delays", run_syscall_delay, NULL, 0, 0, 200000, 0},
	{"getppid that is probed: durations", run_syscall_duration, NULL, 0, 0, 200000, 0},
	{"getppid while fsync is probed", run_other_syscall, NULL, 0, 0, 200000, 0},
};

enum { N_WAYS = sizeof(ways) / sizeof(ways[0]), CALL = 0, PUSH = 1 };

static sigjmp_buf give_up;
/* The way that runs, for the message if it is given up. */
static const struct way *volatile running;

static void on_alarm(int signal)
{
	siglongjmp(give_up, signal);
}

static double median(const double *values, int rounds)
{
	double sorted[ROUNDS];

	memcpy(sorted, values, sizeof(*sorted) * (size_t)rounds);
	qsort(sorted, (size_t)rounds, sizeof(*sorted), compare_doubles);
	return sorted[rounds / 2];
}

/* Without the call itself, which all of them have. */
static void run_round(const struct target *target, double figures[N_WAYS][ROUNDS], int round)
{
	for (int i = 0; i < N_WAYS; i++) {
		double ns;

		running = &ways[i];
		ns = ways[i].run(target, running);
		figures[i][round] =
			i == CALL || ways[i].run == run_firing ? ns : ns - figures[CALL][round];
	}
}

static void print_figures(double figures[N_WAYS][ROUNDS], int rounds)
{
	double push = median(figures[PUSH], rounds);

	printf("%-38s %10s %8s\n", "a hit of the probe", "ns", "ratio");
	for (int i = 0; i < N_WAYS; i++) {
		double ns = median(figures[i], rounds);

		if (ns < 0)
			printf("%-38s %10s\n", ways[i].name, "not here");
		else
			printf("%-38s %10.1f %8.2f\n", ways[i].name, ns, ns / push);
	}
}

int main(void)
{
	static double figures[N_WAYS][ROUNDS];
	static struct target target;
	volatile int rounds = 0;
	uint64_t start = clock__now_ns();

	if (geteuid()) {
		printf("# skip: needs root for uprobes and BPF\n");
		return 0;
	}
	target__start(&target);
	signal(SIGALRM, on_alarm);
	alarm(LIMIT_S);
	if (sigsetjmp(give_up, 1)) {
		printf("# given up after %d s in '%s': the machine is too busy\n", LIMIT_S,
		       running->name);
	} else {
		while (rounds < ROUNDS && clock__now_ns() - start < BUDGET_S * 1000000000ull) {
			run_round(&target, figures, rounds);
			rounds++;
		}
		target__stop(&target);
	}
	if (rounds < ROUNDS)
		printf("# medians of %d rounds instead of %d\n", rounds, ROUNDS);
	if (rounds)
		print_figures(figures, rounds);
	return !rounds;
}
