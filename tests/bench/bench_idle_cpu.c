// SPDX-License-Identifier: MIT
/*
 * What the recorder's clock costs a CPU on which no thread of the target runs: somebody else spins
 * there, before all others, and adds up what interrupts take of its time, with the clock on and off
 * in turns.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "capture/perf/event_place.h"
#include "capture/sample/sample_ring.h"
#include "trigger/recorder.h"
#include "util/clock.h"

#define ROUNDS 31
/* Not so long that the scheduler takes the CPU from a realtime thread (sched_rt_runtime_us). */
#define ROUND_NS 100000000ull
/* What takes less is no interrupt; what takes more than the other is the hypervisor's doing. */
#define GAP_NS	   400
#define GAP_MAX_NS 200000

struct interrupted {
	double per_s, share;
};

static void die(const char *what)
{
	fprintf(stderr, "bench_idle_cpu: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double tsc_per_ns(void)
{
	uint64_t start_ns = clock__now_ns(), start = __rdtsc();

	while (clock__now_ns() - start_ns < ROUND_NS / 10)
		;
	return (double)(__rdtsc() - start) / (double)(clock__now_ns() - start_ns);
}

/* "LOC: ..." of /proc/interrupts: one column per CPU. */
static uint64_t timer_interrupts(int cpu)
{
	FILE *f = fopen("/proc/interrupts", "r");
	char line[65536];
	uint64_t n = 0;

	while (f && fgets(line, sizeof(line), f)) {
		char *at = strstr(line, "LOC:");

		if (!at)
			continue;
		at += strlen("LOC:");
		for (int i = 0; i <= cpu; i++)
			n = strtoull(at, &at, 10);
	}
	if (!f || !n)
		die("/proc/interrupts");
	fclose(f);
	return n;
}

static struct interrupted spin(int cpu, double per_ns)
{
	uint64_t begin = timer_interrupts(cpu), lost = 0;
	uint64_t start = __rdtsc(), last = start, now = start;
	double ns = 0;

	while ((ns = (double)(now - start) / per_ns) < ROUND_NS) {
		double gap;

		now = __rdtsc();
		gap = (double)(now - last) / per_ns;
		if (gap > GAP_NS && gap < GAP_MAX_NS)
			lost += now - last;
		last = now;
	}
	return (struct interrupted){(double)(timer_interrupts(cpu) - begin) * 1e9 / ns,
				    (double)lost / per_ns / ns};
}

static int by_share(const void *a, const void *b)
{
	const struct interrupted *x = a, *y = b;

	return (x->share > y->share) - (x->share < y->share);
}

static struct interrupted median(struct interrupted *v)
{
	qsort(v, ROUNDS, sizeof(*v), by_share);
	return v[ROUNDS / 2];
}

/* The target sleeps, and may run anywhere. */
static pid_t start_target(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static void go_first(int cpu)
{
	struct sched_param first = {.sched_priority = 10};
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) || sched_setscheduler(0, SCHED_FIFO, &first))
		die("before all others on a CPU");
}

int main(int argc, char **argv)
{
	unsigned int hz = argc > 1 ? (unsigned int)atoi(argv[1]) : 1000;
	int cpu = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1;
	pid_t target = start_target();
	const struct recorder_config of_target = {.tgid = target, .log_size = 64u << 10};
	struct recorder *recorder = recorder__new(&of_target);
	struct event_place place = {.pid = -1, .cpu = cpu};
	struct interrupted off[ROUNDS], on[ROUNDS], without, with;
	struct sample_ring ring;
	double per_ns;

	if (!recorder || !hz)
		die("the recorder");
	errno = -sample_ring__open(&ring, &place,
				   &(struct sample_ring_config){.period_ns = 1000000000 / hz,
								.size = 4u << 20,
								.gate = recorder__gate(recorder),
								.no_switches = true,
								.no_stacks = true});
	if (errno)
		die("the clock");
	go_first(cpu);
	per_ns = tsc_per_ns();
	recorder__begin(recorder);
	for (int i = 0; i < ROUNDS; i++) {
		off[i] = spin(cpu, per_ns);
		usleep(ROUND_NS / 1000);
		if (sample_ring__enable(&ring))
			die("the clock");
		on[i] = spin(cpu, per_ns);
		sample_ring__disable(&ring);
		usleep(ROUND_NS / 1000);
	}
	without = median(off);
	with = median(on);
	printf("a clock of %u Hz on a CPU where the target does not run: %.0f timer interrupts/s "
	       "instead of %.0f; interrupts take %.2f %% of its time instead of %.2f %%\n",
	       hz, with.per_s, without.per_s, 100 * with.share, 100 * without.share);
	sample_ring__close(&ring);
	recorder__free(recorder);
	kill(target, SIGKILL);
	return 0;
}
