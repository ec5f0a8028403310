// SPDX-License-Identifier: MIT
#include "decode/outside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "seen_branches.h"

#define PID   7
#define START 0x400000ull

struct fixture {
	struct recording rec;
	struct decode_totals totals;
	struct outside_filter filter;
	struct seen_branches seen;
};

static void map(struct fixture *f, pid_t pid, uint64_t start, uint64_t ino, uint32_t maj)
{
	const struct rec_map map = {.start = start,
				    .len = 0x1000,
				    .pgoff = 0x2000,
				    .ino = ino,
				    .maj = maj,
				    .pid = pid,
				    .path = (char *)"/bin/service"};

	assert_int_equal(recording__add_map(&f->rec, &map), 0);
}

static void add_stop(struct fixture *f, uint64_t ino, uint64_t offset, uint32_t maj)
{
	struct rec_place *place = VEC_PUSH(&f->rec.stops);

	assert_non_null(place);
	*place = (struct rec_place){.ino = ino, .offset = offset, .maj = maj};
}

static void begin(struct fixture *f)
{
	assert_int_equal(outside_filter__init(&f->filter, &f->rec, PID), 0);
	f->filter.fn = seen_branches__add;
	f->filter.ctx = &f->seen;
	f->filter.totals = &f->totals;
}

static void pass(struct fixture *f, enum branch_kind kind, uint64_t from, uint64_t time_ns)
{
	struct branch b = {.kind = (uint8_t)kind, .from = from, .time_ns = time_ns};

	assert_int_equal(outside_filter__branch(&f->filter, &b), 0);
}

static void tear_down(struct fixture *f)
{
	outside_filter__fini(&f->filter);
	recording__fini(&f->rec);
}

static void test_a_gap_behind_a_stop(void **state)
{
	struct fixture f = {0};

	map(&f, PID, START, 11, 0);
	add_stop(&f, 11, 0x2040, 0);
	begin(&f);
	pass(&f, BRANCH_BEGIN, 0, 10);
	/* Something else interrupts, and what ends in a system call was not stopped. */
	pass(&f, BRANCH_END_ASYNC, START + 0x44, 20);
	pass(&f, BRANCH_BEGIN, 0, 30);
	pass(&f, BRANCH_END_SYSCALL, START + 0x40, 40);
	pass(&f, BRANCH_BEGIN, 0, 50);
	pass(&f, BRANCH_END_ASYNC, START + 0x40, 60);
	pass(&f, BRANCH_BEGIN, 0, 75);
	/* Nothing follows: the freeze. */
	pass(&f, BRANCH_END_ASYNC, START + 0x40, 80);
	assert_string_equal(f.seen.text,
			    "begin 10, end-async 20, begin 30, end-syscall 40, begin 50, "
			    "end-async 60, gap 60, begin 75, end-async 80, ");
	assert_int_equal(f.totals.gaps[GAP_OUTSIDE], 1);
	assert_int_equal(f.totals.gap_ns[GAP_OUTSIDE], 15);
	tear_down(&f);
}

/* A loss says by itself that what follows is another part. */
static void test_no_second_gap(void **state)
{
	struct fixture f = {0};

	map(&f, PID, START, 11, 0);
	add_stop(&f, 11, 0x2040, 0);
	begin(&f);
	pass(&f, BRANCH_END_ASYNC, START + 0x40, 60);
	pass(&f, BRANCH_GAP, 0, 65);
	pass(&f, BRANCH_BEGIN, 0, 75);
	assert_string_equal(f.seen.text, "end-async 60, gap 65, begin 75, ");
	tear_down(&f);
}

static void test_where_the_process_has_the_stop(void **state)
{
	struct fixture f = {0};

	map(&f, PID, START, 11, 8);
	map(&f, PID, 2 * START, 11, 9);	    /* another file system's inode 11 */
	map(&f, PID + 1, 3 * START, 11, 8); /* another process's */
	map(&f, PID, 4 * START, 12, 8);
	add_stop(&f, 11, 0x2040, 8);
	add_stop(&f, 11, 0x1fff, 8); /* before what is mapped, and behind it */
	add_stop(&f, 11, 0x3000, 8);
	add_stop(&f, 12, 0x2080, 0); /* of any file system */
	begin(&f);
	assert_int_equal(f.filter.stops.n, 2);
	assert_int_equal(f.filter.stops.v[0], START + 0x40);
	assert_int_equal(f.filter.stops.v[1], 4 * START + 0x80);
	tear_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_gap_behind_a_stop),
		cmocka_unit_test(test_no_second_gap),
		cmocka_unit_test(test_where_the_process_has_the_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
