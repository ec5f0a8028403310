// SPDX-License-Identifier: MIT
// test_tags=slow
/* Decoded stacks of stepped programs against the true ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <gnu/libc-version.h>
#include <cmocka.h>

#include "soft_capture.h"
#include "truth_compare.h"

static const char *const small[] = {"-scale", "small", NULL};

static void check_program(const char *program, const char *const *options, int expected)
{
	struct soft_capture capture;
	size_t n;

	if (geteuid()) {
		print_message("# skip: needs root for the probe\n");
		skip();
	}
	soft_capture__make(&capture, program, small, options, expected);
	assert_true(soft_capture__target_is_free(&capture));
	n = truth_compare__recording(capture.recording, capture.truth);
	print_message("%s: %zu calls and returns, all as deep as they were\n", program, n);
	/* Two iterations at the least, on a machine however busy. */
	assert_true(n >= 20);
	soft_capture__end(&capture);
}

/* The exit code of a session whose time was over. */
#define NO_TRIGGER 3

/*
 * A probe that is hit but never fires, for as long as is given: how much is recorded depends on the
 * machine, whether it is right does not.
 */
#define WATCHED(option) "-symbol", "one_iter", option, "100s"
#define OPTIONS(...)	((const char *const[]){__VA_ARGS__, NULL})

static void test_triggered(void **state)
{
	check_program("service", OPTIONS("-symbol", "one_iter", "-delay-thresh", "400ms"), 0);
}

static void test_triggered_by_duration(void **state)
{
	check_program("service", OPTIONS("-symbol", "one_iter", "-duration-thresh", "400ms"), 0);
}

static void test_service(void **state)
{
	check_program("service", OPTIONS(WATCHED("-delay-thresh"), "-timeout", "3s"), NO_TRIGGER);
}

static void test_full_returns(void **state)
{
	check_program("service",
		      OPTIONS(WATCHED("-delay-thresh"), "-timeout", "2s", "-no-ret-compression"),
		      NO_TRIGGER);
}

static void test_cxx(void **state)
{
	check_program("cxx_service", OPTIONS(WATCHED("-delay-thresh"), "-timeout", "3s"),
		      NO_TRIGGER);
}

static void test_threads(void **state)
{
	check_program("threads", OPTIONS(WATCHED("-delay-thresh"), "-timeout", "5s"), NO_TRIGGER);
}

static void test_signals(void **state)
{
	check_program("signals", OPTIONS(WATCHED("-delay-thresh"), "-timeout", "5s"), NO_TRIGGER);
}

static void test_tailcalls(void **state)
{
	check_program("tailcalls", OPTIONS(WATCHED("-delay-thresh"), "-timeout", "4s"), NO_TRIGGER);
}

/* A return probe on every call: its trampoline is part of the trace. */
static void test_return_probe(void **state)
{
	check_program("service", OPTIONS(WATCHED("-duration-thresh"), "-timeout", "3s"),
		      NO_TRIGGER);
}

static void test_return_probe_in_threads(void **state)
{
	check_program("threads", OPTIONS(WATCHED("-duration-thresh"), "-timeout", "4s"),
		      NO_TRIGGER);
}

/* Each of the sequences is aborted: a stepped thread is preempted in it. */
static void test_aborted_sequences(void **state)
{
	if (strverscmp(gnu_get_libc_version(), "2.35") < 0) {
		print_message("# skip: needs glibc 2.35\n");
		skip();
	}
	check_program("rseqs", OPTIONS(WATCHED("-delay-thresh"), "-timeout", "2s"), NO_TRIGGER);
}

/* The smallest ring: the oldest packets are overwritten, in the middle of one most likely. */
static void test_wrapped(void **state)
{
	check_program("service",
		      OPTIONS(WATCHED("-delay-thresh"), "-timeout", "4s", "-snapshot-size", "16K"),
		      NO_TRIGGER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_triggered),    cmocka_unit_test(test_triggered_by_duration),
		cmocka_unit_test(test_service),	     cmocka_unit_test(test_full_returns),
		cmocka_unit_test(test_cxx),	     cmocka_unit_test(test_threads),
		cmocka_unit_test(test_signals),	     cmocka_unit_test(test_tailcalls),
		cmocka_unit_test(test_return_probe), cmocka_unit_test(test_return_probe_in_threads),
		cmocka_unit_test(test_wrapped),	     cmocka_unit_test(test_aborted_sequences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
