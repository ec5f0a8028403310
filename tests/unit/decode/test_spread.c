// SPDX-License-Identifier: MIT
/* Branches of one time, each with the instructions before it: when they come out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/spread.h"

struct fixture {
	struct spread spread;
	VEC(struct branch) taken;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	spread__init(&f->spread, NULL, 0);
	*state = f;
	return 0;
}

static void tear_down_one(struct fixture *f)
{
	spread__fini(&f->spread);
	VEC_FINI(&f->taken);
}

static int tear_down(void **state)
{
	tear_down_one(*state);
	free(*state);
	return 0;
}

static void set_hits(struct fixture *f, const uint64_t *hits, size_t n)
{
	spread__init(&f->spread, hits, n);
}

static void take(struct fixture *f, const struct branch_batch *ready)
{
	for (size_t i = 0; i < ready->n; i++)
		assert_int_equal(VEC_ADD(&f->taken, ready->v[i]), 0);
}

static void give_all(struct fixture *f, const struct branch *v, size_t n)
{
	struct branch_batch ready[SPREAD_BATCHES];
	struct branch *copy = malloc(n * sizeof(*copy));

	/* What is handed on may lie there. */
	memcpy(copy, v, n * sizeof(*copy));
	assert_int_equal(spread__take(&f->spread, copy, n, ready), 0);
	for (int i = 0; i < SPREAD_BATCHES; i++)
		take(f, &ready[i]);
	free(copy);
}

static void give(struct fixture *f, uint64_t time_ns, enum branch_kind kind, uint32_t n_insns)
{
	give_all(f, &(struct branch){.time_ns = time_ns, .kind = (uint8_t)kind, .n_insns = n_insns},
		 1);
}

/* The map changes: an entry, which the tests of times do not look at. */
static void settle(struct fixture *f, uint64_t time_ns, uint32_t n_insns)
{
	give(f, time_ns, (enum branch_kind)ENTRY_MAP, n_insns);
	assert_int_equal(f->taken.v[--f->taken.n].kind, ENTRY_MAP);
}

static void finish(struct fixture *f)
{
	struct branch_batch rest;

	spread__finish(&f->spread, &rest);
	take(f, &rest);
}

static void call(struct fixture *f, uint64_t time_ns, uint32_t n_insns)
{
	give(f, time_ns, BRANCH_CALL, n_insns);
}

/* The times of what has come out by now. */
static void assert_taken(const struct fixture *f, const char *expected)
{
	char text[400] = "";

	for (size_t i = 0; i < f->taken.n; i++)
		sprintf(text + strlen(text), "%s%" PRIu64, i ? " " : "", f->taken.v[i].time_ns);
	assert_string_equal(text, expected);
}

static void assert_finished(struct fixture *f, const char *expected)
{
	finish(f);
	assert_taken(f, expected);
}

/* From 100 to 200 there are 20 instructions: 5 ns each. The first of a time has nothing to wait
 * for. */
static void test_instructions_share_the_time(void **state)
{
	struct fixture *f = *state;

	call(f, 100, 7);
	assert_taken(f, "100");
	call(f, 100, 1);
	call(f, 100, 5);
	call(f, 100, 4);
	assert_taken(f, "100");
	call(f, 200, 10);
	assert_taken(f, "100 105 130 150 200");
	call(f, 300, 1);
	assert_finished(f, "100 105 130 150 200 300");
}

static void test_times_that_differ_stay(void **state)
{
	struct fixture *f = *state;

	for (uint64_t i = 0; i < 5; i++)
		call(f, 10 + i * i, 100);
	assert_finished(f, "10 11 14 19 26");
}

static void test_the_last_run_stays(void **state)
{
	struct fixture *f = *state;

	call(f, 10, 1);
	call(f, 20, 10);
	call(f, 20, 10);
	call(f, 20, 10);
	assert_finished(f, "10 20 20 20");
}

