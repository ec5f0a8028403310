// SPDX-License-Identifier: MIT
/* Which hits trigger, what is counted, and what the target notices, on this kernel. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include <bpf/bpf.h>

#include "mtbpf_shared.h"
#include "trigger.skel.h"
#include "trigger_fixture.h"

static void test_every_hit_while_armed(void **state)
{
	struct fixture *fixture = *state;
	struct mt_hit hit;

	attach_to(fixture, (struct trigger_config){0}, hit_me);
	run(fixture, HIT, 3);
	expect_no_hit(fixture);
	assert_int_equal(count_of(fixture->entry), 0);

	arm(fixture);
	run(fixture, HIT, 5);
	hit = expect_hit(fixture);
	assert_int_equal(hit.reason, MT_HIT_EVERY);
	assert_int_equal(hit.sequence, 4);
	assert_int_equal(hit.value_ns, 0);
	assert_int_equal(hit.tid, fixture->child.pid);
	assert_true(hit.ip == (uintptr_t)hit_me);
	expect_no_hit(fixture);
	assert_int_equal(count_of(fixture->entry), 1);

	arm(fixture);
	run(fixture, HIT, 2);
	assert_int_equal(expect_hit(fixture).sequence, 9);
	assert_int_equal(count_of(fixture->entry), 2);
	assert_int_equal(stats_of(fixture).triggers, 2);
	assert_int_equal(stats_of(fixture).hits, 10);
}

static void test_delay_fires_on_the_slow_call_only(void **state)
{
	struct fixture *fixture = *state;
	struct mt_hit hit;

	attach_to(fixture, (struct trigger_config){.delay_thresh_ns = THRESH_NS}, hit_me);
	arm(fixture);
	run(fixture, HIT_LATE, SLOW_MS); /* the first has no delay */
	run(fixture, HIT, 100);
	expect_no_hit(fixture);
	run(fixture, HIT_LATE, SLOW_MS);
	run(fixture, HIT, 100);
	run(fixture, HIT_LATE, SLOW_MS);

	hit = expect_hit(fixture);
	assert_int_equal(hit.reason, MT_HIT_DELAY);
	assert_int_equal(hit.sequence, 102);
	assert_in_range(hit.value_ns, SLOW_MS * MS, 10 * SLOW_MS * MS);
	expect_no_hit(fixture);
	assert_int_equal(count_of(fixture->entry), 1);
}

static void test_count_only_never_triggers(void **state)
{
	struct fixture *fixture = *state;
	struct mt_stats stats;

	attach_to(fixture, (struct trigger_config){.count_only = true}, hit_me);
	arm(fixture);
	run(fixture, HIT, 1000);
	run(fixture, HIT_LATE, SLOW_MS);
	stats = stats_of(fixture);
	assert_int_equal(stats.hits, 1001);
	assert_int_equal(stats.triggers, 0);
	assert_int_equal(histogram_sum(&stats), 1000);
	assert_in_range(stats.max_ns, SLOW_MS * MS, 10 * SLOW_MS * MS);
	/* 300 ms lie in [2^28, 2^29) ns; leave room for a late wake-up. */
	assert_true(stats.hist[28] + stats.hist[29] + stats.hist[30] >= 1);
	assert_in_range(mt_stats__percentile(&stats, 50), 50, 1 * MS);
	expect_no_hit(fixture);
	assert_int_equal(count_of(fixture->entry), 0);
}

static void test_each_thread_has_its_own_delay(void **state)
{
	struct fixture *fixture = *state;
	struct mt_hit hit;
	int tid;

	attach_to(fixture, (struct trigger_config){.delay_thresh_ns = THRESH_NS}, hit_me);
	arm(fixture);
	tid = run(fixture, HIT_THREADS, SLOW_MS);
	assert_true(tid > 0);
	hit = expect_hit(fixture);
	assert_int_equal(hit.tid, tid);
	assert_int_not_equal(hit.tid, hit.tgid);
	assert_true(hit.value_ns >= SLOW_MS * MS);
}

