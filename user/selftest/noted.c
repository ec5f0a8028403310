// SPDX-License-Identifier: MIT
#include "selftest/noted.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define F(name, program) {"mtbpf_selftest_" #name, PROGRAM_##program},
const struct program_function program_functions[] = {NOTED_FUNCTIONS(F)};
#undef F

const unsigned int n_program_functions = sizeof(program_functions) / sizeof(program_functions[0]);

static struct iteration *current;
static __thread pid_t own_tid;

void noted__begin(struct iteration *iteration)
{
	current = iteration;
}

void noted__begin_thread(void)
{
	own_tid = (pid_t)syscall(SYS_gettid);
}

uint64_t noted__now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static __attribute__((noipa)) void note(enum noted_function function, unsigned int depth,
					enum noted_event event, uint8_t vector, uint64_t value)
{
	unsigned int i = atomic_fetch_add(&current->n, 1);

	if (i < MAX_NOTED)
		current->calls[i] = (struct noted_call){
			.time_ns = noted__now_ns(),
			.tid = own_tid,
			.function = (uint16_t)function,
			.depth = (uint16_t)depth,
			.event = event,
			.vector = vector,
			.value = value,
		};
}

void noted__call(enum noted_function function, unsigned int depth)
{
	note(function, depth, NOTED_NO_EVENT, 0, 0);
}

void noted__exception(enum noted_function function, unsigned int depth, uint8_t vector,
		      uint64_t address)
{
	note(function, depth, NOTED_EXCEPTION, vector, address);
}

void noted__value(enum noted_function function, unsigned int depth, uint64_t value)
{
	note(function, depth, NOTED_PTWRITE, 0, value);
}