/* 10 instructions took 20 ns. What took the rest up to 1000 is the kernel. */
static void test_time_outside_is_not_shared(void **state)
{
	struct fixture *f = *state;

	call(f, 100, 1);
	call(f, 120, 10);
	call(f, 120, 5);
	give(f, 120, BRANCH_END_SYSCALL, 3);
	give(f, 1000, BRANCH_BEGIN, 0);
	assert_taken(f, "100 120 130 136 1000");
	give(f, 1000, BRANCH_END_ASYNC, 5);
	give(f, 1007, BRANCH_BEGIN, 0);
	/* It cannot have been as slow as all that. */
	assert_taken(f, "100 120 130 136 1000 1007 1007");
}

/* Nothing is known of how fast its instructions are. */
static void test_outside_at_once(void **state)
{
	struct fixture *f = *state;

	give(f, 100, BRANCH_BEGIN, 0);
	call(f, 100, 5);
	give(f, 100, BRANCH_END_SYSCALL, 3);
	give(f, 1000, BRANCH_BEGIN, 0);
	assert_taken(f, "100 100 100 1000");
}

static void test_nothing_moves_behind_a_hit(void **state)
{
	static const uint64_t hits[] = {50, 100, 140, 1100};
	struct fixture *f = *state;

	set_hits(f, hits, 4);
	call(f, 80, 10);
	call(f, 100, 10);
	call(f, 100, 10);
	call(f, 100, 10);
	call(f, 200, 20);
	assert_taken(f, "80 100 110 120 200");
	/* The last one is the end of what is known. */
	call(f, 1000, 10);
	call(f, 1000, 5);
	call(f, 1000, 5);
	finish(f);
	assert_int_equal(f->taken.n, 8);
	assert_in_range(f->taken.v[6].time_ns, 1001, 1099);
	assert_in_range(f->taken.v[7].time_ns, f->taken.v[6].time_ns + 1, 1100);
}

static void test_gaps_stay(void **state)
{
	struct fixture *f = *state;

	call(f, 100, 1);
	call(f, 100, 1);
	give(f, 100, BRANCH_GAP, 10);
	assert_taken(f, "100 100 100");
	give(f, 200, BRANCH_BEGIN, 0);
	call(f, 200, 5);
	call(f, 300, 5);
	assert_taken(f, "100 100 100 200 250 300");
}

/* They are of the code that was there then; 30 instructions later it is 160. */
static void test_before_the_map_changes(void **state)
{
	struct fixture *f = *state;

	call(f, 100, 1);
	call(f, 100, 10);
	call(f, 100, 20);
	settle(f, 160, 30);
	assert_taken(f, "100 110 130");
	call(f, 200, 50);
	call(f, 200, 10);
	settle(f, 200, 30);
	assert_taken(f, "100 110 130 200 200");
	call(f, 200, 50);
	call(f, 300, 50);
	assert_taken(f, "100 110 130 200 200 250 300");
}

static void test_more_branches_than_nanoseconds(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 7; i++)
		call(f, 100, 1);
	call(f, 103, 1);
	assert_taken(f, "100 100 100 101 101 102 102 103");
}

static void test_long_times(void **state)
{
	struct fixture *f = *state;

	call(f, 0, UINT32_MAX);
	call(f, 0, UINT32_MAX);
	call(f, 0, UINT32_MAX);
	call(f, UINT64_MAX - 1, UINT32_MAX);
	assert_taken(f, "0 6148914691236517204 12297829382473034409 18446744073709551614");
}

static void test_too_many_to_be_held(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < SPREAD_MAX + 10; i++)
		call(f, 100, 1);
	assert_int_equal(f->taken.n, SPREAD_MAX + 10);
	call(f, 200, 1);
	for (int i = 0; i < SPREAD_MAX + 10; i++)
		assert_int_equal(f->taken.v[i].time_ns, 100);
	call(f, 200, 1);
	call(f, 300, 1);
	assert_int_equal(f->taken.v[SPREAD_MAX + 11].time_ns, 250);
}

