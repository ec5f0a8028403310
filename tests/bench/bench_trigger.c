// SPDX-License-Identifier: MIT
/*
 * What one hit below the threshold costs the target: our uprobe and BPF program, against a
 * hardware breakpoint that makes a sample for a tracer in user space to look at, on the same
 * function in the same loop. Prints nanoseconds, medians of rounds that take turns, so that what
 * else happens on the machine happens to all of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <asm/perf_regs.h>

#include "../live/own_code.h"
#include "trigger/probe_site.h"
#include "trigger/trigger.h"
#include "util/clock.h"

#define ROUNDS	9
#define FIRINGS 101
/* The time limit of the whole run: a bench never hangs. */
#define LIMIT_S 300

/* The ordinary function: it keeps something in rbx, so it starts with a push of it. */
__attribute__((noinline)) static uint64_t victim(uint64_t x)
{
	__asm__ volatile("" : "+r"(x) : : "rbx");
	return x * 31 + 7;
}

enum job { CALL_VICTIM, CALL_VICTIM_DEEP, CALL_GETPPID };

struct command {
	enum job job;
	uint64_t count;
};

/* With more stack above it than is ever copied, all of it in memory. */
static uint64_t call_deep(void)
{
	volatile char space[2 * MT_COPY_MAX];
	uint64_t start, x;

	memset((char *)space, 1, sizeof(space));
	start = clock__now_ns();
	x = victim(1);
	__asm__ volatile("" : : "r"(x), "r"(space) : "memory");
	return clock__now_ns() - start;
}

static uint64_t run_command(const struct command *command)
{
	uint64_t start = clock__now_ns(), x = 1;

	if (command->job == CALL_VICTIM_DEEP)
		return call_deep();
	for (uint64_t i = 0; i < command->count; i++) {
		if (command->job == CALL_VICTIM)
			x = victim(x);
		else
			syscall(SYS_getppid);
	}
	__asm__ volatile("" : : "r"(x));
	return clock__now_ns() - start;
}

/* The target: runs its commands and answers how long each took. */
struct target {
	pid_t pid;
	int commands;
	int answers;
};

static void serve(int commands, int answers)
{
	struct command command;
	uint64_t ns;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(commands, &command, sizeof(command)) == sizeof(command)) {
		ns = run_command(&command);
		if (write(answers, &ns, sizeof(ns)) != sizeof(ns))
			break;
	}
	_exit(0);
}

static int target__start(struct target *target)
{
	int commands[2], answers[2];

	if (pipe2(commands, O_CLOEXEC) || pipe2(answers, O_CLOEXEC))
		return -errno;
	target->pid = fork();
	if (target->pid < 0)
		return -errno;
	if (!target->pid) {
		close(commands[1]);
		close(answers[0]);
		serve(commands[0], answers[1]);
	}
	close(commands[0]);
	close(answers[1]);
	target->commands = commands[1];
	target->answers = answers[0];
	return 0;
}

static void target__stop(struct target *target)
{
	close(target->commands);
	close(target->answers);
	waitpid(target->pid, NULL, 0);
}

