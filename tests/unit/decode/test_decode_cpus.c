// SPDX-License-Identifier: MIT
/* Rings by CPU: threads that come, go and wander, told apart by the switches. */
#include "decode_fixture.h"

#include "decode/decode.h"
#include "util/log.h"
#include "util/meter.h"

/* Of another process, which has other code at the same address. */
#define OTHER_PID 52
#define OTHER_TID 53

/* Two CPUs; the first one's recording is that of both. */
struct machine {
	struct traced cpu[2];
	uint64_t now;
	struct branches expected[2]; /* of TID and OTHER_TID */
};

struct seen {
	struct branches threads[2];
	struct branches *current;
	struct decode_totals totals;
	unsigned int begun;
};

static struct branches *list_of(struct branches lists[2], pid_t tid)
{
	return &lists[tid == OTHER_TID];
}

/* call HANDLER; the rest is as in the other one's. */
static void map_other_code(struct recording *rec)
{
	static uint8_t code[CODE_SIZE];
	struct rec_map map = {.start = BASE,
			      .len = CODE_SIZE,
			      .pid = OTHER_PID,
			      .tid = OTHER_PID,
			      .path = "[other]"};
	struct rec_image image = {
		.path = "[other]", .start = BASE, .data = code, .size = CODE_SIZE};

	fill_code(code);
	code[1] = HANDLER - 5;
	assert_int_equal(recording__add_map(rec, &map), 0);
	assert_int_equal(recording__add_image(rec, &image), 0);
}

static int set_up(void **state)
{
	struct machine *m = calloc(1, sizeof(*m));

	m->now = START_NS;
	for (int i = 0; i < 2; i++)
		traced__init(&m->cpu[i], NO_PSB, 1, true);
	map_other_code(&m->cpu[0].rec);
	*state = m;
	return 0;
}

static int tear_down(void **state)
{
	struct machine *m = *state;

	for (int i = 0; i < 2; i++) {
		traced__fini(&m->cpu[i]);
		VEC_FINI(&m->expected[i].list);
	}
	free(m);
	return 0;
}

static void note_switch(struct machine *m, int cpu, pid_t pid, pid_t tid)
{
	struct rec_switch sw = {.time_ns = m->now, .cpu = cpu, .pid = pid, .tid = tid};

	assert_int_equal(recording__add_switch(&m->cpu[0].rec, &sw), 0);
}

/* The kernel puts the thread on the CPU, which goes on at the same time as all. */
static struct traced *run_on(struct machine *m, int cpu, pid_t tid)
{
	struct traced *t = &m->cpu[cpu];

	m->now += 100;
	note_switch(m, cpu, tid == OTHER_TID ? OTHER_PID : PID, tid);
	t->now = m->now += 100;
	t->taken.list.n = 0;
	return t;
}

static void ran(struct machine *m, struct traced *t, pid_t tid)
{
	struct branches *out = list_of(m->expected, tid);

	for (size_t i = 0; i < t->taken.list.n; i++) {
		struct branch *b = VEC_PUSH(&out->list);

		assert_non_null(b);
		*b = t->taken.list.v[i];
	}
	m->now = t->now + 50;
}

static int begin_thread(void *ctx, pid_t pid, pid_t tid, struct code_map *map)
{
	struct seen *seen = ctx;

	assert_int_equal(pid, tid == OTHER_TID ? OTHER_PID : PID);
	assert_non_null(map);
	seen->current = list_of(seen->threads, tid);
	seen->begun++;
	return 0;
}

static int take(void *ctx, const struct branch *branch)
{
	struct seen *seen = ctx;
	struct branch *out = VEC_PUSH(&seen->current->list);

	assert_non_null(out);
	*out = *branch;
	return 0;
}

TAKE_EACH(take_all, take)

static int end_thread(void *ctx)
{
	return 0;
}

/* What is in the rings, which begin anew. */
static void add_snapshot(struct machine *m)
{
	for (int i = 0; i < 2; i++) {
		struct traced *t = &m->cpu[i];
		struct rec_aux aux = {.cpu = i, .tsc = m->now, .size = t->out.bytes.n};

		aux.data = malloc(aux.size ? aux.size : 1);
		if (aux.size)
			memcpy(aux.data, t->out.bytes.v, aux.size);
		assert_int_equal(recording__add_aux(&m->cpu[0].rec, &aux), 0);
		t->out.bytes.n = 0;
		t->stream.started = false;
	}
}

