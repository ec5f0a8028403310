// SPDX-License-Identifier: MIT
/* Samples of -start and -stop: each region stands for itself, from its begin to its end, and
 * between them nothing is known. */
#include "sampled_fixture.h"

#define OUTSIDE "[gap: outside -start and -stop]"

static void region(struct fixture *f, pid_t tid, uint64_t start_ns, uint64_t end_ns)
{
	const struct mt_sched region = {.time_ns = start_ns,
					.tid = (uint32_t)tid,
					.tgid = PID,
					.kind = MT_SCHED_REGION,
					.took = {.end_ns = end_ns}};

	assert_int_equal(recording__add_sched_by(&f->rec, &region), 0);
}

static void test_a_region_ends_what_runs(void **state)
{
	struct fixture *f = *state;

	region(f, TID, 2000, 2300);
	region(f, TID, 1000, 1300);
	SAMPLE(f, TID, 1100, ITER + 4, MAIN + 8);
	SAMPLE(f, TID, 1200, ITER + 4, MAIN + 8);
	SAMPLE(f, TID, 2100, ITER + 4, MAIN + 8);
	f->rec.frozen_ns = 9000;
	make_trees(f, 1);
	assert_tree(&f->trees[0],
		    "[not recorded] 1000-1050\n"
		    "[main] 1050-1300 inferred-start inferred-end\n"
		    "  [iter] 1050-1300 inferred-start inferred-end\n" OUTSIDE " 1300-2000\n"
		    "[not recorded] 2000-2050\n"
		    "[main] 2050-2300 inferred-start inferred-end\n"
		    "  [iter] 2050-2300 inferred-start inferred-end\n");
}

/* Switches are recorded all the time; a thread without a region has none. */
static void test_what_lies_outside_is_left_out(void **state)
{
	struct fixture *f = *state;

	region(f, TID, 1000, 1300);
	region(f, TID + 1, 1000, 1300);
	sched(f, 500, REC_SCHED_BLOCKED);
	sched(f, 700, REC_SCHED_IN);
	SAMPLE(f, TID, 900, FIND + 4, MAIN + 8);
	SAMPLE(f, TID, 1100, MAIN + 8);
	SAMPLE(f, TID, 1200, MAIN + 8);
	sched(f, 1400, REC_SCHED_BLOCKED);
	SAMPLE(f, TID + 1, 1400, MAIN + 8);
	SAMPLE(f, TID + 2, 1100, MAIN + 8);
	f->rec.frozen_ns = 1500;
	make_trees(f, 2);
	assert_tree(&f->trees[0], "[not recorded] 1000-1050\n"
				  "[main] 1050-1300 inferred-start inferred-end\n");
	assert_int_equal(f->trees[1].tid, TID + 1);
	assert_tree(&f->trees[1], "[not recorded] 1000-1300\n");
}

/* The log of regions looks back further than the ring of samples. */
static void test_regions_before_the_first_sample(void **state)
{
	struct fixture *f = *state;

	for (uint64_t time_ns = 1000; time_ns < 2000; time_ns += 100)
		region(f, TID, time_ns, time_ns + 50);
	region(f, TID, 3000, 0);
	SAMPLE(f, TID, 1820, MAIN + 8);
	SAMPLE(f, TID, 3100, MAIN + 8);
	f->rec.frozen_ns = 3300;
	make_trees(f, 1);
	assert_tree(&f->trees[0],
		    "[not recorded] 1800-1810\n"
		    "[main] 1810-1850 inferred-start inferred-end\n" OUTSIDE " 1850-1900\n"
		    "[not recorded] 1900-1950\n" OUTSIDE " 1950-3000\n"
		    "[not recorded] 3000-3050\n"
		    "[main] 3050-3300 inferred-start inferred-end\n");
	assert_int_equal(f->totals.first_ns, 1800);
	assert_int_equal(f->totals.last_ns, 3300);
}

/* The first snapshot saw it open, the second saw its end. */
static void test_a_region_across_two_snapshots(void **state)
{
	struct fixture *f = *state;

	region(f, TID, 1000, 5300);
	region(f, TID, 1000, 0);
	SAMPLE(f, TID, 1100, MAIN + 8);
	hit(f, 1200);
	SAMPLE(f, TID, 5100, MAIN + 8);
	SAMPLE(f, TID, 5200, MAIN + 8);
	hit(f, 5400);
	f->rec.frozen_ns = 5400;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[not recorded] 1000-1050\n"
				  "[main] 1050-1200 inferred-start inferred-end\n"
				  "[gap] 1200-5100\n"
				  "[main] 5100-5300 inferred-start inferred-end\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_region_ends_what_runs),
		TEST(test_what_lies_outside_is_left_out),
		TEST(test_regions_before_the_first_sample),
		TEST(test_a_region_across_two_snapshots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
