// SPDX-License-Identifier: MIT
/* -max-memory: what fits, and what is said where it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "capture/perf/perf_ring.h"
#include "said.h"
#include "stderr_capture.h"

enum { MB = 1 << 20 };

static int check(struct stderr_capture *said, uint64_t max, size_t n, bool by_cpu)
{
	int err;

	stderr_capture__begin(said);
	err = budget__check(max, n, 4 * MB, 4096, by_cpu);
	stderr_capture__end(said);
	return err;
}

static void test_all_rings_together(void **state)
{
	struct stderr_capture said;

	assert_int_equal(check(&said, 1024 * MB, 256, false), 0);
	assert_string_equal(said.text, "");
	assert_int_equal(check(&said, 1024 * MB, 257, false), -ENOMEM);
	assert_true(budget__allows(1024 * MB, 256, 4 * MB));
	assert_false(budget__allows(1024 * MB, 257, 4 * MB));
	assert_false(budget__allows(MB, SIZE_MAX, 4 * MB));
}

static void test_the_remedies_are_named(void **state)
{
	struct stderr_capture said;

	assert_int_equal(check(&said, 1024 * MB, 3000, false), -ENOMEM);
	ASSERT_ERROR(said.text, TEXT_rings_beyond_memory, (size_t)3000, "thread", "s", "4.0 MiB",
		     "11.7 GiB", "1.0 GiB");
	ASSERT_HINT(said.text, TEXT_size_fits, (size_t)256, "-cgroup");
	assert_int_equal(check(&said, 16 * MB, 8, true), -ENOMEM);
	ASSERT_ERROR(said.text, TEXT_rings_beyond_memory, (size_t)8, "CPU", "s", "4.0 MiB",
		     "32.0 MiB", "16.0 MiB");
	ASSERT_HINT(said.text, TEXT_size_fits, (size_t)2048, TEXT_larger_memory);
}

static void test_where_no_size_fits(void **state)
{
	struct stderr_capture said;

	assert_int_equal(check(&said, 4096, 2, true), -ENOMEM);
	assert_null(strstr(said.text, "-snapshot-size"));
	ASSERT_HINT(said.text, TEXT_larger_memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_rings_together),
		cmocka_unit_test(test_the_remedies_are_named),
		cmocka_unit_test(test_where_no_size_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
