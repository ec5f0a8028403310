// SPDX-License-Identifier: MIT
/* What -filter takes, what it means for a recording, and what it leaves of samples' trees. */
#include "pipeline/trace_filter.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stack/stack.h"
#include "said.h"
#include "stderr_capture.h"
#include "util/log.h"

#define MS 1000000

static int add(struct trace_filter *f, const char *text, char said[static 512])
{
	struct stderr_capture capture;
	int err;

	stderr_capture__begin(&capture);
	err = trace_filter__add(f, text);
	snprintf(said, 512, "%.500s", stderr_capture__end(&capture));
	return err;
}

static void test_times(void **state)
{
	static const struct {
		const char *text;
		struct filter_point from, to;
	} cases[] = {
		{"10ms..20ms", {FILTER_BEGIN, 10 * MS}, {FILTER_BEGIN, 20 * MS}},
		{"10ms .. 20ms", {FILTER_BEGIN, 10 * MS}, {FILTER_BEGIN, 20 * MS}},
		{"-20ms..", {FILTER_END, -20 * MS}, {FILTER_OPEN, 0}},
		{"..1.5ms", {FILTER_OPEN, 0}, {FILTER_BEGIN, MS * 3 / 2}},
		{"0..5ms", {FILTER_BEGIN, 0}, {FILTER_BEGIN, 5 * MS}},
		{"hit-5ms..hit", {FILTER_HIT, -5 * MS}, {FILTER_HIT, 0}},
		{"hit..hit+1ms", {FILTER_HIT, 0}, {FILTER_HIT, MS}},
		{"begin+1ms..end-1ms", {FILTER_BEGIN, MS}, {FILTER_END, -MS}},
		{"begin..end", {FILTER_BEGIN, 0}, {FILTER_END, 0}},
		{"1ms..-1ms", {FILTER_BEGIN, MS}, {FILTER_END, -MS}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct trace_filter f = {0};

		assert_int_equal(trace_filter__add(&f, cases[i].text), 0);
		assert_true(f.has_times && !f.has_functions);
		assert_int_equal(f.from.base, cases[i].from.base);
		assert_int_equal(f.from.offset_ns, cases[i].from.offset_ns);
		assert_int_equal(f.to.base, cases[i].to.base);
		assert_int_equal(f.to.offset_ns, cases[i].to.offset_ns);
		trace_filter__fini(&f);
	}
}

static void test_functions(void **state)
{
	static const struct {
		const char *text, *start, *stop;
	} cases[] = {
		{"parse..render", "parse", "render"},
		{"parse..", "parse", NULL},
		{"..render", NULL, "render"},
		{"hit_me..ending", "hit_me", "ending"},
		{"symbol:hit..libx.so:f*", "symbol:hit", "libx.so:f*"},
		{"type..eq.A .. ns::f(int)", "type..eq.A", "ns::f(int)"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct trace_filter f = {0};

		assert_int_equal(trace_filter__add(&f, cases[i].text), 0);
		assert_true(f.has_functions && !f.has_times);
		assert_true(!f.start == !cases[i].start && !f.stop == !cases[i].stop);
		assert_true(!f.start || !strcmp(f.start, cases[i].start));
		assert_true(!f.stop || !strcmp(f.stop, cases[i].stop));
		trace_filter__fini(&f);
	}
}

static void test_what_is_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"", TEXT_range_missing},
		{"5ms", TEXT_range_missing},
		{"..", TEXT_range_open},
		{"5ms..2ms", TEXT_range_backwards},
		{"-1ms..-2ms", TEXT_range_backwards},
		{"1..2", TEXT_time_takes_unit},
		{"hit+..", TEXT_time_takes_unit},
		{"-..", TEXT_time_takes_unit},
		{"1mss..", TEXT_time_takes_unit},
		{"+5ms..", TEXT_plus_follows},
		{"9999999999999s..", TEXT_duration_maximum},
		{"parse..3ms", TEXT_mixed_ends},
		{"a..b..c", TEXT_several_ranges},
		{"a...b", TEXT_several_ranges},
		{"line:a.c:3..f", TEXT_calls_by_name},
		{"f..addr:0x1", TEXT_calls_by_name},
		{"?..", TEXT_nothing_to_pick},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct trace_filter f = {0};
		char said[512];

		assert_int_equal(add(&f, cases[i].text, said), -EINVAL);
		if (!strstr(said, cases[i].why) || !said__has(said, "hint: ", TEXT_give_range))
			fail_msg("'%s': %s", cases[i].text, said);
		trace_filter__fini(&f);
	}
}

