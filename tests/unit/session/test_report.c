// SPDX-License-Identifier: MIT
/* The report on hand-made call trees, word for word. */
#include "report_fixture.h"

#define COLUMNS "       extra       slow  inclusive   ordinary   calls (ordinary)  function\n"

static void test_the_slow_iteration_against_the_ordinary_ones(void **state)
{
	struct fixture *f = *state;

	add_iterations(f);
	assert_report(
		f, 10,
		"the slow iteration of iter took 4.00 ms, an ordinary one 1.00 ms (mean of 2 in "
		"the same lookback); where the time went:\n"
		"  slow     on CPU 3.00 ms · system calls 1.00 ms\n"
		"  ordinary on CPU 1.00 ms · system calls 0 ns\n" COLUMNS
		"     2.00 ms    2.00 ms    3.00 ms       0 ns        1       0.0  stall\n"
		"     1.00 ms    1.00 ms    1.00 ms       0 ns        1       0.0  [syscall]\n"
		"   inclusive   ordinary  path\n"
		"     3.00 ms       0 ns  stall\n"
		"     1.00 ms       0 ns    [syscall]\n"
		"      800 us     800 us  main\n");
}

static void test_no_more_rows_than_asked_for(void **state)
{
	struct fixture *f = *state;

	add_iterations(f);
	assert_report(f, 1,
		      "the slow iteration of iter took 4.00 ms, an ordinary one 1.00 ms (mean of 2 "
		      "in the same lookback); where the time went:\n"
		      "  slow     on CPU 3.00 ms · system calls 1.00 ms\n"
		      "  ordinary on CPU 1.00 ms · system calls 0 ns\n" COLUMNS
		      "     2.00 ms    2.00 ms    3.00 ms       0 ns        1       0.0  stall\n"
		      "   inclusive   ordinary  path\n"
		      "     3.00 ms       0 ns  stall\n"
		      "     1.00 ms       0 ns    [syscall]\n"
		      "      800 us     800 us  main\n");
}

static void test_more_of_what_is_ordinary(void **state)
{
	struct fixture *f = *state;

	add(f, 0, 0, 10 * MS, &program);
	add(f, 1, MS, 2 * MS, &iter);
	add(f, 2, MS, MS + 500000, &work);
	add(f, 1, 2 * MS, 3 * MS, &iter);
	add(f, 2, 2 * MS, 2 * MS + 100000, &work);
	add(f, 1, 3 * MS, 6 * MS, &iter);
	add(f, 2, 3 * MS, 4 * MS, &work);
	add(f, 2, 4 * MS, 5 * MS, &work);
	add(f, 2, 5 * MS, 5 * MS + 500000, &work);
	add(f, 1, 7 * MS, 8 * MS, &iter);
	assert_report(f, 10,
		      "the slow iteration of iter took 4.00 ms, an ordinary one 1.00 ms (mean of 2 "
		      "in the same lookback); where the time went:\n"
		      "  slow     on CPU 4.00 ms · system calls 0 ns\n"
		      "  ordinary on CPU 1.00 ms · system calls 0 ns\n" COLUMNS
		      "     2.20 ms    2.50 ms    2.50 ms     300 us        3       1.0  work\n"
		      "     1.00 ms    1.00 ms    4.00 ms       0 ns        0       0.0  main\n"
		      "   inclusive   ordinary  path\n"
		      "     3.00 ms    1.00 ms  iter\n"
		      "     2.50 ms     300 us    work\n"
		      "     1.00 ms       0 ns  main\n");
}

