// SPDX-License-Identifier: MIT
/*
 * Calls that are told early, and the rest, are those of a tree that is told as a whole; and so are
 * the slices of inlined code that are put in.
 */
#include "frames_early_fixture.h"
#include "inlined_tree.h"

#include "stack/tree_passes.h"

/* Where calls are made, by entry_ip. */
static const uint64_t places[] = {IN_MAIN, IN_A, IN_B, IN_A, IN_OTHER_B, 0};

static struct call_tree sites;

static const struct inlined *outermost_in(void *ctx, const struct call *call)
{
	const struct call_site *site = call_sites__find(&sites.sites, call->call_ip);
	const struct inlined *inlined = site ? site->inlined : NULL;

	while (inlined && inlined->outer)
		inlined = inlined->outer;
	return inlined;
}

static void add_whole(event_vec *events, struct call_tree *tree)
{
	tree->sites = sites.sites;
	assert_int_equal(inline_pass__run(tree, 1), 0);
	tree->sites = (struct call_sites){0};
	add_calls(events, tree->calls.v, tree->calls.n);
}

static int take_inlined(void *ctx, struct call *calls, size_t n)
{
	struct fixture *fixture = ctx;
	struct call_tree part = {.calls = {calls, n, n}, .sites = sites.sites};
	struct inline_pass pass = {0};
	VEC(struct call) all = {0};
	size_t next = 0;

	fixture->n_batches++;
	assert_int_equal(inline_pass__find(&pass, &part), 0);
	for (size_t i = 0; i < n; i++) {
		for (; next < pass.slices.n && pass.slices.v[next].before == i; next++)
			assert_int_equal(VEC_ADD(&all, pass.slices.v[next].call), 0);
		assert_int_equal(VEC_ADD(&all, calls[i]), 0);
	}
	add_calls(&fixture->events, all.v, all.n);
	VEC_FINI(&all);
	inline_pass__fini(&pass);
	return 0;
}

static void push_at(struct frames *frames, uint64_t time_ns, uint64_t ip)
{
	struct call call = {.start_ns = time_ns,
			    .entry_ip = ip,
			    .call_ip = places[ip * ip % 7 % 6],
			    .function = &f};

	assert_non_null(frames__push(frames, &call));
}

static unsigned int draw(uint64_t *seed, unsigned int n)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned int)(*seed >> 33) % n;
}

/* The frame that runs when a segment, or a nested part, begins. */
static void push_first(struct frames *frames, uint64_t time_ns, uint64_t ip)
{
	struct call call = {
		.start_ns = time_ns, .entry_ip = ip, .function = &f, .flags = CALL_INFERRED_START};

	assert_non_null(frames__push(frames, &call));
}

/* The same calls each time, by the seed. */
static void run(struct frames *frames, uint64_t seed)
{
	uint64_t now = 10, ip = 1;
	struct unwind unwind;
	size_t n;

	frames__begin_segment(frames, now);
	push_first(frames, now, ip++);
	for (int i = 0; i < 400; i++) {
		now += draw(&seed, 2) * draw(&seed, 3);
		n = frames->open.n;
		switch (draw(&seed, 32)) {
		case 0:
			frames__pop_to(frames, NULL, now, CALL_INFERRED_END);
			frames__add_gap(frames, now, now + 5, GAP_LOST);
			now += 5;
			frames__begin_segment(frames, now);
			push_first(frames, now, ip++);
			break;
		case 1:
			unwind =
				(struct unwind){.end_ns = now, .from = frames->open.v[n - 1].index};
			unwind.start_ns = frames->open.v[n - 1].call.start_ns;
			frames__name(frames, &frames->open.v[n - 1]);
			frames__cut_to(frames, &frames->open.v[n / 2], now, LEFT_BY_THROW);
			if (n > 1)
				frames__add_unwind(frames, &unwind, &frames->open.v[n / 2]);
			break;
		case 2:
			frames__begin_nested(frames, now);
			push_first(frames, now, ip++);
			break;
		case 3:
			frames__pop_to(frames, &frames->open.v[n / 2], now, 0);
			break;
		default:
			if (draw(&seed, 2)) {
				push_at(frames, now, ip++);
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
	struct call_tree tree = {0}, rest = {0};
	event_vec events = {0};

	frames__init(&whole);
	run(&whole, seed);
	assert_int_equal(frames__finish(&whole, &tree), 0);
	add_whole(&events, &tree);
	fixture->consumer = (struct call_consumer){take_inlined, outermost_in, fixture};
	run(&fixture->frames, seed);
	assert_int_equal(frames__finish(&fixture->frames, &rest), 0);
	add_whole(&fixture->events, &rest);
	qsort(fixture->events.v, fixture->events.n, sizeof(*fixture->events.v), by_time);
	assert_int_equal(fixture->events.n, events.n);
	for (size_t i = 0; i < events.n; i++) {
		assert_int_equal(fixture->events.v[i].time_ns, events.v[i].time_ns);
		assert_int_equal(fixture->events.v[i].ip, events.v[i].ip);
		assert_int_equal(fixture->events.v[i].is_end, events.v[i].is_end);
	}
	assert_int_equal(rest.unwinds.n, tree.unwinds.n);
	for (size_t i = 0; i < rest.unwinds.n; i++)
		assert_int_equal(rest.calls.v[rest.unwinds.v[i].from].entry_ip,
				 tree.calls.v[tree.unwinds.v[i].from].entry_ip);
	VEC_FINI(&events);
	VEC_FINI(&rest.calls);
	VEC_FINI(&rest.unwinds);
	VEC_FINI(&tree.calls);
	VEC_FINI(&tree.unwinds);
	frames__fini(&whole);
}

static void test_events_are_those_of_the_tree(void **state)
{
	size_t n_batches = 0;

	(void)state;
	add_sites(&sites);
	for (uint64_t seed = 0; seed < 300; seed++) {
		void *fixture;

		set_up(&fixture);
		expect_same_events(fixture, seed);
		n_batches += ((struct fixture *)fixture)->n_batches;
		tear_down(&fixture);
	}
	assert_true(n_batches > 300);
	free_tree(&sites);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events_are_those_of_the_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
