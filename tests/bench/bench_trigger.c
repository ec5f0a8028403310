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
#include "capture/perf/perf_clock.h"
#include "capture/probe/breakpoint_event.h"
#include "trigger/trigger.h"
#include "trigger_target.h"
#include "util/log.h"

#define ROUNDS	9
#define FIRINGS 101
/*
 * No round begins after BUDGET_S, and what runs is given up after LIMIT_S: beside busy loops on all
 * CPUs a round may take minutes. The figures are those of the rows that have ended by then.
 */
#define BUDGET_S 100
#define LIMIT_S	 170
#define HOUR_NS	 3600000000000ull
/* A figure that this machine cannot give. */
#define NOT_HERE -1e18

struct way {
	const char *name;
	/* Nanoseconds per call, those of the call itself included; or NOT_HERE. */
	double (*run)(const struct target *target, const struct way *way);
	victim_fn call;
	uintptr_t probe;
	uint32_t skip; /* of the probe, behind the function's entry */
	uint64_t count;
	uint32_t stack_copy;
	bool is_unhit; /* none of the calls is a hit */
	/* What is subtracted: the number of the row that is the same without a probe; 0: the call.
	 */
	int base;
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

static void start_clock(struct trigger *trigger, uint64_t stall_thresh_ns)
{
	int clock = perf_clock__open_timer(trigger__stall_period_ns(stall_thresh_ns));

	if (clock < 0 || trigger__attach_clock(trigger, clock))
		die("the clock of -stall-thresh");
	close(clock);
}

static double run_config(const struct target *target, const struct way *way,
			 struct trigger_config *config)
{
	int events[2];
	struct trigger *trigger = attach(target, way, config, events);
	struct mt_stats stats;
	double ns;

	if (config->limits.stall_thresh_ns)
		start_clock(trigger, config->limits.stall_thresh_ns);
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

/* Sets the probes of the kind in the kernel. The target calls getppid, or what way->call has. */
static double run_in_kernel(const struct target *target, const struct way *way,
			    struct trigger_config *config, const struct kernel_probe *what)
{
	struct kernel_probe all[] = {*what, *what};
	enum log_level level;
	struct trigger *trigger;
	struct mt_stats stats;
	double ns;
	int err;

