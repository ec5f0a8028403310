// SPDX-License-Identifier: MIT
/* Passes over segments that have ended: what each finds, without the others, and what without it.
 */
#include "stack_coroutines_fixture.h"

/* Both a and main are shown by returns only, on both sides of a gap. */
static void run_over_a_gap(struct thread *t)
{
	begin(t, A);
	ret(t, A + 0x10, MAIN + 0x15);
	call(t, MAIN + 0x20, B);
	gap(t, GAP_OVERFLOW);
	begin(t, B + 0x10);
	ret(t, B + 0x20, MAIN + 0x25);
}

static void expect(struct thread *t, unsigned int passes, const char *expected)
{
	start_anew(t);
	t->stack->passes_off = ~passes;
	run_over_a_gap(t);
	assert_finished(t, expected);
}

static void test_roots(void **state)
{
	expect(*state, PASS_ROOTS,
	       "main 10-40 inferred-start inferred-end\n"
	       "  a 10-20 inferred-start\n"
	       "  b 30-40 inferred-end\n"
	       "[gap: overflow] 40-50\n"
	       "main 50-60 inferred-start inferred-end\n"
	       "  b 50-60 inferred-start\n");
	expect(*state, ~PASS_ROOTS,
	       "a 10-20 inferred-start\n"
	       "main 20-60 inferred-start inferred-end inferred\n"
	       "  b 30-60 inferred\n"
	       "    [gap: overflow] 40-50\n");
}

static void test_stitching(void **state)
{
	expect(*state, ~0u,
	       "main 10-60 inferred-start inferred-end inferred\n"
	       "  a 10-20 inferred-start\n"
	       "  b 30-60 inferred\n"
	       "    [gap: overflow] 40-50\n");
	expect(*state, ~PASS_STITCHING,
	       "main 10-40 inferred-start inferred-end\n"
	       "  a 10-20 inferred-start\n"
	       "  b 30-40 inferred-end\n"
	       "[gap: overflow] 40-50\n"
	       "main 50-60 inferred-start inferred-end\n"
	       "  b 50-60 inferred-start\n");
}

/* main waits for a coroutine, which goes on behind a gap. */
static void run_a_coroutine(struct thread *t, unsigned int passes)
{
	start_anew(t);
	t->stack->passes_off = ~passes;
	begin(t, MAIN);
	go(t, MAIN + 0x10, B);
	call(t, B + 0x10, A);
	gap(t, GAP_OVERFLOW);
	begin(t, A + 0x20);
	ret(t, A + 0x30, B + 0x15);
	interrupt(t, B + 0x20);
}

static void test_coroutines(void **state)
{
	struct thread *t = *state;

	run_a_coroutine(t, PASS_ROOTS | PASS_COROUTINES | PASS_STITCHING);
	assert_finished(t, "main 10-80 inferred-start inferred-end\n"
			   "  co_switch 20-80 inferred-end\n"
			   "    [switched out] 30-80 inferred-end\n");
	assert_next(t, "coroutine 1",
		    "b 30-80 inferred-end inferred\n"
		    "  a 40-70 inferred\n"
		    "    [gap: overflow] 50-60\n");
	assert_no_more(t);
	run_a_coroutine(t, ~PASS_COROUTINES);
	assert_finished(t, "main 10-80 inferred-start inferred-end\n"
			   "  co_switch 20-80 inferred-end\n"
			   "    [switched out] 30-80 inferred-end\n");
	assert_next(t, "coroutine 1",
		    "b 30-50 inferred-end\n"
		    "  a 40-50 inferred-end\n"
		    "[gap: overflow] 50-60\n");
	assert_next(t, "coroutine 2",
		    "b 60-80 inferred-start inferred-end\n"
		    "  a 60-70 inferred-start\n");
	assert_no_more(t);
}

static void run_to_a_hit(struct thread *t, unsigned int passes)
{
	static const uint64_t ips[] = {A + 0x20, MAIN + 0x15};

	start_anew(t);
	t->stack->passes_off = ~passes;
	assert_int_equal(stack__anchor(t->stack, 15, ips, 2), 0);
	begin(t, A + 0x10);
	interrupt(t, A + 0x20);
}

static void test_stacks_at_hits(void **state)
{
	struct thread *t = *state;

	run_to_a_hit(t, PASS_HIT_STACKS);
	assert_finished(t, "main 10-20 inferred-start inferred-end inferred\n"
			   "  a 10-20 inferred-start inferred-end\n");
	run_to_a_hit(t, ~PASS_HIT_STACKS);
	assert_finished(t, "a 10-20 inferred-start inferred-end\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_roots),
		TEST(test_stitching),
		TEST(test_coroutines),
		TEST(test_stacks_at_hits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
