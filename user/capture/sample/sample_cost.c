// SPDX-License-Identifier: MIT
#include "capture/sample/sample_cost.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/sample/sample_ring.h"
#include "target/process.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fs.h"

#define PAIRS	     11
#define LEAST_ROUNDS 2
#define MOST_ROUNDS  8
#define PERIOD_NS    100000
#define SPIN_NS	     1000000
#define TURNS	     100
#define DEPTH	     24
#define RING_SIZE    (64u << 10)

/*
 * Calls itself with frame pointers to an ordinary depth (the Makefile compiles this file with
 * them), with some work at the end. The code after the call keeps the compiler from turning the
 * recursion into a loop.
 */
__attribute__((noipa)) static uint64_t spin(uint64_t n, int depth)
{
	uint64_t done = 0;

	if (depth) {
		done = spin(n, depth - 1);
		__asm__ volatile("" : "+r"(done));
		return done;
	}
	for (; done < n; done++)
		__asm__ volatile("" : "+r"(done));
	return done;
}

static uint64_t time_spin(const void *turns)
{
	uint64_t start_ns = clock__now_ns();

	spin(*(const uint64_t *)turns, DEPTH);
	return clock__now_ns() - start_ns;
}

/* A partner on the same CPU that answers each message with one. */
struct partner {
	int there, back; /* eventfds; -1: not open */
	pthread_t thread;
};

static void *answer(void *arg)
{
	struct partner *p = arg;
	uint64_t word;

	while (read(p->there, &word, sizeof(word)) == sizeof(word) && word == 1)
		if (write(p->back, &word, sizeof(word)) != sizeof(word))
			break;
	return NULL;
}

static uint64_t time_turns(const void *partner)
{
	const struct partner *p = partner;
	uint64_t start_ns = clock__now_ns(), word = 1;

	for (int i = 0; i < TURNS; i++)
		if (write(p->there, &word, sizeof(word)) < 0 ||
		    read(p->back, &word, sizeof(word)) < 0)
			break;
	return clock__now_ns() - start_ns;
}

/* The recorder whose cost is measured. */
struct measured {
	struct sample_ring ring;
	const struct sample_kernel *half; /* its BPF programs, or NULL */
};

/* Differences that differ by less than a fifth agree. */
static bool agree(int64_t a, int64_t b)
{
	return a > 0 && b > 0 && llabs(a - b) < (a < b ? a : b) / 5;
}

/*
 * Measures how much longer the work takes while it is recorded, with the recorder off and on in
 * turns; *on_ns: how long it takes with the recorder on. The quickest of each counts, since other
 * threads on the CPU can only make a run longer. Repeats this until the difference changes little.
 * -EBUSY: it never settled.
 */
static int compare(struct measured *m, uint64_t (*work)(const void *arg), const void *arg,
		   uint64_t *extra_ns, uint64_t *on_ns)
{
	uint64_t off_ns = UINT64_MAX;
	int64_t extra = 0, before;
	int round = 0;

	*on_ns = UINT64_MAX;
	do {
		for (int i = 0; i < PAIRS; i++) {
			uint64_t ns = work(arg);

			off_ns = ns < off_ns ? ns : off_ns;
			if (m->half)
				m->half->set(m->half->ctx, true);
			sample_ring__enable(&m->ring);
			ns = work(arg);
			*on_ns = ns < *on_ns ? ns : *on_ns;
			sample_ring__disable(&m->ring);
			if (m->half)
				m->half->set(m->half->ctx, false);
		}
		before = extra;
		extra = (int64_t)(*on_ns - off_ns);
	} while (++round < LEAST_ROUNDS || (round < MOST_ROUNDS && !agree(extra, before)));
	*extra_ns = (uint64_t)extra;
	return agree(extra, before) ? 0 : -EBUSY;
}

static int open_own(struct measured *m, uint64_t period_ns, uint32_t stack, bool kernel)
{
	const struct sample_ring_config config = {
		.period_ns = period_ns,
		.size = RING_SIZE,
		.stack = stack,
		.kernel = kernel,
		.gate = m->half ? m->half->gate : -1,
		.switch_gate = m->half ? m->half->switch_gate : 0,
		.no_switches = m->half,
		.no_stacks = m->half && m->half->has_stacks,
	};
	struct event_place place = event_place__of_thread((pid_t)syscall(SYS_gettid));

	if (m->half)
		place = (struct event_place){.pid = -1, .cpu = sched_getcpu()};
	return sample_ring__open(&m->ring, &place, &config);
}

/* Even a timer interrupt that records no stack takes longer. */
#define LEAST_SAMPLE_NS 200

bool sample_cost__is_possible(uint64_t sample_ns)
{
	return sample_ns >= LEAST_SAMPLE_NS;
}

