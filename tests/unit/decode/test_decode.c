// SPDX-License-Identifier: MIT
/* Streams of hand-assembled code, decoded to exactly the branches it took. */
#include "decode_fixture.h"

#include <errno.h>

#include "oracle/oracle.h"

/* The oracle sees the same: what it does not see, our tests of it would not. */
static void check(struct traced *t)
{
	static const struct decoding oracle = {.run = oracle__run};

	traced__decode_as(t, &oracle, t->out.bytes.v, t->out.bytes.n);
	assert_decoded(t);
	traced__decode(t);
	assert_decoded(t);
}

static int set_up(void **state)
{
	struct traced *t = malloc(sizeof(*t));

	traced__init(t, NO_PSB, NO_TSC, true);
	*state = t;
	return 0;
}

static int tear_down(void **state)
{
	traced__fini(*state);
	free(*state);
	return 0;
}

static void test_every_kind_of_branch(void **state)
{
	struct traced *t = *state;

	traced__run(t, 1);
	check(t);
	assert_int_equal(t->totals.branches, t->taken.list.n);
	/* call F: 4; inc, call G: 2; je, nop, ret: 3; jne, 4 nops, jmp: 6; the rest: 5 */
	assert_int_equal(t->totals.insns, 20);
	for (int i = 0; i < GAP_REASONS; i++)
		assert_int_equal(t->totals.gaps[i], 0);
}

static void test_conditions_both_ways(void **state)
{
	struct traced *t = *state;

	traced__run(t, 8);
	check(t);
}

static void test_returns_without_compression(void **state)
{
	struct traced t;

	traced__init(&t, NO_PSB, NO_TSC, false);
	traced__run(&t, 8);
	check(&t);
	traced__fini(&t);
}

static void test_every_period_and_interval(void **state)
{
	for (uint32_t psb_period = 40; psb_period < 200; psb_period += 7)
		for (uint64_t interval = 0; interval < 60; interval += 12) {
			struct traced t;

			traced__init(&t, psb_period, interval, psb_period & 1);
			traced__run(&t, 12);
			check(&t);
			traced__fini(&t);
		}
}

static void test_a_signal_and_its_handler(void **state)
{
	struct traced *t = *state;

	traced__enable(t, 0);
	traced__call(t, 1, 0, F);
	traced__async(t, 1, F + 1);
	traced__enable(t, HANDLER);
	traced__ret(t, 2, HANDLER + 1, RESTORER);
	traced__syscall(t, 2, RESTORER + 7);
	traced__enable(t, F + 1);
	traced__ret(t, 2, F + 2, 5);
	traced__async(t, 0, 5);
	check(t);
}

static void test_an_interrupt_at_the_target_of_a_branch(void **state)
{
	struct traced *t = *state;

	traced__enable(t, 0);
	traced__call(t, 1, 0, F);
	traced__async(t, 0, F);
	traced__enable(t, F);
	traced__ret(t, 3, F + 2, 5);
	traced__async(t, 0, 5);
	traced__enable(t, 5);
	traced__call_indirect(t, 2, 8, G);
	traced__async(t, 0, G);
	check(t);
}

/* The kernel does the instruction under a probe: no packet says that it ran. */
static void test_a_probe_on_a_call(void **state)
{
	struct traced *t = *state;

	traced__enable(t, CALL_F - 1);
	traced__async(t, 1, CALL_F);
	traced__tick(t);
	pt_stream__enable(&t->stream, BASE + F);
	traced__expect(t, BRANCH_BEGIN, 0, 0, CALL_F, 0);
	traced__expect(t, BRANCH_CALL, 0, CALL_F, F, 5);
	traced__ret(t, 3, F + 2, CALL_F + 5);
	traced__async(t, 0, CALL_F + 5);
	check(t);
}

static void test_a_probe_on_a_jump(void **state)
{
	struct traced *t = *state;

	traced__enable(t, JUMP - 1);
	traced__async(t, 1, JUMP);
	traced__tick(t);
	pt_stream__enable(&t->stream, BASE + JUMP_TO);
	traced__expect(t, BRANCH_BEGIN, 0, 0, JUMP, 0);
	traced__expect(t, BRANCH_JUMP, 0, JUMP, JUMP_TO, 2);
	traced__async(t, 1, JUMP_TO + 1);
	check(t);
}

static void test_a_probe_on_a_condition(void **state)
{
	struct traced *t = *state;

	/* Not taken, it goes on behind itself: nothing to tell. */
	traced__enable(t, G);
	traced__async(t, 0, G);
	traced__enable(t, G + 2);
	traced__async(t, 1, G + 3);
	traced__enable(t, G);
	traced__async(t, 0, G);
	traced__tick(t);
	pt_stream__enable(&t->stream, BASE + G + 3);
	traced__expect(t, BRANCH_BEGIN, 0, 0, G, 0);
	traced__expect(t, BRANCH_COND, 0, G, G + 3, 2);
	traced__async(t, 0, G + 3);
	check(t);
}

static void test_a_probe_on_a_push(void **state)
{
	struct traced *t = *state;

	traced__enable(t, 0);
	traced__call(t, 1, 0, F);
	traced__async(t, 0, F);
	traced__enable(t, F + 1);
	traced__ret(t, 2, F + 2, 5);
	traced__async(t, 0, 5);
	check(t);
}

/*
 * With a TSC before each packet. A direct branch has no packet: it was between what comes before
 * and after it. So it is for a packet right before the thread leaves user code: libipt has read on
 * to that when it tells of the branch.
 */
