// SPDX-License-Identifier: MIT
/* What handlers return to, which makes one syscall. */
#include "stack_fixture.h"

static void test_a_segment_that_begins_in_the_restorer(void **state)
{
	struct thread *t = *state;

	begin(t, RESTORER + 0);
	enter_kernel(t, RESTORER + 7);
	begin(t, MAIN + 0x10);
	assert_on_top(t, "main", -1);
	interrupt(t, MAIN + 0x15);
	assert_finished(t, "main 10-40 inferred-start inferred-end\n"
			   "  restorer 10-30 inferred-start\n"
			   "    [syscall] 20-30\n");
}

/* The second signal comes when the first one's handler has returned to the restorer. */
static void test_a_signal_in_the_restorer(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	interrupt(t, A + 0x20);
	begin(t, HANDLER);
	ret(t, HANDLER + 0x20, RESTORER);
	interrupt(t, RESTORER);
	begin(t, HANDLER_2);
	leave_handler(t, HANDLER_2 + 0x20, RESTORER);
	enter_kernel(t, RESTORER + 7);
	begin(t, A + 0x20);
	ret(t, A + 0x30, MAIN + 0x15);
	interrupt(t, MAIN + 0x15);
	assert_finished(t, "main 10-140 inferred-start inferred-end\n"
			   "  a 20-130\n"
			   "    [untraced] 30-40\n"
			   "    handler 40-50 signal\n"
			   "    restorer 50-120 signal by-jump\n"
			   "      [untraced] 60-70\n"
			   "      handler_2 70-80 signal\n"
			   "      restorer 80-100 signal by-jump\n"
			   "        [syscall] 90-100\n"
			   "      [syscall] 110-120\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start_thread, end_thread)
		TEST(test_a_segment_that_begins_in_the_restorer),
		TEST(test_a_signal_in_the_restorer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