/* The time in an inlined function is not its caller's, whoever else has its name. */
static void test_inlined_functions_have_their_time(void **state)
{
	static const struct function inlined = {.name = "work", .kind = FUNCTION_INLINED};
	struct fixture *f = *state;
	struct call *call;

	add(f, 0, 0, 8 * MS, &program)->flags = CALL_INFERRED_START;
	for (uint64_t at = MS; at <= 3 * MS; at += MS)
		add(f, 1, at, at + 1000, &iter);
	call = add(f, 1, 4 * MS, 6 * MS, &inlined);
	call->kind = CALL_INLINED;
	call->flags = CALL_INFERRED_START | CALL_INFERRED_END;
	add(f, 2, 4 * MS, 5 * MS, &work);
	add(f, 1, 7 * MS, 8 * MS, &iter);
	assert_report(
		f, 10,
		"the slow iteration of iter took 4.00 ms, an ordinary one 1.00 ms (mean of 2 in "
		"the same lookback); where the time went:\n"
		"  slow     on CPU 4.00 ms · system calls 0 ns\n"
		"  ordinary on CPU 1.00 ms · system calls 0 ns\n" COLUMNS
		"     1.00 ms    2.00 ms    4.00 ms     999 us        0       0.0  main\n"
		"     1.00 ms    1.00 ms    1.00 ms       0 ns        1       0.0  work\n"
		"     1.00 ms    1.00 ms    2.00 ms       0 ns        0       0.0  work [inlined]\n"
		"   inclusive   ordinary  path\n"
		"     2.00 ms       0 ns  work\n"
		"     1.00 ms       0 ns    work\n"
		"     2.00 ms     999 us  main\n");
}

static void test_nothing_to_compare_with(void **state)
{
	struct fixture *f = *state;

	add(f, 0, 0, 8 * MS, &program);
	add(f, 1, 3 * MS, 4 * MS, &iter);
	add(f, 1, 7 * MS, 8 * MS, &iter);
	assert_report(f, 10,
		      "the slow iteration of iter took 4.00 ms; where the time went:\n"
		      "  slow     on CPU 4.00 ms · system calls 0 ns\n" COLUMNS
		      "     3.00 ms    3.00 ms    4.00 ms       0 ns        0       0.0  main\n"
		      "     1.00 ms    1.00 ms    1.00 ms       0 ns        1       0.0  iter\n"
		      "   inclusive  path\n"
		      "     3.00 ms  main\n"
		      "     1.00 ms  iter\n");
}

static void test_recursion_is_part_of_the_iteration(void **state)
{
	struct fixture *f = *state;

	add(f, 0, 0, 8 * MS, &program);
	add(f, 1, MS, 2 * MS, &iter);
	add(f, 2, MS + 200000, MS + 400000, &iter);
	add(f, 1, 2 * MS, 6 * MS, &iter);
	add(f, 2, 3 * MS, 6 * MS, &work);
	add(f, 3, 4 * MS, 5 * MS, &iter);
	add(f, 1, 7 * MS, 8 * MS, &iter);
	assert_report(f, 10,
		      "the slow iteration of iter took 5.00 ms, an ordinary one 1.00 ms (mean of 1 "
		      "in the same lookback); where the time went:\n"
		      "  slow     on CPU 5.00 ms · system calls 0 ns\n"
		      "  ordinary on CPU 1.00 ms · system calls 0 ns\n" COLUMNS
		      "     2.00 ms    2.00 ms    3.00 ms       0 ns        1       0.0  work\n"
		      "     1.00 ms    2.00 ms    4.00 ms    1.00 ms        2       2.0  iter\n"
		      "     1.00 ms    1.00 ms    5.00 ms       0 ns        0       0.0  main\n"
		      "   inclusive   ordinary  path\n"
		      "     4.00 ms    1.00 ms  iter\n"
		      "     3.00 ms       0 ns    work\n"
		      "     1.00 ms       0 ns      iter\n"
		      "     1.00 ms       0 ns  main\n");
}

