// SPDX-License-Identifier: MIT
/* Goroutines that one thread has parked, and another one goes on with. */
#include "migration_fixture.h"

static void test_another_thread_goes_on(void **state)
{
	struct process *p = *state;
	struct thread *t;

	park_on_first(p);
	wake_on_second(p);
	t = run(p, SECOND);
	ret(t, HANDLER_2 + 0x20, A + 0x15); /* 160 */
	call(t, A + 0x20, HANDLER);	    /* 170 */
	schedule(t, HANDLER + 0x10, C);	    /* 180-210 */
	join(p);
	assert_goroutine(p, 43,
			 "a 50-210 inferred-end inferred\n"
			 "  handler_2 60-160 inferred\n"
			 "    runtime.mcall 70-150\n"
			 "      [switched out] 80-150\n"
			 "  handler 170-210 inferred-end\n"
			 "    runtime.mcall 180-210 inferred-end\n"
			 "      [switched out] 190-210 inferred-end\n");
	assert_goroutine(p, 43, "c 100-100 inferred-end\n");
	assert_int_equal(p->trees.v[1].calls.v[0].self_insns, 2);
	/* Its own tree has nothing left. */
	assert_goroutine(p, 44, "");
	assert_goroutine(p, 44, "c 210-210 inferred-end\n");
}

/* What the first thread does not know of what is below, the second one sees. */
static void test_callers_seen_by_the_other_thread(void **state)
{
	struct process *p = *state;
	struct thread *t = run(p, FIRST);

	start_first(t, A + 0x30);	  /* 10-50: one that was there before */
	call(t, A + 0x40, HANDLER_2);	  /* 60 */
	schedule(t, HANDLER_2 + 0x10, C); /* 70-100 */
	wake_on_second(p);		  /* 110-150 */
	ret(t, HANDLER_2 + 0x20, A + 0x45);
	ret(t, A + 0x50, HANDLER + 0x15); /* 170 */
	join(p);
	assert_goroutine(p, 43,
			 "handler 50-170 inferred-start inferred-end inferred\n"
			 "  a 50-170 inferred-start inferred\n"
			 "    handler_2 60-160 inferred\n"
			 "      runtime.mcall 70-150\n"
			 "        [switched out] 80-150\n");
	assert_goroutine(p, 43, "c 100-100 inferred-end\n");
	assert_goroutine(p, 44, "");
}

/* The address where it went on is not enough: many wait there. */
static void test_nothing_but_the_address(void **state)
{
	struct process *p = *state;

	park_on_first(p);
	wake_on_second(p);
	call(p->t, HANDLER_2 + 0x20, HANDLER);
	join(p);
	p->n_seen = p->trees.n - 1;
	assert_goroutine(p, 44,
			 "handler_2 150-160 inferred-start inferred-end\n"
			 "  handler 160-160 inferred-end\n");
}

static void test_another_caller(void **state)
{
	struct process *p = *state;

	park_on_first(p);
	wake_on_second(p);
	ret(p->t, HANDLER_2 + 0x20, A + 0x25);
	join(p);
	p->n_seen = p->trees.n - 1;
	assert_goroutine(p, 44,
			 "a 150-160 inferred-start inferred-end\n"
			 "  handler_2 150-160 inferred-start\n");
}

/* Its own thread has gone on with it, or one like it: which of them it was nobody can tell. */
static void test_callers_of_one_of_several(void **state)
{
	struct process *p = *state;
	struct thread *t = run(p, FIRST);

	start_first(t, HANDLER); /* 10-50 */
	call(t, HANDLER + 0x10, A);
	call(t, A + 0x10, HANDLER_2);
	schedule(t, HANDLER_2 + 0x10, C); /* 80-110 */
	wake_on_second(p);		  /* 120-160 */
	ret(run(p, SECOND), HANDLER_2 + 0x20, A + 0x15);
	schedule(run(p, FIRST), C + 0x10, HANDLER_2 + 0x15); /* 180-210 */
	call(run(p, SECOND), A + 0x20, HANDLER);
	join(p);
	p->n_seen = p->trees.n - 1;
	assert_goroutine(p, 44,
			 "handler 160-220 inferred-start inferred-end inferred\n"
			 "  a 160-220 inferred-start inferred-end\n"
			 "    handler_2 160-170 inferred-start\n"
			 "    handler 220-220 inferred-end\n");
}

