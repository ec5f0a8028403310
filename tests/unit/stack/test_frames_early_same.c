// SPDX-License-Identifier: MIT
/* Calls that are told early, and the rest, are those of a tree that is told as a whole. */
#include "frames_early_fixture.h"

static unsigned int draw(uint64_t *seed, unsigned int n)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned int)(*seed >> 33) % n;
}

/* The same calls each time, by the seed. */
static void run(struct frames *frames, uint64_t seed)
{
	uint64_t now = 10, ip = 1;
	struct leap leap;
	size_t n;

	frames__begin_segment(frames, now);
	push(frames, now, ip++);
	for (int i = 0; i < 400; i++) {
		now += draw(&seed, 2) * draw(&seed, 3);
		n = frames->open.n;
		switch (draw(&seed, 32)) {
		case 0:
			frames__pop_to(frames, NULL, now, CALL_INFERRED_END);
			frames__add_gap(frames, now, now + 5, GAP_LOST);
			now += 5;
			frames__begin_segment(frames, now);
			push(frames, now, ip++);
			break;
		case 1:
			leap = (struct leap){.end_ns = now,
					     .from = frame__id(&frames->open.v[n - 1])};
			leap.start_ns = frames->open.v[n - 1].call.start_ns;
			frames__name(frames, &frames->open.v[n - 1]);
			frames__cut_to(frames, &frames->open.v[n / 2], now, LEFT_BY_THROW);
			if (n > 1)
				frames__add_leap(frames, &leap, &frames->open.v[n / 2]);
			break;
		case 2:
			frames__begin_nested(frames, now);
			push(frames, now, ip++);
			break;
		case 3:
			frames__pop_to(frames, &frames->open.v[n / 2], now, 0);
			break;
		default:
			if (draw(&seed, 2)) {
				push(frames, now, ip++);
				break;
			}
			frames__pop(frames, now, 0);
			if (!frames__top(frames))
				frames__emplace_root(frames, &root, ip++);
		}
	}
	frames__pop_to(frames, NULL, now, CALL_INFERRED_END);
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

/* As a reader of the file orders them, they are those of the whole tree. */
static void expect_same_events(struct fixture *fixture, uint64_t seed)
{
	struct frames whole;
	struct call_tree tree, rest;
	event_vec events = {0};

	frames__init(&whole);
	run(&whole, seed);
	assert_int_equal(frames__finish(&whole, &tree), 0);
	add_calls(&events, tree.calls.v, tree.calls.n);
	run(&fixture->frames, seed);
	assert_int_equal(frames__finish(&fixture->frames, &rest), 0);
	add_calls(&fixture->events, rest.calls.v, rest.calls.n);
	qsort(fixture->events.v, fixture->events.n, sizeof(*fixture->events.v), by_time);
	assert_int_equal(fixture->events.n, events.n);
	for (size_t i = 0; i < events.n; i++) {
		assert_int_equal(fixture->events.v[i].time_ns, events.v[i].time_ns);
		assert_int_equal(fixture->events.v[i].ip, events.v[i].ip);
		assert_int_equal(fixture->events.v[i].is_end, events.v[i].is_end);
	}
	assert_int_equal(rest.leaps.n, tree.leaps.n);
	for (size_t i = 0; i < rest.leaps.n; i++)
		assert_int_equal(rest.calls.v[rest.leaps.v[i].from].entry_ip,
				 tree.calls.v[tree.leaps.v[i].from].entry_ip);
	VEC_FINI(&events);
	VEC_FINI(&rest.calls);
	VEC_FINI(&rest.leaps);
	VEC_FINI(&tree.calls);
	VEC_FINI(&tree.leaps);
	frames__fini(&whole);
}

static void test_events_are_those_of_the_tree(void **state)
{
	size_t n_batches = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 300; seed++) {
		void *fixture;

		set_up(&fixture);
		expect_same_events(fixture, seed);
		n_batches += ((struct fixture *)fixture)->n_batches;
		tear_down(&fixture);
	}
	assert_true(n_batches > 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events_are_those_of_the_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
