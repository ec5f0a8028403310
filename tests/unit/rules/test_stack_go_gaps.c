// SPDX-License-Identifier: MIT
/* Goroutines behind a gap; the scheduler's stack begins anew each time, and is always known. */
#include "stack_go_fixture.h"

static void to_execute(struct thread *t, uint64_t from, uint64_t to)
{
	call(t, from, MCALL);
	call(t, MCALL + 0x10, SCHEDULE);
	call(t, SCHEDULE + 0x10, EXECUTE);
	call(t, EXECUTE + 0x10, GOGO);
	jump(t, GOGO + 3, to);
}

/* What it has below it stays, whatever has run on it in the gap. */
static void test_the_scheduler_has_waited(void **state)
{
	struct thread *t = *state;

	start_first(t, A);    /* 10-50 */
	gap(t, GAP_OVERFLOW); /* 60 */
	begin(t, HANDLER);    /* 70 */
	ret(t, HANDLER + 1, A + 0x25);
	schedule(t, A + 0x30, C); /* 90-120 */
	assert_finished(t, "main 10-120 inferred-start inferred-end\n"
			   "  runtime.mstart1 20-50\n"
			   "    b 30-50\n"
			   "      gogo 40-50\n"
			   "  [switched out] 50-100\n"
			   "  b 100-120\n"
			   "    gogo 110-120\n"
			   "  [switched out] 120-120 inferred-end\n");
}

/* It ran when the gap began, and a goroutine behind it. */
static void test_the_scheduler_was_left_in_the_gap(void **state)
{
	struct thread *t = *state;

	start_first(t, A);
	call(t, A + 0x10, MCALL);
	call(t, MCALL + 0x10, B); /* 70 */
	gap(t, GAP_OVERFLOW);	  /* 80 */
	begin(t, A + 0x18);	  /* 90 */
	schedule(t, A + 0x20, C); /* 100-130 */
	assert_finished(t, "main 10-130 inferred-start inferred-end inferred\n"
			   "  runtime.mstart1 20-50\n"
			   "    b 30-50\n"
			   "      gogo 40-50\n"
			   "  [switched out] 50-70\n"
			   "  b 70-80 inferred-end\n"
			   "  [gap: overflow] 80-90\n"
			   "  [switched out] 90-110\n"
			   "  b 110-130\n"
			   "    gogo 120-130\n"
			   "  [switched out] 130-130 inferred-end\n");
}

/* It runs behind the gap, as going to a goroutine shows. */
static void test_the_scheduler_goes_on(void **state)
{
	struct thread *t = *state;

	start_first(t, A);
	gap(t, GAP_OVERFLOW); /* 60 */
	begin(t, B);	      /* 70 */
	call(t, B + 0x10, GOGO);
	jump(t, GOGO + 3, C);
	schedule(t, C + 0x10, A + 0x35); /* 100-130 */
	assert_finished(t, "main 10-130 inferred-start inferred-end inferred\n"
			   "  runtime.mstart1 20-50\n"
			   "    b 30-50\n"
			   "      gogo 40-50\n"
			   "  [switched out] 50-70 inferred-end\n"
			   "  b 70-90 inferred-start\n"
			   "    gogo 80-90\n"
			   "  [switched out] 90-110\n"
			   "  b 110-130\n"
			   "    gogo 120-130\n"
			   "  [switched out] 130-130 inferred-end\n");
}

/* The same, until the end. */
static void test_the_scheduler_is_known_by_its_name(void **state)
{
	struct thread *t = *state;

	start_first(t, A);
	gap(t, GAP_OVERFLOW);
	begin(t, HANDLER);
	ret(t, HANDLER + 1, SCHEDULE + 0x15);
	call(t, SCHEDULE + 0x20, B);
	assert_finished(t, "main 10-70 inferred-start inferred-end\n"
			   "  runtime.mstart1 20-50\n"
			   "    b 30-50\n"
			   "      gogo 40-50\n"
			   "  [switched out] 50-70 inferred-end\n"
			   "runtime.schedule 70-90 inferred-start inferred-end\n"
			   "  handler 70-80 inferred-start\n"
			   "  b 90-90 inferred-end\n");
}

