// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "decode/branch.h"
#include "stack/call_tree.h"
#include "stack/stack.h"

static void expect_name(enum call_kind kind, const struct function *function, const char *name)
{
	struct call call = {.kind = (uint8_t)kind, .function = function};

	assert_string_equal(call__name(&call), name);
}

static void test_names(void **state)
{
	const struct function function = {.name = "main"}, nameless = {.name = ""};

	expect_name(CALL_FUNCTION, &function, "main");
	expect_name(CALL_SIGNAL, &function, "main");
	expect_name(CALL_FUNCTION, &nameless, "[unknown]");
	expect_name(CALL_FUNCTION, NULL, "[unknown]");
	expect_name(CALL_SYSCALL, NULL, "[syscall]");
	expect_name(CALL_UNTRACED, NULL, "[untraced]");
	expect_name(CALL_GAP, NULL, "[gap]");
	expect_name(CALL_IN_KERNEL, NULL, "[kernel]");
}

static void test_why_a_thread_was_off_its_cpu(void **state)
{
	struct call call = {.kind = CALL_OFF_CPU, .reason = OFF_BLOCKED};

	assert_string_equal(call__name(&call), "[blocked]");
	call.reason = OFF_PREEMPTED;
	assert_string_equal(call__name(&call), "[preempted]");
	call.reason = OFF_RUNNABLE;
	assert_string_equal(call__name(&call), "[runnable]");
}

static void test_gap_names_hold_the_reason(void **state)
{
	struct call call = {.kind = CALL_GAP};
	char expected[32];

	for (int reason = GAP_OVERFLOW; reason <= GAP_LOST; reason++) {
		call.reason = (uint8_t)reason;
		snprintf(expected, sizeof(expected), "[gap: %s]",
			 gap_reason__name((enum gap_reason)reason));
		assert_string_equal(call__name(&call), expected);
	}
	call.reason = 99;
	assert_string_equal(call__name(&call), "[gap]");
}

static void test_names_of_reasons_and_branches(void **state)
{
	static const char *const reasons[] = {"none",	  "overflow", "bad packet", "unmapped",
					      "mismatch", "lost",     "32-bit code"};
	static const char *const kinds[] = {"call",	 "return", "jmp",   "jcc",
					    "enter",	 "leave",  "begin", "end-syscall",
					    "end-async", "end",	   "gap"};

	for (int i = GAP_NONE; i <= GAP_32_BIT; i++)
		assert_string_equal(gap_reason__name((enum gap_reason)i), reasons[i]);
	for (int i = BRANCH_CALL; i <= BRANCH_GAP; i++)
		assert_string_equal(branch_kind__name((enum branch_kind)i), kinds[i]);
	assert_string_equal(gap_reason__name((enum gap_reason)99), "?");
	assert_string_equal(branch_kind__name((enum branch_kind)99), "?");
}

static void add_interrupts(struct call_tree *tree, uint64_t start_ns, uint64_t end_ns, uint64_t ns)
{
	const struct interrupts_mark mark = {start_ns, end_ns, ns};

	assert_int_equal(call_tree__add_interrupts(tree, &mark), 0);
}

/* A file may say anything: what does not fit is left out, what overlaps counts once. */
static void test_interrupts_do_not_overlap(void **state)
{
	struct call_tree tree = {0};

	add_interrupts(&tree, 100, 200, 50);
	add_interrupts(&tree, 150, 250, 40);
	add_interrupts(&tree, 120, 180, 60);
	add_interrupts(&tree, 300, 300, 0);
	add_interrupts(&tree, 300, 310, 11);
	add_interrupts(&tree, 320, 310, 1);
	assert_int_equal(tree.interrupts.n, 2);
	assert_int_equal(tree.interrupts.v[1].start_ns, 200);
	assert_int_equal(tree.interrupts.v[1].end_ns, 250);
	assert_int_equal(tree.interrupts.v[1].ns, 20);
	assert_int_equal(interrupts_mark__until(&tree.interrupts.v[0], 99), 0);
	assert_int_equal(interrupts_mark__until(&tree.interrupts.v[0], 150), 25);
	assert_int_equal(interrupts_mark__until(&tree.interrupts.v[0], 201), 50);
	call_tree__fini(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_why_a_thread_was_off_its_cpu),
		cmocka_unit_test(test_gap_names_hold_the_reason),
		cmocka_unit_test(test_names_of_reasons_and_branches),
		cmocka_unit_test(test_interrupts_do_not_overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
