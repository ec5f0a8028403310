// SPDX-License-Identifier: MIT
/* Trees as the stack makes them: what one branch did has one time, and so may have many branches.
 */
#include "stack/spread_times.h"

#include <string.h>

#include "tree_text.h"

#define MAX_CALLS 64
#define ANY_STEP  UINT64_MAX

static const struct function function = {.name = "f"};

struct sample {
	struct call calls[MAX_CALLS];
	struct call_tree tree;
};

/* Behind what is there: in pre-order. */
static struct call *add(struct sample *s, uint32_t depth, uint64_t start_ns, uint64_t end_ns)
{
	struct call *call = &s->calls[s->tree.calls.n];
	uint32_t parent = (uint32_t)s->tree.calls.n - 1;

	while (depth && s->calls[parent].depth >= depth)
		parent--;
	*call = (struct call){.start_ns = start_ns,
			      .end_ns = end_ns,
			      .function = &function,
			      .parent = depth ? parent : CALL_NO_PARENT,
			      .depth = depth};
	s->tree.calls.v = s->calls;
	s->tree.calls.n++;
	return call;
}

static void spread(struct sample *s, struct known_times known)
{
	assert_int_equal(call_tree__spread_times(&s->tree, &known), 0);
}

static void assert_times(const struct sample *s, const char *expected)
{
	char text[4096] = "";

	for (size_t i = 0; i < s->tree.calls.n; i++)
		sprintf(text + strlen(text), "%*s%" PRIu64 "-%" PRIu64 "\n",
			(int)(2 * s->calls[i].depth), "", s->calls[i].start_ns, s->calls[i].end_ns);
	assert_string_equal(text, expected);
	assert_well_formed(&s->tree);
}

/* Five branches at 100, of which the first keeps it; the next is at 200. */
static void test_a_run_is_spread_up_to_the_next_time(void **state)
{
	struct sample s = {0};

	add(&s, 0, 0, 300);
	add(&s, 1, 100, 100);
	add(&s, 1, 100, 200);
	add(&s, 2, 100, 100);
	spread(&s, (struct known_times){.step_ns = ANY_STEP});
	assert_times(&s, "0-300\n"
			 "  100-120\n"
			 "  140-200\n"
			 "    160-180\n");
}

static void test_times_that_differ_stay(void **state)
{
	static const char expected[] = "0-100\n  10-40\n    20-30\n  50-60\n";
	struct sample s = {0};

	add(&s, 0, 0, 100);
	add(&s, 1, 10, 40);
	add(&s, 2, 20, 30);
	add(&s, 1, 50, 60);
	spread(&s, (struct known_times){.step_ns = ANY_STEP});
	assert_times(&s, expected);
	spread(&s, (struct known_times){.step_ns = 1});
	assert_times(&s, expected);
}

/* The clock that tells nothing for 300 ns although it would every 40: the thread was doing else. */
static void test_a_run_ends_with_the_clock_s_step(void **state)
{
	struct sample s = {0};

	add(&s, 0, 0, 500);
	add(&s, 1, 100, 100);
	add(&s, 1, 100, 400);
	spread(&s, (struct known_times){.step_ns = 30});
	assert_times(&s, "0-500\n  100-110\n  120-400\n");
}

/* The probe was hit at 130, behind the call of its function. */
static void test_nothing_moves_past_a_hit(void **state)
{
	static const uint64_t hits[] = {90, 100, 130, 140};
	struct sample s = {0};

	add(&s, 0, 0, 500);
	add(&s, 1, 100, 100);
	add(&s, 1, 100, 400);
	spread(&s, (struct known_times){.step_ns = ANY_STEP, .fixed = hits, .n_fixed = 4});
	assert_times(&s, "0-500\n  100-110\n  120-400\n");
}