static void die(const char *what)
{
	fprintf(stderr, "bench_trigger: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Nanoseconds per iteration. */
static double target__run(const struct target *target, enum job job, uint64_t count)
{
	struct command command = {.job = job, .count = count};
	uint64_t ns;

	if (write(target->commands, &command, sizeof(command)) != sizeof(command) ||
	    read(target->answers, &ns, sizeof(ns)) != sizeof(ns))
		die("the target is gone");
	return (double)ns / (double)count;
}

static void expect_hits(const char *what, uint64_t hits, uint64_t calls)
{
	if (hits == calls)
		return;
	fprintf(stderr, "bench_trigger: %s: %llu hits in %llu calls\n", what,
		(unsigned long long)hits, (unsigned long long)calls);
	exit(1);
}

/* Our trigger, armed, at a threshold that is never reached. */
static double run_trigger(const struct target *target, uint32_t skip, uint64_t count)
{
	const struct trigger_config config = {
		.tgid = target->pid,
		.delay_thresh_ns = 3600ull * 1000 * 1000 * 1000,
	};
	struct trigger *trigger = trigger__new(&config);
	int event = own_code__probe(target->pid, (uintptr_t)victim + skip, false);
	struct mt_stats stats;
	double ns;

	if (!trigger || event < 0 || trigger__attach(trigger, event, -1) || trigger__arm(trigger))
		exit(1);
	ns = target__run(target, CALL_VICTIM, count);
	if (trigger__stats(trigger, &stats))
		die("counters");
	expect_hits("trigger", stats.hits, count);
	trigger__free(trigger);
	close(event);
	return ns;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* A hit that fires, and copies so much of the stack: the median of some. */
static double run_firing(const struct target *target, uint32_t skip, uint32_t stack_copy)
{
	const struct trigger_config config = {.tgid = target->pid, .stack_copy = stack_copy};
	struct trigger *trigger = trigger__new(&config);
	int event = own_code__probe(target->pid, (uintptr_t)victim + skip, false);
	double ns[FIRINGS];
	struct mt_hit hit;

	if (!trigger || event < 0 || trigger__attach(trigger, event, -1))
		exit(1);
	for (int i = 0; i < FIRINGS; i++) {
		if (trigger__arm(trigger))
			exit(1);
		ns[i] = target__run(target, CALL_VICTIM_DEEP, 1);
		if (trigger__next(trigger, &hit) != 1)
			die("no hit");
		expect_hits("stack", hit.copied, stack_copy);
	}
	trigger__free(trigger);
	close(event);
	qsort(ns, FIRINGS, sizeof(*ns), compare_doubles);
	return ns[FIRINGS / 2];
}

/* The breakpoint's consumer: a thread that waits for samples and takes them. */
struct poller {
	pthread_t thread;
	int event;
	struct perf_event_mmap_page *page;
	_Atomic bool stop;
	uint64_t wakeups;
	uint64_t bytes;
};

static void *consume(void *arg)
{
	struct poller *poller = arg;
	struct pollfd pfd = {.fd = poller->event, .events = POLLIN};

	while (!poller->stop) {
		uint64_t head;

		if (poll(&pfd, 1, 10) <= 0)
			continue;
		head = __atomic_load_n(&poller->page->data_head, __ATOMIC_ACQUIRE);
		poller->wakeups++;
		poller->bytes += head - poller->page->data_tail;
		__atomic_store_n(&poller->page->data_tail, head, __ATOMIC_RELEASE);
	}
	return NULL;
}

static int open_breakpoint(pid_t pid, uintptr_t address)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
		.sample_type =
			PERF_SAMPLE_TIME | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER,
		.sample_regs_user = 1ull << PERF_REG_X86_DI | 1ull << PERF_REG_X86_SI,
		.exclude_kernel = 1,
		.wakeup_events = 1,
		.bp_type = HW_BREAKPOINT_X,
		.bp_addr = address,
		.bp_len = sizeof(long),
	};

	return (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void poller__start(struct poller *poller)
{
	size_t size = 2 * (size_t)sysconf(_SC_PAGESIZE);

	poller->page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, poller->event, 0);
	if (poller->page == MAP_FAILED)
		die("mmap of the breakpoint's ring");
	if (pthread_create(&poller->thread, NULL, consume, poller))
		die("pthread_create");
}

static void poller__stop(struct poller *poller)
{
	poller->stop = true;
	pthread_join(poller->thread, NULL);
	munmap(poller->page, 2 * (size_t)sysconf(_SC_PAGESIZE));
}

static double run_breakpoint(const struct target *target, uint32_t skip, uint64_t count)
{
	struct poller poller = {.event = open_breakpoint(target->pid, (uintptr_t)victim + skip)};
	uint64_t hits;
	double ns;

	if (poller.event < 0)
		die("perf_event_open of a breakpoint");
	poller__start(&poller);
	ns = target__run(target, CALL_VICTIM, count);
	poller__stop(&poller);
	if (read(poller.event, &hits, sizeof(hits)) != sizeof(hits))
		die("count of the breakpoint");
	expect_hits("breakpoint", hits, count);
	if (!poller.bytes)
		expect_hits("breakpoint samples read", 0, count);
	close(poller.event);
	return ns;
}

/* Without a ring there is nothing to write and nobody to wake: the trap alone. */
static double run_bare_breakpoint(const struct target *target, uint32_t skip, uint64_t count)
{
	int event = open_breakpoint(target->pid, (uintptr_t)victim + skip);
	double ns;

	if (event < 0)
		die("perf_event_open of a breakpoint");
	ns = target__run(target, CALL_VICTIM, count);
	close(event);
	return ns;
}

enum figure {
	NO_PROBE,
	TRIGGER,
	BREAKPOINT,
	BARE_BREAKPOINT,
	XOL,
	FIRING,
	FIRING_16K,
	FIRING_60K,
	GETPPID,
	FIGURES
};

static const char *const figure_names[] = {
	[NO_PROBE] = "call, no probe",
	[TRIGGER] = "mtbpf trigger",
	[BREAKPOINT] = "breakpoint and poller",
	[BARE_BREAKPOINT] = "breakpoint that only counts",
	[XOL] = "mtbpf trigger, single-stepped site",
	[FIRING] = "a hit that fires",
	[FIRING_16K] = "and copies 16 KiB of the stack",
	[FIRING_60K] = "and copies 60 KiB of the stack",
	[GETPPID] = "getppid system call",
};

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare_doubles);
	return values[ROUNDS / 2];
}