/* A gap may hide the first goroutine's begin. All that ran below mstart1() stays below the
 * scheduler. */
static void test_callers_of_mstart1_are_known_from_before_a_gap(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, MSTART_1);
	call(t, MSTART_1 + 0x10, HANDLER);
	gap(t, GAP_OVERFLOW); /* 40 */
	begin(t, HANDLER + 0x10);
	ret(t, HANDLER + 0x11, MSTART_1 + 0x15);
	call(t, MSTART_1 + 0x20, B);
	call(t, B + 0x10, GOGO);
	jump(t, GOGO + 3, A);	  /* 90 */
	schedule(t, A + 0x10, C); /* 100-130 */
	assert_finished(t, "main 10-130 inferred-start inferred-end inferred\n"
			   "  runtime.mstart1 20-90 inferred\n"
			   "    handler 30-60 inferred\n"
			   "      [gap: overflow] 40-50\n"
			   "    b 70-90\n"
			   "      gogo 80-90\n"
			   "  [switched out] 90-110\n"
			   "  b 110-130\n"
			   "    gogo 120-130\n"
			   "  [switched out] 130-130 inferred-end\n");
}

static void test_a_gap_hides_that_the_scheduler_was_left(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, MSTART_1);
	gap(t, GAP_OVERFLOW); /* 30 */
	begin(t, A + 0x10);
	schedule(t, A + 0x20, C); /* 50-80 */
	assert_finished(t, "main 10-30 inferred-start inferred-end\n"
			   "  runtime.mstart1 20-30 inferred-end\n"
			   "[gap: overflow] 30-40\n"
			   "a 40-80 inferred-start inferred-end\n"
			   "  runtime.mcall 50-80 inferred-end\n"
			   "    [switched out] 60-80 inferred-end\n");
	assert_next(t, "g0",
		    "main 60-80 inferred-start inferred-end\n"
		    "  b 60-80\n"
		    "    gogo 70-80\n"
		    "  [switched out] 80-80 inferred-end\n");
}

/* The scheduler's frames from before the gap are not below what it runs after it has left them. */
static void test_a_scheduler_without_known_frames_begins_anew(void **state)
{
	struct thread *t = *state;

	begin(t, B);
	call(t, B + 0x10, GOGO);
	jump(t, GOGO + 3, A); /* 30 */
	call(t, A + 0x10, MCALL);
	call(t, MCALL + 0x10, C);
	call(t, C + 0x10, SCHEDULE);
	gap(t, GAP_OVERFLOW); /* 70 */
	begin(t, SCHEDULE + 0x10);
	call(t, SCHEDULE + 0x20, GOGO);
	jump(t, GOGO + 3, HANDLER); /* 100 */
	call(t, HANDLER + 0x10, MCALL);
	call(t, MCALL + 0x10, HANDLER_2); /* 120 */
	assert_finished(t, "b 10-30 inferred-start\n"
			   "  gogo 20-30\n"
			   "[switched out] 30-50\n"
			   "c 50-100 inferred-end inferred\n"
			   "  runtime.schedule 60-100 inferred\n"
			   "    [gap: overflow] 70-80\n"
			   "    gogo 90-100\n"
			   "[switched out] 100-120\n"
			   "handler_2 120-120 inferred-end\n");
}

/* What ran on it before the gap has ended, even if it calls the same function again. */
static void test_a_scheduler_without_known_frames_has_none_from_before_a_gap(void **state)
{
	struct thread *t = *state;

	begin(t, B);
	call(t, B + 0x10, GOGO);
	jump(t, GOGO + 3, A); /* 30 */
	call(t, A + 0x10, MCALL);
	call(t, MCALL + 0x10, C);
	gap(t, GAP_OVERFLOW); /* 60 */
	begin(t, A + 0x18);
	call(t, A + 0x20, MCALL);
	call(t, MCALL + 0x10, C); /* 90 */
	assert_finished(t, "b 10-30 inferred-start\n"
			   "  gogo 20-30\n"
			   "[switched out] 30-50\n"
			   "c 50-60 inferred-end\n"
			   "[gap: overflow] 60-70\n"
			   "[switched out] 70-90\n"
			   "c 90-90 inferred-end\n");
}