static void test_the_last_run_stays(void **state)
{
	struct sample s = {0};

	add(&s, 0, 0, 100);
	add(&s, 1, 10, 100);
	add(&s, 2, 100, 100);
	spread(&s, (struct known_times){.step_ns = ANY_STEP});
	assert_times(&s, "0-100\n  10-100\n    100-100\n");
}

/* A segment that begins in two frames, a tail call, a throw, and a signal: a branch each. */
static void test_what_one_branch_did_stays_together(void **state)
{
	struct sample s = {0};

	add(&s, 0, 0, 1000)->flags = CALL_INFERRED_START;
	add(&s, 1, 0, 900)->flags = CALL_INFERRED_START;
	add(&s, 2, 0, 100);
	add(&s, 2, 100, 200)->flags = CALL_BY_JUMP;
	add(&s, 2, 300, 400);
	add(&s, 3, 350, 400)->flags = CALL_CUT_SHORT;
	add(&s, 4, 360, 400)->flags = CALL_CUT_SHORT;
	add(&s, 2, 500, 600)->kind = CALL_UNTRACED;
	add(&s, 2, 600, 700)->kind = CALL_SIGNAL;
	spread(&s, (struct known_times){.step_ns = ANY_STEP});
	assert_times(&s, "0-1000\n"
			 "  0-900\n"
			 "    50-100\n"
			 "    100-200\n"
			 "    300-400\n"
			 "      350-400\n"
			 "        360-400\n"
			 "    500-600\n"
			 "    600-700\n");
}

/* All of these at 100: a tail call and a throw are steps like others, of several events each. */
static void test_together_within_a_run(void **state)
{
	struct sample s = {0};

	add(&s, 0, 0, 500);
	add(&s, 1, 100, 100);
	add(&s, 1, 100, 100)->flags = CALL_BY_JUMP;
	add(&s, 1, 100, 100);
	add(&s, 2, 100, 100)->flags = CALL_CUT_SHORT;
	add(&s, 3, 100, 100)->flags = CALL_CUT_SHORT;
	add(&s, 1, 200, 300);
	spread(&s, (struct known_times){.step_ns = ANY_STEP});
	/* Steps: call; tail call; return; call; call; call; the throw. */
	assert_times(&s, "0-500\n"
			 "  100-114\n"
			 "  114-128\n"
			 "  142-185\n"
			 "    157-185\n"
			 "      171-185\n"
			 "  200-300\n");
}

/* What was lost began at 100: nothing before it can move, and what follows has its own time. */
static void test_gaps_stay(void **state)
{
	struct sample s = {0};

	add(&s, 0, 0, 100)->flags = CALL_INFERRED_END;
	add(&s, 1, 100, 100)->flags = CALL_INFERRED_END;
	add(&s, 0, 100, 200)->kind = CALL_GAP;
	add(&s, 0, 200, 400)->flags = CALL_INFERRED_START;
	add(&s, 1, 200, 300);
	spread(&s, (struct known_times){.step_ns = ANY_STEP});
	assert_times(&s, "0-100\n  100-100\n100-200\n200-400\n  250-300\n");
}

/* Both of a throw's ends are those of calls; the second is not of any that is there. */
static void test_leaps_go_with_calls(void **state)
{
	struct leap leaps[] = {{.start_ns = 100, .end_ns = 100, .from = 2, .to = 0},
			       {.start_ns = 100, .end_ns = 150, .from = 2, .to = 1}};
	struct sample s = {0};

	add(&s, 0, 0, 500);
	add(&s, 1, 100, 100)->flags = CALL_CUT_SHORT;
	add(&s, 2, 100, 100)->flags = CALL_CUT_SHORT;
	add(&s, 1, 190, 300);
	s.tree.leaps.v = leaps;
	s.tree.leaps.n = 2;
	spread(&s, (struct known_times){.step_ns = ANY_STEP});
	assert_times(&s, "0-500\n  100-160\n    130-160\n  190-300\n");
	assert_int_equal(leaps[0].start_ns, 130);
	assert_int_equal(leaps[0].end_ns, 160);
	assert_int_equal(leaps[1].start_ns, 130);
	assert_int_equal(leaps[1].end_ns, 150);
}

