// SPDX-License-Identifier: MIT
/* Goroutines, and the scheduler on a stack of its own. */
#include "stack_go_fixture.h"

#include "target/symbols/named_image.h"

static void test_two_goroutines(void **state)
{
	struct thread *t = *state;

	start_first(t, A); /* 10-50 */
	assert_on_top(t, "a", 0);
	schedule(t, A + 0x10, C); /* 60-90 */
	assert_on_top(t, "c", 0);
	schedule(t, C + 0x10, A + 0x15); /* 100-130 */
	assert_on_top(t, "a", 0);
	call(t, A + 0x20, HANDLER); /* 140 */
	ret(t, HANDLER + 1, A + 0x25);
	assert_finished(t, "main 10-150 inferred-start inferred-end\n"
			   "  runtime.mstart1 20-50\n"
			   "    b 30-50\n"
			   "      gogo 40-50\n"
			   "  [switched out] 50-70\n"
			   "  b 70-90\n"
			   "    gogo 80-90\n"
			   "  [switched out] 90-110\n"
			   "  b 110-130\n"
			   "    gogo 120-130\n"
			   "  [switched out] 130-150 inferred-end\n");
	assert_next(t, "goroutine 1",
		    "a 50-150 inferred-end\n"
		    "  runtime.mcall 60-130\n"
		    "    [switched out] 70-130\n"
		    "  handler 140-150\n");
	assert_next(t, "goroutine 2",
		    "c 90-150 inferred-end\n"
		    "  runtime.mcall 100-150 inferred-end\n"
		    "    [switched out] 110-150 inferred-end\n");
}

static void learn(struct named_image *image, uint64_t ip, const char *symbol, uint64_t offset)
{
	const struct named_place place = {.ip = ip,
					  .symbol = symbol,
					  .symbol_len = strlen(symbol),
					  .module = "app",
					  .module_len = strlen("app"),
					  .offset = offset,
					  .has_offset = true};

	assert_int_equal(named_image__learn(image, &place, "", 0), 0);
}

/* Text of perf script has no code: runtime.gogo() goes to gogo(), which goes to the goroutine. */
static void test_a_switch_in_two_steps(void **state)
{
	struct named_image *image = named_image__new();
	struct thread t = {.stack = stack__new(42, 43, "worker", named_image__map(image))};

	learn(image, MAIN, "runtime.execute", 0);
	learn(image, MAIN + 0x10, "runtime.execute", 0x10);
	learn(image, GOGO, "runtime.gogo", 0);
	learn(image, MCALL, "gogo", 0);
	learn(image, MCALL + 0x10, "gogo", 0x10);
	learn(image, A, "main.worker", 0);
	begin(&t, MAIN);
	call(&t, MAIN + 0x10, GOGO);
	jump(&t, GOGO, MCALL);
	assert_on_top(&t, "gogo", 1);
	jump(&t, MCALL + 0x10, A);
	assert_on_top(&t, "main.worker", 0);
	assert_finished(&t, "runtime.execute 10-40 inferred-start\n"
			    "  runtime.gogo 20-30\n"
			    "  gogo 30-40 by-jump\n"
			    "[switched out] 40-40 inferred-end\n");
	end_stack(&t);
	named_image__free(image);
}

/* A trace that begins in a goroutine: the scheduler's stack is the other one. */
static void test_a_trace_that_begins_in_a_goroutine(void **state)
{
	struct thread *t = *state;

	begin(t, A);
	call(t, A + 0x10, MCALL);
	call(t, MCALL + 0x10, B);
	assert_on_top(t, "b", 0);
	call(t, B + 0x10, GOGO);
	jump(t, GOGO + 3, A + 0x15);
	assert_on_top(t, "a", 0);
	schedule(t, A + 0x20, A + 0x25);
	assert_finished(t, "a 10-90 inferred-start inferred-end\n"
			   "  runtime.mcall 20-50\n"
			   "    [switched out] 30-50\n"
			   "  runtime.mcall 60-90\n"
			   "    [switched out] 70-90\n");
	assert_next(t, "g0",
		    "b 30-50\n"
		    "  gogo 40-50\n"
		    "[switched out] 50-70\n"
		    "b 70-90\n"
		    "  gogo 80-90\n"
		    "[switched out] 90-90 inferred-end\n");
}

/* Its place is the next one's. */
static void test_goexit(void **state)
{
	struct thread *t = *state;
	struct call_tree tree;

	start_first(t, A);
	call(t, A + 0x10, GOEXIT);
	call(t, GOEXIT + 0x10, MCALL);
	call(t, MCALL + 0x10, GOEXIT_0);
	call(t, GOEXIT_0 + 0x10, B);
	call(t, B + 0x10, GOGO);
	jump(t, GOGO + 3, C);
	assert_on_top(t, "c", 0);
	assert_int_equal(stack__finish(t->stack, &tree), 0);
	call_tree__fini(&tree);
	assert_int_equal(stack__finish_next(t->stack, &tree), 1);
	assert_tree(&tree, "a 50-80 cut by-goexit\n"
			   "  runtime.Goexit 60-80 cut by-goexit\n"
			   "    runtime.mcall 70-80 cut by-goexit\n"
			   "c 110-110 inferred-end\n");
	call_tree__fini(&tree);
	assert_int_equal(stack__finish_next(t->stack, &tree), 0);
}

