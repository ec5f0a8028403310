// SPDX-License-Identifier: MIT
/* How many frames an exception has left, by what the unwinder asks of each, where a gap hides them.
 */
#include "stack_throw_fixture.h"

/* The unwinder looks at n frames, from its caller on. */
static void look_at(struct thread *t, size_t n)
{
	while (n--) {
		call(t, PHASE_2 + 0x10, STATE_FOR);
		call(t, STATE_FOR + 0x10, FIND_FDE);
		ret(t, FIND_FDE + 0x20, STATE_FOR + 0x15);
		ret(t, STATE_FOR + 0x20, PHASE_2 + 0x15);
	}
}

/* It goes from its caller to the n-th frame below itself, and lands there. */
static void unwind(struct thread *t, uint64_t unwinder, size_t n, uint64_t pad)
{
	call(t, unwinder + 0x30, PHASE_2);
	look_at(t, n);
	ret(t, PHASE_2 + 0x80, unwinder + 0x35);
	jump(t, unwinder + 0x80, pad);
}

/* Ends the thread, which runs at `at`: what ran at that time, the root first. "?": not known. */
static void expect_running(struct thread *t, uint64_t at, uint64_t time_ns, const char *expected)
{
	struct call_tree tree;
	char text[512] = "";

	interrupt(t, at);
	assert_int_equal(stack__finish(t->stack, &tree), 0);
	for (size_t i = 0; i < tree.calls.n; i++) {
		const struct call *call = &tree.calls.v[i];
		size_t used = strlen(text);

		if (call->start_ns > time_ns || call->end_ns <= time_ns)
			continue;
		snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "",
			 call->function ? call->function->name : "?");
	}
	assert_string_equal(text, expected);
	call_tree__fini(&tree);
}

/* Nobody has seen what f had called in the gap. */
static void test_so_many_lie_between(void **state)
{
	struct thread *t = *state;
	uint64_t unwinding;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	gap(t, GAP_OVERFLOW);
	begin(t, RAISE + 0x10);
	unwinding = t->now;
	unwind(t, RAISE, 4, PAD_1);
	expect_running(t, PAD_1 + 8, unwinding, "outer f ? ? ? _Unwind_RaiseException");
}

/* Of a way that is shorter than that nothing is taken. */
static void test_what_was_passed_before_was_passed_again(void **state)
{
	struct thread *t = *state;
	uint64_t unwinding;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	call(t, CALL_1, MIDDLE);
	call(t, MIDDLE + 0x10, MIDDLE);
	throw_from(t, MIDDLE + 0x20);
	unwind(t, RAISE, 4, PAD_1);
	gap(t, GAP_OVERFLOW);
	begin(t, RAISE + 0x10);
	unwinding = t->now;
	unwind(t, RAISE, 5, PAD_1);
	expect_running(t, PAD_1 + 8, unwinding,
		       "outer f middle middle middle __cxa_throw _Unwind_RaiseException");
}

/* The innermost that could would be the second. */
static void test_it_lands_so_far_below(void **state)
{
	struct thread *t = *state;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	call(t, CALL_1, F);
	call(t, CALL_1, F);
	throw_from(t, CALL_1);
	gap(t, GAP_OVERFLOW);
	begin(t, RAISE + 0x10);
	unwind(t, RAISE, 2, PAD_1);
	call(t, PAD_1 + 4, RESUME);
	unwind(t, RESUME, 3, PAD_1);
	expect_running(t, PAD_1 + 8, t->now, "outer f");
}

/* The gap has hidden the one that it lands in, too. */
static void test_above_a_frame_that_only_the_unwind_shows(void **state)
{
	struct thread *t = *state;
	uint64_t unwinding;

	begin(t, OUTER + 4);
	gap(t, GAP_OVERFLOW);
	begin(t, RAISE + 0x10);
	unwinding = t->now;
	unwind(t, RAISE, 3, PAD_1);
	ret(t, PAD_1 + 4, OUTER_CALL + CALL_LEN);
	expect_running(t, OUTER + 0x20, unwinding, "outer f ? ? _Unwind_RaiseException");
}

/* Those from before the gap are among them. */
static void test_on_frames_from_before(void **state)
{
	struct thread *t = *state;
	uint64_t unwinding;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	throw_from(t, CALL_1);
	gap(t, GAP_OVERFLOW);
	begin(t, RAISE + 0x10);
	unwinding = t->now;
	unwind(t, RAISE, 2, PAD_1);
	expect_running(t, PAD_1 + 8, unwinding, "outer f __cxa_throw _Unwind_RaiseException");
}

/* It had looked at others in the gap. */
static void test_a_walk_that_had_begun_tells_nothing(void **state)
{
	struct thread *t = *state;
	uint64_t unwinding;

	begin(t, OUTER + 4);
	call(t, OUTER_CALL, F);
	gap(t, GAP_OVERFLOW);
	begin(t, PHASE_2 + 0x15);
	unwinding = t->now;
	look_at(t, 4);
	ret(t, PHASE_2 + 0x80, RAISE + 0x35);
	jump(t, RAISE + 0x80, PAD_1);
	expect_running(t, PAD_1 + 8, unwinding, "outer f _Unwind_RaiseException phase_2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_so_many_lie_between),
		TEST(test_what_was_passed_before_was_passed_again),
		TEST(test_it_lands_so_far_below),
		TEST(test_above_a_frame_that_only_the_unwind_shows),
		TEST(test_on_frames_from_before),
		TEST(test_a_walk_that_had_begun_tells_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