static void test_a_duration_is_one_call(void **state)
{
	struct fixture *f = *state;

	f->hit.reason = MT_HIT_DURATION;
	f->hit.time_ns = 6 * MS;
	add(f, 0, 0, 9 * MS, &program);
	add(f, 1, MS, MS + 500000, &iter);
	add(f, 1, 2 * MS, 2 * MS + 500000, &iter);
	add(f, 1, 3 * MS, 6 * MS, &iter);
	add(f, 2, 4 * MS, 6 * MS, &stall);
	add(f, 1, 7 * MS, 8 * MS, &iter);
	assert_report(f, 10,
		      "the slow iteration of iter took 3.00 ms, an ordinary one 500 us (mean of 2 "
		      "in the same lookback); where the time went:\n"
		      "  slow     on CPU 3.00 ms · system calls 0 ns\n"
		      "  ordinary on CPU 500 us · system calls 0 ns\n" COLUMNS
		      "     2.00 ms    2.00 ms    2.00 ms       0 ns        1       0.0  stall\n"
		      "      500 us    1.00 ms    3.00 ms     500 us        1       1.0  iter\n"
		      "   inclusive   ordinary  path\n"
		      "     3.00 ms     500 us  iter\n"
		      "     2.00 ms       0 ns    stall\n");
}

/* An interpreter's main loop calls itself, and ran when the trigger was set. */
static void test_calls_in_one_that_ran_before(void **state)
{
	struct fixture *f = *state;

	f->hit.reason = MT_HIT_DURATION;
	f->hit.time_ns = 6 * MS;
	f->hit.value_ns = 3 * MS;
	add(f, 0, 0, 9 * MS, &program)->flags = CALL_INFERRED_START;
	add(f, 1, 0, 9 * MS, &iter)->flags = CALL_INFERRED_START;
	add(f, 2, MS, MS + 500000, &iter);
	add(f, 2, 3 * MS, 6 * MS, &iter);
	add(f, 3, 3 * MS, 4 * MS, &iter);
	add(f, 3, 4 * MS, 6 * MS, &stall);
	assert_report(f, 10,
		      "the slow iteration of iter took 3.00 ms, an ordinary one 500 us (mean of 1 "
		      "in the same lookback); where the time went:\n"
		      "  slow     on CPU 3.00 ms · system calls 0 ns\n"
		      "  ordinary on CPU 500 us · system calls 0 ns\n" COLUMNS
		      "     2.00 ms    2.00 ms    2.00 ms       0 ns        1       0.0  stall\n"
		      "      500 us    1.00 ms    3.00 ms     500 us        2       1.0  iter\n"
		      "   inclusive   ordinary  path\n"
		      "     3.00 ms     500 us  iter\n"
		      "     2.00 ms       0 ns    stall\n"
		      "     1.00 ms       0 ns    iter\n");
}

/* A trace's times begin at 0. */
static void test_an_iteration_may_begin_at_0(void **state)
{
	struct fixture *f = *state;

	add(f, 0, 0, 0, &iter);
	add(f, 0, 3 * MS, 3 * MS, &iter);
	add(f, 0, 7 * MS, 7 * MS, &iter);
	assert_report_begins(f, "the slow iteration of iter took 4.00 ms, an ordinary one 3.00 ms "
				"(mean of 1 in the same lookback); where");
}

/* As there may be, with -skip, or -after: what is slow is in no ordinary iteration's mean. */
static void test_iterations_beyond_the_threshold_are_not_ordinary(void **state)
{
	struct fixture *f = *state;

	f->hit.threshold_ns = 2 * MS;
	add(f, 0, 1000000, 1000000, &iter);
	add(f, 0, 1500000, 1500000, &iter);
	add(f, 0, 1800000, 1800000, &iter);
	add(f, 0, 4800000, 4800000, &iter);
	add(f, 0, 7 * MS, 7 * MS, &iter);
	assert_report_begins(f, "the slow iteration of iter took 2.20 ms, an ordinary one 400 us "
				"(mean of 2 in the same lookback; 1 more was slow); where");
}

