/* SPDX-License-Identifier: MIT */
/* Declares what the header declares for itself, too. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <time.h>

#include <mtbpf.h>

#include "other.h"

void other_mark(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	mtbpf_mark_start();
	mtbpf_take_snapshot_with_arg((uint64_t)now.tv_sec);
}

int other_min_duration(uint64_t ns)
{
	return mtbpf_min_duration(ns);
}

stub_fn other_stub(void)
{
	return mtbpf_hit;
}

static void *look_for_mark(void *found)
{
	*(int *)found = mtbpf_min_duration(0);
	return 0;
}

int other_thread_has_mark(void)
{
	pthread_t thread;
	int found = 1;

	if (!pthread_create(&thread, 0, look_for_mark, &found))
		pthread_join(thread, 0);
	return found;
}