/* They wait at one address with one caller, which others have called. */
static void test_two_with_different_callers(void **state)
{
	struct process *p = *state;
	struct thread *t = run(p, FIRST);

	start_first(t, A);
	call(t, A + 0x10, HANDLER);
	call(t, HANDLER + 0x10, HANDLER_2);
	schedule(t, HANDLER_2 + 0x10, C);
	call(t, C + 0x10, HANDLER);
	call(t, HANDLER + 0x10, HANDLER_2);
	schedule(t, HANDLER_2 + 0x10, MAIN);
	wake_on_second(p);
	ret(p->t, HANDLER_2 + 0x20, HANDLER + 0x15);
	join(p);
	p->n_seen = p->trees.n - 1;
	assert_goroutine(p, 44,
			 "handler 220-230 inferred-start inferred-end\n"
			 "  handler_2 220-230 inferred-start\n");
}

/* Both have been called by main(), which of them it is makes no difference: the later one. */
static void test_two_that_are_alike(void **state)
{
	struct process *p = *state;
	struct thread *t = run(p, FIRST);

	for (int i = 0; i < 2; i++) {
		if (i)
			schedule(t, RESTORER + 0x10, A);
		else
			start_first(t, A);
		call(t, A + 0x10, HANDLER_2);
		schedule(t, HANDLER_2 + 0x10, RESTORER + (i ? 0x15 : 0));
	}
	wake_on_second(p); /* 200-240 */
	ret(t = run(p, SECOND), HANDLER_2 + 0x20, A + 0x15);
	join(p);
	assert_goroutine(p, 43,
			 "a 50-190 inferred-end\n"
			 "  handler_2 60-190 inferred-end\n"
			 "    runtime.mcall 70-190 inferred-end\n"
			 "      [switched out] 80-190 inferred-end\n");
	assert_goroutine(p, 43,
			 "restorer 100-190 inferred-end\n"
			 "  runtime.mcall 110-190\n"
			 "    [switched out] 120-190\n");
	assert_goroutine(p, 43,
			 "a 140-250 inferred-end inferred\n"
			 "  handler_2 150-250 inferred\n"
			 "    runtime.mcall 160-240\n"
			 "      [switched out] 170-240\n");
}

/* Where a handler has put a call in, that returns to where it had interrupted. */
static void test_preempted(void **state)
{
	struct process *p = *state;
	struct thread *t = run(p, FIRST);

	start_first(t, A); /* 10-50 */
	interrupt(t, A + 0x33);
	begin(t, HANDLER);
	leave_handler(t, HANDLER + 0x20, PREEMPT);   /* 80-100 */
	schedule(t, PREEMPT + 0x10, C);		     /* 110-140 */
	start_first(run(p, SECOND), PREEMPT + 0x15); /* 150-190 */
	ret(t, PREEMPT + 0x20, A + 0x33);
	call(t, A + 0x40, HANDLER_2); /* 210 */
	join(p);
	assert_goroutine(p, 43,
			 "a 50-210 inferred-end inferred\n"
			 "  [untraced] 60-70\n"
			 "  handler 70-80 signal\n"
			 "  restorer 80-100 signal by-jump\n"
			 "    [syscall] 90-100\n"
			 "  runtime.asyncPreempt.abi0 100-200 signal inferred\n"
			 "    runtime.mcall 110-190\n"
			 "      [switched out] 120-190\n"
			 "  handler_2 210-210 inferred-end\n");
}

