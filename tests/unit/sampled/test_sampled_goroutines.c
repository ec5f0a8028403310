// SPDX-License-Identifier: MIT
/* Calls of goroutines, which no thread's stack holds: a track each. */
#include "sampled_fixture.h"

static void add(struct fixture *f, uint32_t goroutine, pid_t tid, struct mt_entry entry)
{
	entry.goroutine = goroutine;
	entry.kind = entry.kind ? entry.kind : MT_ENTRY_CALL;
	entry.tid = (uint32_t)tid;
	assert_int_equal(recording__add_entry(&f->rec, &entry), 0);
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
				  "  [find] 1100-1150\n"
				  "[find] 1200-1250\n");
	assert_int_equal(f->trees[2].strand, 2);
	assert_tree(&f->trees[2], "[find] 1120-1220\n");
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
				  "  [iter] 1010-1200\n"
				  "    [find] 1100-1150 inferred-end\n"
				  "    [find] 1160-1200 inferred-end\n"
				  "[iter] 2000-2100 inferred-end\n");
	assert_int_equal(f->totals.first_ns, 1000);
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
	assert_tree(&f->trees[1], "[plugin] 1000-1100\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_track_a_goroutine),
		TEST(test_ends_that_are_not_known),
		TEST(test_calls_before_the_maps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
