// SPDX-License-Identifier: MIT
/* Two threads on one CPU that hand a byte to and fro: microseconds of a round trip, and of its CPU
 * time. */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define TURNS 100

static int there[2], back[2];

static void *answer(void *arg)
{
	char byte;

	while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
		;
	return arg;
}

static double cpu_us(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return 1e6 * (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return 1e6 * (double)now.tv_sec + (double)now.tv_nsec / 1e3;
}

/* What waits for it waits for ever. */
__attribute__((noipa)) void never(void)
{
	__asm__ volatile("nop");
}

static void round_trip(void)
{
	char byte = 0;

	if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
		exit(1);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	pthread_t thread;
	cpu_set_t one;

	if (seconds < 0)
		never();
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_setaffinity(0, sizeof(one), &one) || pipe(there) || pipe(back) ||
	    pthread_create(&thread, NULL, answer, NULL))
		return 1;
	for (;;) {
		double start = now_us(), cpu = cpu_us(), span = 0;
		uint64_t n = 0;

		for (; span < 1e6 * seconds; n += TURNS, span = now_us() - start)
			for (int i = 0; i < TURNS; i++)
				round_trip();
		printf("%.3f %.3f\n", span / (double)n, (cpu_us() - cpu) / (double)n);
		fflush(stdout);
	}
}
