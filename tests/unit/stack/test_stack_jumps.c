// SPDX-License-Identifier: MIT
/* Jumps to a caller's function, and into it; and other ways out of a handler. */
#include "stack_fixture.h"

enum { JUMPS = 0xa000, RESTORER_2 = 0xb000 };

/* Where JUMPS has a jump that says where it goes. */
enum { SHORT_AT = JUMPS + 2, BND_AT = JUMPS + 4, NEAR_AT = JUMPS + 9 };

static int start(void **state)
{
	static const uint8_t jumps[] = {0x90, 0x90, 0xeb, 0, 0xf2, 0xe9, 0, 0, 0, 0xe9, 0, 0, 0, 0};
	/* mov $15,%eax; syscall */
	static const uint8_t sigreturn[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
	struct thread *t;

	start_thread(state);
	t = *state;
	add_function(t, JUMPS, "jumps", jumps, sizeof(jumps));
	add_function(t, RESTORER_2, "restorer_2", sigreturn, sizeof(sigreturn));
	begin(t, MAIN);
	return 0;
}

/* It calls what has called it, in its own place. */
static void test_a_tail_call_of_a_caller(void **state)
{
	struct thread *t = *state;

	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, B);
	jump(t, B + 0x10, A);
	assert_on_top(t, "a", 2);
	ret(t, A + 0x20, A + 0x15);
	assert_on_top(t, "a", 1);
}

/* Code of one function in two places, without a symbol that says so: no frame is left. */
static void jump_into_caller(struct thread *t, enum branch_kind kind, uint64_t from)
{
	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, JUMPS);
	branch(t, kind, from, A + 0x30, 2);
	assert_on_top(t, "a", 2);
}

static void test_a_short_jump(void **state)
{
	jump_into_caller(*state, BRANCH_JUMP, SHORT_AT);
}

static void test_a_bnd_jump(void **state)
{
	jump_into_caller(*state, BRANCH_JUMP, BND_AT);
}

static void test_a_near_jump(void **state)
{
	jump_into_caller(*state, BRANCH_JUMP, NEAR_AT);
}

static void test_a_conditional_jump(void **state)
{
	jump_into_caller(*state, BRANCH_COND, JUMPS + 0x20);
}

/* By a register: only what leaves frames goes there so. */
static void test_an_indirect_jump(void **state)
{
	struct thread *t = *state;

	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, JUMPS);
	jump(t, JUMPS + 0x20, A + 0x30);
	assert_on_top(t, "a", 1);
}

/* A signal in its own handler: the handler's first instruction again. */
static void test_a_signal_in_its_handler(void **state)
{
	struct thread *t = *state;

	interrupt(t, MAIN + 0x10);
	begin(t, HANDLER);
	interrupt(t, HANDLER + 0x10);
	begin(t, HANDLER);
	assert_on_top(t, "handler", 2);
	leave_handler(t, HANDLER + 0x20, HANDLER + 0x10);
	assert_on_top(t, "handler", 1);
	leave_handler(t, HANDLER + 0x20, MAIN + 0x10);
	assert_on_top(t, "main", 0);
}

/* As other libraries write it. */
static void test_another_restorer(void **state)
{
	struct thread *t = *state;

	interrupt(t, MAIN + 0x10);
	begin(t, HANDLER);
	ret(t, HANDLER + 0x20, RESTORER_2);
	enter_kernel(t, RESTORER_2 + 5);
	begin(t, MAIN + 0x10);
	assert_on_top(t, "main", 0);
}

/* Nothing has shown that a handler returned to it. */
static void test_a_trace_from_the_restorer_on(void **state)
{
	struct thread *t = *state;

	gap(t, GAP_BETWEEN);
	begin(t, RESTORER_2);
	enter_kernel(t, RESTORER_2 + 5);
	begin(t, A + 0x10);
	interrupt(t, A + 0x20);
	assert_finished(t, "main 10-20 inferred-start inferred-end\n"
			   "[gap] 20-30\n"
			   "a 30-60 inferred-start inferred-end\n"
			   "  restorer_2 30-50 inferred-start\n"
			   "    [syscall] 40-50\n");
}

/* Called instead of returned to: what it is in ends with the handler. */
static void test_a_call_of_the_restorer(void **state)
{
	struct thread *t = *state;

	interrupt(t, MAIN + 0x10);
	begin(t, HANDLER);
	call(t, HANDLER + 0x10, A);
	call(t, A + 0x10, RESTORER);
	enter_kernel(t, RESTORER + 7);
	begin(t, MAIN + 0x10);
	assert_on_top(t, "main", 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end_thread)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_tail_call_of_a_caller),
		TEST(test_a_short_jump),
		TEST(test_a_bnd_jump),
		TEST(test_a_near_jump),
		TEST(test_a_conditional_jump),
		TEST(test_an_indirect_jump),
		TEST(test_a_signal_in_its_handler),
		TEST(test_another_restorer),
		TEST(test_a_trace_from_the_restorer_on),
		TEST(test_a_call_of_the_restorer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