/* Threads of a pool do the same work: the report says whose iterations it does not compare. */
static void test_iterations_of_other_threads(void **state)
{
	struct fixture *f = *state;

	f->hit.threshold_ns = 3 * MS;
	add_to(&f->trees[0], 0, 1 * MS, 1 * MS, &iter);
	add_to(&f->trees[0], 0, 2 * MS, 2 * MS, &iter);
	add_to(&f->trees[0], 0, 4 * MS, 4 * MS, &iter);
	/* As slow as the one that triggered, and one that begins after the hit. */
	add_to(&f->trees[0], 0, 6999999, 6999999, &iter);
	add_to(&f->trees[0], 0, 8 * MS, 8 * MS, &iter);
	add(f, 0, 2500000, 2500000, &iter);
	add(f, 0, 7 * MS, 7 * MS, &iter);
	assert_int_equal(print(f, 0), 0);
	assert_string_equal(f->text,
			    "the slow iteration of iter took 4.50 ms; where the time went:\n"
			    "  slow     on CPU 0 ns · system calls 0 ns · not recorded 4.50 ms\n"
			    "  not compared: the lookback lacks ordinary iterations with stacks of "
			    "the same thread; other "
			    "threads had 3 ordinary ones, mean 2.00 ms\n" COLUMNS);
	f->trees[1].calls.v[0].start_ns = f->trees[1].calls.v[0].end_ns = 2 * MS;
	add(f, 0, 7 * MS, 7 * MS, &iter);
	f->trees[1].calls.v[1].start_ns = f->trees[1].calls.v[1].end_ns = 3 * MS;
	assert_int_equal(print(f, 0), 0);
	assert_non_null(strstr(f->text, "  compared only with iterations of the same thread; other "
					"threads had 3 ordinary ones, mean 2.00 ms\n"));
	f->trees[0].calls.n = 1;
	assert_int_equal(print(f, 0), 0);
	assert_null(strstr(f->text, "compared"));
}

/* Without a threshold an iteration may trigger that was not slow. */
static void test_an_ordinary_iteration_is_not_called_slow(void **state)
{
	struct fixture *f = *state;

	add(f, 0, 1 * MS, 1 * MS, &iter);
	add(f, 0, 5 * MS, 5 * MS, &iter);
	add(f, 0, 7 * MS, 7 * MS, &iter);
	assert_report_begins(f, "the iteration of iter took 2.00 ms, an ordinary one 4.00 ms "
				"(mean of 1 in the same lookback); where");
}

/* If all pass a threshold that is not low, only much shorter ones are compared. */
static void test_all_iterations_pass_the_threshold(void **state)
{
	struct fixture *f = *state;

	f->hit.threshold_ns = 1;
	add(f, 0, 1 * MS, 1 * MS, &iter);
	add(f, 0, 2 * MS, 2 * MS, &iter);
	add(f, 0, 7 * MS, 7 * MS, &iter);
	assert_report_begins(f, "the slow iteration of iter took 5.00 ms, an ordinary one 1.00 ms "
				"(mean of 1 in the same lookback); where");
	f->trees[1].calls.v[1].start_ns = f->trees[1].calls.v[1].end_ns = 4 * MS;
	assert_report_begins(f, "the iteration of iter took 3.00 ms, an ordinary one 3.00 ms "
				"(mean of 1 in the same lookback); where");
	f->hit.threshold_ns = 2 * MS;
	assert_report_begins(f, "the slow iteration of iter took 3.00 ms; 1 more was slow; where");
}