static void test_recovery_from_a_panic(void **state)
{
	struct thread *t = *state;
	struct call_tree tree;

	start_first(t, A);
	call(t, A + 0x10, C);
	call(t, C + 0x10, HANDLER);
	call(t, HANDLER + 0x10, MCALL);
	call(t, MCALL + 0x10, RECOVERY);
	call(t, RECOVERY + 0x10, GOGO);
	jump(t, GOGO + 3, C + 0x80);
	assert_on_top(t, "c", 1);
	ret(t, C + 0x90, A + 0x15);
	assert_on_top(t, "a", 0);
	assert_int_equal(stack__finish(t->stack, &tree), 0);
	call_tree__fini(&tree);
	assert_int_equal(stack__finish_next(t->stack, &tree), 1);
	assert_string_equal(call__name(&tree.calls.v[2]), "handler");
	assert_int_equal(tree.calls.v[2].left_by, LEFT_BY_PANIC);
	call_tree__fini(&tree);
}

/* What it calls comes back. */
static void test_systemstack_is_a_call(void **state)
{
	struct thread *t = *state;

	start_first(t, A);
	call(t, A + 0x10, SYSTEMSTACK);
	call(t, SYSTEMSTACK + 0x10, C);
	assert_on_top(t, "c", 2);
	ret(t, C + 0x10, SYSTEMSTACK + 0x15);
	ret(t, SYSTEMSTACK + 0x20, A + 0x15);
	call(t, A + 0x20, SYSTEMSTACK);
	/* It is on that stack already. */
	jump(t, SYSTEMSTACK + 3, C);
	assert_on_top(t, "c", 1);
	ret(t, C + 0x10, A + 0x25);
	assert_on_top(t, "a", 0);
}

/* A signal's handler puts a call into what it interrupted. */
static void test_preemption(void **state)
{
	struct thread *t = *state;

	start_first(t, A);
	interrupt(t, A + 0x30);
	begin(t, HANDLER);
	leave_handler(t, HANDLER + 0x20, PREEMPT);
	assert_on_top(t, "runtime.asyncPreempt.abi0", 1);
	schedule(t, PREEMPT + 0x10, C);
	schedule(t, C + 0x10, PREEMPT + 0x15);
	ret(t, PREEMPT + 0x20, A + 0x30);
	assert_on_top(t, "a", 0);
}

static void preempt(struct thread *t, uint64_t at)
{
	interrupt(t, at);
	begin(t, HANDLER);
	leave_handler(t, HANDLER + 0x20, PREEMPT);
}

/* It goes on where its callers would return to as well. */
static void test_preemption_where_a_recursion_returns_to(void **state)
{
	struct thread *t = *state;

	start_first(t, A);
	call(t, A + 0x10, A);
	call(t, A + 0x10, A);
	ret(t, A + 0x40, A + 0x15);
	preempt(t, A + 0x15);
	assert_on_top(t, "runtime.asyncPreempt.abi0", 2);
	ret(t, PREEMPT + 0x20, A + 0x15);
	assert_on_top(t, "a", 1);
	ret(t, A + 0x40, A + 0x15);
	assert_on_top(t, "a", 0);
}

/* The same of a program whose functions have lost their names. */
static void test_a_call_put_in_without_a_name(void **state)
{
	struct thread *t = *state;

	begin(t, A);
	call(t, A + 0x10, A);
	interrupt(t, A + 0x15);
	begin(t, HANDLER);
	leave_handler(t, HANDLER + 0x20, C);
	assert_on_top(t, "c", 2);
	ret(t, C + 0x20, A + 0x15);
	assert_on_top(t, "a", 1);
}

/* Where they were interrupted, which is where that call returns to, tells two apart. */
static void test_two_preempted(void **state)
{
	struct thread *t = *state;
	unsigned int first;

	start_first(t, A);
	first = running_stack(t->stack);
	preempt(t, A + 0x30);
	schedule(t, PREEMPT + 0x10, C);
	preempt(t, C + 0x50);
	schedule(t, PREEMPT + 0x10, PREEMPT + 0x15);
	ret(t, PREEMPT + 0x20, A + 0x30);
	assert_int_equal(running_stack(t->stack), first);
	assert_on_top(t, "a", 0);
	schedule(t, A + 0x60, PREEMPT + 0x15);
	ret(t, PREEMPT + 0x20, C + 0x50);
	assert_on_top(t, "c", 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end_thread)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_two_goroutines),
		TEST(test_a_switch_in_two_steps),
		TEST(test_a_trace_that_begins_in_a_goroutine),
		TEST(test_goexit),
		TEST(test_recovery_from_a_panic),
		TEST(test_systemstack_is_a_call),
		TEST(test_preemption),
		TEST(test_preemption_where_a_recursion_returns_to),
		TEST(test_a_call_put_in_without_a_name),
		TEST(test_two_preempted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