static void test_preempted_somewhere_else(void **state)
{
	struct process *p = *state;
	struct thread *t = run(p, FIRST);

	start_first(t, A);
	interrupt(t, A + 0x33);
	begin(t, HANDLER);
	leave_handler(t, HANDLER + 0x20, PREEMPT);
	schedule(t, PREEMPT + 0x10, C);
	start_first(run(p, SECOND), PREEMPT + 0x15); /* 150-190 */
	ret(t, PREEMPT + 0x20, A + 0x53);
	join(p);
	p->n_seen = p->trees.n - 1;
	assert_goroutine(p, 44,
			 "a 190-200 inferred-start inferred-end\n"
			 "  runtime.asyncPreempt.abi0 190-200 inferred-start\n");
}

/* Nothing but what all return to is below the first function of one. */
static void test_its_first_function_returns(void **state)
{
	static const uint64_t callers[] = {HANDLER + 0x15, GOEXIT_BASE + 0x15};
	struct process *p = *state;

	for (int i = 0; i < 2; i++) {
		park_on_first(p);
		wake_on_second(p);
		ret(p->t, HANDLER_2 + 0x20, A + 0x15);
		ret(p->t, A + 0x50, callers[i]);
		join(p);
		assert_int_equal(p->trees.v[p->trees.n - 1].calls.n, i ? 0 : 3);
		assert_string_equal(call__name(&p->trees.v[1].calls.v[0]),
				    i ? "runtime.goexit.abi0" : "a");
		if (!i)
			assert_int_equal(end_process(state) || start_process(state), 0);
		p = *state;
	}
}

/* The track of a thread shows what that thread did. */
static void test_a_threads_own_stack(void **state)
{
	struct process *p = *state;
	struct thread *t = run(p, FIRST);

	begin(t, HANDLER);
	call(t, HANDLER + 0x10, A);
	call(t, A + 0x10, HANDLER_2);
	schedule(t, HANDLER_2 + 0x10, C); /* 40-70 */
	wake_on_second(p);		  /* 80-120 */
	ret(p->t, HANDLER_2 + 0x20, A + 0x15);
	join(p);
	assert_int_equal(p->trees.v[0].calls.v[0].end_ns, 70);
	p->n_seen = p->trees.n - 1;
	assert_goroutine(p, 44,
			 "handler 120-130 inferred-start inferred-end inferred\n"
			 "  a 120-130 inferred-start inferred-end\n"
			 "    handler_2 120-130 inferred-start\n");
}

/* What comes behind it on its track is another goroutine, and stays. */
static void test_what_stays(void **state)
{
	struct process *p = *state;
	struct thread *t;

	park_on_first(p);
	wake_on_second(p);
	t = end_on_second(p, C);
	call(t, C + 0x10, HANDLER);
	schedule(t, HANDLER + 0x10, MAIN);
	join(p);
	assert_goroutine(p, 43,
			 "a 50-190 cut inferred by-goexit\n"
			 "  handler_2 60-160 inferred\n"
			 "    runtime.mcall 70-150\n"
			 "      [switched out] 80-150\n"
			 "  runtime.Goexit 170-190 cut by-goexit\n"
			 "    runtime.mcall 180-190 cut by-goexit\n");
	assert_goroutine(p, 43, "c 100-100 inferred-end\n");
	assert_goroutine(p, 44,
			 "c 230-280 inferred-end\n"
			 "  handler 240-280 inferred-end\n"
			 "    runtime.mcall 250-280 inferred-end\n"
			 "      [switched out] 260-280 inferred-end\n");
}