static void decode(struct machine *m, struct seen *seen)
{
	struct recording *rec = &m->cpu[0].rec;
	struct images *images = images__new(rec);
	struct branch_receiver receiver = {
		.begin = begin_thread, .take = take_all, .end = end_thread, .ctx = seen};
	struct meter meter;

	log__set_level(LOG_QUIET);
	meter__begin(&meter, &(struct meter_work){"decoding", METER_BYTES, 0});
	receiver.meter = &meter;
	*seen = (struct seen){0};
	add_snapshot(m);
	assert_int_equal(decode__threads(rec, images, true, &receiver, &seen->totals), 0);
	/* The branches, at last. */
	assert_int_equal(meter.done, meter.work.total);
	assert_true(meter.done > 0);
	meter__end(&meter);
	images__free(images);
}

static void seen__fini(struct seen *seen)
{
	VEC_FINI(&seen->threads[0].list);
	VEC_FINI(&seen->threads[1].list);
}

/* A direct branch has no packet, and the time of the one before it. */
static bool same_time(const struct branch *real, const struct branch *seen)
{
	return seen->time_ns <= real->time_ns && real->time_ns - seen->time_ns <= 20;
}

static void check(struct machine *m, struct seen *seen, pid_t tid)
{
	const struct branches *x = list_of(m->expected, tid), *y = list_of(seen->threads, tid);

	for (size_t i = 0; i < x->list.n && i < y->list.n; i++) {
		const struct branch *a = &x->list.v[i], *b = &y->list.v[i];

		if (same_branch(a, b) && same_time(a, b))
			continue;
		print_branch("expected", a);
		print_branch("seen", b);
		fail();
	}
	assert_int_equal(x->list.n, y->list.n);
}

/* From the start: a call, and off the CPU behind it. */
static void call_f(struct machine *m, int cpu)
{
	struct traced *t = run_on(m, cpu, TID);

	traced__enable(t, 0);
	traced__call(t, 1, 0x00, F);
	traced__ret(t, 3, F + 2, 0x05);
	traced__async(t, 0, 0x05);
	ran(m, t, TID);
}

/* Behind it, another call. */
static void call_g(struct machine *m, int cpu)
{
	struct traced *t = run_on(m, cpu, TID);

	traced__enable(t, 0x05);
	traced__call_indirect(t, 2, 0x08, G);
	traced__cond(t, 1, G, G + 3, true);
	traced__ret(t, 1, G + 3, 0x0a);
	traced__async(t, 0, 0x0a);
	ran(m, t, TID);
}

static void call_other(struct machine *m, int cpu)
{
	struct traced *t = run_on(m, cpu, OTHER_TID);

	traced__enable(t, 0);
	traced__call(t, 1, 0x00, HANDLER);
	traced__ret(t, 2, HANDLER + 1, 0x05);
	traced__async(t, 0, 0x05);
	ran(m, t, OTHER_TID);
}

static void test_threads_take_turns(void **state)
{
	struct machine *m = *state;
	struct seen seen;

	call_f(m, 0);
	call_other(m, 0);
	call_g(m, 0);
	call_other(m, 0);
	decode(m, &seen);
	assert_int_equal(seen.begun, 2);
	check(m, &seen, TID);
	check(m, &seen, OTHER_TID);
	assert_int_equal(seen.totals.unknown_insns, 0);
	seen__fini(&seen);
}

static void test_a_thread_wanders(void **state)
{
	struct machine *m = *state;
	struct seen seen;

	call_f(m, 1);
	call_g(m, 0);
	call_other(m, 1);
	call_f(m, 1);
	call_other(m, 0);
	call_g(m, 1);
	decode(m, &seen);
	check(m, &seen, TID);
	check(m, &seen, OTHER_TID);
	for (int i = 0; i < GAP_REASONS; i++)
		assert_int_equal(seen.totals.gaps[i], 0);
	seen__fini(&seen);
}

/*
 * One waits in a system call, and another thread begins in the code before that: nothing tells
 * then that the first one never came to its system call.
 */