static void test_other_processes_do_not_count(void **state)
{
	struct fixture *fixture = *state;

	attach_to(fixture, (struct trigger_config){.tgid = getpid()}, hit_me);
	arm(fixture);
	run(fixture, HIT, 10);
	expect_no_hit(fixture);
	assert_int_equal(stats_of(fixture).hits, 0);
	assert_int_equal(count_of(fixture->entry), 0);
}

/* The ring holds fewer records than this. */
static void test_full_ring_counts_and_stays_armed(void **state)
{
	struct fixture *fixture = *state;
	const int rounds = 100;
	struct mt_stats stats;
	struct mt_hit hit;
	int taken = 0;

	attach_to(fixture, (struct trigger_config){0}, hit_me);
	for (int i = 0; i < rounds; i++) {
		arm(fixture);
		run(fixture, HIT, 1);
	}
	while (trigger__next(fixture->trigger, &hit) == 1)
		assert_int_equal(hit.sequence, ++taken);
	stats = stats_of(fixture);
	assert_true(stats.dropped > 0);
	assert_int_equal(stats.triggers, rounds);
	assert_int_equal(stats.dropped + taken, rounds);
	assert_int_equal(count_of(fixture->entry), taken);

	run(fixture, HIT, 1);
	assert_int_equal(expect_hit(fixture).sequence, rounds + 1);
}

static void expect_stack(struct fixture *fixture, enum job job, const void *function)
{
	struct mt_hit hit;

	attach_to(fixture, (struct trigger_config){0}, function);
	arm(fixture);
	run(fixture, job, 0);
	hit = expect_hit(fixture);
	assert_true(hit.stack_depth >= 3 && hit.stack_depth <= MT_STACK_DEPTH);
	assert_true(hit.stack[0] == (uintptr_t)function);
	assert_true(hit.stack[1] == (uintptr_t)inner_return);
	assert_true(hit.stack[2] == (uintptr_t)outer_return);
	assert_true(hit.bp > hit.sp);
}

static void test_stack_has_the_caller(void **state)
{
	expect_stack(*state, HIT_IN_CALL, hit_me);
}

static void test_stack_has_the_caller_without_frame_pointer(void **state)
{
	expect_stack(*state, HIT_NO_FP_IN_CALL, hit_me_no_fp);
}

static void test_fork_in_the_target(void **state)
{
	struct fixture *fixture = *state;

	attach_to(fixture, (struct trigger_config){0}, hit_me);
	arm(fixture);
	assert_int_equal(run(fixture, HIT_FORK, 0), 7);
	expect_no_hit(fixture); /* the new process is not the target */
	run(fixture, HIT, 1);
	assert_int_equal(expect_hit(fixture).sequence, 1);
}

static void test_no_probe_is_left(void **state)
{
	struct fixture *fixture = *state;
	uint8_t original = child_byte(fixture, timed);

	attach_to(fixture, (struct trigger_config){.duration_thresh_ns = THRESH_NS}, timed);
	run(fixture, TIMED, 0);
	assert_int_equal(child_byte(fixture, timed), 0xcc);
	remove_probes(fixture);
	run(fixture, TIMED, 0);
	assert_int_equal(child_byte(fixture, timed), original);
}

static void test_events_outlive_the_trigger(void **state)
{
	struct fixture *fixture = *state;

	attach_to(fixture, (struct trigger_config){0}, hit_me);
	run(fixture, HIT, 1);
	assert_int_equal(count_of(fixture->entry), 0);
	trigger__free(fixture->trigger);
	fixture->trigger = NULL;
	run(fixture, HIT, 4);
	assert_int_equal(count_of(fixture->entry), 4);
}

