// SPDX-License-Identifier: MIT
/*
 * Calls whose time on the CPU and off it is known. Most take a millisecond of each; of twenty, one
 * computes for 8 ms of its thread's CPU time, and one sleeps for 30 ms. The first argument of a
 * call says which it is, and so does what it returns.
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static long thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000 + now.tv_nsec;
}

__attribute__((noipa)) static void compute(long ns)
{
	long until = thread_ns() + ns;

	while (thread_ns() < until)
		for (volatile int i = 0; i < 1000; i++)
			;
}

__attribute__((noipa)) static void doze(long ns)
{
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* kind 0: ordinary, 1: it computes, 2: it sleeps. */
__attribute__((noipa)) static int handle(int kind, unsigned char flag, long number)
{
	compute(kind == 1 ? 8000000 : 1000000);
	doze(kind == 2 ? 30000000 : 1000000);
	return kind == 2 ? -1 : (int)(number & 0xff);
}

__attribute__((noipa)) static void between(void)
{
	__asm__ volatile("nop");
}

int main(void)
{
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	for (long n = 0;; n++) {
		int kind = n % 20 == 7 ? 1 : n % 20 == 14 ? 2 : 0;

		handle(kind, (unsigned char)(n % 20), -n);
		between();
	}
}
