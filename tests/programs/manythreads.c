// SPDX-License-Identifier: MIT
/*
 * Very many threads, which sleep until SIGUSR1: then each calls one_iter a few times, and sleeps
 * again; the last says "done", and how many calls a second those were.
 *
 *   manythreads N CALLS
 */
#include "sample.h"
#include <pthread.h>
#include <stdatomic.h>

#define STACK_SIZE (64 << 10)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t begun = PTHREAD_COND_INITIALIZER;
static bool has_begun;
static unsigned long calls, n_threads;
static uint64_t begun_ns;
static atomic_ulong n_left;

TRACED void one_iter(void)
{
	__asm__ volatile("nop");
}

/* By puts, once: it is called by nobody else here, and may be a trigger. */
static void say_done(void)
{
	double s = (double)(sample__now_ns() - begun_ns) / 1e9;
	char line[64];

	snprintf(line, sizeof(line), "done: %.0f calls a second", (double)(n_threads * calls) / s);
	puts(line);
	fflush(stdout);
}

static void *call_some(void *unused)
{
	pthread_mutex_lock(&lock);
	while (!has_begun)
		pthread_cond_wait(&begun, &lock);
	pthread_mutex_unlock(&lock);
	for (unsigned long i = 0; i < calls; i++)
		one_iter();
	if (atomic_fetch_sub(&n_left, 1) == 1)
		say_done();
	while (!sample_stop)
		pause();
	return unused;
}

int main(int argc, char **argv)
{
	unsigned long n = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;
	pthread_attr_t attr;
	sigset_t set;
	int signo;

	if (!n)
		sample__die(argv[0], "N CALLS");
	calls = strtoul(argv[2], NULL, 10);
	n_left = n_threads = n;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	for (unsigned long i = 0; i < n; i++) {
		pthread_t thread;

		if (pthread_create(&thread, &attr, call_some, NULL)) {
			printf("only %lu threads\n", i);
			return 1;
		}
	}
	printf("pid %d\n", getpid());
	fflush(stdout);
	sigwait(&set, &signo);
	pthread_mutex_lock(&lock);
	begun_ns = sample__now_ns();
	has_begun = true;
	pthread_cond_broadcast(&begun);
	pthread_mutex_unlock(&lock);
	for (;;)
		pause();
}
