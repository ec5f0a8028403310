// SPDX-License-Identifier: MIT
/* Calls of goroutines, which no thread's stack holds: a track each. */
#include "sampled_fixture.h"

static void add(struct fixture *f, uint32_t goroutine, pid_t tid, struct mt_entry entry)
{
	entry.goroutine = goroutine;
	entry.kind = entry.kind ? entry.kind : MT_ENTRY_CALL;
	entry.tid = (uint32_t)tid;
	assert_int_equal(VEC_ADD(&f->rec.entries, entry), 0);
}

/* In whatever order, and on whatever thread they ended; what the threads show stays as it is. */
static void test_a_track_a_goroutine(void **state)
{
	struct fixture *f = *state;
	struct rec_thread thread = {.pid = PID, .tid = TID + 1, .comm = "server"};

	assert_int_equal(recording__add_thread(&f->rec, &thread), 0);
	SAMPLE(f, TID, 1000, MAIN + 8);
	SAMPLE(f, TID, 1300, MAIN + 8);
	add(f, 7, TID, entry_of(FIND, 1100, 1150));
	add(f, 9, TID, entry_of(FIND, 1120, 1220));
	add(f, 7, TID + 1, entry_of(ITER, 1010, 1200));
	add(f, 7, TID + 1, entry_of(FIND, 1200, 1250));
	f->rec.frozen_ns = 1300;
	make_trees(f, 3);
	assert_tree(&f->trees[0], "[main] 1000-1300 inferred-start inferred-end\n");
	assert_int_equal(f->trees[1].pid, PID);
	assert_int_equal(f->trees[1].tid, TID + 1);
	assert_string_equal(f->trees[1].comm, "server");
	assert_int_equal(f->trees[1].strand, 1);
	assert_string_equal(f->trees[1].strand_name, "goroutine 1");
	assert_tree(&f->trees[1], "[iter] 1010-1200\n"
				  "  [not recorded] 1010-1100\n"
				  "  [find] 1100-1150\n"
				  "    [not recorded] 1100-1150\n"
				  "  [not recorded] 1150-1200\n"
				  "[find] 1200-1250\n"
				  "  [not recorded] 1200-1250\n");
	assert_int_equal(f->trees[2].strand, 2);
	assert_tree(&f->trees[2], "[find] 1120-1220\n"
				  "  [not recorded] 1120-1220\n");
}

static void test_ends_that_are_not_known(void **state)
{
	struct fixture *f = *state;
	struct mt_entry left = entry_of(FIND, 1100, 1150);

	left.kind = MT_ENTRY_LEFT;
	add(f, 7, TID, entry_of(MAIN, 1000, 0));
	add(f, 7, TID, entry_of(ITER, 1010, 1200));
	add(f, 7, TID, left);
	/* Longer than what called it. */
	add(f, 7, TID, entry_of(FIND, 1160, 1210));
	hit(f, 1300);
	/* Of the next snapshot. */
	add(f, 7, TID, entry_of(ITER, 2000, 0));
	f->rec.frozen_ns = 2100;
	make_trees(f, 2);
	assert_tree(&f->trees[1], "[main] 1000-1300 inferred-end\n"
				  "  [not recorded] 1000-1010\n"
				  "  [iter] 1010-1200\n"
				  "    [not recorded] 1010-1100\n"
				  "    [find] 1100-1150 inferred-end\n"
				  "      [not recorded] 1100-1150\n"
				  "    [not recorded] 1150-1160\n"
				  "    [find] 1160-1200 inferred-end\n"
				  "      [not recorded] 1160-1200\n"
				  "  [not recorded] 1200-1300\n"
				  "[iter] 2000-2100 inferred-end\n"
				  "  [not recorded] 2000-2100\n");
	assert_int_equal(f->totals.first_ns, 1000);
}

/* Where it began is in the upper bits, what it waits for in the lowest eight. */
static struct mt_entry park_of(uint64_t start_ns, uint64_t end_ns, pid_t began_in, uint8_t reason)
{
	struct mt_entry entry = entry_of(PLUGIN, start_ns, end_ns);

