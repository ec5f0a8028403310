// SPDX-License-Identifier: MIT
/* Calls that are told before the tree is finished. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "decode/branch.h"
#include "stack/frames/frames.h"

/* A begin or an end, as a trace file has them. */
struct event {
	uint64_t time_ns;
	uint64_t ip; /* of the call: no two have the same */
	bool is_end;
	size_t place; /* in the file */
};
typedef VEC(struct event) event_vec;

struct fixture {
	struct frames frames;
	struct call_taker taker;
	event_vec events; /* of what was told */
	char told[256];	  /* "3 5(6 7) ": by entry_ip, what was told at once in one word */
	uint64_t inlined; /* entry_ip of a call that is in inlined code */
	size_t n_batches;
	int err;
};

static const struct function f = {.name = "f"}, root = {.name = "root"};

static void add(event_vec *events, uint64_t time_ns, uint64_t ip, bool is_end)
{
	struct event *event = VEC_PUSH(events);

	*event = (struct event){time_ns, ip, is_end, events->n - 1};
}

/* Calls in pre-order, as a trace is written. */
static void add_calls(event_vec *events, const struct call *calls, size_t n)
{
	const struct call *open[1024];
	size_t n_open = 0;

	for (size_t i = 0; i <= n; i++) {
		while (n_open && (i == n || open[n_open - 1]->depth >= calls[i].depth)) {
			n_open--;
			add(events, open[n_open]->end_ns, open[n_open]->entry_ip, true);
		}
		if (i == n)
			return;
		add(events, calls[i].start_ns, calls[i].entry_ip, false);
		open[n_open++] = &calls[i];
	}
}

static int take(void *ctx, const struct call *calls, size_t n)
{
	struct fixture *fixture = ctx;

	fixture->n_batches++;
	add_calls(&fixture->events, calls, n);
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(fixture->told);

		snprintf(fixture->told + len, sizeof(fixture->told) - len, "%s%llu%s", i ? "+" : "",
			 (unsigned long long)calls[i].entry_ip, i + 1 == n ? " " : "");
	}
	return fixture->err;
}

static bool is_in_inlined(void *ctx, const struct call *call)
{
	const struct fixture *fixture = ctx;

	return call->entry_ip == fixture->inlined;
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	frames__init(&fixture->frames);
	fixture->taker = (struct call_taker){take, is_in_inlined, fixture};
	fixture->frames.taker = &fixture->taker;
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	frames__fini(&fixture->frames);
	VEC_FINI(&fixture->events);
	free(fixture);
	return 0;
}

static void push(struct frames *frames, uint64_t time_ns, uint64_t ip)
{
	struct call call = {.start_ns = time_ns, .entry_ip = ip, .function = &f};

	assert_non_null(frames__push(frames, &call));
}

static void call(struct frames *frames, uint64_t start_ns, uint64_t end_ns, uint64_t ip)
{
	push(frames, start_ns, ip);
	frames__pop(frames, end_ns, 0);
}

/* A segment that has begun in call 1. */
static struct frames *begin(struct fixture *fixture)
{
	frames__begin_segment(&fixture->frames, 10);
	push(&fixture->frames, 10, 1);
	return &fixture->frames;
}

static size_t finish(struct frames *frames, struct call_tree *tree)
{
	*tree = (struct call_tree){0};
	frames__close_all(frames, 1000000, CALL_INFERRED_END);
	assert_int_equal(frames__finish(frames, tree), 0);
	return tree->calls.n;
}

static void expect_left(struct fixture *fixture, size_t n)
{
	struct call_tree tree;

	assert_int_equal(finish(&fixture->frames, &tree), n);
	VEC_FINI(&tree.calls);
	VEC_FINI(&tree.leaps);
}

static void test_told_as_they_end(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	push(frames, 11, 2);
	call(frames, 12, 13, 3);
	assert_string_equal(fixture->told, "3 ");
	call(frames, 13, 13, 4);
	frames__pop(frames, 14, 0);
	assert_string_equal(fixture->told, "3 4 2 ");
	expect_left(fixture, 1);
}

/* Its begin has to stand behind that of its caller, which is told later. */
static void test_begins_with_its_caller(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	call(frames, 10, 11, 2);
	push(frames, 12, 3);
	push(frames, 12, 4);
	call(frames, 13, 14, 5);
	frames__pop(frames, 15, 0);
	frames__pop(frames, 16, 0);
	assert_string_equal(fixture->told, "5 3+4 ");
	expect_left(fixture, 2);
}

static void test_begins_when_what_is_kept_ends(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	push(frames, 12, 2);
	call(frames, 12, 14, 3);
	call(frames, 14, 15, 4);
	call(frames, 16, 17, 5);
	frames__pop(frames, 18, 0);
	assert_string_equal(fixture->told, "5 2+3+4 ");
}

static void test_may_run_on_behind_a_gap(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	push(frames, 12, 2);
	frames__close_all(frames, 14, CALL_INFERRED_END);
	assert_string_equal(fixture->told, "");
	expect_left(fixture, 2);
}

