// SPDX-License-Identifier: MIT
/* The true stack from the stack pointer, as it is logged: "TID TIME KIND TO DEPTH". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "capture/soft/truth.h"

#define SP 0x7ffe00001000ull

struct fixture {
	struct truth truth;
	char *text;
	size_t size;
	FILE *log;
	uint64_t now;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->log = open_memstream(&f->text, &f->size);
	truth__init(&f->truth, f->log, 43);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	truth__fini(&f->truth);
	fclose(f->log);
	free(f->text);
	free(f);
	return 0;
}

/* The return address is pushed at `sp`. */
static void call(struct fixture *f, uint64_t to, uint64_t sp)
{
	truth__call(&f->truth, ++f->now, to, sp);
}

static void ret(struct fixture *f, uint64_t to, uint64_t slot)
{
	truth__return(&f->truth, ++f->now, to, slot);
}

static void assert_log(struct fixture *f, const char *expected)
{
	fflush(f->log);
	assert_string_equal(f->text, expected);
}

static void test_calls_and_returns(void **state)
{
	struct fixture *f = *state;

	call(f, 0x100, SP);
	call(f, 0x200, SP - 0x20);
	ret(f, 0x105, SP - 0x20);
	call(f, 0x300, SP - 0x20);
	ret(f, 0x115, SP - 0x20);
	ret(f, 0x5, SP);
	assert_log(f, "43 1 call 0x100 1\n"
		      "43 2 call 0x200 2\n"
		      "43 3 return 0x105 1\n"
		      "43 4 call 0x300 2\n"
		      "43 5 return 0x115 1\n"
		      "43 6 return 0x5 0\n");
}

static void test_returns_from_what_was_called_before_the_log(void **state)
{
	struct fixture *f = *state;

	ret(f, 0x105, SP);
	ret(f, 0x205, SP + 0x20);
	call(f, 0x300, SP + 0x20);
	assert_log(f, "43 1 return 0x105 -1\n"
		      "43 2 return 0x205 -2\n"
		      "43 3 call 0x300 -1\n");
}

static void test_a_call_in_the_place_of_a_frame_left_without_a_return(void **state)
{
	struct fixture *f = *state;

	call(f, 0x100, SP);
	call(f, 0x200, SP - 0x20);
	call(f, 0x300, SP - 0x40);
	call(f, 0x400, SP - 0x20);
	ret(f, 0x105, SP - 0x20);
	assert_log(f, "43 1 call 0x100 1\n"
		      "43 2 call 0x200 2\n"
		      "43 3 call 0x300 3\n"
		      "43 4 call 0x400 2\n"
		      "43 5 return 0x105 1\n");
}

static void test_frames_left_without_a_return(void **state)
{
	struct fixture *f = *state;

	call(f, 0x100, SP);
	call(f, 0x200, SP - 0x20);
	call(f, 0x300, SP - 0x40);
	/* longjmp to the first: its next call lies above the others. */
	call(f, 0x400, SP - 0x10);
	ret(f, 0x105, SP - 0x10);
	/* Or it returns at once. */
	call(f, 0x200, SP - 0x20);
	ret(f, 0x5, SP);
	assert_log(f, "43 1 call 0x100 1\n"
		      "43 2 call 0x200 2\n"
		      "43 3 call 0x300 3\n"
		      "43 4 call 0x400 2\n"
		      "43 5 return 0x105 1\n"
		      "43 6 call 0x200 2\n"
		      "43 7 return 0x5 0\n");
}

static void test_a_return_that_is_a_jump(void **state)
{
	struct fixture *f = *state;

	call(f, 0x100, SP);
	/* "push; ret" reads what it pushed, below the return address. */
	ret(f, 0x200, SP - 8);
	ret(f, 0x5, SP);
	assert_log(f, "43 1 call 0x100 1\n"
		      "43 2 return 0x200 1\n"
		      "43 3 return 0x5 0\n");
}

static void test_a_tail_call_keeps_the_frame(void **state)
{
	struct fixture *f = *state;

	call(f, 0x100, SP);
	/* jmp 0x200: nothing to log. Its calls are as deep as those of the first. */
	call(f, 0x300, SP - 8);
	ret(f, 0x205, SP - 8);
	ret(f, 0x5, SP);
	assert_log(f, "43 1 call 0x100 1\n"
		      "43 2 call 0x300 2\n"
		      "43 3 return 0x205 1\n"
		      "43 4 return 0x5 0\n");
}

