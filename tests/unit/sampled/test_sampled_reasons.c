// SPDX-License-Identifier: MIT
/* What samples tell of why a thread did not get on: waits, page faults, and whose frame it is. */
#include "sampled_fixture.h"
#include "said.h"

static void in_syscall(struct fixture *f, uint64_t time_ns, uint32_t number, uint64_t arg,
		       uint32_t owner)
{
	struct mt_sched sched = {.time_ns = time_ns,
				 .tid = TID,
				 .tgid = PID,
				 .kind = MT_SCHED_SYSCALL,
				 .syscall = number};

	sched.in.arg = arg;
	sched.in.owner = owner;
	assert_int_equal(recording__add_sched_by(&f->rec, &sched), 0);
}

static void test_what_a_thread_waits_for(void **state)
{
	struct rec_thread holder = {.pid = PID, .tid = 77, .comm = "holder"};
	struct fixture *f = *state;
	const struct waits_for *wait;

	assert_int_equal(recording__add_thread(&f->rec, &holder), 0);
	assert_int_equal(recording__add_open_file(&f->rec, PID, 5, "pipe:[812]"), 0);
	SAMPLE(f, TID, 900, MAIN + 8);
	in_syscall(f, 999, 0, 5, 0);
	sched(f, 1000, REC_SCHED_BLOCKED);
	sched(f, 1100, REC_SCHED_IN);
	in_syscall(f, 1199, 202, 0x7f0000, 77);
	sched(f, 1200, REC_SCHED_BLOCKED);
	sched(f, 1300, REC_SCHED_IN);
	/* A number at its place that is no thread's; and a CPU that was taken is no wait. */
	in_syscall(f, 1399, 202, 0x7f0000, 4711);
	sched(f, 1400, REC_SCHED_BLOCKED);
	sched(f, 1500, REC_SCHED_IN);
	in_syscall(f, 1599, 0, 5, 0);
	sched(f, 1600, REC_SCHED_PREEMPTED);
	sched(f, 1700, REC_SCHED_IN);
	sched(f, 1800, REC_SCHED_BLOCKED);
	make_trees(f, 1);
	assert_int_equal(f->trees[0].waits.n, 3);
	wait = f->trees[0].waits.v;
	assert_int_equal(f->trees[0].calls.v[wait[0].call].start_ns, 1000);
	assert_int_equal(wait[0].syscall, 0);
	assert_int_equal(wait[0].fd, 5);
	assert_string_equal(wait[0].file, "pipe:[812]");
	assert_int_equal(f->trees[0].calls.v[wait[1].call].start_ns, 1200);
	assert_int_equal(wait[1].syscall, 202);
	assert_int_equal(wait[1].fd, -1);
	assert_int_equal(wait[1].owner, 77);
	assert_string_equal(wait[1].owner_comm, "holder");
	assert_int_equal(f->trees[0].calls.v[wait[2].call].start_ns, 1400);
	assert_int_equal(wait[2].owner, 0);
	assert_ptr_equal(call_tree__waits_for(&f->trees[0], &f->trees[0].calls.v[wait[1].call]),
			 &wait[1]);
	assert_null(call_tree__waits_for(&f->trees[0], &f->trees[0].calls.v[0]));
}

/* They are no evidence of how long something ran. */
/* They are no slices: the thread runs on. */
static void test_a_stop_is_not_a_wait_in_a_system_call(void **state)
{
	struct fixture *f = *state;
	char text[WAITS_FOR_SIZE];

	SAMPLE(f, TID, 900, MAIN + 8);
	in_syscall(f, 999, MT_STOPPED_BY_SIGNAL, 5, 0);
	sched(f, 1000, REC_SCHED_BLOCKED);
	sched(f, 1100, REC_SCHED_IN);
	in_syscall(f, 1199, MT_STOPPED_BY_TRACER, 5, 0);
	sched(f, 1200, REC_SCHED_BLOCKED);
	sched(f, 1300, REC_SCHED_IN);
	in_syscall(f, 1399, MT_FROZEN, 5, 0);
	sched(f, 1400, REC_SCHED_BLOCKED);
	sched(f, 1500, REC_SCHED_IN);
	make_trees(f, 1);
	assert_int_equal(f->trees[0].waits.n, 3);
	assert_string_equal(waits_for__format(&f->trees[0].waits.v[0], text),
			    TEXT_stopped_by_signal);
	assert_string_equal(waits_for__format(&f->trees[0].waits.v[1], text),
			    TEXT_stopped_by_tracer);
	assert_string_equal(waits_for__format(&f->trees[0].waits.v[2], text),
			    TEXT_frozen_with_cgroup);
}

