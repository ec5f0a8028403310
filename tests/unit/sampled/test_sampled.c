// SPDX-License-Identifier: MIT
/* A recording of samples to a tree a thread: which functions, which threads, which snapshots. */
#include "sampled_fixture.h"

#include "util/meter.h"

static void test_functions_by_their_addresses(void **state)
{
	struct fixture *f = *state;

	SAMPLE(f, TID, 1000, FIND + 4, ITER + 8, MAIN + 8);
	SAMPLE(f, TID, 1100, ITER + 9, MAIN + 8);
	/* Nobody's code, and still a frame. */
	SAMPLE(f, TID, 1200, 0x999, MAIN + 8);
	f->rec.frozen_ns = 1300;
	make_trees(f, 1);
	assert_int_equal(f->trees[0].pid, PID);
	assert_int_equal(f->trees[0].tid, TID);
	assert_tree(&f->trees[0], "[main] 1000-1300 inferred-start inferred-end\n"
				  "  [iter] 1000-1150 inferred-start inferred-end\n"
				  "    [find] 1000-1050 inferred-start inferred-end\n"
				  "  [unknown] 1150-1300 inferred-start inferred-end\n");
	assert_int_equal(f->totals.first_ns, 1000);
	assert_int_equal(f->totals.last_ns, 1300);
	assert_int_equal(f->totals.samples, 3);
}

/* A call may be its function's last instruction: the return address is the next one's. */
static void test_a_return_address_belongs_to_the_call_before_it(void **state)
{
	struct fixture *f = *state;

	map_code(&f->rec, 0, MAIN + LEN, "[next]");
	SAMPLE(f, TID, 1000, MAIN + LEN, MAIN + LEN);
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-1000 inferred-start inferred-end\n"
				  "  [next] 1000-1000 inferred-start inferred-end\n");
}

static void test_a_trampoline_is_no_frame(void **state)
{
	struct fixture *f = *state;

	SAMPLE(f, TID, 1000, ITER + 4, PAGE, MAIN + 8);
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-1000 inferred-start inferred-end\n"
				  "  [iter] 1000-1000 inferred-start inferred-end\n");
}

static void test_in_the_kernel(void **state)
{
	struct fixture *f = *state;

	SAMPLE(f, TID, 1000, MAIN + 4)->in_kernel = true;
	SAMPLE(f, TID, 1100, MAIN + 4)->in_kernel = true;
	/* At a switch it is there always. */
	SAMPLE(f, TID, 1200, MAIN + 4)->in_kernel = true;
	f->rec.samples.v[2].at_switch = true;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-1200 inferred-start inferred-end\n"
				  "  [kernel] 1000-1150 inferred-start inferred-end\n");
}

/* In whatever order they come out of the rings. */
static void test_switches_and_entries(void **state)
{
	struct fixture *f = *state;
	struct mt_entry entry = entry_of(ITER, 2010, 2090);

	SAMPLE(f, TID, 2050, ITER + 4, MAIN + 8);
	SAMPLE(f, TID, 1000, MAIN + 8);
	sched(f, 2000, REC_SCHED_IN);
	sched(f, 1500, REC_SCHED_PREEMPTED);
	sched(f, 1600, REC_SCHED_IN);
	sched(f, 1010, REC_SCHED_BLOCKED);
	sched(f, 1400, REC_SCHED_IN);
	assert_int_equal(VEC_ADD(&f->rec.entries, entry), 0);
	f->rec.frozen_ns = 2100;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-2100 inferred-start inferred-end\n"
				  "  [blocked] 1010-1400\n"
				  "  [preempted] 1500-1600\n"
				  "  [not recorded] 1600-1960\n"
				  "  [iter] 2010-2090\n");
	assert_int_equal(f->totals.switches, 5);
}

/* Its name is its own choice. */
static void test_who_woke_it_is_named(void **state)
{
	struct mt_sched woken = {.time_ns = 1300,
				 .tid = TID,
				 .tgid = PID,
				 .kind = MT_SCHED_WOKEN,
				 .by_tgid = 70,
				 .by_tid = 71};
	struct fixture *f = *state;

	memcpy(woken.by_comm, "a\x1b[31m\nb", 9);
	SAMPLE(f, TID, 1000, MAIN + 8);
	sched(f, 1010, REC_SCHED_BLOCKED);
	assert_int_equal(recording__add_sched_by(&f->rec, &woken), 0);
	sched(f, 1400, REC_SCHED_IN);
	f->rec.frozen_ns = 1500;
	make_trees(f, 1);
	assert_int_equal(f->trees[0].done_by.n, 1);
	assert_string_equal(f->trees[0].done_by.v[0].comm, "a?[31m?b");
}

static void add_entries_of_two(struct fixture *f)
{
	struct mt_entry iter = entry_of(ITER, 2010, 2090), find = entry_of(FIND, 2020, 2030);

	SAMPLE(f, TID, 1000, MAIN + 8);
	assert_int_equal(VEC_ADD(&f->rec.entries, iter), 0);
	assert_int_equal(VEC_ADD(&f->rec.entries, find), 0);
	f->rec.frozen_ns = 2100;
}

/* Of several probes, whichever of them hit. */
static void test_entries_of_all_functions(void **state)
{
	struct fixture *f = *state;
	struct mt_hit hit = {.time_ns = 2100, .tid = TID, .tgid = PID, .probe_ip = FIND};

	add_entries_of_two(f);
	assert_int_equal(VEC_ADD(&f->rec.hits, hit), 0);
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-1050 inferred-start inferred-end\n"
				  "[not recorded] 1050-2010\n"
				  "[iter] 2010-2090\n"
				  "  [not recorded] 2010-2020\n"
				  "  [find] 2020-2030\n"
				  "    [not recorded] 2020-2030\n"
				  "  [not recorded] 2030-2090\n"
				  "[not recorded] 2090-2100\n");
}

