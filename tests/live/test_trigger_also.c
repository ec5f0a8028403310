// SPDX-License-Identifier: MIT
/* Calls of functions beside the trigger's are logged from begin to end: recursion, longjmp,
 * threads. */
#include "trigger_fixture.h"

#define MAX_CALLS 4096

struct calls {
	struct mt_entry v[MAX_CALLS];
	size_t n;
};

static int take(void *ctx, const struct mt_entry *entry)
{
	struct calls *calls = ctx;

	assert_true(calls->n < MAX_CALLS);
	calls->v[calls->n++] = *entry;
	return 0;
}

/* Whether returns are probed at their instruction; otherwise by return probes. */
static bool by_insn;

/* The trigger on hit_me(), and timed() beside it. */
static void attach_both(struct fixture *fixture)
{
	pid_t pid = fixture->child.pid;
	uintptr_t address = (uintptr_t)timed;
	struct trigger_config config = {.tgid = pid,
					.delay_thresh_ns = THRESH_NS,
					.sampling = true,
					.also = true,
					.also_at_entry = true,
					.also_by_insn = by_insn};
	struct trigger_event events[] = {{0}, {.is_also = true}, {.is_also = true, .is_return = 1}};

	if (skip_reason) {
		print_message("# skip: %s\n", skip_reason);
		skip();
	}
	fixture->trigger = trigger__new_with_latch(&config, latch);
	assert_non_null(fixture->trigger);
	events[0].fd = own_code__probe(pid, (uintptr_t)hit_me, false);
	events[1].fd = fixture->entry = own_code__probe(pid, address, false);
	events[2].fd = fixture->on_return =
		by_insn ? own_code__probe(pid, address + exit_of(timed), false)
			: own_code__probe(pid, address, true);
	assert_int_equal(trigger__attach_all(fixture->trigger, events, 3), 0);
	/* Attached, it is the trigger's as well. */
	close(events[0].fd);
}

static struct calls *calls_of(const struct fixture *fixture)
{
	struct calls *calls = calloc(1, sizeof(*calls));

	assert_non_null(calls);
	assert_int_equal(trigger__entries(fixture->trigger, take, calls), 0);
	return calls;
}

static void assert_returned(const struct mt_entry *entry)
{
	assert_int_equal(entry->kind, MT_ENTRY_CALL);
	assert_true(entry->end_ns > entry->start_ns);
	assert_int_equal(entry->ip, (uintptr_t)timed);
}

static void test_calls_in_each_other(void **state)
{
	struct fixture *fixture = *state;
	struct calls *calls;

	attach_both(fixture);
	run(fixture, TIMED_NESTED, 3);
	calls = calls_of(fixture);
	assert_int_equal(calls->n, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_returned(&calls->v[i]);
		assert_int_equal(calls->v[i].tid, fixture->child.pid);
		assert_int_equal(calls->v[i].tgid, fixture->child.pid);
		if (i)
			assert_true(calls->v[i].start_ns > calls->v[i - 1].start_ns &&
				    calls->v[i].end_ns < calls->v[i - 1].end_ns);
	}
	/* The inner ones are called by timed_body(), from one place. */
	assert_int_equal(calls->v[1].returns_to, calls->v[2].returns_to);
	assert_true(calls->v[0].returns_to != calls->v[1].returns_to);
	free(calls);
}

static void test_calls_that_were_jumped_out_of(void **state)
{
	struct fixture *fixture = *state;
	struct calls *calls;

	attach_both(fixture);
	/* One that is left, and one that returns in its place. */
	run(fixture, TIMED_JUMP_AGAIN, 0);
	calls = calls_of(fixture);
	assert_int_equal(calls->n, 2);
	assert_int_equal(calls->v[0].kind, MT_ENTRY_LEFT);
	assert_int_equal(calls->v[0].end_ns, calls->v[1].start_ns);
	assert_returned(&calls->v[1]);
	free(calls);
}

static void test_calls_left_inside_a_call(void **state)
{
	struct fixture *fixture = *state;
	struct calls *calls;

	attach_both(fixture);
	run(fixture, TIMED_JUMP_IN, 2);
	calls = calls_of(fixture);
	assert_int_equal(calls->n, 3);
	assert_returned(&calls->v[0]);
	for (size_t i = 1; i < 3; i++) {
		assert_int_equal(calls->v[i].kind, MT_ENTRY_LEFT);
		assert_int_equal(calls->v[i].end_ns, calls->v[0].end_ns);
	}
	free(calls);
}

static void test_calls_of_threads(void **state)
{
	struct fixture *fixture = *state;
	uint32_t tids[MANY_THREADS];
	size_t n_tids = 0;
	struct calls *calls;

	attach_both(fixture);
	run(fixture, TIMED_FROM_MANY, 100);
	calls = calls_of(fixture);
	assert_int_equal(calls->n, 100 * MANY_THREADS);
	for (size_t i = 0; i < calls->n; i++) {
		size_t t = 0;

		assert_returned(&calls->v[i]);
		while (t < n_tids && tids[t] != calls->v[i].tid)
			t++;
		assert_true(t < MANY_THREADS);
		if (t == n_tids)
			tids[n_tids++] = calls->v[i].tid;
	}
	assert_int_equal(n_tids, MANY_THREADS);
	free(calls);
}

/* They trigger nothing, and what comes behind the trigger is not logged. */
static void test_the_trigger_ends_the_log(void **state)
{
	struct fixture *fixture = *state;
	struct calls *calls;

	attach_both(fixture);
	arm(fixture);
	run(fixture, TIMED, 0);
	run(fixture, HIT, 1);
	run(fixture, TIMED, 0);
	expect_no_hit(fixture);
	run(fixture, HIT_LATE, SLOW_MS);
	expect_hit(fixture);
	run(fixture, TIMED, 0);
	calls = calls_of(fixture);
	/* Two calls, and two hits. */
	assert_int_equal(calls->n, 4);
	free(calls);
}

static int run_group(const char *name)
{
	const struct CMUnitTest tests[] = {
		LIVE(test_calls_in_each_other),	     LIVE(test_calls_that_were_jumped_out_of),
		LIVE(test_calls_left_inside_a_call), LIVE(test_calls_of_threads),
		LIVE(test_the_trigger_ends_the_log),
	};
	int failed;

	by_insn = false;
	failed = cmocka_run_group_tests_name(name, tests, NULL, NULL);
	by_insn = true;
	return failed + cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
	return run_with_both(run_group);
}