static void test_time_outside_by_its_kind(void **state)
{
	struct fixture *f = *state;
	static const uint8_t reasons[] = {GAP_OVERFLOW, GAP_UNMAPPED, GAP_OVERFLOW};
	uint64_t at = 3 * MS;

	add(f, 0, 2 * MS, 3 * MS, &program);
	add(f, 1, 2 * MS, 3 * MS, &iter);
	for (int i = 0; i < 3; i++, at += MS) {
		struct call *gap = add(f, 0, at, at + MS / 2, NULL);

		gap->kind = CALL_GAP;
		gap->reason = reasons[i];
		add(f, 0, at + MS / 2, at + MS, NULL)->kind = i ? CALL_UNTRACED : CALL_FUNCTION;
	}
	add(f, 0, 7 * MS, 8 * MS, &program);
	add(f, 1, 7 * MS, 8 * MS, &iter);
	assert_report(
		f, 10,
		"the slow iteration of iter took 5.00 ms; where the time went:\n"
		"  slow     on CPU 1.50 ms · system calls 1.00 ms · not recorded 2.50 ms\n" COLUMNS
		"     1.00 ms    1.00 ms    1.00 ms       0 ns        2       0.0  [gap: "
		"overflow]\n"
		"     1.00 ms    1.00 ms    1.00 ms       0 ns        2       0.0  [untraced]\n"
		"     1.00 ms    1.00 ms    1.00 ms       0 ns        1       0.0  iter\n"
		"      500 us     500 us     500 us       0 ns        1       0.0  [gap: "
		"unmapped]\n"
		"      500 us     500 us     500 us       0 ns        1       0.0  [unknown]\n"
		"   inclusive  path\n"
		"     1.00 ms  main > iter\n"
		"     1.00 ms  [gap: overflow]\n"
		"     1.00 ms  [untraced]\n"
		"      500 us  [unknown]\n"
		"      500 us  [gap: unmapped]\n");
}

static void test_more_functions_than_the_table_starts_with(void **state)
{
	enum { N = 1000 };
	static struct function functions[N];
	static char names[N][16];
	struct fixture *f = *state;
	char last[32];

	add(f, 0, 0, 8 * MS, &program);
	add(f, 1, 2 * MS, 3 * MS, &iter);
	for (uint64_t i = 0; i < N; i++) {
		snprintf(names[i], sizeof(names[i]), "f%03u", (unsigned int)i);
		functions[i].name = names[i];
		add(f, 1, 3 * MS + 2000 * i, 3 * MS + 2000 * i + 1000 + i, &functions[i]);
	}
	add(f, 1, 7 * MS, 8 * MS, &iter);
	assert_int_equal(print(f, 5000), 0);
	for (uint64_t i = 0; i < N; i++) {
		snprintf(last, sizeof(last), " 1       0.0  f%03u\n", (unsigned int)i);
		assert_non_null(strstr(f->text, last));
	}
	/* main, iter, and these, largest first. */
	assert_non_null(strstr(
		f->text, "main\n     1.00 ms    1.00 ms    1.00 ms       0 ns        1       "
			 "0.0  iter\n     2.00 us    2.00 us    2.00 us       0 ns        1       "
			 "0.0  f999\n"));
}

static void test_no_trace_of_the_thread(void **state)
{
	struct fixture *f = *state;

	add_iterations(f);
	f->hit.tid = TID + 2;
	assert_no_report(f);
}

static void test_no_function_at_the_hit(void **state)
{
	struct fixture *f = *state;

	add_iterations(f);
	f->hit.function = NULL;
	assert_no_report(f);
}

static void test_an_iteration_whose_start_is_not_in_the_lookback(void **state)
{
	struct fixture *f = *state;

	assert_no_report(f);
	add(f, 0, 0, 8 * MS, &program);
	/* It was already running; where it began nobody knows. */
	add(f, 1, 3 * MS, 4 * MS, &iter)->flags = CALL_INFERRED_START;
	add(f, 1, 7 * MS, 8 * MS, &iter);
	assert_no_report(f);
	f->hit.reason = MT_HIT_DURATION;
	f->hit.time_ns = 6 * MS;
	assert_no_report(f);
}