static void test_attach_again(void **state)
{
	struct fixture *fixture = *state;

	attach_to(fixture, (struct trigger_config){0}, hit_me);
	close_event(&fixture->entry);
	fixture->entry = own_code__probe(fixture->child.pid, (uintptr_t)hit_me, false);
	assert_true(fixture->entry >= 0);
	assert_int_equal(trigger__attach(fixture->trigger, fixture->entry, -1), 0);
	arm(fixture);
	run(fixture, HIT, 3);
	assert_int_equal(expect_hit(fixture).sequence, 1);
	assert_int_equal(stats_of(fixture).hits, 3);
}

static void test_refused_configs(void **state)
{
	struct trigger_config both = {.tgid = 1, .delay_thresh_ns = 1, .duration_thresh_ns = 1};
	struct trigger_config no_process = {0};

	assert_null(trigger__new(&both));
	assert_int_equal(errno, EINVAL);
	assert_null(trigger__new(&no_process));
	assert_int_equal(errno, EINVAL);
}

static void test_refused_events(void **state)
{
	struct fixture *fixture = *state;
	struct uprobe_spec spec = {.path = "/nonexistent", .pid = fixture->child.pid};
	int not_an_event[2];

	attach_to(fixture, (struct trigger_config){0}, hit_me);
	assert_int_equal(uprobe_event__open(&spec), -ENOENT);
	assert_int_equal(pipe(not_an_event), 0);
	assert_true(trigger__attach(fixture->trigger, not_an_event[0], -1) < 0);
	close(not_an_event[0]);
	close(not_an_event[1]);
}

static void test_latch_name(void **state)
{
	struct fixture *fixture = *state;
	bool lru = latch == TRIGGER_LATCH_LRU_HASH;

	attach_to(fixture, (struct trigger_config){0}, hit_me);
	assert_string_equal(trigger__latch_name(fixture->trigger),
			    lru ? "LRU hash" : "task storage");
}

/* On x86-64, what begins with an addition of the CPU's own data to a register has a stack there. */
static bool is_on_its_cpus_stack(int fd)
{
	static const uint8_t add_gs[] = {0x65, 0x4c, 0x03, 0x0c, 0x25};
	uint8_t insns[64] = {0};
	struct bpf_prog_info info = {.jited_prog_insns = (uintptr_t)insns,
				     .jited_prog_len = sizeof(insns)};
	uint32_t size = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &size), 0);
	assert_true(info.jited_prog_len);
	return memmem(insns, sizeof(insns), add_gs, sizeof(add_gs));
}

/* Or a thread that takes the CPU in the middle would write on it: bpf/own_stack.bpf.h. */
static void test_programs_stay_on_their_threads_stack(void **state)
{
	struct fixture *fixture = *state;
	struct bpf_program *program;
	int n = 0;

	attach_to(fixture,
		  (struct trigger_config){.duration_thresh_ns = 3600000 * MS, .regions = true},
		  timed);
	bpf_object__for_each_program(program, trigger__skel(fixture->trigger)->obj)
	{
		int fd = bpf_program__fd(program);

		if (fd < 0 || bpf_program__type(program) != BPF_PROG_TYPE_KPROBE)
			continue;
		assert_false(is_on_its_cpus_stack(fd));
		n++;
	}
	assert_true(n >= 4);
}

static int run_group(const char *name)
{
	const struct CMUnitTest tests[] = {
		LIVE(test_every_hit_while_armed),
		LIVE(test_delay_fires_on_the_slow_call_only),
		LIVE(test_count_only_never_triggers),
		LIVE(test_each_thread_has_its_own_delay),
		LIVE(test_other_processes_do_not_count),
		LIVE(test_full_ring_counts_and_stays_armed),
		LIVE(test_stack_has_the_caller),
		LIVE(test_stack_has_the_caller_without_frame_pointer),
		LIVE(test_fork_in_the_target),
		LIVE(test_no_probe_is_left),
		LIVE(test_events_outlive_the_trigger),
		LIVE(test_attach_again),
		LIVE(test_refused_configs),
		LIVE(test_refused_events),
		LIVE(test_latch_name),
		LIVE(test_programs_stay_on_their_threads_stack),
	};

	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
	return run_with_both(run_group);
}