static void test_more_events_than_nanoseconds(void **state)
{
	struct sample s = {0};

	add(&s, 0, 0, 0);
	add(&s, 0, 0, 0);
	add(&s, 0, 0, 0);
	add(&s, 0, 0, 0);
	add(&s, 0, 3, 9);
	spread(&s, (struct known_times){.step_ns = ANY_STEP});
	assert_times(&s, "0-0\n0-1\n1-1\n2-2\n3-9\n");
}

static void test_long_runs_of_long_times(void **state)
{
	struct sample s = {0};

	add(&s, 0, 1, 1);
	add(&s, 0, 1, UINT64_MAX - 1);
	spread(&s, (struct known_times){.step_ns = ANY_STEP});
	assert_times(&s, "1-6148914691236517205\n12297829382473034409-18446744073709551614\n");
}

/* Random walks: calls and returns, with the clock ahead now and then, and frames cut short. */
static void make_any(struct sample *s, unsigned int *seed)
{
	uint32_t path[MAX_CALLS], depth = 0;
	uint64_t now = 1;

	memset(s, 0, sizeof(*s));
	while (s->tree.calls.n < MAX_CALLS || depth) {
		if (!(rand_r(seed) % 3))
			now += (unsigned int)rand_r(seed) % 20;
		if (s->tree.calls.n < MAX_CALLS && (!depth || rand_r(seed) % 2)) {
			path[depth] = (uint32_t)s->tree.calls.n;
			add(s, depth++, now, now)->flags = (uint8_t)(rand_r(seed) % 32);
		} else {
			s->calls[path[--depth]].end_ns = now;
		}
	}
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* All times of a tree, ascending. */
static void get_times(const struct sample *s, uint64_t times[static 2 * MAX_CALLS])
{
	for (size_t i = 0; i < MAX_CALLS; i++) {
		times[2 * i] = s->calls[i].start_ns;
		times[2 * i + 1] = s->calls[i].end_ns;
	}
	qsort(times, 2 * MAX_CALLS, sizeof(*times), compare);
}

/* In time order the first event of each old time has it still, and the others are before the next.
 */
static void test_any_tree(void **state)
{
	uint64_t old[2 * MAX_CALLS], new[2 * MAX_CALLS];
	unsigned int seed = 7;
	size_t moved = 0;

	for (int round = 0; round < 2000; round++) {
		uint64_t step = round % 2 ? ANY_STEP : 1 + (uint64_t)round % 30;
		struct sample s;

		make_any(&s, &seed);
		get_times(&s, old);
		spread(&s, (struct known_times){.step_ns = step});
		assert_well_formed(&s.tree);
		get_times(&s, new);
		for (size_t i = 0, first = 0; i < 2 * MAX_CALLS; i++) {
			first = i && old[i] == old[i - 1] ? first : i;
			if (first == i)
				assert_int_equal(new[i], old[i]);
			assert_in_range(new[i], old[i], old[2 * MAX_CALLS - 1]);
			assert_true(new[i] - old[i] < step);
			moved += new[i] != old[i];
		}
	}
	assert_true(moved > 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_run_is_spread_up_to_the_next_time),
		cmocka_unit_test(test_times_that_differ_stay),
		cmocka_unit_test(test_a_run_ends_with_the_clock_s_step),
		cmocka_unit_test(test_nothing_moves_past_a_hit),
		cmocka_unit_test(test_the_last_run_stays),
		cmocka_unit_test(test_what_one_branch_did_stays_together),
		cmocka_unit_test(test_together_within_a_run),
		cmocka_unit_test(test_gaps_stay),
		cmocka_unit_test(test_leaps_go_with_calls),
		cmocka_unit_test(test_more_events_than_nanoseconds),
		cmocka_unit_test(test_long_runs_of_long_times),
		cmocka_unit_test(test_any_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