/* The same branches and entries come out of any sizes of arrays, at the same times. */
static void test_arrays_of_any_size(void **state)
{
	static const uint8_t kinds[] = {BRANCH_BEGIN, BRANCH_END_SYSCALL, BRANCH_END_ASYNC,
					BRANCH_GAP,   ENTRY_MAP,	  ENTRY_NOTE,
					ENTRY_SPEED};
	struct branch v[3000];
	unsigned int seed = 7;
	uint64_t now = 1;

	for (size_t i = 0; i < 3000; i++) {
		unsigned int dice = (unsigned int)rand_r(&seed);

		now += dice % 4 ? 0 : dice / 4 % 90;
		v[i] = (struct branch){.time_ns = now,
				       .from = i,
				       .kind = dice % 64 < 7 ? kinds[dice % 64] : dice & 1,
				       .n_insns = dice % 1000};
	}
	for (unsigned int round = 0; round < 20; round++) {
		const uint64_t hits[] = {1000, 2000};
		struct fixture one = {0}, many = {0};

		set_hits(&one, hits, 2);
		set_hits(&many, hits, 2);
		give_all(&one, v, 3000);
		for (size_t at = 0, n; at < 3000; at += n) {
			n = round ? (size_t)rand_r(&seed) % 200 : 1;
			if (n > 3000 - at)
				n = 3000 - at;
			give_all(&many, v + at, n);
			/* What comes before another map is taken before it. */
			if (n == 1 && v[at].kind == ENTRY_MAP)
				assert_int_equal(many.taken.n, at + 1);
		}
		finish(&one);
		finish(&many);
		assert_int_equal(one.taken.n, 3000);
		assert_int_equal(many.taken.n, 3000);
		assert_memory_equal(one.taken.v, many.taken.v, 3000 * sizeof(v[0]));
		for (size_t i = 0; i < 3000; i++) {
			assert_int_equal(one.taken.v[i].from, i);
			if (branch__is_entry(&v[i]))
				assert_int_equal(one.taken.v[i].time_ns, v[i].time_ns);
		}
		tear_down_one(&one);
		tear_down_one(&many);
	}
}

/* Whatever comes: nothing is lost, exact times stay, order is kept, nobody passes the next time. */
static void test_any_branches(void **state)
{
	static const uint8_t kinds[] = {BRANCH_CALL,	    BRANCH_RETURN,    BRANCH_BEGIN,
					BRANCH_END_SYSCALL, BRANCH_END_ASYNC, BRANCH_GAP};
	unsigned int seed = 5;
	size_t moved = 0;

	for (int round = 0; round < 500; round++) {
		uint64_t times[300], hits[] = {1000, 2000}, now = 1;
		struct fixture f = {0};

		set_hits(&f, hits, 2);
		for (size_t i = 0; i < 300; i++) {
			unsigned int dice = (unsigned int)rand_r(&seed);

			now += dice % 4 ? 0 : dice / 4 % 90;
			times[i] = now;
			give(&f, now, kinds[dice % 64 < 6 ? dice % 64 : dice & 1], dice % 1000);
			if (dice % 100 == 0)
				settle(&f, now, 10);
		}
		finish(&f);
		assert_int_equal(f.taken.n, 300);
		for (size_t i = 0; i < 300; i++) {
			uint64_t ns = f.taken.v[i].time_ns;
			size_t next = i;

			if (!i || times[i] != times[i - 1])
				assert_int_equal(ns, times[i]);
			assert_true(ns >= times[i]);
			assert_true(!i || ns >= f.taken.v[i - 1].time_ns);
			while (next < 300 && times[next] == times[i])
				next++;
			assert_true(next == 300 || ns <= times[next]);
			for (int h = 0; h < 2; h++)
				assert_true(times[i] >= hits[h] || ns <= hits[h]);
			moved += ns != times[i];
		}
		tear_down_one(&f);
	}
	assert_true(moved > 10000);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_instructions_share_the_time),
		TEST(test_times_that_differ_stay),
		TEST(test_the_last_run_stays),
		TEST(test_time_outside_is_not_shared),
		TEST(test_outside_at_once),
		TEST(test_nothing_moves_behind_a_hit),
		TEST(test_gaps_stay),
		TEST(test_before_the_map_changes),
		TEST(test_more_branches_than_nanoseconds),
		TEST(test_long_times),
		TEST(test_too_many_to_be_held),
		TEST(test_arrays_of_any_size),
		TEST(test_any_branches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
