// SPDX-License-Identifier: MIT
/* What lies below a goroutine that another thread goes on with, and which wait it was. */
#include "migration_fixture.h"

/* a() has called the handler, and that handler_2(), which waits. */
static void park_deeper_on_first(struct process *p)
{
	struct thread *t = run(p, FIRST);

	start_first(t, A);		    /* 10-50 */
	call(t, A + 0x10, HANDLER);	    /* 60 */
	call(t, HANDLER + 0x10, HANDLER_2); /* 70 */
	schedule(t, HANDLER_2 + 0x10, C);   /* 80-110 */
}

/* It shows its caller, and no more. */
static void go_on_on_second(struct process *p)
{
	start_first(run(p, SECOND), HANDLER_2 + 0x15);
	ret(p->t, HANDLER_2 + 0x20, HANDLER + 0x15);
}

static void test_what_the_other_has_not_shown(void **state)
{
	struct process *p = *state;

	park_deeper_on_first(p);
	go_on_on_second(p);	       /* 120-170 */
	call(p->t, HANDLER + 0x20, C); /* 180 */
	join(p);
	assert_goroutine(p, 43,
			 "a 50-180 inferred-end inferred\n"
			 "  handler 60-180 inferred-end inferred\n"
			 "    handler_2 70-170 inferred\n"
			 "      runtime.mcall 80-160\n"
			 "        [switched out] 90-160\n"
			 "    c 180-180 inferred-end\n");
}

/* Its own thread has gone on with it before: what comes later is another one. */
static void test_a_wait_that_is_over(void **state)
{
	struct process *p = *state;

	park_deeper_on_first(p);
	schedule(p->t, C + 0x10, HANDLER_2 + 0x15); /* 120-150 */
	ret(p->t, HANDLER_2 + 0x20, HANDLER + 0x15);
	go_on_on_second(p); /* 170-220 */
	join(p);
	p->n_seen = p->trees.n - 1;
	assert_goroutine(p, 44,
			 "handler 210-220 inferred-start inferred-end\n"
			 "  handler_2 210-220 inferred-start\n");
}

/* And where it goes on with it later: it was another one that was alike, with its callers. */
static void test_a_wait_that_goes_on_elsewhere(void **state)
{
	struct process *p = *state;

	park_deeper_on_first(p);
	go_on_on_second(p);				     /* 120-170 */
	schedule(run(p, FIRST), C + 0x10, HANDLER_2 + 0x15); /* 180-210 */
	ret(p->t, HANDLER_2 + 0x20, HANDLER + 0x15);
	join(p);
	assert_goroutine(p, 43,
			 "a 50-220 inferred-end\n"
			 "  handler 60-220 inferred-end\n"
			 "    handler_2 70-220\n"
			 "      runtime.mcall 80-210\n"
			 "        [switched out] 90-210\n");
	p->n_seen = p->trees.n - 1;
	assert_goroutine(p, 44,
			 "a 160-170 inferred-start inferred-end inferred\n"
			 "  handler 160-170 inferred-start inferred-end\n"
			 "    handler_2 160-170 inferred-start\n");
}

/* Of two that are alike its own thread goes on with the one that it has left last: it is the other.
 */
static void test_the_one_that_nobody_else_goes_on_with(void **state)
{
	struct process *p = *state;
	struct thread *t = run(p, FIRST);

	start_first(t, A); /* 10-50 */
	call(t, A + 0x10, HANDLER_2);
	schedule(t, HANDLER_2 + 0x10, RESTORER); /* 70-100 */
	schedule(t, RESTORER + 0x10, A);	 /* 110-140 */
	call(t, A + 0x10, HANDLER_2);
	schedule(t, HANDLER_2 + 0x10, RESTORER + 0x15); /* 160-190 */
	wake_on_second(p);				/* 200-240 */
	ret(run(p, SECOND), HANDLER_2 + 0x20, A + 0x15);
	t = run(p, FIRST);
	schedule(t, RESTORER + 0x20, HANDLER_2 + 0x15); /* 260-290 */
	ret(t, HANDLER_2 + 0x20, A + 0x15);
	join(p);
	assert_goroutine(p, 43,
			 "a 50-250 inferred-end inferred\n"
			 "  handler_2 60-250 inferred\n"
			 "    runtime.mcall 70-240\n"
			 "      [switched out] 80-240\n");
}

/* What has stayed on the other thread's track, behind what was not its own, is gone on with, too.
 */
static void test_one_that_has_stayed_goes_on_elsewhere(void **state)
{
	struct process *p = *state;
	struct thread *t;

	park_on_first(p);
	wake_on_second(p);
	t = end_on_second(p, MAIN);
	call(t, MAIN + 0x10, HANDLER);
	schedule(t, HANDLER + 0x10, RESTORER); /* 250-280 */
	t = run(p, FIRST);
	schedule(t, C + 0x10, HANDLER + 0x15); /* 290-320 */
	ret(t, HANDLER + 0x20, MAIN + 0x15);
	join(p);
	p->n_seen = 3;
	assert_goroutine(p, 43, ""); /* it was the other one's */
	assert_goroutine(p, 44,
			 "main 230-330 inferred-end inferred\n"
			 "  handler 240-330 inferred\n"
			 "    runtime.mcall 250-320\n"
			 "      [switched out] 260-320\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_the_other_has_not_shown),
		TEST(test_a_wait_that_is_over),
		TEST(test_a_wait_that_goes_on_elsewhere),
		TEST(test_the_one_that_nobody_else_goes_on_with),
		TEST(test_one_that_has_stayed_goes_on_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
