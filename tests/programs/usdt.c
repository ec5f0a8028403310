// SPDX-License-Identifier: MIT
/*
 * A service with USDT probes: app:request is in two places, and only where somebody looks (its
 * semaphore): from serve_small(), and every -slow-every from serve_large(). app:always has none.
 */
#include "sample.h"
#include "usdt_note.h"

static volatile int8_t table[4] = {1, -2, 3, -4};

USDT_SEMAPHORE(app_request_semaphore);

static void spin(uint64_t ns)
{
	uint64_t end = sample__now_ns() + ns;

	while (sample__now_ns() < end)
		;
}

TRACED void serve_small(uint64_t number)
{
	volatile int32_t in_memory = -77;

	spin(100000);
	if (app_request_semaphore)
		USDT_PROBE(app, request, app_request_semaphore, "8@%0 -4@%1 4@$5 -1@2(%2)",
			   "r"(number), "m"(in_memory), "r"(table));
}

TRACED void serve_large(uint64_t number)
{
	spin(300000);
	if (app_request_semaphore)
		USDT_PROBE(app, request, app_request_semaphore,
			   "8@%0 8f@%%xmm0 -4@$-6 -1@(%1,%2,1)", "r"(number), "r"(table),
			   "r"((uint64_t)3));
}

int main(int argc, char **argv)
{
	static const struct sample scale = {.slow_every = 10, .table_size = 1, .pause_ns = 1000000};
	struct sample options;

	sample__init(&options, argv, &scale, &scale);
	sample__announce();
	while (sample__next(&options)) {
		if (options.done % options.slow_every)
			serve_small(options.done);
		else
			serve_large(options.done);
		USDT_PROBE(app, always, 0, "");
	}
	return 0;
}