	all[0].what.roles = MT_ROLE_RETURNS;
	all[1].what.roles = MT_ROLE_HITS;
	config->tgid = target->pid;
	config->kernel_probes = trigger__needs_return(config) ? all : all + 1;
	config->n_kernel_probes = trigger__needs_return(config) ? 2 : 1;
	trigger = trigger__new(config);
	if (!trigger)
		exit(1);
	/* The table says why, once. */
	level = log__level();
	log__set_level(LOG_SILENT);
	err = trigger__attach_kernel_probes(trigger, config->kernel_probes,
					    config->n_kernel_probes);
	log__set_level(level);
	if (err) {
		trigger__free(trigger);
		return NOT_HERE;
	}
	if (trigger__arm(trigger))
		exit(1);
	ns = target__call(target, way->call, way->count);
	if (trigger__stats(trigger, &stats))
		die("counters");
	if (!way->is_unhit)
		expect_hits(way, stats.hits);
	trigger__free(trigger);
	return ns;
}

static const struct kernel_probe getppid_probe = {
	.kind = KERNEL_PROBE_SYSCALL, .name = "getppid", .number = SYS_getppid};

static double run_syscall_delay(const struct target *target, const struct way *way)
{
	return run_in_kernel(target, way, &(struct trigger_config){.delay_thresh_ns = HOUR_NS},
			     &getppid_probe);
}

static double run_syscall_duration(const struct target *target, const struct way *way)
{
	return run_in_kernel(target, way, &(struct trigger_config){.duration_thresh_ns = HOUR_NS},
			     &getppid_probe);
}

/* What all other system calls pay if the kernel has no fentry. */
static double run_other_syscall(const struct target *target, const struct way *way)
{
	return run_in_kernel(target, way, &(struct trigger_config){.duration_thresh_ns = HOUR_NS},
			     &(struct kernel_probe){.kind = KERNEL_PROBE_SYSCALL,
						    .name = "fsync",
						    .number = SYS_fsync});
}

/* The kernel's function that does getppid. */
static const struct kernel_probe function_probe = {.kind = KERNEL_PROBE_FUNCTION,
						   .name = "__x64_sys_getppid"};

static double run_function_delay(const struct target *target, const struct way *way)
{
	return run_in_kernel(target, way, &(struct trigger_config){.delay_thresh_ns = HOUR_NS},
			     &function_probe);
}

static double run_function_duration(const struct target *target, const struct way *way)
{
	return run_in_kernel(target, way, &(struct trigger_config){.duration_thresh_ns = HOUR_NS},
			     &function_probe);
}

/* A tracepoint that each signal passes. */
static double run_tracepoint(const struct target *target, const struct way *way)
{
	return run_in_kernel(
		target, way, &(struct trigger_config){.delay_thresh_ns = HOUR_NS},
		&(struct kernel_probe){.kind = KERNEL_PROBE_TRACEPOINT, .name = "signal_generate"});
}

static double run_signal(const struct target *target, const struct way *way)
{
	return run_in_kernel(target, way, &(struct trigger_config){.delay_thresh_ns = HOUR_NS},
			     &(struct kernel_probe){.kind = KERNEL_PROBE_SIGNAL,
						    .name = "signal_deliver",
						    .signals = 1ull << SIGUSR1});
}

/* The same signal, of which another number is probed. */
static double run_other_signal(const struct target *target, const struct way *way)
{
	return run_in_kernel(target, way, &(struct trigger_config){.delay_thresh_ns = HOUR_NS},
			     &(struct kernel_probe){.kind = KERNEL_PROBE_SIGNAL,
						    .name = "signal_deliver",
						    .signals = 1ull << SIGSEGV});
}

static double run_stall(const struct target *target, const struct way *way)
{
	return run_config(target, way,
			  &(struct trigger_config){.limits.stall_thresh_ns = HOUR_NS,
						   .stall_from = MT_STALL_CALL});
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

static double run_bpftrace_at(const struct target *target, const struct way *way,
			      const char *kprobe)
{
	struct bpftrace bpftrace;
	int64_t hits;
	double ns;

	if (!bpftrace__start(&bpftrace, target->pid, kprobe))
		return NOT_HERE;
	ns = target__call(target, way->call, way->count);
	hits = bpftrace__stop(&bpftrace);
	if (hits < 0)
		return NOT_HERE;
	expect_hits(way, (uint64_t)hits);
	return ns;
}

static double run_bpftrace(const struct target *target, const struct way *way)
{
	return run_bpftrace_at(target, way, NULL);
}

static double run_bpftrace_kprobe(const struct target *target, const struct way *way)
{
	return run_bpftrace_at(target, way, function_probe.name);
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

/* As the trigger's, of JIT code: on each CPU, with the program that decides. */
static double run_jit(const struct target *target, const struct way *way)
{
	const struct kernel_probe probe = {.kind = KERNEL_PROBE_BREAKPOINT};
	const struct trigger_config config = {.tgid = target->pid,
					      .delay_thresh_ns = HOUR_NS,
					      .kernel_probes = &probe,
					      .n_kernel_probes = 1};
	struct trigger *trigger = trigger__new(&config);
	long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct mt_stats stats;
	double ns;

	for (int cpu = 0; cpu < n_cpus; cpu++) {
		int event = breakpoint_event__open(cpu, (uintptr_t)way->call);

		if (!trigger || event < 0 || trigger__attach_breakpoint(trigger, event, &probe))
			die("a breakpoint with a program");
		close(event);
	}
	if (trigger__arm(trigger))
		exit(1);
	ns = target__call(target, way->call, way->count);
	if (trigger__stats(trigger, &stats))
		die("counters");
	expect_hits(way, stats.hits);
	trigger__free(trigger);
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

/* Rows that others are compared with: their numbers. */
enum { CALL, PUSH, SYSCALL, SIGNAL };

/* A way whose probe is at the function that is called. */
#define AT(function) function, (uintptr_t)function
#define LIBRARY	     (uintptr_t) mtbpf_hit

static const struct way ways[] = {
	{"call, no probe", run_call, AT(victim_push), 0, 5000000, 0, .base = CALL},
	{"push (emulated)", run_delay, AT(victim_push), 0, 200000, 0, .base = CALL},
	{"getppid, a system call", run_call, NULL, 0, 0, 200000, 0, .base = CALL},
	{"a signal with a handler", run_call, victim_signal, 0, 0, 50000, 0, .base = CALL},
	{"nop (emulated)", run_delay, AT(victim_nop), 0, 200000, 0, .base = CALL},
	{"5-byte nop (optimised since 6.18)", run_delay, AT(victim_nop5), 0, 200000, 0,
	 .base = CALL},
	{"endbr64 skipped: the push behind it", run_delay, AT(victim_endbr64), 4, 200000, 0,
	 .base = CALL},
	{"endbr64 itself (single-stepped)", run_delay, AT(victim_endbr64), 0, 20000, 0,
	 .base = CALL},
	{"push and uretprobe: durations", run_duration, AT(victim_push), 0, 100000, 0,
	 .base = CALL},
	{"push and ret-insns: durations", run_insns, AT(victim_push), 0, 20000, 0, .base = CALL},
	{"and -stall-thresh with its clock", run_stall, AT(victim_push), 0, 100000, 0,
	 .base = CALL},
	{"and its time on the CPU: -cpu-thresh", run_cpu, AT(victim_push), 0, 100000, 0,
	 .base = CALL},
	{"push, and four terms of -if", run_filtered, AT(victim_push), 0, 200000, 0, .base = CALL},
	{"push, and -key of a member", run_keyed, AT(victim_push), 0, 200000, 0, .base = CALL},
	{"durations, and -print of 32 bytes", run_printed, AT(victim_push), 0, 100000, 0,
	 .base = CALL},
	{"library: mtbpf_take_snapshot()", run_delay, victim_library, LIBRARY, 0, 200000, 0,
	 .base = CALL},
	{"library: mtbpf_min_duration(), no hit", run_unhit, victim_library_if_slow, LIBRARY, 0,
	 1000000, 0, .base = CALL},
	{"bpftrace, a latch and a compare", run_bpftrace, AT(victim_push), 0, 100000, 0,
	 .base = CALL},
	{"breakpoint that only counts", run_bare_breakpoint, AT(victim_push), 0, 20000, 0,
	 .base = CALL},
	{"jit: a breakpoint and our program", run_jit, AT(victim_push), 0, 20000, 0, .base = CALL},
	{"breakpoint and a reader of it", run_breakpoint, AT(victim_push), 0, 20000, 0,
	 .base = CALL},
	{"a hit that fires", run_firing, AT(victim_push), 0, 1, 0, .base = CALL},
	{"and copies 16 KiB of the stack", run_firing, AT(victim_push), 0, 1, 16 << 10,
	 .base = CALL},
	{"and copies 60 KiB of the stack", run_firing, AT(victim_push), 0, 1, 60 << 10,
	 .base = CALL},
	{"getppid that is probed: delays", run_syscall_delay, NULL, 0, 0, 100000, 0,
	 .base = SYSCALL},
	{"getppid that is probed: durations", run_syscall_duration, NULL, 0, 0, 100000, 0,
	 .base = SYSCALL},
	{"getppid while fsync is probed", run_other_syscall, NULL, 0, 0, 100000, 0, true, SYSCALL},
	{"kernel function of getppid: delays", run_function_delay, NULL, 0, 0, 100000, 0,
	 .base = SYSCALL},
	{"kernel function of getppid: durations", run_function_duration, NULL, 0, 0, 100000, 0,
	 .base = SYSCALL},
	{"bpftrace, a kprobe of getppid", run_bpftrace_kprobe, NULL, 0, 0, 100000, 0,
	 .base = SYSCALL},
	{"a signal, whose tracepoint is probed", run_tracepoint, victim_signal, 0, 0, 50000, 0,
	 .base = SIGNAL},
	{"a signal that is probed", run_signal, victim_signal, 0, 0, 50000, 0, .base = SIGNAL},
	{"a signal while SIGSEGV is probed", run_other_signal, victim_signal, 0, 0, 50000, 0, true,
	 SIGNAL},
};

enum { N_WAYS = sizeof(ways) / sizeof(ways[0]) };

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

struct figures {
	double ns[ROUNDS];
	int n;
};

/* With an argument: only rows whose name contains it, and those that they are compared with. */
static const char *chosen;

static bool is_chosen(int i)
{
	bool is_base = i == PUSH;

	for (int k = 0; chosen && k < N_WAYS; k++)
		is_base |= ways[k].base == i && strstr(ways[k].name, chosen);
	return !chosen || is_base || i == CALL || strstr(ways[i].name, chosen);
}

/* Without what the row has in common with its base: the call, the system call, the signal. */
static void run_round(const struct target *target, struct figures figures[N_WAYS])
{
	for (int i = 0; i < N_WAYS; i++) {
		struct figures *f = &figures[i];
		const struct figures *base = &figures[ways[i].base];
		double ns;

		if (!is_chosen(i)) {
			f->ns[f->n++] = NOT_HERE;
			continue;
		}
		running = &ways[i];
		ns = ways[i].run(target, running);
		if (ns != NOT_HERE && ways[i].run != run_call && ways[i].run != run_firing)
			ns -= base->ns[base->n - 1];
		f->ns[f->n++] = ns;
	}
}

/* Why a row is not measured on this machine. */
static const char *why_not(const struct way *way)
{
	if (way->run == run_function_delay || way->run == run_function_duration)
		return ": this kernel takes neither fentry nor kprobes on its functions; measure "
		       "it on another host, or in the VM (tests/vm/measure-kernel.sh)";
	if (way->run == run_bpftrace || way->run == run_bpftrace_kprobe)
		return ": bpftrace is missing, or cannot attach there";
	return "";
}

static void print_figures(const struct figures figures[N_WAYS])
{
	double push = median(figures[PUSH].ns, figures[PUSH].n);

	printf("%-40s %10s %8s\n", "a hit of the probe", "ns", "ratio");
	for (int i = 0; i < N_WAYS; i++) {
		double ns = figures[i].n ? median(figures[i].ns, figures[i].n) : NOT_HERE;

		if (!is_chosen(i))
			continue;
		if (!figures[i].n)
			printf("%-40s %10s\n", ways[i].name, "given up");
		else if (ns == NOT_HERE)
			printf("%-40s %10s%s\n", ways[i].name, "not here", why_not(&ways[i]));
		else
			printf("%-40s %10.1f %8.2f\n", ways[i].name, ns, ns / push);
	}
}

int main(int argc, char **argv)
{
	static struct figures figures[N_WAYS];
	static struct target target;
	volatile int rounds = 0;
	uint64_t start = clock__now_ns();

	chosen = argc > 1 ? argv[1] : NULL;
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
			run_round(&target, figures);
			rounds++;
		}
		target__stop(&target);
	}
	if (rounds < ROUNDS)
		printf("# medians of %d rounds instead of %d\n", rounds, ROUNDS);
	if (figures[PUSH].n)
		print_figures(figures);
	return !rounds;
}
