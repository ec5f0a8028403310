// SPDX-License-Identifier: MIT
#include "target/process.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

static void expect(const char *text, int err, const pid_t *pids, size_t n)
{
	struct pid_set set = {0};

	assert_int_equal(pid_set__parse(&set, text), err);
	if (!err) {
		assert_int_equal(set.n, n);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(set.v[i], pids[i]);
	}
	pid_set__fini(&set);
}

static void test_several_in_order_each_once(void **state)
{
	expect("17", 0, (const pid_t[]){17}, 1);
	expect("17,4,19,4", 0, (const pid_t[]){4, 17, 19}, 3);
	expect("0", 0, NULL, 0);
}

static void test_what_is_no_pid(void **state)
{
	expect("", -EINVAL, NULL, 0);
	expect("self", -EINVAL, NULL, 0);
	expect("-5", -EINVAL, NULL, 0);
	expect(" 5", -EINVAL, NULL, 0);
	expect("5 6", -EINVAL, NULL, 0);
	expect("5,", -EINVAL, NULL, 0);
	expect(",5", -EINVAL, NULL, 0);
	expect("5,,6", -EINVAL, NULL, 0);
	expect("2147483648", -ERANGE, NULL, 0);
	expect("99999999999999999999", -ERANGE, NULL, 0);
}

static void test_comes_and_goes(void **state)
{
	struct pid_set set = {0};

	for (pid_t pid = 100; pid > 0; pid--)
		assert_int_equal(pid_set__add(&set, pid), 0);
	for (pid_t pid = 2; pid <= 100; pid += 2)
		pid_set__remove(&set, pid);
	pid_set__remove(&set, 1000);
	assert_int_equal(set.n, 50);
	for (pid_t pid = 0; pid <= 101; pid++)
		assert_int_equal(pid_set__has(&set, pid), pid < 100 && pid % 2);
	pid_set__fini(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_several_in_order_each_once),
		cmocka_unit_test(test_what_is_no_pid),
		cmocka_unit_test(test_comes_and_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
