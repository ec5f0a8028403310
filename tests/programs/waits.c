// SPDX-License-Identifier: MIT
/* Waits again and again, thirty calls below main(), and in a thread of its own as well: it hardly
 * runs. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((noipa)) static void wait_for_nothing(void)
{
	poll(NULL, 0, 5);
	__asm__ volatile("");
}

__attribute__((noipa)) static void nest(int depth)
{
	if (depth > 1)
		nest(depth - 1);
	else
		wait_for_nothing();
	__asm__ volatile("");
}

static void *serve(void *arg)
{
	for (;;)
		nest(30);
	return arg;
}

int main(void)
{
	pthread_t thread;

	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	if (pthread_create(&thread, NULL, serve, NULL))
		return 1;
	serve(NULL);
	return 0;
}