static bool has_exact_time(const struct branch *b)
{
	return b->kind >= BRANCH_BEGIN || b->kind == BRANCH_RETURN ||
	       (b->kind == BRANCH_CALL && b->len == 2);
}

static void test_times(void **state)
{
	struct traced t;
	uint64_t before = 0;

	traced__init(&t, NO_PSB, 1, true);
	traced__run(&t, 6);
	check(&t);
	for (size_t i = 0; i < t.taken.list.n; i++) {
		const struct branch *taken = t.taken.list.v, *b = &t.seen.list.v[i];
		size_t next = i;

		while (!has_exact_time(&taken[next]))
			next++;
		if (next == i)
			assert_int_equal(b->time_ns, taken[i].time_ns);
		assert_in_range(b->time_ns, before, taken[next].time_ns);
		before = b->time_ns;
	}
	assert_int_equal(t.totals.first_ns, t.seen.list.v[0].time_ns);
	assert_int_equal(t.totals.last_ns, before);
	traced__fini(&t);
}

static void test_tsc_to_ns(void **state)
{
	struct traced *t = *state;

	t->rec.pt.time_shift = 3;
	t->rec.pt.time_mult = 5;
	t->rec.pt.time_zero = 7;
	traced__enable(t, 0);
	traced__async(t, 0, 0);
	check(t);
	assert_int_equal(t->seen.list.v[0].time_ns, 7 + t->taken.list.v[0].time_ns * 5 / 8);
}

/* A TSC packet holds 56 bits: the rest comes from the time of the recording. */
static void test_times_beyond_56_bits(void **state)
{
	static const uint64_t nows[] = {5ull << 56 | 1234, (5ull << 56) - 55};

	for (size_t i = 0; i < 2; i++) {
		struct traced t;

		traced__init(&t, NO_PSB, 1, true);
		t.now = nows[i];
		traced__run(&t, 1);
		check(&t);
		assert_int_equal(t.seen.list.v[0].time_ns, nows[i] + 10);
		assert_int_equal(t.totals.last_ns, t.now);
		traced__fini(&t);
	}
}

static void test_the_end_of_the_data_ends_the_trace(void **state)
{
	struct traced *t = *state;

	traced__enable(t, 0);
	traced__call(t, 1, 0, F);
	traced__ret(t, 3, F + 2, 5);
	traced__call_indirect(t, 2, 8, G);
	/* Nothing says how far it ran from there. */
	traced__expect(t, BRANCH_END, 0, G, 0, 0);
	check(t);
}

static void test_an_empty_stream_has_no_branches(void **state)
{
	struct traced *t = *state;

	check(t);
	assert_int_equal(t->totals.branches, 0);
	assert_int_equal(t->totals.first_ns, 0);
}

static void test_code_that_changes_in_mid_stream(void **state)
{
	struct traced t;
	uint8_t code[CODE_SIZE];

	fill_code(code);
	code[1] = 0x5b;
	traced__init(&t, NO_PSB, 100, true);
	traced__enable(&t, 0);
	traced__call(&t, 1, 0, F);
	traced__ret(&t, 3, F + 2, 5);
	traced__async(&t, 0, 5);
	t.now += 1000;
	traced__map(&t, t.now, "[code, new]", code);
	traced__enable(&t, 0);
	traced__call(&t, 1, 0, G);
	traced__cond(&t, 1, G, G + 3, true);
	traced__ret(&t, 1, G + 3, 5);
	traced__async(&t, 0, 5);
	check(&t);
	traced__fini(&t);
}

static void test_mappings_of_other_processes_do_not_count(void **state)
{
	struct traced *t = *state;
	uint8_t code[CODE_SIZE];

	fill_code(code);
	code[1] = 0x5b;
	traced__map(t, 0, "[other]", code);
	t->rec.maps.v[1].pid = PID + 1;
	traced__run(t, 1);
	check(t);
}

static int stop_at_third(void *ctx, const struct branch *branch)
{
	return ++*(int *)ctx == 3 ? 77 : 0;
}

TAKE_EACH(stop_soon, stop_at_third)

static void test_the_taker_can_stop_it(void **state)
{
	struct traced *t = *state;
	struct images *images = images__new(&t->rec);
	struct code_map *map = code_map__new();
	struct rec_aux aux = {.pid = PID, .tid = TID};
	int taken = 0;

	traced__run(t, 3);
	aux.data = t->out.bytes.v;
	aux.size = t->out.bytes.n;
	assert_int_equal(decode__run(&(struct decode_request){.rec = &t->rec,
							      .aux = &aux,
							      .images = images,
							      .map = map,
							      .take = stop_soon,
							      .ctx = &taken,
							      .totals = &t->totals}),
			 77);
	assert_int_equal(taken, 3);
	code_map__free(map);
	images__free(images);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_every_kind_of_branch),
		TEST(test_conditions_both_ways),
		cmocka_unit_test(test_returns_without_compression),
		cmocka_unit_test(test_every_period_and_interval),
		TEST(test_a_signal_and_its_handler),
		TEST(test_an_interrupt_at_the_target_of_a_branch),
		TEST(test_a_probe_on_a_call),
		TEST(test_a_probe_on_a_jump),
		TEST(test_a_probe_on_a_condition),
		TEST(test_a_probe_on_a_push),
		cmocka_unit_test(test_times),
		TEST(test_tsc_to_ns),
		cmocka_unit_test(test_times_beyond_56_bits),
		TEST(test_the_end_of_the_data_ends_the_trace),
		TEST(test_an_empty_stream_has_no_branches),
		cmocka_unit_test(test_code_that_changes_in_mid_stream),
		TEST(test_mappings_of_other_processes_do_not_count),
		TEST(test_the_taker_can_stop_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