static void test_a_call_and_another_thread(void **state)
{
	struct machine *m = *state;
	struct traced *t = run_on(m, 0, TID);
	struct seen seen;

	traced__enable(t, 0x1e);
	traced__syscall(t, 3, 0x20);
	ran(m, t, TID);
	t = run_on(m, 0, OTHER_TID);
	traced__enable(t, 0x1f);
	traced__async(t, 0, 0x1f);
	ran(m, t, OTHER_TID);
	call_f(m, 0);
	decode(m, &seen);
	check(m, &seen, TID);
	check(m, &seen, OTHER_TID);
	seen__fini(&seen);
}

/* PSBs in the middle of it change nothing. */
static void test_psbs_between(void **state)
{
	struct machine *m = *state;
	struct seen seen;

	for (int i = 0; i < 2; i++) {
		traced__fini(&m->cpu[i]);
		traced__init(&m->cpu[i], 1, 1, true);
	}
	map_other_code(&m->cpu[0].rec);
	for (int i = 0; i < 5; i++) {
		call_f(m, i & 1);
		call_other(m, !(i & 1));
		call_g(m, i & 1);
	}
	decode(m, &seen);
	check(m, &seen, TID);
	check(m, &seen, OTHER_TID);
	seen__fini(&seen);
}

/* Before the first switch nobody knows whose code it is. */
static void test_nobody_says_who(void **state)
{
	struct machine *m = *state;
	struct traced *t = &m->cpu[0];
	struct seen seen;

	t->now = m->now;
	traced__enable(t, 0);
	traced__async(t, 0, 0);
	m->now = t->now;
	call_other(m, 0);
	/* Nor behind the last thread that is ours. */
	note_switch(m, 0, 0, 0);
	t->now = m->now += 100;
	traced__enable(t, 0);
	traced__async(t, 0, 0);
	decode(m, &seen);
	assert_int_equal(seen.begun, 1);
	check(m, &seen, OTHER_TID);
	seen__fini(&seen);
}

/* What the thread did on the other CPU is overwritten. */
static void test_a_ring_has_forgotten(void **state)
{
	struct machine *m = *state;
	struct branch lost = {.kind = BRANCH_GAP, .reason = GAP_LOST};
	struct seen seen;

	call_f(m, 0);
	lost.time_ns = m->expected[0].list.v[m->expected[0].list.n - 1].time_ns;
	call_g(m, 1);
	/* Its bytes are gone, and what should come of them is not expected. */
	m->cpu[1].out.bytes.n = 0;
	m->cpu[1].stream.started = false;
	m->expected[0].list.n -= m->cpu[1].taken.list.n;
	*VEC_PUSH(&m->expected[0].list) = lost;
	call_f(m, 0);
	call_other(m, 1);
	decode(m, &seen);
	check(m, &seen, TID);
	check(m, &seen, OTHER_TID);
	assert_int_equal(seen.totals.gaps[GAP_LOST], 1);
	seen__fini(&seen);
}

static size_t count_gaps(const struct branches *branches, enum gap_reason reason)
{
	size_t n = 0;

	for (size_t i = 0; i < branches->list.n; i++)
		n += branches->list.v[i].kind == BRANCH_GAP && branches->list.v[i].reason == reason;
	return n;
}

/* Three snapshots, of which only the last has something of both CPUs: whose is whose is known. */
static void test_a_snapshot_without_a_ring(void **state)
{
	struct machine *m = *state;
	struct seen seen;

	m->cpu[0].rec.frozen_ns = 1;
	call_f(m, 0);
	add_snapshot(m);
	call_g(m, 1);
	add_snapshot(m);
	call_f(m, 0);
	call_g(m, 1);
	decode(m, &seen);
	assert_int_equal(count_gaps(&seen.threads[0], GAP_BETWEEN), 2);
	assert_int_equal(count_gaps(&seen.threads[0], GAP_LOST), 0);
	assert_int_equal(seen.threads[0].list.n, m->expected[0].list.n + 2);
	seen__fini(&seen);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_threads_take_turns),
		TEST(test_a_thread_wanders),
		TEST(test_psbs_between),
		TEST(test_nobody_says_who),
		TEST(test_a_ring_has_forgotten),
		TEST(test_a_snapshot_without_a_ring),
		TEST(test_a_call_and_another_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