static void test_a_tree_a_thread(void **state)
{
	struct fixture *f = *state;
	struct rec_thread thread = {.pid = PID, .tid = TID + 1, .comm = "worker"};

	assert_int_equal(recording__add_thread(&f->rec, &thread), 0);
	SAMPLE(f, TID + 1, 1000, FIND + 4);
	SAMPLE(f, TID, 1000, MAIN + 4);
	SAMPLE(f, TID + 1, 1100, FIND + 4);
	make_trees(f, 2);
	assert_int_equal(f->trees[0].tid, TID);
	assert_int_equal(f->trees[1].tid, TID + 1);
	assert_string_equal(f->trees[1].comm, "worker");
	assert_tree(&f->trees[1], "[find] 1000-1100 inferred-start inferred-end\n");
}

static void test_between_snapshots_nothing_is_known(void **state)
{
	struct fixture *f = *state;

	SAMPLE(f, TID, 1000, MAIN + 4);
	hit(f, 1100);
	SAMPLE(f, TID, 5000, MAIN + 4);
	SAMPLE(f, TID, 5100, MAIN + 4);
	hit(f, 5200);
	f->rec.frozen_ns = 5200;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-1100 inferred-start inferred-end\n"
				  "[gap] 1100-5000\n"
				  "[main] 5000-5200 inferred-start inferred-end\n");
}

static void test_code_that_came_later(void **state)
{
	struct fixture *f = *state;

	map_code(&f->rec, 1050, PLUGIN, "[plugin]");
	SAMPLE(f, TID, 1000, PLUGIN + 4);
	SAMPLE(f, TID, 1100, PLUGIN + 4);
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[unknown] 1000-1050 inferred-start inferred-end\n"
				  "[plugin] 1050-1100 inferred-start inferred-end\n");
}

static uint64_t random_below(uint64_t *state, uint64_t n)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (*state >> 33) % n;
}

/* Whatever a recording says, in whatever order, and however little sense it makes. */
static void add_random(struct fixture *f, uint64_t *state)
{
	static const uint64_t ips[] = {MAIN + 4, ITER + 4, FIND + 4, PAGE, 0x999, ITER + 9};
	uint64_t time = 1000 + random_below(state, 3000), stack[6] = {0};
	struct mt_sched by = {.time_ns = time,
			      .tid = TID,
			      .tgid = PID,
			      .by_tid = (uint32_t)random_below(state, 3),
			      .kind = 1 + (uint32_t)random_below(state, 4)};
	struct mt_entry entry = entry_of(random_below(state, 2) ? ITER : FIND, time,
					 random_below(state, 2) * random_below(state, 5000));

	entry.kind = (uint32_t)random_below(state, 3);
	entry.goroutine = (uint32_t)random_below(state, 4);
	if (random_below(state, 2))
		entry.returns_to = ips[random_below(state, 6)];
	if (by.kind >= MT_SCHED_SYSCALL)
		by.took.end_ns = random_below(state, 5000);
	switch (random_below(state, 5)) {
	case 0:
		sched(f, time, (enum rec_sched_what)random_below(state, 3));
		break;
	case 1:
		assert_int_equal(VEC_ADD(&f->rec.entries, entry), 0);
		break;
	case 2:
		assert_int_equal(recording__add_sched_by(&f->rec, &by), 0);
		break;
	default:
		for (size_t i = 0, n = random_below(state, 6); i < n; i++)
			stack[i] = ips[random_below(state, 6)];
		sample(f, TID, time, stack)->in_kernel = random_below(state, 2);
	}
}

static void test_any_recording_makes_a_tree(void **state)
{
	struct fixture *f = *state;
	uint64_t seed = 1;

	for (int round = 0; round < 2000; round++) {
		struct meter meter = {0};

		f->rec.samples.n = f->rec.sample_ips.n = f->rec.scheds.n = 0;
		f->rec.entries.n = f->rec.sched_bys.n = f->rec.hits.n = 0;
		for (uint64_t i = 0, n = random_below(&seed, 40); i < n; i++)
			add_random(f, &seed);
		for (uint64_t i = random_below(&seed, 4); i > 1; i--)
			hit(f, 1000 + random_below(&seed, 3000));
		f->rec.frozen_ns = random_below(&seed, 5000);
		f->n_trees = 0;
		images__free(f->images);
		f->images = images__new(&f->rec);
		f->totals.meter = &meter;
		assert_int_equal(sampled__trees(&f->rec, f->images, take, f, &f->totals), 0);
		assert_int_equal(meter.done, f->rec.samples.n);
		for (size_t i = 0; i < f->n_trees; i++) {
			assert_well_formed(&f->trees[i]);
			call_tree__fini(&f->trees[i]);
		}
		f->n_trees = 0;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_functions_by_their_addresses),
		TEST(test_a_return_address_belongs_to_the_call_before_it),
		TEST(test_a_trampoline_is_no_frame),
		TEST(test_in_the_kernel),
		TEST(test_switches_and_entries),
		TEST(test_who_woke_it_is_named),
		TEST(test_entries_of_all_functions),
		TEST(test_a_tree_a_thread),
		TEST(test_between_snapshots_nothing_is_known),
		TEST(test_code_that_came_later),
		TEST(test_any_recording_makes_a_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