	entry.returns_to = (uint64_t)began_in << 8 | reason;
	return entry;
}

/*
 * It begins on one thread, waits, and goes on in another: of either what its stacks show of the
 * call, and nothing of what they did meanwhile.
 */
static void test_a_call_that_waits(void **state)
{
	struct fixture *f = *state;

	map_code(&f->rec, 0, PLUGIN, "runtime.gopark");
	SAMPLE(f, TID, 1000, FIND + 4, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1100, FIND + 4, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1200, MAIN + 12);
	SAMPLE(f, TID, 1300, MAIN + 12);
	SAMPLE(f, TID + 1, 1200, MAIN + 16);
	SAMPLE(f, TID + 1, 1300, ITER + 4, MAIN + 8);
	SAMPLE(f, TID + 1, 1400, ITER + 4, MAIN + 8);
	add(f, 7, TID + 1, entry_of(ITER, 1010, 1420));
	add(f, 7, TID + 1, park_of(1120, 1260, TID, 14));
	f->rec.frozen_ns = 1430;
	interrupts(f, TID, 1000, 1020, 10);
	interrupts(f, TID, 1200, 1300, 50);
	interrupts(f, TID + 1, 1400, 1440, 20);
	make_trees(f, 3);
	assert_tree(&f->trees[2], "[iter] 1010-1420\n"
				  "  [find] 1010-1120 inferred-start inferred-end\n"
				  "  [blocked] 1120-1260\n");
	assert_int_equal(f->trees[2].waits.n, 1);
	assert_string_equal(f->trees[2].waits.v[0].text, "chan receive");
	/* Of either thread what lies in the call. */
	assert_int_equal(f->trees[2].interrupts.n, 2);
	assert_int_equal(f->trees[2].interrupts.v[0].start_ns, 1010);
	assert_int_equal(f->trees[2].interrupts.v[0].end_ns, 1020);
	assert_int_equal(f->trees[2].interrupts.v[0].ns, 5);
	assert_int_equal(f->trees[2].interrupts.v[1].start_ns, 1400);
	assert_int_equal(f->trees[2].interrupts.v[1].end_ns, 1420);
	assert_int_equal(f->trees[2].interrupts.v[1].ns, 10);
}

/* It was moved, and nobody saw where to: the thread's stacks are another goroutine's. */
static void test_a_thread_that_is_at_something_else(void **state)
{
	struct fixture *f = *state;

	map_code(&f->rec, 0, PLUGIN, "runtime.gopark");
	SAMPLE(f, TID, 1000, FIND + 4, MAIN + 8);
	SAMPLE(f, TID, 1100, FIND + 4, MAIN + 8);
	SAMPLE(f, TID, 1200, FIND + 4, MAIN + 8);
	add(f, 7, TID, entry_of(ITER, 1010, 1190));
	add(f, 7, TID, park_of(1100, 1150, TID, 200));
	f->rec.frozen_ns = 1200;
	make_trees(f, 2);
	assert_tree(&f->trees[1], "[iter] 1010-1190\n"
				  "  [not recorded] 1010-1100\n"
				  "  [blocked] 1100-1150\n"
				  "  [not recorded] 1150-1190\n");
	assert_int_equal(f->trees[1].waits.n, 0);
}

/* BPF's programs run before what is mapped has been noted. */
static void test_calls_before_the_maps(void **state)
{
	struct fixture *f = *state;

	map_code(&f->rec, 5000, PLUGIN, "[plugin]");
	for (size_t i = 0; i < f->rec.maps.n; i++)
		f->rec.maps.v[i].time_ns = 5000;
	add(f, 7, TID, entry_of(PLUGIN, 1000, 1100));
	SAMPLE(f, TID, 5010, MAIN + 8);
	f->rec.frozen_ns = 6000;
	make_trees(f, 2);
	assert_tree(&f->trees[1], "[plugin] 1000-1100\n"
				  "  [not recorded] 1000-1100\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_track_a_goroutine),	  TEST(test_ends_that_are_not_known),
		TEST(test_a_call_that_waits),	  TEST(test_a_thread_that_is_at_something_else),
		TEST(test_calls_before_the_maps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
