// SPDX-License-Identifier: MIT
/*
 * A service without frame pointers: main, serve, handle, relay_outer and relay_inner of a library,
 * visit, one_iter. With -threads 2 a thread does it: worker_main instead of main. Each has a frame
 * of another kind, and uses rbp for something else. main's holds what the variable
 * SECRET_OF_THE_TEST says: the kernel's own copy of that may lie behind a page that is not there.
 */
#include <alloca.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

uint64_t relay_outer(uint64_t (*function)(uint64_t), uint64_t value);

static volatile uint64_t sink;

TRACED static uint64_t one_iter(uint64_t value)
{
	uint64_t random = value | 1;

	for (int i = 0; i < 20; i++)
		sample__random(&random);
	sink = random;
	return random;
}

/* Many registers saved; rbp, if it is used, holds a number. */
TRACED static uint64_t visit(uint64_t value)
{
	uint64_t a = value, b = value * 3, c = value * 5, d = value * 7, e = value * 11, f = a ^ b;

	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
	f += one_iter(a);
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
	return a + b + c + d + e + f;
}

/* A frame of a size that only rbp knows. */
TRACED static uint64_t handle(uint64_t value)
{
	volatile char *room = alloca(value % 1024 + 64);

	room[0] = (char)value;
	value = relay_outer(visit, value);
	return value + (uint64_t)room[0];
}

/* A large frame, aligned to more than the stack is. */
TRACED static uint64_t serve(struct sample *options)
{
	_Alignas(64) volatile uint64_t history[512];
	uint64_t value = 0;

	while (sample__next(options)) {
		history[options->done % 512] = value;
		value = handle(options->done + history[options->done % 512] % 7);
		/* The slow ones, by the clock. */
		if (options->done % options->slow_every == 0)
			sample__pause(options->tick_ns);
	}
	return value;
}

TRACED static void *worker_main(void *options)
{
	sink = serve(options);
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct sample native = {
		.slow_every = 1000, .table_size = 1, .pause_ns = 1000000, .tick_ns = 50000000};
	static const struct sample small = {.slow_every = 25, .table_size = 1, .tick_ns = 50000000};
	const char *secret = getenv("SECRET_OF_THE_TEST");
	char on_the_stack[32] = "";
	struct sample options;
	pthread_t thread;

	if (secret)
		strncpy(on_the_stack, secret, sizeof(on_the_stack) - 1);
	__asm__ volatile("" : : "r"(on_the_stack) : "memory");
	sample__init(&options, argv, &native, &small);
	sample__announce();
	if (options.threads < 2) {
		sink = serve(&options);
	} else {
		if (pthread_create(&thread, NULL, worker_main, &options))
			abort();
		pthread_join(thread, NULL);
	}
	sample__fini(&options);
	return 0;
}
