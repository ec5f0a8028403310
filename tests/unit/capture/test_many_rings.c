// SPDX-License-Identifier: MIT
#include "capture/perf/perf_ring.h"
#include "util/fs.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "said.h"
#include "stderr_capture.h"

static void test_the_limit_is_raised(void **state)
{
	struct rlimit limit, before;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = 64;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(many_rings__allow(10, 3, 2), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(limit.rlim_cur >= 30 + 64);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void test_too_many_files(void **state)
{
	struct stderr_capture capture;
	struct rlimit allowed;
	const char *text;

	stderr_capture__begin(&capture);
	assert_int_equal(many_rings__allow(1000000000, 3, 0), -EMFILE);
	text = stderr_capture__end(&capture);
	getrlimit(RLIMIT_NOFILE, &allowed);
	ASSERT_ERROR(text, TEXT_threads_need_files, (size_t)1000000000, 3000000512ull,
		     (unsigned long long)allowed.rlim_cur);
	ASSERT_HINT(text, TEXT_allow_files, 3000000512ull);
}

static void test_too_many_mappings(void **state)
{
	struct stderr_capture capture;
	const char *text;

	stderr_capture__begin(&capture);
	assert_int_equal(many_rings__allow(10000000000, 0, 2), -EMFILE);
	text = stderr_capture__end(&capture);
	ASSERT_ERROR(text, TEXT_threads_need_mappings, (size_t)10000000000, (size_t)20000000512,
		     fs__read_number("/proc/sys/vm/max_map_count", 0));
	ASSERT_HINT(text, TEXT_allow_mappings, (size_t)20000000512);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_limit_is_raised),
		cmocka_unit_test(test_too_many_files),
		cmocka_unit_test(test_too_many_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