static void test_only_the_thread_that_triggered_counts(void **state)
{
	struct fixture *f = *state;

	add_to(&f->trees[0], 0, 0, 6 * MS, &iter);
	add_to(&f->trees[0], 0, 6 * MS, 7 * MS, &iter);
	add(f, 0, 5 * MS, 6 * MS, &iter);
	add(f, 0, 7 * MS, 8 * MS, &iter);
	assert_report(f, 10,
		      "the slow iteration of iter took 2.00 ms; where the time went:\n"
		      "  slow     on CPU 1.00 ms · system calls 0 ns · not recorded 1.00 ms\n"
		      "  not compared: the lookback lacks ordinary iterations with stacks of the "
		      "same thread; other "
		      "threads had 1 ordinary one, mean 6.00 ms\n" COLUMNS
		      "     1.00 ms    1.00 ms    1.00 ms       0 ns        1       0.0  iter\n"
		      "   inclusive  path\n"
		      "     1.00 ms  iter\n");
}

/* Why it waited is told with where; calls that no sample saw are not counted. */
static void test_samples(void **state)
{
	struct fixture *f = *state;

	add(f, 0, 0, 10 * MS, &program);
	add(f, 1, MS, 2 * MS, &iter);
	add(f, 1, 2 * MS, 7 * MS, &iter);
	add(f, 2, 3 * MS, 6 * MS, &work);
	add(f, 3, 3 * MS, 4 * MS, NULL)->kind = CALL_OFF_CPU;
	*VEC_PUSH(&f->trees[1].done_by) =
		(struct done_by){.call = 4, .pid = 7, .tid = 8, .comm = "holder", .ns = MS};
	add(f, 3, 4 * MS, 4 * MS + 200000, NULL)->kind = CALL_IN_KERNEL;
	add(f, 2, 6 * MS, 6 * MS + 500000, &stall);
	add(f, 3, 6 * MS, 6 * MS + 300000, NULL)->kind = CALL_OFF_CPU;
	add(f, 1, 7 * MS, 8 * MS, &iter);
	assert_int_equal(print_input(f, true, 5), 0);
	assert_string_equal(
		f->text,
		"the slow iteration of iter took 5.00 ms, an ordinary one 1.00 ms (mean of 1 in "
		"the same lookback); where the time went:\n"
		"  slow     on CPU 3.70 ms · blocked 1.30 ms · runnable 0 ns · preempted 0 ns · "
		"not recorded 0 ns\n"
		"  ordinary on CPU 1.00 ms · blocked 0 ns · runnable 0 ns · preempted 0 ns · "
		"not recorded 0 ns\n"
		"       extra       slow  inclusive   ordinary  function\n"
		"     1.80 ms    1.80 ms    3.00 ms       0 ns  work\n"
		"     1.00 ms    1.00 ms    1.00 ms       0 ns  [blocked] in work, woken by holder "
		"(8)\n"
		"      500 us    1.50 ms    5.00 ms    1.00 ms  iter\n"
		"      300 us     300 us     300 us       0 ns  [blocked] in stall\n"
		"      200 us     200 us     200 us       0 ns  [kernel] in work\n"
		"   inclusive   ordinary  path\n"
		"     5.00 ms    1.00 ms  iter\n"
		"     3.00 ms       0 ns    work\n"
		"     1.00 ms       0 ns      [blocked]\n"
		"      500 us       0 ns    stall\n"
		"reason: on the CPU, in iter > work; 2.00 ms more than usual\n"
		"   and: blocked in iter > work, woken by holder (8); 1.00 ms more than usual\n");
}

