// SPDX-License-Identifier: MIT
/* Page faults, and what interrupts took, out of counters, whoever wrote them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stack/stack.h"
#include "trace/fxt_format.h"
#include "trace/fxt_trees.h"

struct fixture {
	struct fxt_counters counters;
	struct call_tree tree;
};

static void take(struct fixture *f, const char *name, uint64_t time_ns, double value)
{
	struct fxt_read read = {.name = name, .time_ns = time_ns, .n_args = 1};

	read.args[0] = (struct fxt_read_arg){.key = FAULT_COUNTER_OF, .type = FXT_ARG_DOUBLE};
	memcpy(&read.args[0].number, &value, sizeof(value));
	assert_int_equal(fxt_counters__take(&f->counters, &f->tree, &read), 0);
}

static void test_what_a_counter_has_grown_by(void **state)
{
	struct fixture f = {0};

	take(&f, FAULT_COUNTER, 10, 32);
	take(&f, FAULT_COUNTER_MAJOR, 20, 1);
	take(&f, FAULT_COUNTER, 20, 96);
	assert_int_equal(f.tree.faults.n, 3);
	assert_int_equal(f.tree.faults.v[0].n, 32);
	assert_int_equal(f.tree.faults.v[1].n, 1);
	assert_true(f.tree.faults.v[1].is_major);
	assert_int_equal(f.tree.faults.v[2].n, 64);
	assert_int_equal(f.tree.faults.v[2].time_ns, 20);
	call_tree__fini(&f.tree);
}

/* They stay in the order of their times, and add up to what a counter can have counted. */
static void test_counters_that_make_no_sense(void **state)
{
	const double values[] = {-1, 0.5, NAN, INFINITY, 0x1p63, 0x1p40};
	struct fixture f = {0};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		take(&f, FAULT_COUNTER, 10, values[i]);
	take(&f, "IPC", 10, 2);
	assert_int_equal(f.tree.faults.n, 0);
	take(&f, FAULT_COUNTER, 10, 32);
	take(&f, FAULT_COUNTER, 11, 31);
	take(&f, FAULT_COUNTER, 9, 64);
	assert_int_equal(f.tree.faults.n, 1);
	call_tree__fini(&f.tree);
}

/* Where it does not rise there were none. */
static void test_what_interrupts_took(void **state)
{
	struct fixture f = {0};

	take(&f, INTERRUPT_COUNTER, 1000, 0);
	take(&f, INTERRUPT_COUNTER, 1100, 40);
	take(&f, INTERRUPT_COUNTER, 1500, 40);
	take(&f, INTERRUPT_COUNTER, 1600, 90);
	/* More than there was time for; and times that go back. */
	take(&f, INTERRUPT_COUNTER, 1610, 200);
	take(&f, INTERRUPT_COUNTER, 1550, 210);
	take(&f, INTERRUPT_COUNTER, 1700, NAN);
	assert_int_equal(f.tree.interrupts.n, 2);
	assert_int_equal(f.tree.interrupts.v[0].start_ns, 1000);
	assert_int_equal(f.tree.interrupts.v[0].end_ns, 1100);
	assert_int_equal(f.tree.interrupts.v[0].ns, 40);
	assert_int_equal(f.tree.interrupts.v[1].start_ns, 1500);
	assert_int_equal(f.tree.interrupts.v[1].ns, 50);
	call_tree__fini(&f.tree);
}

static void test_a_counter_without_its_argument(void **state)
{
	struct fixture f = {0};
	struct fxt_read read = {.name = FAULT_COUNTER, .time_ns = 1};

	assert_int_equal(fxt_counters__take(&f.counters, &f.tree, &read), 0);
	read.n_args = 1;
	read.args[0] = (struct fxt_read_arg){FAULT_COUNTER_OF, FXT_ARG_U64, 7, NULL};
	assert_int_equal(fxt_counters__take(&f.counters, &f.tree, &read), 0);
	assert_int_equal(f.tree.faults.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_counter_has_grown_by),
		cmocka_unit_test(test_counters_that_make_no_sense),
		cmocka_unit_test(test_what_interrupts_took),
		cmocka_unit_test(test_a_counter_without_its_argument),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