static void test_interrupts_are_marks(void **state)
{
	struct fixture *f = *state;

	SAMPLE(f, TID, 1000, MAIN + 8);
	interrupts(f, TID, 1010, 1060, 30);
	interrupts(f, TID, 1070, 1080, 11); /* damaged */
	SAMPLE(f, TID, 1100, MAIN + 8);
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-1100 inferred-start inferred-end\n");
	assert_int_equal(f->trees[0].interrupts.n, 1);
	assert_int_equal(f->trees[0].interrupts.v[0].start_ns, 1010);
	assert_int_equal(f->trees[0].interrupts.v[0].end_ns, 1060);
	assert_int_equal(f->trees[0].interrupts.v[0].ns, 30);
}

static void throttled(struct fixture *f, uint64_t until_ns, uint64_t ns)
{
	const struct rec_taken taken = {
		.pid = PID, .tid = TID, .by_quota = true, .until_ns = until_ns, .ns = ns};

	assert_int_equal(VEC_ADD(&f->rec.taken, taken), 0);
}

/* The switch back is hidden: a sample, or the next switch away, finds it on its CPU. */
static void test_a_quota_whose_end_is_found(void **state)
{
	struct fixture *f = *state;

	SAMPLE(f, TID, 1000, MAIN + 8);
	sched(f, 1100, REC_SCHED_PREEMPTED);
	throttled(f, 1999, 800);
	SAMPLE(f, TID, 2000, MAIN + 8);
	sched(f, 2100, REC_SCHED_PREEMPTED);
	throttled(f, 2999, 700);
	SAMPLE(f, TID, 3000, MAIN + 8)->at_switch = true;
	sched(f, 3000, REC_SCHED_BLOCKED);
	f->rec.frozen_ns = 3100;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-3100 inferred-start inferred-end\n"
				  "  [throttled] 1100-1900\n"
				  "  [runnable] 1900-2000\n"
				  "  [throttled] 2100-2800\n"
				  "  [runnable] 2800-3000\n"
				  "  [blocked] 3000-3100 inferred-end\n");
}

/* So may be what woke it: the wake-up from before it slept is another sleep's. */
static void test_a_sleep_whose_end_is_found(void **state)
{
	struct mt_sched woken = {.tid = TID, .tgid = PID, .kind = MT_SCHED_WOKEN};
	struct fixture *f = *state;

	SAMPLE(f, TID, 1000, MAIN + 8);
	for (woken.time_ns = 1090; woken.time_ns < 4000; woken.time_ns += 1000)
		assert_int_equal(recording__add_sched_by(&f->rec, &woken), 0);
	sched(f, 1100, REC_SCHED_BLOCKED);
	SAMPLE(f, TID, 1900, MAIN + 8);
	sched(f, 2100, REC_SCHED_BLOCKED);
	sched(f, 2900, REC_SCHED_PREEMPTED);
	sched(f, 3000, REC_SCHED_IN);
	/* Here all is seen: it was woken on its way to sleep. */
	sched(f, 3100, REC_SCHED_BLOCKED);
	sched(f, 3900, REC_SCHED_IN);
	SAMPLE(f, TID, 4000, MAIN + 8);
	f->rec.frozen_ns = 4000;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-4000 inferred-start inferred-end\n"
				  "  [blocked] 1100-1900\n"
				  "  [blocked] 2100-2900\n"
				  "  [preempted] 2900-3000\n"
				  "  [runnable] 3100-3900\n");
}

