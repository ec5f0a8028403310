// SPDX-License-Identifier: MIT
#include "decode/losses.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#define PID   7
#define TID   7
#define START 0x400000ull

struct fixture {
	struct recording rec;
	struct decode_totals totals;
	struct losses losses;
	char seen[512]; /* what came out, to compare: "begin 10, gap 20, " */
};

static void lose(struct fixture *f, pid_t tid, uint64_t time_ns)
{
	struct rec_loss loss = {
		.time_ns = time_ns, .tid = tid, .aux_flags = PERF_AUX_FLAG_TRUNCATED};

	assert_int_equal(recording__add_loss(&f->rec, &loss), 0);
}

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
	assert_int_equal(losses__init(&f->losses, &f->rec, PID, TID, &f->totals), 0);
}

static void pass_all(struct fixture *f, const struct branch *v, size_t n)
{
	struct branch_batch out;

	assert_int_equal(losses__mark(&f->losses, v, n, &out), 0);
	for (size_t i = 0; i < out.n; i++) {
		size_t len = strlen(f->seen);
		const struct branch *b = &out.v[i];

		snprintf(f->seen + len, sizeof(f->seen) - len, "%s %llu, ",
			 branch__is_entry(b) ? "entry"
					     : branch_kind__name((enum branch_kind)b->kind),
			 (unsigned long long)b->time_ns);
	}
}

static void pass(struct fixture *f, enum branch_kind kind, uint64_t from, uint64_t time_ns)
{
	struct branch b = {.kind = (uint8_t)kind, .from = from, .time_ns = time_ns};

	pass_all(f, &b, 1);
}

static void tear_down(struct fixture *f)
{
	losses__fini(&f->losses);
	recording__fini(&f->rec);
}

static void test_a_gap_where_it_goes_on(void **state)
{
	struct fixture f = {0};

	begin(&f);
	lose(&f, 7, 20);
	pass(&f, BRANCH_BEGIN, 0, 10);
	pass(&f, BRANCH_CALL, 0, 21);
	pass(&f, BRANCH_END, 0, 22);
	pass(&f, BRANCH_BEGIN, 0, 30);
	pass(&f, BRANCH_BEGIN, 0, 40);
	losses__finish(&f.losses);
	assert_string_equal(f.seen, "begin 10, call 21, end 22, gap 20, begin 30, begin 40, ");
	assert_int_equal(f.totals.gaps[GAP_LOST], 1);
	tear_down(&f);
}

static void test_several_in_one_gap(void **state)
{
	struct fixture f = {0};

	begin(&f);
	lose(&f, 7, 22);
	lose(&f, 7, 20);
	lose(&f, 7, 60);
	pass(&f, BRANCH_BEGIN, 0, 30);
	assert_string_equal(f.seen, "gap 20, begin 30, ");
	losses__finish(&f.losses);
	assert_int_equal(f.totals.gaps[GAP_LOST], 2);
	tear_down(&f);
}

/* Another thread's, and records of mappings, break nothing. */
static void test_what_is_no_loss_of_this_thread(void **state)
{
	struct rec_loss records = {.time_ns = 5, .tid = 7, .records = 12};
	struct fixture f = {0};

	begin(&f);
	lose(&f, 8, 5);
	assert_int_equal(recording__add_loss(&f.rec, &records), 0);
	lose(&f, 7, 20);
	pass(&f, BRANCH_BEGIN, 0, 10);
	assert_string_equal(f.seen, "begin 10, ");
	assert_int_equal(f.totals.gaps[GAP_LOST], 0);
	pass(&f, BRANCH_BEGIN, 0, 20);
	assert_string_equal(f.seen, "begin 10, gap 20, begin 20, ");
	tear_down(&f);
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
	assert_string_equal(f.seen, "begin 10, end-async 20, begin 30, end-syscall 40, begin 50, "
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
	assert_string_equal(f.seen, "end-async 60, gap 65, begin 75, ");
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
	assert_int_equal(f.losses.stops.n, 2);
	assert_int_equal(f.losses.stops.v[0], START + 0x40);
	assert_int_equal(f.losses.stops.v[1], 4 * START + 0x80);
	tear_down(&f);
}

/* Entries among the branches change nothing, and come before the gap as they did before the begin.
 */
static void test_entries_stay_where_they_are(void **state)
{
	const struct branch v[] = {
		{.kind = BRANCH_END_ASYNC, .from = START + 0x40, .time_ns = 60},
		{.kind = ENTRY_NOTE, .time_ns = 70},
		{.kind = ENTRY_MAP, .time_ns = 75},
		{.kind = BRANCH_BEGIN, .time_ns = 75},
		{.kind = BRANCH_CALL, .time_ns = 76},
	};
	struct fixture f = {0};

	map(&f, PID, START, 11, 0);
	add_stop(&f, 11, 0x2040, 0);
	lose(&f, TID, 62);
	begin(&f);
	assert_true(losses__are_any(&f.losses));
	pass_all(&f, v, 5);
	assert_string_equal(f.seen, "end-async 60, entry 70, entry 75, gap 60, gap 62, begin 75, "
				    "call 76, ");
	assert_int_equal(f.totals.gap_ns[GAP_LOST], 13);
	tear_down(&f);
}

static void test_none(void **state)
{
	struct fixture f = {0};

	lose(&f, 8, 5);
	begin(&f);
	assert_false(losses__are_any(&f.losses));
	tear_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_gap_where_it_goes_on),
		cmocka_unit_test(test_several_in_one_gap),
		cmocka_unit_test(test_what_is_no_loss_of_this_thread),
		cmocka_unit_test(test_a_gap_behind_a_stop),
		cmocka_unit_test(test_no_second_gap),
		cmocka_unit_test(test_where_the_process_has_the_stop),
		cmocka_unit_test(test_entries_stay_where_they_are),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