static void test_a_signal(void **state)
{
	struct fixture *f = *state;

	call(f, 0x100, SP);
	truth__signal(&f->truth, 0x500, SP - 0x400);
	truth__ran(&f->truth, 0x500);
	truth__ran(&f->truth, 0x501);
	call(f, 0x600, SP - 0x410);
	ret(f, 0x505, SP - 0x410);
	/* Into the restorer: the frame lives until rt_sigreturn. */
	ret(f, 0x700, SP - 0x400);
	truth__sigreturn(&f->truth);
	ret(f, 0x5, SP);
	assert_log(f, "43 1 call 0x100 1\n"
		      "43 2 call 0x600 3\n"
		      "43 3 return 0x505 2\n"
		      "43 4 return 0x700 2\n"
		      "43 5 return 0x5 0\n");
}

/* The handler that was set up last runs first; the other is no part of the depth before it runs. */
/* The handler has put a call between. */
static void test_a_return_address_that_was_put_there(void **state)
{
	struct fixture *f = *state;

	call(f, 0x1000, 900);
	truth__pushed(&f->truth, 800);
	call(f, 0x2000, 700);
	ret(f, 0x3000, 700);
	ret(f, 0x1010, 800);
	ret(f, 0x10, 900);
	assert_log(f, "43 1 call 0x1000 1\n"
		      "43 2 call 0x2000 3\n"
		      "43 3 return 0x3000 2\n"
		      "43 4 return 0x1010 1\n"
		      "43 5 return 0x10 0\n");
}

static void test_two_signals_at_once(void **state)
{
	struct fixture *f = *state;

	call(f, 0x100, SP);
	truth__signal(&f->truth, 0x500, SP - 0x400);
	truth__signal(&f->truth, 0x600, SP - 0x800);
	truth__ran(&f->truth, 0x600);
	call(f, 0x200, SP - 0x810);
	ret(f, 0x605, SP - 0x810);
	ret(f, 0x700, SP - 0x800);
	truth__sigreturn(&f->truth);
	truth__ran(&f->truth, 0x500);
	call(f, 0x200, SP - 0x410);
	ret(f, 0x505, SP - 0x410);
	ret(f, 0x700, SP - 0x400);
	truth__sigreturn(&f->truth);
	ret(f, 0x5, SP);
	assert_log(f, "43 1 call 0x100 1\n"
		      "43 2 call 0x200 3\n"
		      "43 3 return 0x605 2\n"
		      "43 4 return 0x700 2\n"
		      "43 5 call 0x200 3\n"
		      "43 6 return 0x505 2\n"
		      "43 7 return 0x700 2\n"
		      "43 8 return 0x5 0\n");
}

static void test_a_handler_that_never_ran(void **state)
{
	struct fixture *f = *state;

	truth__signal(&f->truth, 0x500, SP - 0x400);
	/* A longjmp above both of it and of what waits does away with them. */
	call(f, 0x100, SP);
	assert_log(f, "43 1 call 0x100 1\n");
	assert_int_equal(f->truth.now.waiting, 0);
}

static void test_a_sigreturn_of_a_handler_from_before_the_log(void **state)
{
	struct fixture *f = *state;

	call(f, 0x100, SP - 0x400);
	truth__sigreturn(&f->truth);
	call(f, 0x200, SP);
	assert_log(f, "43 1 call 0x100 1\n"
		      "43 2 call 0x200 0\n");
}

static void test_execve_leaves_nothing(void **state)
{
	struct fixture *f = *state;

	ret(f, 0x105, SP);
	call(f, 0x100, SP);
	truth__signal(&f->truth, 0x500, SP - 0x400);
	truth__reset(&f->truth);
	call(f, 0x200, SP - 0x8000);
	assert_log(f, "43 1 return 0x105 -1\n"
		      "43 2 call 0x100 0\n"
		      "43 3 call 0x200 1\n");
}