static void test_page_faults_are_marks(void **state)
{
	struct fixture *f = *state;
	struct rec_sample *fault;

	SAMPLE(f, TID, 1000, MAIN + 8);
	fault = SAMPLE(f, TID, 1050, FIND + 4, MAIN + 8);
	fault->faults = 32;
	fault = SAMPLE(f, TID, 1060, 0x999, MAIN + 8);
	fault->faults = 1;
	fault->is_major = true;
	SAMPLE(f, TID, 1100, MAIN + 8);
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-1100 inferred-start inferred-end\n");
	assert_int_equal(f->trees[0].faults.n, 2);
	assert_int_equal(f->trees[0].faults.v[0].n, 32);
	assert_int_equal(f->trees[0].faults.v[0].time_ns, 1050);
	assert_false(f->trees[0].faults.v[0].is_major);
	assert_string_equal(f->trees[0].faults.v[0].function->name, "[find]");
	assert_true(f->trees[0].faults.v[1].is_major);
}

/* What a tail call has put into its frame returns where it would. */
static void test_a_tail_call_below_callers_not_seen_before(void **state)
{
	struct mt_entry entry = entry_of(ITER, 1010, 1900);
	struct fixture *f = *state;

	assert_int_equal(VEC_ADD(&f->rec.entries, entry), 0);
	SAMPLE(f, TID, 1100, FIND + 4, MAIN + 8);
	hit(f, 2000);
	f->rec.hits.v[0].reason = MT_HIT_DURATION;
	f->rec.hits.v[0].ip = MAIN + 8;
	f->rec.frozen_ns = 2000;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1010-2000 inferred-start inferred-end\n"
				  "  [iter] 1010-1900\n"
				  "    [find] 1055-1150 inferred-start inferred-end\n"
				  "    [not recorded] 1150-1900\n");
}

static void long_call(struct fixture *f, uint64_t start_ns, uint64_t end_ns)
{
	struct mt_sched sched = {
		.time_ns = start_ns, .tid = TID, .tgid = PID, .kind = MT_SCHED_LONG, .syscall = 1};

	sched.took.arg = 5;
	sched.took.end_ns = end_ns;
	assert_int_equal(recording__add_sched_by(&f->rec, &sched), 0);
}

static void test_a_long_system_call_is_exact(void **state)
{
	struct fixture *f = *state;
	const struct waits_for *wait;

	SAMPLE(f, TID, 1000, MAIN + 8);
	long_call(f, 1020, 1180);
	SAMPLE(f, TID, 1100, FIND + 4, MAIN + 8)->in_kernel = true;
	SAMPLE(f, TID, 1150, FIND + 4, MAIN + 8)->in_kernel = true;
	SAMPLE(f, TID, 1200, MAIN + 8);
	/* Nobody is seen in it: it is known to be, but not whose it is. */
	long_call(f, 1210, 1290);
	SAMPLE(f, TID, 1300, MAIN + 8);
	/* One that ended before it began. */
	long_call(f, 1350, 1340);
	/* It gives its CPU up in it. */
	long_call(f, 1400, 1500);
	SAMPLE(f, TID, 1420, FIND + 4, MAIN + 8)->at_switch = true;
	sched(f, 1420, REC_SCHED_BLOCKED);
	sched(f, 1480, REC_SCHED_IN);
	SAMPLE(f, TID, 1520, MAIN + 8);
	f->rec.frozen_ns = 1520;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-1520 inferred-start inferred-end\n"
				  "  [find] 1010-1190 inferred-start inferred-end\n"
				  "    [syscall] 1020-1180\n"
				  "      [kernel] 1060-1165 inferred-start inferred-end\n"
				  "  [syscall] 1210-1290 inferred\n"
				  "  [find] 1350-1510 inferred-start inferred-end\n"
				  "    [syscall] 1400-1500\n"
				  "      [blocked] 1420-1480\n");
	assert_int_equal(f->trees[0].waits.n, 3);
	wait = call_tree__waits_for(&f->trees[0], &f->trees[0].calls.v[2]);
	assert_non_null(wait);
	assert_int_equal(wait->syscall, 1);
	assert_int_equal(wait->fd, 5);
}