static void test_one_of_each_kind(void **state)
{
	struct trace_filter f = {0};
	char said[512];

	assert_int_equal(trace_filter__add(&f, "a..b"), 0);
	assert_int_equal(trace_filter__add(&f, "1ms.."), 0);
	assert_int_equal(add(&f, "..2ms", said), -EINVAL);
	ASSERT_ERROR(said, TEXT_bad_filter, "..2ms", TEXT_another_time);
	assert_int_equal(add(&f, "c..", said), -EINVAL);
	ASSERT_ERROR(said, TEXT_bad_filter, "c..", TEXT_other_functions);
	trace_filter__fini(&f);
}

static void add_hit(struct recording *rec, uint64_t time_ns, uint64_t value_ns, uint32_t reason)
{
	struct mt_hit hit = {.time_ns = time_ns, .value_ns = value_ns, .reason = reason};

	assert_int_equal(VEC_ADD(&rec->hits, hit), 0);
}

static struct decode_filter resolve(const char *text, const struct recording *rec, int expected)
{
	const struct decode_bounds bounds = {1000 * MS, 1100 * MS};
	struct stderr_capture capture;
	struct trace_filter f = {0};
	struct filter_part part;

	assert_int_equal(trace_filter__add(&f, text), 0);
	stderr_capture__begin(&capture);
	assert_int_equal(trace_filter__resolve(&f, rec, &bounds, &part), expected);
	assert_int_equal(!expected, !*stderr_capture__end(&capture));
	trace_filter__fini(&f);
	return part.decode;
}

static void test_what_it_means_for_a_recording(void **state)
{
	struct recording rec;
	struct decode_filter f;

	recording__init(&rec);
	f = resolve("10ms..-10ms", &rec, 0);
	assert_int_equal(f.from_ns, 1010 * MS);
	assert_int_equal(f.to_ns, 1090 * MS);
	f = resolve("-2000s..", &rec, 0);
	assert_int_equal(f.from_ns, 1);
	assert_true(f.to_ns == UINT64_MAX);
	f = resolve("..1ms", &rec, 0);
	assert_int_equal(f.from_ns, 0);
	resolve("hit..", &rec, -EINVAL);
	resolve("end-10ms..begin+10ms", &rec, -EINVAL);
	/* The slowest, as the report has it; one that did not trigger only where there is none. */
	add_hit(&rec, 1070 * MS, 90, MT_HIT_LAST);
	f = resolve("hit..", &rec, 0);
	assert_int_equal(f.from_ns, 1070 * MS);
	add_hit(&rec, 1020 * MS, 5, MT_HIT_DELAY);
	add_hit(&rec, 1050 * MS, 7, MT_HIT_DELAY);
	add_hit(&rec, 1060 * MS, 6, MT_HIT_DELAY);
	f = resolve("hit-1ms..hit+2ms", &rec, 0);
	assert_int_equal(f.from_ns, 1049 * MS);
	assert_int_equal(f.to_ns, 1052 * MS);
	recording__fini(&rec);
}

static void add_stack(struct recording *rec, uint8_t byte)
{
	assert_int_equal(recording__add_stack(rec, &byte, 1), 0);
}

