// SPDX-License-Identifier: MIT
/* What the trigger does for a source that samples: its gate stops the rings, its log has the hits.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "trigger_fixture.h"

#include "capture/sample/sample_ring.h"
#include "util/clock.h"

#define PERIOD_NS 100000
/* So that the child is sampled some hundred times. */
#define MANY_HITS 100000

static struct sample_ring open_ring(const struct fixture *fixture)
{
	struct sample_ring_config config = {.period_ns = PERIOD_NS,
					    .size = 1 << 20,
					    .gate = trigger__sample_gate(fixture->trigger)};
	struct event_place place = event_place__of_thread(fixture->child.pid);
	struct sample_ring ring;

	assert_true(config.gate >= 0);
	assert_int_equal(sample_ring__open(&ring, &place, &config), 0);
	assert_int_equal(sample_ring__enable(&ring), 0);
	return ring;
}

/* Closes it. */
static void read_ring(struct sample_ring *ring, struct recording *rec)
{
	struct sample_record_ids ids = {.switches = ring->ids[SAMPLE_EVENT_SWITCHES]};
	uint8_t record[65536] __attribute__((aligned(8)));
	struct perf_ring_cursor cursor;
	int n;

	sample_ring__disable(ring);
	recording__init(rec);
	cursor = perf_ring__newest(&ring->ring);
	while ((n = perf_ring__older(&ring->ring, &cursor, record, sizeof(record))) > 0)
		assert_int_equal(sample_record__add(&ids, rec, record, (size_t)n), 0);
	sample_ring__close(ring);
}

static size_t count_samples(const struct recording *rec, uint64_t from_ns, uint64_t to_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < rec->samples.n; i++)
		n += rec->samples.v[i].time_ns > from_ns && rec->samples.v[i].time_ns <= to_ns;
	return n;
}

/* The program takes the time, and stops them a little later: what is sampled then is itself. */
static size_t count_beyond_probe(const struct recording *rec, uint64_t from_ns, uint64_t to_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < rec->samples.n; i++) {
		const struct rec_sample *s = &rec->samples.v[i];
		bool at_probe = s->n_ips && rec->sample_ips.v[s->first_ip] == (uintptr_t)hit_me;

		n += s->time_ns > from_ns && s->time_ns <= to_ns && !at_probe;
	}
	return n;
}

/* The events stay enabled: only the gate stops them. Until it is armed again. */
static void test_no_sample_after_the_trigger(void **state)
{
	struct fixture *fixture = *state;
	struct sample_ring ring;
	struct recording rec;
	struct mt_hit hit, next;
	uint64_t armed_ns;

	attach_to(fixture, (struct trigger_config){.delay_thresh_ns = THRESH_NS, .sampling = true},
		  hit_me);
	arm(fixture);
	ring = open_ring(fixture);
	run(fixture, HIT, MANY_HITS);
	run(fixture, HIT_LATE, SLOW_MS);
	hit = expect_hit(fixture);
	run(fixture, HIT, MANY_HITS);
	armed_ns = clock__now_ns();
	arm(fixture);
	run(fixture, HIT, MANY_HITS);
	run(fixture, HIT_LATE, SLOW_MS);
	next = expect_hit(fixture);
	run(fixture, HIT, MANY_HITS);
	read_ring(&ring, &rec);

	assert_true(count_samples(&rec, 0, hit.time_ns) > 20);
	assert_int_equal(count_beyond_probe(&rec, hit.time_ns, armed_ns), 0);
	assert_true(count_samples(&rec, armed_ns, next.time_ns - SLOW_MS * MS) > 20);
	assert_int_equal(count_beyond_probe(&rec, next.time_ns, UINT64_MAX), 0);
	recording__fini(&rec);
}

static void test_stacks_by_the_clock_and_at_switches(void **state)
{
	struct fixture *fixture = *state;
	size_t at_switch = 0, on_cpu = 0, blocked = 0;
	struct sample_ring ring;
	struct recording rec;

	attach_to(fixture, (struct trigger_config){.sampling = true}, hit_me);
	ring = open_ring(fixture);
	run(fixture, HIT_IN_CALL, 1);
	run(fixture, HIT, MANY_HITS);
	run(fixture, HIT_LATE, SLOW_MS);
	read_ring(&ring, &rec);
	for (size_t i = 0; i < rec.samples.n; i++) {
		assert_int_equal(rec.samples.v[i].tid, fixture->child.pid);
		at_switch += rec.samples.v[i].at_switch && rec.samples.v[i].n_ips;
		on_cpu += !rec.samples.v[i].at_switch && rec.samples.v[i].n_ips;
	}
	for (size_t i = 0; i < rec.scheds.n; i++)
		blocked += rec.scheds.v[i].what == REC_SCHED_BLOCKED;
	assert_true(on_cpu > 20);
	assert_true(at_switch >= 1);
	assert_true(blocked >= 1);
	recording__fini(&rec);
}

struct log {
	struct mt_entry entries[64];
	size_t n;
};

static int take(void *ctx, const struct mt_entry *entry)
{
	struct log *log = ctx;

	assert_true(log->n < 64);
	log->entries[log->n++] = *entry;
	return 0;
}

static void test_hits_are_logged(void **state)
{
	struct fixture *fixture = *state;
	struct log log = {0};
	struct mt_hit hit;

	attach_to(fixture, (struct trigger_config){.delay_thresh_ns = THRESH_NS, .sampling = true},
		  hit_me);
	run(fixture, HIT, 3);
	arm(fixture);
	run(fixture, HIT, 2);
	run(fixture, HIT_LATE, SLOW_MS);
	hit = expect_hit(fixture);
	/* Not those after the trigger. */
	run(fixture, HIT, 5);
	assert_int_equal(trigger__entries(fixture->trigger, take, &log), 0);
	assert_int_equal(log.n, 6);
	for (size_t i = 0; i < log.n; i++) {
		assert_int_equal(log.entries[i].tid, fixture->child.pid);
		assert_int_equal(log.entries[i].tgid, fixture->child.pid);
		assert_int_equal(log.entries[i].end_ns, 0);
		assert_true(!i || log.entries[i].start_ns > log.entries[i - 1].start_ns);
	}
	assert_int_equal(log.entries[5].start_ns, hit.time_ns);
}

static void test_returns_are_logged(void **state)
{
	struct fixture *fixture = *state;
	struct log log = {0};
	struct mt_hit hit;

	attach_to(fixture,
		  (struct trigger_config){.duration_thresh_ns = THRESH_NS, .sampling = true},
		  timed);
	arm(fixture);
	run(fixture, TIMED, 0);
	run(fixture, TIMED, SLOW_MS);
	hit = expect_hit(fixture);
	assert_int_equal(trigger__entries(fixture->trigger, take, &log), 0);
	assert_int_equal(log.n, 2);
	assert_true(log.entries[0].end_ns > log.entries[0].start_ns);
	assert_int_equal(log.entries[1].end_ns, hit.time_ns);
	assert_int_equal(log.entries[1].end_ns - log.entries[1].start_ns, hit.value_ns);
}

static int run_group(const char *name)
{
	const struct CMUnitTest tests[] = {
		LIVE(test_no_sample_after_the_trigger),
		LIVE(test_stacks_by_the_clock_and_at_switches),
		LIVE(test_hits_are_logged),
		LIVE(test_returns_are_logged),
	};

	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
	return run_with_both(run_group);
}
