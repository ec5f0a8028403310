// SPDX-License-Identifier: MIT
#include "decode/losses.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/perf_event.h>
#include <string.h>

#include "seen_branches.h"

struct fixture {
	struct recording rec;
	struct decode_totals totals;
	struct loss_filter filter;
	struct seen_branches seen;
};

static void set_up(struct fixture *f)
{
	*f = (struct fixture){0};
	f->filter = (struct loss_filter){.rec = &f->rec,
					 .tid = 7,
					 .fn = seen_branches__add,
					 .ctx = &f->seen,
					 .totals = &f->totals};
}

static void lose(struct fixture *f, pid_t tid, uint64_t time_ns)
{
	struct rec_loss loss = {
		.time_ns = time_ns, .tid = tid, .aux_flags = PERF_AUX_FLAG_TRUNCATED};

	assert_int_equal(recording__add_loss(&f->rec, &loss), 0);
}

static void pass(struct fixture *f, enum branch_kind kind, uint64_t time_ns)
{
	struct branch b = {.kind = (uint8_t)kind, .time_ns = time_ns};

	assert_int_equal(loss_filter__branch(&f->filter, &b), 0);
}

static void tear_down(struct fixture *f)
{
	recording__fini(&f->rec);
}

static void test_a_gap_where_it_goes_on(void **state)
{
	struct fixture f;

	set_up(&f);
	lose(&f, 7, 20);
	pass(&f, BRANCH_BEGIN, 10);
	pass(&f, BRANCH_CALL, 21);
	pass(&f, BRANCH_END, 22);
	pass(&f, BRANCH_BEGIN, 30);
	pass(&f, BRANCH_BEGIN, 40);
	loss_filter__finish(&f.filter);
	assert_string_equal(f.seen.text, "begin 10, call 21, end 22, gap 20, begin 30, begin 40, ");
	assert_int_equal(f.totals.gaps[GAP_LOST], 1);
	tear_down(&f);
}

static void test_several_in_one_gap(void **state)
{
	struct fixture f;

	set_up(&f);
	lose(&f, 7, 22);
	lose(&f, 7, 20);
	lose(&f, 7, 60);
	pass(&f, BRANCH_BEGIN, 30);
	assert_string_equal(f.seen.text, "gap 20, begin 30, ");
	loss_filter__finish(&f.filter);
	assert_int_equal(f.totals.gaps[GAP_LOST], 2);
	tear_down(&f);
}

/* Another thread's, and records of mappings, break nothing. */
static void test_what_is_no_loss_of_this_thread(void **state)
{
	struct rec_loss records = {.time_ns = 5, .tid = 7, .records = 12};
	struct fixture f;

	set_up(&f);
	lose(&f, 8, 5);
	assert_int_equal(recording__add_loss(&f.rec, &records), 0);
	lose(&f, 7, 20);
	pass(&f, BRANCH_BEGIN, 10);
	assert_string_equal(f.seen.text, "begin 10, ");
	assert_int_equal(f.totals.gaps[GAP_LOST], 0);
	pass(&f, BRANCH_BEGIN, 20);
	assert_string_equal(f.seen.text, "begin 10, gap 20, begin 20, ");
	tear_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_gap_where_it_goes_on),
		cmocka_unit_test(test_several_in_one_gap),
		cmocka_unit_test(test_what_is_no_loss_of_this_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
