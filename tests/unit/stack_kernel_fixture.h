/* SPDX-License-Identifier: MIT */
/* The thread of stack_fixture.h on a kernel that is traced too. */
#ifndef MTBPF_TESTS_STACK_KERNEL_FIXTURE_H
#define MTBPF_TESTS_STACK_KERNEL_FIXTURE_H

#include "stack_fixture.h"

/* Kernel functions, at KERNEL + n * FUNCTION_SIZE. */
static const char *const kernel_names[] = {"entry_syscall", "entry_after_swapgs", "entry_fault",
					   "entry_timer",   "do_syscall",	  "handle",
					   "copy_user",	    "__schedule",	  "sched_out",
					   "pt_stop",	    "finish_switch",	  "sched_in",
					   "pt_start",	    "__x86_return_thunk", "ret_from_fork"};
#define KERNEL_COUNT (sizeof(kernel_names) / sizeof(kernel_names[0]))
#define KERNEL	     0xffffffff81000000ull

enum {
	ENTRY = 0,
	ENTRY_2,
	FAULT,
	TIMER,
	DO_SYSCALL,
	HANDLE,
	COPY,
	SCHEDULE,
	SCHED_OUT,
	PT_STOP,
	FINISH,
	SCHED_IN,
	PT_START,
	THUNK,
	FORK,
};

static struct elf_image *kernel[KERNEL_COUNT];

static inline uint64_t k(int function)
{
	return KERNEL + (uint64_t)function * FUNCTION_SIZE;
}

static inline int start(void **state)
{
	struct thread *t;
	int err = start_thread(state);

	t = *state;
	for (size_t i = 0; i < KERNEL_COUNT; i++) {
		uint8_t code[FUNCTION_SIZE];

		memset(code, 0x90, sizeof(code));
		kernel[i] = elf_image__raw(code, sizeof(code), "[kernel]", kernel_names[i]);
		assert_int_equal(code_map__add(t->map, k((int)i), FUNCTION_SIZE, 0, kernel[i]), 0);
	}
	return err;
}

static inline int end(void **state)
{
	for (size_t i = 0; i < KERNEL_COUNT; i++)
		elf_image__free(kernel[i]);
	return end_thread(state);
}

/* syscall; the handler is entered after it. */
static inline void enter(struct thread *t, uint64_t from, uint64_t to)
{
	branch(t, BRANCH_ENTER, from, to, 2);
}

static inline void take_interrupt(struct thread *t, uint64_t at, uint64_t to)
{
	branch(t, BRANCH_ENTER, at, to, 0);
}

static inline void leave(struct thread *t, uint64_t from, uint64_t to)
{
	branch(t, BRANCH_LEAVE, from, to, 3);
}

static inline void stop(struct thread *t, uint64_t at)
{
	branch(t, BRANCH_END_ASYNC, at, 0, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

#endif