/* Two goroutines, 1 and 2, call `function` and wait there; a third one runs, at HANDLER_2. */
static void two_that_wait(struct thread *t, uint64_t function)
{
	start_anew(t);
	start_first(t, A);
	call(t, A + 0x10, function);
	to_execute(t, function + 0x10, C);
	call(t, C + 0x10, function);
	to_execute(t, function + 0x10, HANDLER_2);
	assert_int_equal(running_stack(t->stack), 3);
}

/*
 * One that was preempted goes on when it is its turn, one that has parked when another one has
 * woken it, and one whose stack has grown at once.
 */
static void test_whose_turn_it_is(void **state)
{
	struct thread *t = *state;

	two_that_wait(t, HANDLER);
	to_execute(t, HANDLER_2 + 0x10, HANDLER + 0x15);
	assert_int_equal(running_stack(t->stack), 1);
	two_that_wait(t, GOPARK);
	to_execute(t, HANDLER_2 + 0x10, GOPARK + 0x15);
	assert_int_equal(running_stack(t->stack), 2);
	two_that_wait(t, HANDLER);
	schedule(t, HANDLER_2 + 0x10, HANDLER + 0x15);
	assert_int_equal(running_stack(t->stack), 2);
}

/* The frames that stay below the scheduler's. */
static void test_all_that_stays(void **state)
{
	struct thread *t = *state;

	begin(t, HANDLER);
	call(t, HANDLER + 0x10, MAIN);
	call(t, MAIN + 0x10, MSTART_1);
	call(t, MSTART_1 + 0x10, B);
	call(t, B + 0x10, GOGO);
	jump(t, GOGO + 3, A); /* 60 */
	call(t, A + 0x10, MCALL);
	call(t, MCALL + 0x10, B);
	gap(t, GAP_OVERFLOW); /* 90 */
	begin(t, A + 0x18);
	schedule(t, A + 0x20, C); /* 110-140 */
	assert_finished(t, "handler 10-140 inferred-start inferred-end inferred\n"
			   "  main 20-140 inferred-end inferred\n"
			   "    runtime.mstart1 30-60\n"
			   "      b 40-60\n"
			   "        gogo 50-60\n"
			   "    [switched out] 60-80\n"
			   "    b 80-90 inferred-end\n"
			   "    [gap: overflow] 90-100\n"
			   "    [switched out] 100-120\n"
			   "    b 120-140\n"
			   "      gogo 130-140\n"
			   "    [switched out] 140-140 inferred-end\n");
}

/* What recovers lies below all that was seen since the gap: its goroutine is known by it. */
static void test_a_recovery_shows_whose_it_is(void **state)
{
	struct thread *t = *state;
	struct call_tree tree;

	start_first(t, A);
	call(t, A + 0x10, C); /* 60 */
	gap(t, GAP_OVERFLOW); /* 70 */
	begin(t, HANDLER_2);  /* 80 */
	ret(t, HANDLER_2 + 1, HANDLER + 0x15);
	ret(t, HANDLER + 1, B + 0x15);
	call(t, B + 0x20, MCALL);
	call(t, MCALL + 0x10, RECOVERY);
	call(t, RECOVERY + 0x10, GOGO);
	jump(t, GOGO + 3, C + 0x45); /* 140 */
	ret(t, C + 0x50, A + 0x15);
	assert_int_equal(stack__finish(t->stack, &tree), 0);
	call_tree__fini(&tree);
	assert_int_equal(stack__finish_next(t->stack, &tree), 1);
	assert_string_equal(tree.coroutine_name, "goroutine 1");
	assert_tree(&tree, "a 50-150 inferred-end inferred\n"
			   "  c 60-150 inferred\n"
			   "    [gap: overflow] 70-80\n"
			   "    b 80-140 inferred-start cut by-panic\n"
			   "      handler 80-100 inferred-start\n"
			   "        handler_2 80-90 inferred-start\n"
			   "      runtime.mcall 110-140 cut by-panic\n"
			   "        [switched out] 120-140\n");
	call_tree__fini(&tree);
}