/* The caller knows them, and that the second is moved while the first is in use. */
static void test_stacks_by_key(void **state)
{
	struct fixture *f = *state;
	const uint64_t other = 0x100000, moved = 0x800000;

	assert_int_equal(truth__use_stack(&f->truth, 0, 0), 0);
	call(f, 0x100, SP - 8);
	assert_int_equal(truth__use_stack(&f->truth, 1, SP), 0);
	call(f, 0x200, SP - 0x18);
	assert_int_equal(truth__use_stack(&f->truth, 2, other), 0);
	call(f, 0x300, other - 8);
	call(f, 0x400, other - 0x28);
	truth__use_stack(&f->truth, 1, SP);
	ret(f, 0x105, SP - 0x18);
	assert_int_equal(truth__use_stack(&f->truth, 2, moved), other - moved);
	call(f, 0x500, moved - 0x48 + (other - moved));
	truth__at(&f->truth, other - 0x10);
	ret(f, 0x600, other - 8);
	assert_log(f, "43 1 call 0x100 1 0\n"
		      "43 2 call 0x200 2 0\n"
		      "43 3 call 0x300 1 1\n"
		      "43 4 call 0x400 2 1\n"
		      "43 5 return 0x105 1 0\n"
		      "43 6 call 0x500 3 1\n"
		      "43 7 return 0x600 0 1\n");
}

/* Two more stacks, the second of which is used anew for another coroutine. */
static void test_several_stacks(void **state)
{
	struct fixture *f = *state;
	const uint64_t other = SP - 0x100000, third = SP - 0x200000;

	f->truth.distance = 0x10000;
	call(f, 0x100, SP - 8);
	call(f, 0x200, SP - 0x18);
	ret(f, 0x300, other); /* the switch */
	call(f, 0x400, other - 0x20);
	call(f, 0x100, third - 8);
	ret(f, 0x105, SP - 0x18);
	ret(f, 0x405, other - 0x20);
	ret(f, 0x500, other + 8);
	ret(f, 0x300, other);
	ret(f, 0x110, SP - 8);
	assert_log(f, "43 1 call 0x100 1 0\n"
		      "43 2 call 0x200 2 0\n"
		      "43 3 return 0x300 -1 1\n"
		      "43 4 call 0x400 0 1\n"
		      "43 5 call 0x100 1 2\n"
		      "43 6 return 0x105 1 0\n"
		      "43 7 return 0x405 -1 1\n"
		      "43 8 return 0x500 -2 1\n"
		      "43 9 return 0x300 -1 1\n"
		      "43 10 return 0x110 0 0\n");
}

/* As in OCaml 5: the handler at a fiber's base is reached by a RET that no call belongs to. */
static void test_a_raise_out_of_all_frames_of_a_coroutine(void **state)
{
	struct fixture *f = *state;
	const uint64_t other = SP - 0x100000;

	f->truth.distance = 0x10000;
	call(f, 0x100, SP - 8);
	for (int i = 0; i < 2; i++) {
		call(f, 0x200, other - 8);
		call(f, 0x300, other - 0x20);
		ret(f, 0x600, other + 8);
	}
	ret(f, 0x110, SP - 8);
	assert_log(f, "43 1 call 0x100 1 0\n"
		      "43 2 call 0x200 1 1\n"
		      "43 3 call 0x300 2 1\n"
		      "43 4 return 0x600 0 1\n"
		      "43 5 call 0x200 1 1\n"
		      "43 6 call 0x300 2 1\n"
		      "43 7 return 0x600 0 1\n"
		      "43 8 return 0x110 0 0\n");
}

static void test_without_a_log_nothing_is_kept(void **state)
{
	struct truth truth;

	truth__init(&truth, NULL, 43);
	truth__call(&truth, 1, 0x100, SP);
	truth__return(&truth, 2, 0x5, SP + 8);
	truth__signal(&truth, 0x500, SP - 0x400);
	truth__ran(&truth, 0x500);
	truth__sigreturn(&truth);
	truth__reset(&truth);
	assert_int_equal(truth.now.frames.n, 0);
	assert_null(truth.now.frames.v);
	truth__fini(&truth);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_several_stacks),
		TEST(test_a_raise_out_of_all_frames_of_a_coroutine),
		TEST(test_stacks_by_key),
		TEST(test_calls_and_returns),
		TEST(test_returns_from_what_was_called_before_the_log),
		TEST(test_a_call_in_the_place_of_a_frame_left_without_a_return),
		TEST(test_frames_left_without_a_return),
		TEST(test_a_return_that_is_a_jump),
		TEST(test_a_tail_call_keeps_the_frame),
		TEST(test_a_signal),
		TEST(test_a_return_address_that_was_put_there),
		TEST(test_two_signals_at_once),
		TEST(test_a_handler_that_never_ran),
		TEST(test_a_sigreturn_of_a_handler_from_before_the_log),
		TEST(test_execve_leaves_nothing),
		cmocka_unit_test(test_without_a_log_nothing_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
