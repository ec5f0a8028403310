// SPDX-License-Identifier: MIT
/*
 * A service that says itself where a snapshot is to be taken: include/mtbpf.h. One iteration in
 * -slow-every takes 60 ms more. With -threads other threads call it too, without a mark of theirs.
 */
#include "sample.h"

#include <mtbpf.h>
#include <pthread.h>

#define SLOW_NS 60000000
#define BUSY_NS 300000

/* Busy, so that there is something to sample. */
TRACED void look_up(void)
{
	uint64_t end = sample__now_ns() + BUSY_NS;

	while (sample__now_ns() < end)
		;
}

TRACED void rebuild(void)
{
	sample__pause(SLOW_NS);
}

TRACED void handle(bool is_slow)
{
	look_up();
	if (is_slow)
		rebuild();
}

static void *snap_unmarked(void *arg)
{
	(void)arg;
	for (;;) {
		mtbpf_take_snapshot();
		sample__pause(1000000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct sample scale = {.slow_every = 50, .table_size = 1, .pause_ns = 1000000};
	struct sample options;
	pthread_t thread;

	sample__init(&options, argv, &scale, &scale);
	for (uint64_t i = 1; i < options.threads; i++)
		pthread_create(&thread, NULL, snap_unmarked, NULL);
	sample__announce();
	while (sample__next(&options)) {
		mtbpf_mark_start();
		handle(options.done % options.slow_every == 0);
		mtbpf_take_snapshot_with_arg(options.done);
	}
	return 0;
}
