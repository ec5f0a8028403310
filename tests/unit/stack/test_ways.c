// SPDX-License-Identifier: MIT
#include "stack/stitch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const struct function f[300];

static void learn_as(struct ways *ways, int caller, int callee, bool is_passed)
{
	const struct way way = {&f[caller], &f[callee], (uint64_t)(caller * 1000 + callee),
				is_passed};

	assert_int_equal(ways__learn(ways, &way), 0);
}

static void learn(struct ways *ways, int caller, int callee)
{
	learn_as(ways, caller, callee, false);
}

static void test_nothing_is_known(void **state)
{
	struct ways ways = {0};
	struct held between[WAY_MAX];

	assert_int_equal(ways__between(&ways, &f[1], &f[2], between), 0);
	ways__fini(&ways);
}

static void test_frames_come_from_the_lowest_on(void **state)
{
	struct ways ways = {0};
	struct held between[WAY_MAX];

	learn(&ways, 1, 2);
	learn(&ways, 2, 3);
	learn(&ways, 3, 4);
	assert_int_equal(ways__between(&ways, &f[1], &f[4], between), 2);
	assert_ptr_equal(between[0].function, &f[2]);
	assert_int_equal(between[0].return_ip, 1002);
	assert_int_equal(between[0].entry_ip, 2003);
	assert_ptr_equal(between[1].function, &f[3]);
	assert_int_equal(between[1].return_ip, 2003);
	assert_int_equal(between[1].entry_ip, 3004);
	assert_int_equal(ways__between(&ways, &f[4], &f[1], between), 0);
	ways__fini(&ways);
}

static void test_the_shortest_way_is_taken(void **state)
{
	struct ways ways = {0};
	struct held between[WAY_MAX];

	learn(&ways, 1, 2);
	learn(&ways, 2, 2);
	learn(&ways, 2, 3);
	learn(&ways, 3, 4);
	learn(&ways, 2, 4);
	assert_int_equal(ways__between(&ways, &f[1], &f[4], between), 1);
	assert_ptr_equal(between[0].function, &f[2]);
	learn(&ways, 1, 4);
	assert_int_equal(ways__between(&ways, &f[1], &f[4], between), 0);
	ways__fini(&ways);
}

static void test_of_several_none_is_taken(void **state)
{
	struct ways ways = {0};
	struct held between[WAY_MAX];

	learn(&ways, 1, 2);
	learn(&ways, 2, 4);
	learn(&ways, 1, 2);
	assert_int_equal(ways__between(&ways, &f[1], &f[4], between), 1);
	learn(&ways, 1, 3);
	learn(&ways, 3, 4);
	assert_int_equal(ways__between(&ways, &f[1], &f[4], between), 0);
	ways__fini(&ways);
}

static void test_how_long_a_way_may_be(void **state)
{
	struct ways ways = {0};
	struct held between[WAY_MAX];

	for (int i = 0; i <= WAY_MAX + 1; i++)
		learn(&ways, i, i + 1);
	assert_int_equal(ways__between(&ways, &f[0], &f[WAY_MAX + 1], between), WAY_MAX);
	assert_int_equal(ways__between(&ways, &f[0], &f[WAY_MAX + 2], between), 0);
	ways__fini(&ways);
}

static void learn_all_of_all(struct ways *ways)
{
	for (int i = 2; i < 300; i++)
		for (int k = 2; k < 60; k++)
			learn(ways, i, k);
}

/* Looking is given up. */
static void test_a_thicket(void **state)
{
	struct ways ways = {0};
	struct held between[WAY_MAX];

	learn_all_of_all(&ways);
	assert_int_equal(ways__between(&ways, &f[1], &f[2], between), 0);
	ways__fini(&ways);
}

/* There may be another one. */
static void test_a_way_out_of_a_thicket(void **state)
{
	struct ways ways = {0};
	struct held between[WAY_MAX];

	learn(&ways, 1, 299);
	learn(&ways, 299, 2);
	assert_int_equal(ways__between(&ways, &f[1], &f[2], between), 1);
	learn_all_of_all(&ways);
	assert_int_equal(ways__between(&ways, &f[1], &f[2], between), 0);
	ways__fini(&ways);
}

/* Of several ways that are as long, what all of them lead over. */
static void test_what_was_passed_is_known_by_its_length(void **state)
{
	struct ways ways = {0};
	struct held between[BETWEEN_MAX];

	learn(&ways, 1, 2);
	learn_as(&ways, 2, 2, true);
	learn_as(&ways, 2, 3, true);
	learn_as(&ways, 2, 4, true);
	learn_as(&ways, 3, 5, true);
	learn_as(&ways, 4, 5, true);
	learn_as(&ways, 5, 6, true);
	assert_true(ways__pass(&ways, &f[1], true, &f[6], between, 4));
	assert_ptr_equal(between[0].function, &f[2]);
	assert_int_equal(between[0].return_ip, 1002);
	assert_int_equal(between[0].entry_ip, 2002);
	assert_ptr_equal(between[1].function, &f[2]);
	assert_int_equal(between[1].return_ip, 2002);
	assert_null(between[2].function);
	assert_int_equal(between[2].return_ip, 0);
	assert_ptr_equal(between[3].function, &f[5]);
	assert_int_equal(between[3].entry_ip, 5006);
	/* Nothing was passed there, and too few lie between, or too many. */
	assert_false(ways__pass(&ways, &f[1], false, &f[6], between, 4));
	assert_false(ways__pass(&ways, &f[1], true, &f[6], between, 2));
	assert_false(ways__pass(&ways, &f[1], true, &f[6], between, BETWEEN_MAX + 1));
	ways__fini(&ways);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_known),
		cmocka_unit_test(test_frames_come_from_the_lowest_on),
		cmocka_unit_test(test_the_shortest_way_is_taken),
		cmocka_unit_test(test_of_several_none_is_taken),
		cmocka_unit_test(test_how_long_a_way_may_be),
		cmocka_unit_test(test_a_thicket),
		cmocka_unit_test(test_a_way_out_of_a_thicket),
		cmocka_unit_test(test_what_was_passed_is_known_by_its_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