/* A stack that lacks callers shows where it waited, and not how it came there. */
static void test_samples_without_callers(void **state)
{
	struct fixture *f = *state;

	add(f, 0, 0, 10 * MS, &program);
	add(f, 1, MS, 2 * MS, &iter);
	add(f, 1, 2 * MS, 7 * MS, &iter);
	add(f, 2, 2 * MS + 500000, 6 * MS + 500000, NULL)->kind = CALL_NO_CALLERS;
	add(f, 3, 2 * MS + 500000, 6 * MS + 100000, &work);
	add(f, 4, 3 * MS, 6 * MS, NULL)->kind = CALL_OFF_CPU;
	add(f, 1, 7 * MS, 8 * MS, &iter);
	assert_int_equal(print_input(f, true, 3), 0);
	assert_non_null(strstr(f->text, "· blocked 3.00 ms · "));
	/* Its own time is nobody's. */
	assert_non_null(strstr(f->text, "· not recorded 400 us\n"));
	assert_non_null(strstr(f->text, "     4.00 ms       0 ns    [callers not recorded]\n"));
	assert_non_null(strstr(f->text, "reason: blocked in iter > [callers not recorded] > work; "
					"3.00 ms more than usual\n"));
}

/* The path ends where callers are missing: the function with most of the time is named. */
static void test_the_largest_function_without_callers(void **state)
{
	static struct function many[8];
	struct fixture *f = *state;

	add(f, 0, 0, 10 * MS, &program);
	add(f, 1, MS, 2 * MS, &iter);
	add(f, 1, 2 * MS, 7 * MS, &iter);
	add(f, 2, 2 * MS, 7 * MS, NULL)->kind = CALL_NO_CALLERS;
	for (size_t i = 0; i < 8; i++) {
		uint64_t at = 2 * MS + i * 400000;

		many[i] = stall;
		add(f, 3, at, at + 400000, &many[i]);
		add(f, 4, at, at + 300000, &work);
	}
	/* A cause of its own. */
	add(f, 3, 5800000, 7 * MS, &work);
	add(f, 1, 7 * MS, 8 * MS, &iter);
	assert_int_equal(print_input(f, true, 3), 0);
	assert_non_null(strstr(f->text, "reason: on the CPU, in iter > [callers not recorded], "
					"2.40 ms of it in work; "));
}

/*
 * main's path is noted when its own time comes, after as many others as there happen to be: also
 * when there is no room left for one more, and all of them move.
 */
static void test_paths_that_move(void **state)
{
	static struct function many[40];
	struct fixture *f = *state;

	for (size_t n = 1; n <= sizeof(many) / sizeof(many[0]); n++) {
		f->trees[1].calls.n = 0;
		add(f, 0, 0, 8 * MS, &program);
		add(f, 1, 3 * MS, 4 * MS, &iter);
		for (size_t i = 0; i < n; i++) {
			many[i] = work;
			add(f, 2, 3 * MS + i * 10000, 3 * MS + (i + 1) * 10000, &many[i]);
		}
		add(f, 1, 7 * MS, 8 * MS, &iter);
		assert_int_equal(print(f, 10), 0);
		assert_non_null(strstr(f->text, "     3.00 ms  main\n"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_slow_iteration_against_the_ordinary_ones),
		TEST(test_no_more_rows_than_asked_for),
		TEST(test_more_of_what_is_ordinary),
		TEST(test_inlined_functions_have_their_time),
		TEST(test_nothing_to_compare_with),
		TEST(test_recursion_is_part_of_the_iteration),
		TEST(test_a_duration_is_one_call),
		TEST(test_calls_in_one_that_ran_before),
		TEST(test_an_iteration_may_begin_at_0),
		TEST(test_iterations_beyond_the_threshold_are_not_ordinary),
		TEST(test_iterations_of_other_threads),
		TEST(test_an_ordinary_iteration_is_not_called_slow),
		TEST(test_all_iterations_pass_the_threshold),
		TEST(test_time_outside_by_its_kind),
		TEST(test_more_functions_than_the_table_starts_with),
		TEST(test_paths_that_move),
		TEST(test_no_trace_of_the_thread),
		TEST(test_no_function_at_the_hit),
		TEST(test_an_iteration_whose_start_is_not_in_the_lookback),
		TEST(test_only_the_thread_that_triggered_counts),
		TEST(test_samples),
		TEST(test_samples_without_callers),
		TEST(test_the_largest_function_without_callers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