static int measure_spins(struct measured *m, uint32_t stack, bool kernel, struct sample_cost *cost)
{
	int err = open_own(m, PERIOD_NS, stack, kernel);
	uint64_t n = 1000, extra_ns, on_ns;

	if (err)
		return err;
	/* Finds an n that takes at least SPIN_NS. Of three runs, one may be slow by preemption. */
	while (time_spin(&n) < SPIN_NS || time_spin(&n) < SPIN_NS || time_spin(&n) < SPIN_NS)
		n *= 2;
	err = compare(m, time_spin, &n, &extra_ns, &on_ns);
	if (!err)
		cost->sample_ns = extra_ns * PERIOD_NS / (on_ns > PERIOD_NS ? on_ns : PERIOD_NS);
	if (!err && !sample_cost__is_possible(cost->sample_ns))
		err = -EBUSY;
	sample_ring__close(&m->ring);
	return err;
}

static int measure_turns(struct measured *m, uint32_t stack, bool kernel, struct sample_cost *cost)
{
	/* The clock almost never fires here: only its start and end at each switch are measured. */
	int err = open_own(m, 1000000000, stack, kernel);
	uint64_t extra_ns, on_ns, stop = 2;
	struct partner partner;

	if (err)
		return err;
	partner =
		(struct partner){.there = eventfd(0, EFD_CLOEXEC), .back = eventfd(0, EFD_CLOEXEC)};
	err = partner.there < 0 || partner.back < 0
		      ? -errno
		      : -pthread_create(&partner.thread, NULL, answer, &partner);
	if (!err) {
		err = compare(m, time_turns, &partner, &extra_ns, &on_ns);
		if (write(partner.there, &stop, sizeof(stop)) == sizeof(stop))
			pthread_join(partner.thread, NULL);
	}
	close(partner.there);
	close(partner.back);
	/* A ring per CPU records both partners: each turn counts as two switches. */
	if (!err)
		cost->switch_ns = extra_ns / TURNS / (m->half ? 2 : 1);
	sample_ring__close(&m->ring);
	return err;
}

int sample_cost__measure(uint32_t stack, bool kernel, const struct sample_kernel *half,
			 struct sample_cost *cost)
{
	struct measured m = {.half = half};
	cpu_set_t before, one;
	int err;

	*cost = (struct sample_cost){0};
	/* Stays on one CPU: a migration would cost more than what is measured. */
	if (sched_getaffinity(0, sizeof(before), &before))
		return -errno;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		return -errno;
	err = measure_spins(&m, stack, kernel, cost);
	if (!err)
		err = measure_turns(&m, stack, kernel, cost);
	sched_setaffinity(0, sizeof(before), &before);
	if (err)
		*cost = (struct sample_cost){0};
	return err;
}

int sample_load__read(pid_t pid, struct sample_load *load)
{
	_cleanup_free_ pid_t *tids = NULL;
	size_t n;
	int err = process__threads(pid, &tids, &n);

	*load = (struct sample_load){0};
	for (size_t i = 0; !err && i < n; i++) {
		unsigned long long ran, waited, times;
		_cleanup_free_ char *text = NULL;
		char path[64];
		size_t len;

		/*
		 * Documentation/scheduler/sched-stats.rst: time on a CPU, time waiting for one, how
		 * often the thread came onto one.
		 */
		snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tids[i]);
		if (fs__read(path, &text, &len) ||
		    sscanf(text, "%llu %llu %llu", &ran, &waited, &times) != 3)
			continue;
		load->cpu_ns += ran;
		load->switches += times;
	}
	return err;
}

int sample_load__measure(pid_t pid, unsigned int ms, struct sample_load *load)
{
	struct sample_load first;
	int err = sample_load__read(pid, &first);

	if (!err)
		usleep(1000 * ms);
	if (!err)
		err = sample_load__read(pid, load);
	if (err)
		return err;
	/* The second reading lacks threads that have ended since: it can be the smaller one. */
	load->cpu_ns -= first.cpu_ns < load->cpu_ns ? first.cpu_ns : load->cpu_ns;
	load->switches -= first.switches < load->switches ? first.switches : load->switches;
	return 0;
}

unsigned int sample_cost__rate(const struct sample_cost *cost, const struct sample_load *load,
			       uint64_t ppm)
{
	double share = (double)ppm / 1e6, rate;

	/* The load of a process that sleeps is not known. */
	if (load->cpu_ns)
		share -= ((double)cost->switch_ns * (double)load->switches +
			  (double)cost->hit_ns * (double)load->hits +
			  (double)cost->go_wait_ns * (double)load->go_waits) /
			 (double)load->cpu_ns;
	rate = share * 1e9 / (double)(cost->sample_ns ? cost->sample_ns : 1);
	return rate < 1 ? 0 : rate > 1e6 ? 1000000 : (unsigned int)rate;
}

double sample_cost__share(const struct sample_cost *cost, unsigned int hz)
{
	return (double)cost->sample_ns * hz / 1e9;
}
