// SPDX-License-Identifier: MIT
/*
 * How far a thread's ring of -source sample looks back: recorded until the ring has been written
 * all around, then from its oldest record to its newest. Of a thread that runs all the time, and of
 * one that goes to sleep a thousand times a second; rows for docs/user/sources.md.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "deep.h"
#include "capture/sample/sample_ring.h"
#include "util/clock.h"

/* The time limit of the whole run: a bench never hangs. */
#define LIMIT_S 150
/* And of one ring, which may be kept from its CPU. */
#define RING_S 25

static void die(const char *what)
{
	fprintf(stderr, "bench_lookback: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Runs for so long, then sleeps for half of it; 0: never sleeps. */
static void work(void *ctx)
{
	const uint64_t run_ns = *(const uint64_t *)ctx;
	struct timespec pause = {.tv_nsec = (long)(run_ns / 2)};

	for (;;) {
		uint64_t start_ns = clock__now_ns();

		while (!run_ns || clock__now_ns() - start_ns < run_ns)
			for (int i = 0; i < 10000; i++)
				__asm__ volatile("");
		nanosleep(&pause, NULL);
	}
}

static pid_t start_target(uint64_t run_ns)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	deep__run(DEEP, work, &run_ns);
	exit(1);
}

/* What a full ring holds. */
struct held {
	uint64_t first_ns, last_ns;
	size_t samples, switches, bytes;
};

static void wait_until_full(const struct sample_ring *ring)
{
	uint64_t end_ns = clock__now_ns() + RING_S * 1000000000ull;

	while (-__atomic_load_n(&ring->ring.page->data_head, __ATOMIC_ACQUIRE) <
		       ring->ring.data_size &&
	       clock__now_ns() < end_ns)
		usleep(20000);
}

static struct held look(const struct sample_ring *ring)
{
	struct perf_ring_cursor cursor = perf_ring__newest(&ring->ring);
	static uint8_t record[65536] __attribute__((aligned(8)));
	struct sample_record_ids ids = {.switches = ring->ids[SAMPLE_EVENT_SWITCHES]};
	struct recording rec;
	struct held held = {0};
	int n;

	recording__init(&rec);
	while ((n = perf_ring__older(&ring->ring, &cursor, record, sizeof(record))) != 0)
		if (n > 0 && sample_record__add(&ids, &rec, record, (size_t)n))
			die("the records");
	held.samples = rec.samples.n;
	held.switches = rec.scheds.n;
	held.bytes = ring->ring.data_size;
	if (held.samples) {
		held.last_ns = rec.samples.v[0].time_ns;
		held.first_ns = rec.samples.v[held.samples - 1].time_ns;
	}
	recording__fini(&rec);
	return held;
}

static struct held fill(pid_t pid, size_t size, unsigned int hz)
{
	struct event_place place = event_place__of_thread(pid);
	struct sample_ring_config config = {.period_ns = 1000000000 / hz, .size = size, .gate = -1};
	struct sample_ring ring;
	struct held held;

	if (sample_ring__open(&ring, &place, &config) || sample_ring__enable(&ring))
		die("the recorder");
	wait_until_full(&ring);
	sample_ring__disable(&ring);
	held = look(&ring);
	sample_ring__close(&ring);
	return held;
}

static void print_held(const struct held *held)
{
	double ms = (double)(held->last_ns - held->first_ns) / 1e6;

	if (!held->samples)
		printf(" nothing |");
	else if (ms < 1000)
		printf(" %.0f ms, %zu stacks |", ms, held->samples);
	else
		printf(" %.1f s, %zu stacks |", ms / 1e3, held->samples);
	fflush(stdout);
}

static void print_table(const char *what, uint64_t run_ns)
{
	static const size_t sizes[] = {64u << 10, 256u << 10, 1u << 20, 4u << 20};
	static const unsigned int rates[] = {1000, 4000, 10000};
	pid_t pid = start_target(run_ns);

	printf("\n| %s | 1 kHz | 4 kHz | 10 kHz |\n|---|---|---|---|\n", what);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		printf("| `-snapshot-size %zuK` |", sizes[i] >> 10);
		for (size_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++) {
			struct held held = fill(pid, sizes[i], rates[r]);

			print_held(&held);
		}
		putchar('\n');
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	if (geteuid()) {
		fprintf(stderr, "bench_lookback: needs root\n");
		return 1;
	}
	alarm(LIMIT_S);
	print_table("a thread that runs all the time", 0);
	print_table("one that sleeps a thousand times a second", 600000);
	return 0;
}