static void test_hits_outside_of_it_are_gone(void **state)
{
	struct filter_part part = {.decode = {.from_ns = 20, .to_ns = 30}};
	struct recording rec;

	recording__init(&rec);
	add_hit(&rec, 10, 0, MT_HIT_DELAY);
	add_stack(&rec, 1);
	add_hit(&rec, 20, 0, MT_HIT_DELAY);
	add_stack(&rec, 2);
	add_hit(&rec, 25, 0, MT_HIT_DELAY);
	add_hit(&rec, 30, 0, MT_HIT_DELAY);
	add_stack(&rec, 4);
	add_hit(&rec, 31, 0, MT_HIT_DELAY);
	add_stack(&rec, 5);
	for (size_t i = 0; i < rec.hits.n; i++)
		assert_int_equal(VEC_ADD(&rec.thread_states,
					 ((struct rec_thread_state){.hit = i, .tid = (pid_t)i})),
				 0);
	filter_part__drop_hits(&part, &rec);
	for (size_t i = 0; i < rec.thread_states.n; i++) {
		const struct rec_thread_state *state_of = &rec.thread_states.v[i];

		assert_true(state_of->hit == SIZE_MAX ? state_of->tid == 0 || state_of->tid == 4
						      : (pid_t)state_of->hit == state_of->tid - 1);
	}
	assert_int_equal(part.n_hits, 2);
	assert_int_equal(rec.hits.n, 3);
	assert_int_equal(rec.hits.v[0].time_ns, 20);
	assert_int_equal(rec.hits.v[2].time_ns, 30);
	assert_int_equal(rec.stacks.n, 2);
	assert_int_equal(*recording__hit_user(&rec, &rec.hits.v[0]).stack, 2);
	assert_null(recording__hit_user(&rec, &rec.hits.v[1]).stack);
	assert_int_equal(*recording__hit_user(&rec, &rec.hits.v[2]).stack, 4);
	recording__fini(&rec);
}

static void push(struct call_tree *tree, uint64_t start_ns, uint64_t end_ns, uint32_t parent)
{
	struct call *call = VEC_PUSH(&tree->calls);

	assert_non_null(call);
	*call = (struct call){.start_ns = start_ns, .end_ns = end_ns, .parent = parent};
	call->depth = parent == CALL_NO_PARENT ? 0 : tree->calls.v[parent].depth + 1;
}

static void test_trees_of_samples_are_cut(void **state)
{
	struct filter_part part = {.decode = {.from_ns = 20, .to_ns = 30}};
	struct call_tree tree = {0};
	struct done_by *by;
	struct waits_for *wait;

	push(&tree, 0, 100, CALL_NO_PARENT);
	push(&tree, 1, 5, 0);
	push(&tree, 6, 25, 0);
	push(&tree, 7, 8, 2);
	push(&tree, 21, 24, 2);
	push(&tree, 28, 50, 0);
	push(&tree, 40, 50, 5);
	by = VEC_PUSH(&tree.done_by);
	assert_non_null(by);
	*by = (struct done_by){.call = 3};
	by = VEC_PUSH(&tree.done_by);
	assert_non_null(by);
	*by = (struct done_by){.call = 4};
	wait = VEC_PUSH(&tree.waits);
	assert_non_null(wait);
	*wait = (struct waits_for){.call = 5};
	assert_int_equal(filter_part__cut_tree(&part, &tree), 0);
	assert_int_equal(tree.calls.n, 4);
	assert_int_equal(tree.calls.v[0].start_ns, 20);
	assert_int_equal(tree.calls.v[0].end_ns, 30);
	assert_int_equal(tree.calls.v[0].flags, CALL_INFERRED_START | CALL_INFERRED_END);
	assert_int_equal(tree.calls.v[1].start_ns, 20);
	assert_int_equal(tree.calls.v[1].end_ns, 25);
	assert_int_equal(tree.calls.v[1].flags, CALL_INFERRED_START);
	assert_int_equal(tree.calls.v[2].start_ns, 21);
	assert_int_equal(tree.calls.v[2].parent, 1);
	assert_int_equal(tree.calls.v[2].flags, 0);
	assert_int_equal(tree.calls.v[3].end_ns, 30);
	assert_int_equal(tree.calls.v[3].parent, 0);
	assert_int_equal(tree.done_by.n, 1);
	assert_int_equal(tree.done_by.v[0].call, 2);
	assert_int_equal(tree.waits.n, 1);
	assert_int_equal(tree.waits.v[0].call, 3);
	call_tree__fini(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_one_of_each_kind),
		cmocka_unit_test(test_what_it_means_for_a_recording),
		cmocka_unit_test(test_hits_outside_of_it_are_gone),
		cmocka_unit_test(test_trees_of_samples_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