static void test_callers_found_late(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	call(frames, 12, 13, 2);
	frames__pop(frames, 14, 0);
	assert_non_null(frames__emplace_root(frames, &root, 3));
	call(frames, 14, 15, 4);
	call(frames, 16, 17, 5);
	assert_string_equal(fixture->told, "2 5 ");
	expect_left(fixture, 3);
}

/* A leap names its first call by its place. */
static void test_leaps(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);
	struct leap leap = {.start_ns = 14, .end_ns = 15};
	struct call_tree tree;

	call(frames, 11, 12, 2);
	push(frames, 13, 3);
	push(frames, 14, 4);
	frames__name(frames, frames__top(frames));
	leap.from = frame__id(frames__top(frames));
	frames__cut_to(frames, &frames->open.v[0], 15, LEFT_BY_THROW);
	frames__add_leap(frames, &leap, frames__top(frames));
	call(frames, 16, 17, 5);
	assert_string_equal(fixture->told, "2 5 ");
	assert_int_equal(finish(frames, &tree), 3);
	assert_int_equal(tree.leaps.n, 1);
	assert_int_equal(tree.calls.v[tree.leaps.v[0].from].entry_ip, 4);
	assert_int_equal(tree.calls.v[tree.leaps.v[0].to].entry_ip, 1);
	VEC_FINI(&tree.calls);
	VEC_FINI(&tree.leaps);
}

/* Slices of inlined code span several calls: whoever makes them has to see all of these. */
static void test_calls_in_inlined_code(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	fixture->inlined = 4;
	push(frames, 11, 2);
	call(frames, 12, 13, 3);
	call(frames, 14, 15, 4);
	push(frames, 16, 5);
	call(frames, 17, 18, 6);
	frames__pop(frames, 19, 0);
	frames__pop(frames, 20, 0);
	call(frames, 21, 22, 7);
	assert_string_equal(fixture->told, "3 6 2+4+5 7 ");
}

static void test_nested_parts(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	push(frames, 11, 2);
	frames__begin_nested(frames, 12);
	push(frames, 12, 3);
	call(frames, 13, 14, 4);
	frames__unwind_to(frames, &frames->open.v[1], 15, 0);
	call(frames, 15, 16, 5);
	call(frames, 17, 18, 6);
	frames__pop(frames, 19, 0);
	assert_string_equal(fixture->told, "4 6 ");
	expect_left(fixture, 4);
}

/* How deep they lie is known at the end only, and files have a limit. */
static void test_deep_ones(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	for (uint64_t i = 0; i < 300; i++)
		push(frames, 11 + i, 2 + i);
	for (uint64_t i = 0; i < 300; i++)
		frames__pop(frames, 400 + i, 0);
	assert_string_equal(fixture->told, "");
	call(frames, 800, 801, 500);
	assert_string_equal(fixture->told, "500 ");
	expect_left(fixture, 301);
}

/* A slice in one record, with others in it that are told elsewhere, must not end as they do. */
static void test_what_ended_with_its_callee(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);
	struct call_tree tree;

	push(frames, 11, 2);
	call(frames, 12, 13, 3);
	frames__close_all(frames, 13, CALL_INFERRED_END);
	assert_int_equal(finish(frames, &tree), 2);
	assert_false(tree.calls.v[0].told_at_end);
	assert_true(tree.calls.v[1].told_at_end);
	VEC_FINI(&tree.calls);
}

/* Another frame may get its place: a longjmp() must not take that for its. */
static void test_landings_of_what_was_told(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);
	struct landing landing = {.ip = 1, .depth = 1};

	push(frames, 11, 2);
	landing.index = frames__top(frames)->index;
	*VEC_PUSH(&frames->landings) = (struct landing){.ip = 2};
	*VEC_PUSH(&frames->landings) = landing;
	call(frames, 12, 13, 3);
	assert_int_equal(frames->landings.n, 2);
	frames__pop(frames, 14, 0);
	push(frames, 15, 4);
	assert_int_equal(frames__top(frames)->index, landing.index);
	assert_int_equal(frames->landings.n, 1);
}

static void test_nobody_takes_it(void **state)
{
	struct fixture *fixture = *state;
	struct frames *frames = begin(fixture);

	fixture->err = -ENOMEM;
	call(frames, 12, 13, 2);
	assert_true(frames->failed);
}

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
			frames__close_all(frames, now, CALL_INFERRED_END);
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
			frames__unwind_to(frames, &frames->open.v[n / 2], now, 0);
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
	frames__close_all(frames, now, CALL_INFERRED_END);
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

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_told_as_they_end),
		TEST(test_begins_with_its_caller),
		TEST(test_begins_when_what_is_kept_ends),
		TEST(test_may_run_on_behind_a_gap),
		TEST(test_callers_found_late),
		TEST(test_leaps),
		TEST(test_calls_in_inlined_code),
		TEST(test_nested_parts),
		TEST(test_deep_ones),
		TEST(test_what_ended_with_its_callee),
		TEST(test_landings_of_what_was_told),
		TEST(test_nobody_takes_it),
		cmocka_unit_test(test_events_are_those_of_the_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
