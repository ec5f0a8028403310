// SPDX-License-Identifier: MIT
/* The kernel is traced, and its trace ends and goes on within it: switches, gaps, segments. */
#include "stack_kernel_fixture.h"

/* Into the kernel up to where perf stops the trace for the switch. */
static void switch_away(struct thread *t)
{
	begin(t, MAIN);
	enter(t, MAIN + 0x10, k(ENTRY));
	call(t, k(ENTRY) + 0x10, k(DO_SYSCALL));
	call(t, k(DO_SYSCALL) + 0x10, k(SCHEDULE));
	call(t, k(SCHEDULE) + 0x10, k(SCHED_OUT));
	call(t, k(SCHED_OUT) + 0x10, k(PT_STOP));
	stop(t, k(PT_STOP) + 0x10);
}

static void test_a_context_switch(void **state)
{
	struct thread *t = *state;

	switch_away(t);
	begin(t, k(PT_START) + 0x10);
	ret(t, k(PT_START) + 0x20, k(SCHED_IN) + 0x15);
	/* A call of its own, which is known from its start. */
	call(t, k(SCHED_IN) + 0x20, k(HANDLE));
	ret(t, k(HANDLE) + 0x20, k(SCHED_IN) + 0x25);
	ret(t, k(SCHED_IN) + 0x30, k(FINISH) + 0x15);
	ret(t, k(FINISH) + 0x20, k(SCHEDULE) + 0x25);
	assert_on_top(t, "__schedule", 3);
	ret(t, k(SCHEDULE) + 0x30, k(DO_SYSCALL) + 0x15);
	ret(t, k(DO_SYSCALL) + 0x20, k(ENTRY) + 0x15);
	leave(t, k(ENTRY) + 0x20, MAIN + 0x12);
	assert_on_top(t, "main", 0);
	assert_finished(t, "main 10-160 inferred-start inferred-end\n"
			   "  entry_syscall 20-160\n"
			   "    do_syscall 30-150\n"
			   "      __schedule 40-140\n"
			   "        sched_out 50-70 inferred-end\n"
			   "          pt_stop 60-70 inferred-end\n"
			   "        [untraced] 70-80\n"
			   "        finish_switch 80-130 inferred-start\n"
			   "          sched_in 80-120 inferred-start\n"
			   "            pt_start 80-90 inferred-start\n"
			   "            handle 100-110\n");
}

/* Away again before the first is over; and an interrupt meanwhile. */
static void test_switches_in_a_row(void **state)
{
	struct thread *t = *state;

	switch_away(t);
	begin(t, k(PT_START) + 0x10);
	take_interrupt(t, k(PT_START) + 0x18, k(TIMER));
	call(t, k(TIMER) + 0x10, k(SCHEDULE));
	call(t, k(SCHEDULE) + 0x10, k(SCHED_OUT));
	stop(t, k(SCHED_OUT) + 0x10);
	begin(t, k(PT_START) + 0x10);
	ret(t, k(PT_START) + 0x20, k(SCHEDULE) + 0x25);
	ret(t, k(SCHEDULE) + 0x30, k(TIMER) + 0x15);
	leave(t, k(TIMER) + 0x20, k(PT_START) + 0x18);
	assert_on_top(t, "pt_start", 4);
	ret(t, k(PT_START) + 0x20, k(SCHEDULE) + 0x25);
	assert_on_top(t, "__schedule", 3);
	stop(t, k(SCHEDULE) + 0x30);
	begin(t, k(PT_START) + 0x10);
	/* Nothing more is known of it, but that the system call is over. */
	leave(t, k(ENTRY_2) + 0x20, MAIN + 0x12);
	assert_on_top(t, "main", 0);
}

/* A trace that goes on in user code: what there was of the kernel is over. */
static void test_a_switch_that_ends_in_user_code(void **state)
{
	struct thread *t = *state;

	switch_away(t);
	begin(t, MAIN + 0x12);
	assert_on_top(t, "main", 0);
	enter(t, MAIN + 0x20, k(ENTRY));
	leave(t, k(ENTRY) + 0x20, MAIN + 0x22);
	assert_finished(t, "main 10-100 inferred-start inferred-end\n"
			   "  entry_syscall 20-80\n"
			   "    do_syscall 30-80\n"
			   "      __schedule 40-80\n"
			   "        sched_out 50-70 inferred-end\n"
			   "          pt_stop 60-70 inferred-end\n"
			   "        [untraced] 70-80\n"
			   "  entry_syscall 90-100\n");
}

