// SPDX-License-Identifier: MIT
/* A thread other than the main one executes this program again, and so takes the main thread's tid.
 */
#include "sample.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_bool is_waited_for;

TRACED int before_exec(char **argv)
{
	return execl("/proc/self/exe", argv[0], "again", NULL);
}

static void *thread__main(void *argv)
{
	/* A tracer of this thread has time to begin. */
	do
		usleep(200000);
	while (!is_waited_for);
	before_exec(argv);
	return NULL;
}

TRACED void wait_for(pthread_t thread)
{
	is_waited_for = true;
	pthread_join(thread, NULL);
}

TRACED int after_exec(int argc)
{
	return argc != 2;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc > 1)
		return after_exec(argc);
	if (!pthread_create(&thread, NULL, thread__main, argv))
		wait_for(thread);
	return 1;
}