/* Of a CPU that is not known nothing is said. */
static void test_moves_between_cpus(void **state)
{
	static const int cpus[] = {-1, 0, 0, 1, 1, -1, 0};
	struct fixture *f = *state;

	SAMPLE(f, TID, 900, MAIN + 8);
	for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++) {
		sched(f, 1000 + 10 * i, i % 2 ? REC_SCHED_PREEMPTED : REC_SCHED_IN);
		f->rec.scheds.v[i].cpu = cpus[i];
	}
	make_trees(f, 1);
	assert_int_equal(f->trees[0].faults.n, 1);
	assert_true(f->trees[0].faults.v[0].is_move);
	assert_int_equal(f->trees[0].faults.v[0].time_ns, 1030);
}

static void reclaim(struct fixture *f, uint64_t start_ns, uint64_t end_ns, enum mt_reclaim why)
{
	struct mt_sched sched = {
		.time_ns = start_ns, .tid = TID, .tgid = PID, .kind = MT_SCHED_RECLAIM};

	sched.took.arg = why;
	sched.took.end_ns = end_ns;
	assert_int_equal(recording__add_sched_by(&f->rec, &sched), 0);
}

/* Exact, with what was done in it, and whose limit made it. */
static void test_memory_reclaim_is_exact(void **state)
{
	struct fixture *f = *state;
	const struct call_tree *tree = &f->trees[0];

	assert_int_equal(recording__set_quota(&f->rec, PID, true, "the limit of cgroup /web"), 0);
	assert_int_equal(recording__set_quota(&f->rec, PID, false, "cgroup /web, a quota"), 0);
	SAMPLE(f, TID, 1000, MAIN + 8);
	reclaim(f, 1020, 1180, MT_RECLAIM_CGROUP);
	SAMPLE(f, TID, 1100, MAIN + 8)->in_kernel = true;
	sched(f, 1120, REC_SCHED_BLOCKED);
	sched(f, 1160, REC_SCHED_IN);
	SAMPLE(f, TID, 1200, MAIN + 8);
	reclaim(f, 1210, 1290, MT_RECLAIM_COMPACTION);
	SAMPLE(f, TID, 1300, MAIN + 8);
	/* Of no kind that there is. */
	reclaim(f, 1310, 1320, 77);
	f->rec.frozen_ns = 1340;
	make_trees(f, 1);
	assert_tree(tree, "[main] 1000-1340 inferred-start inferred-end\n"
			  "  [memory reclaim] 1020-1180\n"
			  "    [kernel] 1060-1170 inferred-start inferred-end\n"
			  "      [blocked] 1120-1160\n"
			  "  [memory reclaim] 1210-1290 inferred\n");
	assert_int_equal(tree->waits.n, 2);
	assert_string_equal(tree->waits.v[0].text, "the limit of cgroup /web");
	assert_string_equal(tree->waits.v[1].text, "compaction for larger pages");
	assert_ptr_equal(call_tree__reclaim(tree, &tree->calls.v[3]), &tree->calls.v[1]);
	assert_null(call_tree__reclaim(tree, &tree->calls.v[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_a_thread_waits_for),
		TEST(test_a_stop_is_not_a_wait_in_a_system_call),
		TEST(test_interrupts_are_marks),
		TEST(test_a_quota_whose_end_is_found),
		TEST(test_a_sleep_whose_end_is_found),
		TEST(test_page_faults_are_marks),
		TEST(test_a_long_system_call_is_exact),
		TEST(test_memory_reclaim_is_exact),
		TEST(test_moves_between_cpus),
		TEST(test_a_tail_call_below_callers_not_seen_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
