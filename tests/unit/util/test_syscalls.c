// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/syscall.h>

#include "kernel/syscalls.h"

static void test_names(void **state)
{
	assert_string_equal(syscall__name(0), "read");
	assert_string_equal(syscall__name(202), "futex");
	assert_string_equal(syscall__name(230), "clock_nanosleep");
	assert_null(syscall__name(SYS_getuid));
	assert_string_equal(syscall__selector(SYS_fsync), "syscall:fsync");
	assert_null(syscall__selector(-1));
	assert_null(syscall__name(-1));
	assert_null(syscall__name(1000000));
}

static void test_which_are_of_a_file(void **state)
{
	assert_true(syscall__is_of_file(SYS_recvfrom));
	assert_true(syscall__is_of_file(SYS_epoll_wait));
	assert_false(syscall__is_of_file(SYS_futex));
	assert_false(syscall__is_of_file(SYS_getpid));
	assert_false(syscall__is_of_file(-1));
	assert_false(syscall__is_of_file(1000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_which_are_of_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