/* `skip` is the chosen site, the instruction behind it is one that the kernel single-steps. */
static void run_round(const struct target *target, const struct probe_site *site,
		      double figures[FIGURES][ROUNDS], int round)
{
	double bare = target__run(target, CALL_VICTIM, 5000000);

	figures[NO_PROBE][round] = bare;
	figures[TRIGGER][round] = run_trigger(target, site->skip, 300000) - bare;
	figures[BREAKPOINT][round] = run_breakpoint(target, site->skip, 20000) - bare;
	figures[BARE_BREAKPOINT][round] = run_bare_breakpoint(target, site->skip, 20000) - bare;
	figures[XOL][round] = run_trigger(target, site->skip + 1, 20000) - bare;
	figures[FIRING][round] = run_firing(target, site->skip, 0);
	figures[FIRING_16K][round] = run_firing(target, site->skip, 16 << 10);
	figures[FIRING_60K][round] = run_firing(target, site->skip, 60 << 10);
	figures[GETPPID][round] = target__run(target, CALL_GETPPID, 500000);
}

static void print_figures(double figures[FIGURES][ROUNDS])
{
	double medians[FIGURES];

	printf("%-36s %10s %10s %10s\n", "ns per hit", "median", "least", "most");
	for (int i = 0; i < FIGURES; i++) {
		medians[i] = median(figures[i]);
		printf("%-36s %10.1f %10.1f %10.1f\n", figure_names[i], medians[i], figures[i][0],
		       figures[i][ROUNDS - 1]);
	}
	printf("breakpoint / mtbpf: %.1fx\n", medians[BREAKPOINT] / medians[TRIGGER]);
}

int main(void)
{
	static double figures[FIGURES][ROUNDS];
	struct target target;
	struct probe_site site;

	alarm(LIMIT_S);
	if (geteuid()) {
		printf("# skip: needs root for uprobes and BPF\n");
		return 0;
	}
	if (probe_site__choose((const uint8_t *)victim, 64, (uintptr_t)victim, &site))
		die("no instruction at the function's entry");
	printf("probe at +%u, %s, %s\n", site.skip, site.insn,
	       site.emulated ? "emulated" : "single-stepped");
	if (target__start(&target))
		die("cannot start the target");
	for (int round = 0; round < ROUNDS; round++)
		run_round(&target, &site, figures, round);
	print_figures(figures);
	target__stop(&target);
	return 0;
}
