// SPDX-License-Identifier: MIT
#include "stack/stitch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const struct function f[300];

static void learn_as(struct call_edges *edges, int caller, int callee, bool is_passed)
{
	const struct call_edge edge = {&f[caller], &f[callee], (uint64_t)(caller * 1000 + callee),
				       is_passed};

	assert_int_equal(call_edges__learn(edges, &edge), 0);
}

static void learn(struct call_edges *edges, int caller, int callee)
{
	learn_as(edges, caller, callee, false);
}

/* Of several paths that are as long, what all of them lead over. */
static void test_what_was_passed_is_known_by_its_length(void **state)
{
	struct call_edges edges = {0};
	struct held between[BETWEEN_MAX];

	learn(&edges, 1, 2);
	learn_as(&edges, 2, 2, true);
	learn_as(&edges, 2, 3, true);
	learn_as(&edges, 2, 4, true);
	learn_as(&edges, 3, 5, true);
	learn_as(&edges, 4, 5, true);
	learn_as(&edges, 5, 6, true);
	assert_true(call_edges__pass(&edges, &f[1], true, &f[6], between, 4));
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
	assert_false(call_edges__pass(&edges, &f[1], false, &f[6], between, 4));
	assert_false(call_edges__pass(&edges, &f[1], true, &f[6], between, 2));
	assert_false(call_edges__pass(&edges, &f[1], true, &f[6], between, BETWEEN_MAX + 1));
	call_edges__fini(&edges);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_passed_is_known_by_its_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
