// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/syscall.h>

#include "kernel/kernel.h"

static void test_names(void **state)
{
	assert_string_equal(syscall__name(0), "read");
	assert_string_equal(syscall__name(202), "futex");
	assert_string_equal(syscall__name(230), "clock_nanosleep");
	assert_string_equal(syscall__name(SYS_getuid), "getuid");
	assert_string_equal(syscall__name(SYS_futex_waitv), "futex_waitv");
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

static void test_kinds_of_probes_in_the_kernel(void **state)
{
	assert_int_equal(kernel_probe_kind__of("syscall:fsync"), KERNEL_PROBE_SYSCALL);
	assert_int_equal(kernel_probe_kind__of("kernel:vfs_fsync_range"), KERNEL_PROBE_FUNCTION);
	assert_int_equal(kernel_probe_kind__of("tracepoint:a:b"), KERNEL_PROBE_TRACEPOINT);
	assert_int_equal(kernel_probe_kind__of("signal:SEGV"), KERNEL_PROBE_SIGNAL);
	assert_int_equal(kernel_probe_kind__of("exit:nonzero"), KERNEL_PROBE_EXIT);
	assert_int_equal(kernel_probe_kind__of("oom:"), KERNEL_PROBE_OOM);
	assert_int_equal(kernel_probe_kind__of("jit:f"), KERNEL_PROBE_BREAKPOINT);
	assert_int_equal(kernel_probe_kind__of("usdt:a:b"), KERNEL_PROBE_NONE);
	assert_int_equal(kernel_probe_kind__of("kernel"), KERNEL_PROBE_NONE);
	assert_int_equal(kernel_probe_kind__of(""), KERNEL_PROBE_NONE);
}

static void test_kinds_among_several(void **state)
{
	assert_true(kernel_probe_kind__is_in(KERNEL_PROBE_OOM, "oom:"));
	assert_true(kernel_probe_kind__is_in(KERNEL_PROBE_SIGNAL, "f, signal:SEGV, oom:"));
	assert_true(kernel_probe_kind__is_in(KERNEL_PROBE_OOM, "f, signal:SEGV, oom:"));
	assert_false(kernel_probe_kind__is_in(KERNEL_PROBE_FUNCTION, "f, signal:SEGV, oom:"));
	/* A prefix inside a name is none. */
	assert_false(kernel_probe_kind__is_in(KERNEL_PROBE_OOM, "f(ns::oom:)"));
	assert_false(kernel_probe_kind__is_in(KERNEL_PROBE_OOM, ""));
	assert_false(kernel_probe_kind__is_in(KERNEL_PROBE_OOM, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_which_are_of_a_file),
		cmocka_unit_test(test_kinds_of_probes_in_the_kernel),
		cmocka_unit_test(test_kinds_among_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