static uint64_t random_ip(unsigned int *seed)
{
	static const uint64_t functions[] = {MAIN,   A,	      B,	C,	  HANDLER,
					     GOPARK, EXECUTE, SCHEDULE, MSTART_1, GOEXIT};
	static const uint64_t offsets[] = {0, 0x15, 0x15, 0x25};

	return functions[(size_t)rand_r(seed) % 10] + offsets[rand_r(seed) % 4];
}

static void do_anything(struct thread *t, unsigned int *seed)
{
	static const uint64_t on_system[] = {B, GOEXIT_0, RECOVERY, SCHEDULE};
	uint64_t from = MAIN * (1 + (uint64_t)rand_r(seed) % 4) + 0x10;

	switch (rand_r(seed) % 9) {
	case 0:
	case 1:
		call(t, from, random_ip(seed) & ~0xffull);
		break;
	case 2:
		ret(t, random_ip(seed), random_ip(seed));
		break;
	case 3:
		gap(t, rand_r(seed) % 8 ? GAP_OVERFLOW : GAP_BETWEEN);
		begin(t, rand_r(seed) % 8 ? random_ip(seed) : GOGO);
		break;
	case 4:
		call(t, from, MCALL);
		call(t, MCALL + 0x10, on_system[rand_r(seed) % 4]);
		break;
	case 5:
		call(t, from, GOGO);
		jump(t, GOGO + 3, random_ip(seed));
		break;
	case 6:
		schedule(t, from, random_ip(seed));
		break;
	default:
		to_execute(t, from, random_ip(seed));
	}
}

/* Whatever the branches are, what comes out are trees. */
static void test_random_goroutines_give_trees(void **state)
{
	struct thread *t = *state;
	unsigned int seed = 11;
	size_t n_coroutines = 0;

	for (int round = 0; round < 1500; round++) {
		start_anew(t);
		start_first(t, A);
		for (int i = rand_r(&seed) % 150; i >= 0; i--)
			do_anything(t, &seed);
		n_coroutines += finish_coroutines(t);
	}
	assert_true(n_coroutines > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_scheduler_has_waited, start, end_thread),
		cmocka_unit_test_setup_teardown(test_the_scheduler_was_left_in_the_gap, start,
						end_thread),
		cmocka_unit_test_setup_teardown(test_the_scheduler_goes_on, start, end_thread),
		cmocka_unit_test_setup_teardown(test_the_scheduler_is_known_by_its_name, start,
						end_thread),
		cmocka_unit_test_setup_teardown(test_callers_of_mstart1_are_known_from_before_a_gap,
						start, end_thread),
		cmocka_unit_test_setup_teardown(test_a_gap_hides_that_the_scheduler_was_left, start,
						end_thread),
		cmocka_unit_test_setup_teardown(test_a_scheduler_without_known_frames_begins_anew,
						start, end_thread),
		cmocka_unit_test_setup_teardown(
			test_a_scheduler_without_known_frames_has_none_from_before_a_gap, start,
			end_thread),
		cmocka_unit_test_setup_teardown(test_whose_turn_it_is, start, end_thread),
		cmocka_unit_test_setup_teardown(test_all_that_stays, start, end_thread),
		cmocka_unit_test_setup_teardown(test_random_goroutines_give_trees, start,
						end_thread),
		cmocka_unit_test_setup_teardown(test_a_recovery_shows_whose_it_is, start,
						end_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
