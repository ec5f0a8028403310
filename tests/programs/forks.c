// SPDX-License-Identifier: MIT
/*
 * A server that forks for each request and does none of the work itself: every call of one_iter is
 * a child's. Quick ones come from its main thread, and from another, whose last one is slow.
 *
 *   forks [REQUESTS [DEPTH]]    0 or no REQUESTS: for ever. DEPTH (1): each request goes through so
 *                               many processes; all but the last, which serves, end at once
 */
#include "sample.h"
#include <pthread.h>
#include <sys/wait.h>

#define QUICK	 5
#define SLOW_US	 60000
#define PAUSE_US 20000

TRACED void wait_for_answer(useconds_t us)
{
	usleep(us);
}

TRACED void one_iter(useconds_t us)
{
	wait_for_answer(us);
}

static void *last_of(void *unused)
{
	for (int i = 0; i < 2 * QUICK; i++)
		one_iter(2000);
	one_iter(SLOW_US);
	return unused;
}

static void serve(void)
{
	pthread_t thread;

	for (int i = 0; i < QUICK; i++)
		one_iter(100);
	if (!pthread_create(&thread, NULL, last_of, NULL))
		pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	unsigned long requests = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	unsigned long depth = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;

	signal(SIGTERM, sample__on_stop);
	printf("pid %d\n", getpid());
	fflush(stdout);
	for (unsigned long i = 0; (!requests || i < requests) && !sample_stop; i++) {
		pid_t child = fork();

		for (unsigned long level = 1; level < depth && !child; level++)
			if (fork())
				_exit(0);
		if (!child) {
			serve();
			_exit(0);
		}
		if (child > 0)
			waitpid(child, NULL, 0);
		usleep(PAUSE_US);
	}
	return 0;
}