/* Stopped and started again, but no switch: the frames that are seen again are the same ones. */
static void test_a_pause_in_a_handler(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	take_interrupt(t, MAIN + 0x10, k(TIMER));
	call(t, k(TIMER) + 0x10, k(HANDLE));
	call(t, k(HANDLE) + 0x10, k(PT_STOP));
	stop(t, k(PT_STOP) + 0x10);
	begin(t, k(PT_START) + 0x10);
	ret(t, k(PT_START) + 0x20, k(HANDLE) + 0x25);
	assert_on_top(t, "handle", 2);
	ret(t, k(HANDLE) + 0x30, k(TIMER) + 0x15);
	leave(t, k(TIMER) + 0x20, MAIN + 0x10);
	assert_on_top(t, "main", 0);
}

static void test_a_segment_that_begins_in_the_kernel(void **state)
{
	struct thread *t = *state;

	begin(t, k(PT_START) + 0x10);
	ret(t, k(PT_START) + 0x20, k(SCHEDULE) + 0x25);
	ret(t, k(SCHEDULE) + 0x30, k(DO_SYSCALL) + 0x15);
	take_interrupt(t, k(DO_SYSCALL) + 0x20, k(TIMER));
	leave(t, k(TIMER) + 0x20, k(DO_SYSCALL) + 0x20);
	ret(t, k(DO_SYSCALL) + 0x30, k(ENTRY_2) + 0x15);
	leave(t, k(ENTRY_2) + 0x20, A + 0x12);
	ret(t, A + 0x20, MAIN + 0x15);
	assert_finished(t, "main 10-80 inferred-start inferred-end\n"
			   "  a 10-80 inferred-start\n"
			   "    entry_after_swapgs 10-70 inferred-start\n"
			   "      do_syscall 10-60 inferred-start\n"
			   "        __schedule 10-30 inferred-start\n"
			   "          pt_start 10-20 inferred-start\n"
			   "        entry_timer 40-50\n");
}

/* In an interrupt of the kernel, of which the entry is not seen. */
static void test_a_segment_that_begins_in_an_interrupt(void **state)
{
	struct thread *t = *state;

	begin(t, k(TIMER) + 0x10);
	leave(t, k(TIMER) + 0x20, k(DO_SYSCALL) + 0x20);
	assert_on_top(t, "do_syscall", -1);
	leave(t, k(DO_SYSCALL) + 0x30, MAIN + 0x12);
	assert_on_top(t, "main", -2);
	assert_finished(t, "main 10-30 inferred-start inferred-end\n"
			   "  do_syscall 10-30 inferred-start\n"
			   "    entry_timer 10-20 inferred-start\n");
}

static void test_the_freeze_in_the_kernel(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	take_interrupt(t, MAIN + 0x10, k(FAULT));
	call(t, k(FAULT) + 0x10, k(PT_STOP));
	stop(t, k(PT_STOP) + 0x10);
	assert_finished(t, "main 10-40 inferred-start inferred-end\n"
			   "  entry_fault 20-40 inferred-end\n"
			   "    pt_stop 30-40 inferred-end\n");
}

static void test_a_gap_in_the_kernel(void **state)
{
	struct thread *t = *state;

	switch_away(t);
	begin(t, k(PT_START) + 0x10);
	gap(t, GAP_OVERFLOW);
	begin(t, k(DO_SYSCALL) + 0x40);
	leave(t, k(DO_SYSCALL) + 0x50, MAIN + 0x12);
	assert_on_top(t, "main", -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_context_switch),
		TEST(test_switches_in_a_row),
		TEST(test_a_switch_that_ends_in_user_code),
		TEST(test_a_pause_in_a_handler),
		TEST(test_a_segment_that_begins_in_the_kernel),
		TEST(test_a_segment_that_begins_in_an_interrupt),
		TEST(test_the_freeze_in_the_kernel),
		TEST(test_a_gap_in_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