/* From thread to thread, and back. */
static void test_there_and_back(void **state)
{
	struct process *p = *state;
	struct thread *t;

	park_on_first(p);
	wake_on_second(p);
	t = run(p, SECOND);
	ret(t, HANDLER_2 + 0x20, A + 0x15); /* 160 */
	call(t, A + 0x20, HANDLER);	    /* 170 */
	schedule(t, HANDLER + 0x10, C);	    /* 180-210 */
	t = run(p, FIRST);
	schedule(t, C + 0x10, HANDLER + 0x15); /* 220-250 */
	ret(t, HANDLER + 0x20, A + 0x25);
	join(p);
	assert_goroutine(p, 43,
			 "a 50-260 inferred-end inferred\n"
			 "  handler_2 60-160 inferred\n"
			 "    runtime.mcall 70-150\n"
			 "      [switched out] 80-150\n"
			 "  handler 170-260 inferred\n"
			 "    runtime.mcall 180-250\n"
			 "      [switched out] 190-250\n");
}

/* A goroutine that the second thread has begun is no other's, also when goexit() is seen below. */
static void test_a_new_one(void **state)
{
	struct process *p = *state;
	struct thread *t;

	park_on_first(p);
	t = run(p, SECOND);
	start_first(t, HANDLER_2); /* 110-150 */
	ret(t, HANDLER_2 + 0x20, A + 0x15);
	join(p);
	p->n_seen = p->trees.n - 1;
	assert_goroutine(p, 44,
			 "a 150-160 inferred-start inferred-end\n"
			 "  handler_2 150-160\n");
}

static void test_unwinds_go_with_their_calls(void **state)
{
	struct process *p = *state;
	struct call_tree *own, *tree;
	struct thread *t;

	park_on_first(p);
	wake_on_second(p);
	t = run(p, SECOND);
	ret(t, HANDLER_2 + 0x20, A + 0x15); /* 160 */
	call(t, A + 0x20, HANDLER);
	call(t, HANDLER + 0x10, C);
	take_trees(p, p->stacks[FIRST]);
	take_trees(p, p->stacks[SECOND]);
	own = &p->trees.v[p->trees.n - 1];
	*VEC_PUSH(&own->unwinds) =
		(struct unwind){.start_ns = 180, .end_ns = 180, .from = 2, .to = 0};
	*VEC_PUSH(&own->unwinds) =
		(struct unwind){.start_ns = 180, .end_ns = 180, .from = 3, .to = 2};
	assert_int_equal(migration_pass__run(p->trees.v, p->trees.n), 0);
	assert_int_equal(own->unwinds.n, 0);
	tree = &p->trees.v[1];
	assert_int_equal(tree->unwinds.n, 2);
	assert_int_equal(tree->unwinds.v[0].from, 4);
	assert_int_equal(tree->unwinds.v[0].to, 0);
	assert_int_equal(tree->unwinds.v[1].from, 5);
	assert_int_equal(tree->unwinds.v[1].to, 4);
	assert_unwinds_well_formed(tree);
}

/* Not the second thread of another process. */
static void test_another_process(void **state)
{
	struct process *p = *state;

	park_on_first(p);
	wake_on_second(p);
	ret(p->t, HANDLER_2 + 0x20, A + 0x15);
	take_trees(p, p->stacks[FIRST]);
	take_trees(p, p->stacks[SECOND]);
	p->trees.v[p->trees.n - 1].pid = 4711;
	assert_int_equal(migration_pass__run(p->trees.v, p->trees.n), 0);
	p->n_seen = p->trees.n - 1;
	assert_goroutine(p, 44,
			 "a 150-160 inferred-start inferred-end\n"
			 "  handler_2 150-160 inferred-start\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_another_thread_goes_on),
		TEST(test_callers_seen_by_the_other_thread),
		TEST(test_nothing_but_the_address),
		TEST(test_another_caller),
		TEST(test_callers_of_one_of_several),
		TEST(test_two_with_different_callers),
		TEST(test_two_that_are_alike),
		TEST(test_preempted),
		TEST(test_preempted_somewhere_else),
		TEST(test_its_first_function_returns),
		TEST(test_a_threads_own_stack),
		TEST(test_what_stays),
		TEST(test_there_and_back),
		TEST(test_a_new_one),
		TEST(test_unwinds_go_with_their_calls),
		TEST(test_another_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
