// SPDX-License-Identifier: MIT
/* Restartable sequences that are aborted: the kernel sends the thread to a handler. */
#include "stack_fixture.h"

enum { SEQUENCE = 0xa000, ABORTS_AT = SEQUENCE + 0x47, PIECE = 0xb000, PIECE_AT = PIECE + 7 };

/* ud1 signature(%rip),%edi: what the compiler's assembler is given, before a handler. */
#define SIGNED "\x0f\xb9\x3d\x53\x30\x05\x53"

static int start(void **state)
{
	uint8_t code[0x50] = {0};
	struct thread *t;

	start_thread(state);
	t = *state;
	memcpy(code + 0x40, SIGNED, sizeof(SIGNED) - 1);
	add_function(t, SEQUENCE, "sequence", code, sizeof(code));
	/* Where handlers lie that are in no function. */
	add_function(t, PIECE, "piece", SIGNED, sizeof(SIGNED) - 1);
	begin(t, MAIN);
	return 0;
}

static void test_in_a_section_of_its_own(void **state)
{
	struct thread *t = *state;

	call(t, MAIN + 0x10, SEQUENCE);
	interrupt(t, SEQUENCE + 0x10);
	begin(t, PIECE_AT);
	assert_on_top(t, "sequence", 1);
	jump(t, PIECE_AT, SEQUENCE + 0x60);
	call(t, SEQUENCE + 0x60, A);
	ret(t, A + 0x10, SEQUENCE + 0x65);
	ret(t, SEQUENCE + 0x70, MAIN + 0x15);
	interrupt(t, MAIN + 0x20);
	assert_finished(t, "main 10-90 inferred-start inferred-end\n"
			   "  sequence 20-80\n"
			   "    [untraced] 30-40\n"
			   "    a 60-70\n");
}

/* It may call. */
static void test_a_handler_that_does_more(void **state)
{
	struct thread *t = *state;

	call(t, MAIN + 0x10, SEQUENCE);
	interrupt(t, SEQUENCE + 0x10);
	begin(t, PIECE_AT);
	call(t, PIECE + 0x10, A);
	assert_on_top(t, "a", 2);
	ret(t, A + 0x10, PIECE + 0x15);
	jump(t, PIECE + 0x20, SEQUENCE + 0x8);
	ret(t, SEQUENCE + 0x70, MAIN + 0x15);
	interrupt(t, MAIN + 0x20);
	assert_finished(t, "main 10-90 inferred-start inferred-end\n"
			   "  sequence 20-80\n"
			   "    [untraced] 30-40\n"
			   "    a 50-60\n");
}

static void test_in_the_function(void **state)
{
	struct thread *t = *state;

	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, SEQUENCE);
	interrupt(t, SEQUENCE + 0x10);
	begin(t, ABORTS_AT);
	assert_on_top(t, "sequence", 2);
	ret(t, SEQUENCE + 0x70, A + 0x15);
	assert_on_top(t, "a", 1);
}

/* The kernel aborts the sequence first, and has the signal's handler come back to the abort's. */
static void test_a_signal_in_a_sequence(void **state)
{
	struct thread *t = *state;

	call(t, MAIN + 0x10, SEQUENCE);
	interrupt(t, SEQUENCE + 0x10);
	begin(t, HANDLER);
	assert_on_top(t, "handler", 2);
	leave_handler(t, HANDLER + 0x20, PIECE_AT);
	assert_on_top(t, "sequence", 1);
	jump(t, PIECE_AT, SEQUENCE + 0x60);
	ret(t, SEQUENCE + 0x70, MAIN + 0x15);
	assert_on_top(t, "main", 0);
}

/* The piece is a part of the frame that was aborted, not of the next one. */
static void test_another_activation(void **state)
{
	struct thread *t = *state;

	call(t, MAIN + 0x10, SEQUENCE);
	interrupt(t, SEQUENCE + 0x10);
	begin(t, PIECE_AT);
	jump(t, PIECE_AT, SEQUENCE + 0x60);
	ret(t, SEQUENCE + 0x70, MAIN + 0x15);
	call(t, MAIN + 0x20, A);
	call(t, PIECE + 0x10, B);
	interrupt(t, B + 0x10);
	assert_finished(t, "main 10-90 inferred-start inferred-end\n"
			   "  sequence 20-60\n"
			   "    [untraced] 30-40\n"
			   "  a 70-80\n"
			   "  piece 80-90 inferred-end by-jump\n"
			   "    b 80-90 inferred-end\n");
}

/* Assembler that runs on into another function: that is no part of it. */
static void test_what_comes_behind_it(void **state)
{
	struct thread *t = *state;

	call(t, MAIN + 0x10, SEQUENCE);
	interrupt(t, SEQUENCE + 0x10);
	begin(t, PIECE_AT);
	call(t, C + 0x10, A);
	ret(t, A + 0x10, C + 0x15);
	assert_on_top(t, "c", 1);
}

/* Nothing says that it is a handler: a stack that nobody knows of. */
static void test_without_the_signature(void **state)
{
	struct thread *t = *state;

	call(t, MAIN + 0x10, SEQUENCE);
	interrupt(t, SEQUENCE + 0x10);
	begin(t, PIECE_AT + 1);
	assert_on_top(t, "piece", 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end_thread)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_in_a_section_of_its_own), TEST(test_a_handler_that_does_more),
		TEST(test_in_the_function),	    TEST(test_a_signal_in_a_sequence),
		TEST(test_what_comes_behind_it),    TEST(test_another_activation),
		TEST(test_without_the_signature),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
