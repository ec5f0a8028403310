// SPDX-License-Identifier: MIT
/* The report where it is known when the slow iteration began: by a mark, or by -start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "decode/branch.h"
#include "mtbpf_shared.h"
#include "view/report.h"

#define TID 43
#define MS  1000000ull

static const struct function program = {.name = "main"}, stub = {.name = "mtbpf_hit"},
			     work = {.name = "work"};

static void add(struct call_tree *tree, uint32_t depth, uint64_t start_ns, uint64_t end_ns,
		const struct function *function)
{
	struct call *call = VEC_PUSH(&tree->calls);

	assert_non_null(call);
	*call = (struct call){.start_ns = start_ns,
			      .end_ns = end_ns,
			      .function = function,
			      .parent = depth ? 0 : CALL_NO_PARENT,
			      .depth = depth};
}

/*
 * A request with a key, from thread TID + 1 to TID: hits that look like iterations are not
 * compared, and no reason is given.
 */
static void test_a_request_with_a_key(void **state)
{
	struct call_tree trees[] = {{.tid = TID}, {.tid = TID + 1}};
	const struct hit_mark hit = {.reason = MT_HIT_REGION,
				     .tid = TID,
				     .since_tid = TID + 1,
				     .key = 0xabc,
				     .function = &stub,
				     .time_ns = 8 * MS,
				     .value_ns = 6 * MS};
	static const pid_t tids[] = {0, TID + 1};
	static const char *const expected[] = {"what thread 43 did meanwhile",
					       "what thread 44 did meanwhile"};

	for (size_t i = 0; i < 2; i++) {
		add(&trees[i], 0, 0, 9 * MS, &program);
		for (uint64_t at = 1; at < 8; at++)
			add(&trees[i], 1, at * MS, at * MS + 1000, &stub);
	}
	for (size_t i = 0; i < 2; i++) {
		struct report *report = report__new(&(struct report_input){.trees = trees,
									   .n_trees = 2,
									   .hit = &hit,
									   .tid = tids[i],
									   .sampled = true});
		char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		assert_non_null(report);
		report__print(out, report, 5);
		fclose(out);
		assert_non_null(strstr(text,
				       "the request with key 0xabc took 6.00 ms, from thread 44 "
				       "to thread 43"));
		assert_non_null(strstr(text, expected[i]));
		assert_non_null(strstr(text, "reason: not known"));
		assert_null(strstr(text, "ordinary one"));
		report__free(report);
		free(text);
	}
	VEC_FINI(&trees[0].calls);
	VEC_FINI(&trees[1].calls);
}

/* In main from 1 ms on: hits at each of `hits`, and work from 4 to 6 ms. The last is the trigger.
 */
static char *report_of(const uint64_t *hits, size_t n, uint64_t value_ns)
{
	struct call_tree tree = {.tid = TID};
	struct hit_mark hit = {.reason = MT_HIT_MARK,
			       .tid = TID,
			       .function = &stub,
			       .time_ns = hits[n - 1],
			       .value_ns = value_ns};
	struct report *report;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	add(&tree, 0, MS, 8 * MS, &program);
	for (size_t i = 0; i < n; i++) {
		if (i + 1 == n)
			add(&tree, 1, 4 * MS, 6 * MS, &work);
		add(&tree, 1, hits[i], hits[i] + 1000, &stub);
	}
	report = report__new(&(struct report_input){.trees = &tree, .n_trees = 1, .hit = &hit});
	if (report)
		report__print(out, report, 1);
	report__free(report);
	fclose(out);
	VEC_FINI(&tree.calls);
	return text;
}

static void assert_report(const uint64_t *hits, size_t n, uint64_t value_ns, const char *expected)
{
	char *text = report_of(hits, n, value_ns);

	if (*expected)
		assert_non_null(strstr(text, expected));
	else
		assert_string_equal(text, "");
	free(text);
}

static void test_the_slow_one_begins_at_its_mark(void **state)
{
	const uint64_t hits[] = {2 * MS, 3 * MS, 7 * MS};

	assert_report(hits, 3, 2 * MS,
		      "of mtbpf_hit took 2.00 ms, an ordinary one 1.00 ms (mean of 1 ");
	assert_report(hits, 3, 2 * MS,
		      "     1.00 ms    1.00 ms    1.00 ms       0 ns        0       0.0  work");
	/* A mark before the hit before: the iteration begins at that. */
	assert_report(hits, 3, 6 * MS, "of mtbpf_hit took 4.00 ms, an ordinary one 1.00 ms");
}

static void test_it_needs_no_hit_before(void **state)
{
	const uint64_t hit = 7 * MS;

	assert_report(&hit, 1, 4 * MS, "of mtbpf_hit took 4.00 ms; where");
	/* Its start is not in the trace. */
	assert_report(&hit, 1, 6 * MS + 1, "");
}

/* Regions of 1, 1 and `slow` ms, 10 ms apart; the first may have begun before the trace. */
static char *report_of_regions(size_t n, uint64_t value_ns)
{
	struct call_tree tree = {.tid = TID};
	struct hit_mark hit = {
		.reason = MT_HIT_REGION, .tid = TID, .function = &stub, .value_ns = value_ns};
	struct report *report;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < n; i++) {
		uint64_t start = 10 * MS * (i + 1);

		hit.time_ns = start + (i + 1 < n ? MS : value_ns);
		add(&tree, 0, start, hit.time_ns, &work);
		if (i + 1 == n)
			continue;
		add(&tree, 0, hit.time_ns, 10 * MS * (i + 2), NULL);
		tree.calls.v[tree.calls.n - 1].kind = CALL_GAP;
		tree.calls.v[tree.calls.n - 1].reason = GAP_OUTSIDE;
	}
	report = report__new(&(struct report_input){.trees = &tree, .n_trees = 1, .hit = &hit});
	if (report)
		report__print(out, report, 3);
	report__free(report);
	fclose(out);
	VEC_FINI(&tree.calls);
	return text;
}

static void test_regions_are_compared(void **state)
{
	char *text = report_of_regions(4, 3 * MS);

	assert_non_null(strstr(
		text, "to mtbpf_hit took 3.00 ms, an ordinary one 1.00 ms (mean of 2 in the same"));
	assert_non_null(
		strstr(text, " 2.00 ms    3.00 ms    3.00 ms    1.00 ms        1       1.0  work"));
	free(text);
	text = report_of_regions(1, 3 * MS);
	assert_non_null(strstr(text, "to mtbpf_hit took 3.00 ms; where"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_request_with_a_key),
		cmocka_unit_test(test_the_slow_one_begins_at_its_mark),
		cmocka_unit_test(test_it_needs_no_hit_before),
		cmocka_unit_test(test_regions_are_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
