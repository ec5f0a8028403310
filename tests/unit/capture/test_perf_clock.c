// SPDX-License-Identifier: MIT
/* Of several readings of the clocks the one that took the least time is the one that counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "capture/perf/perf_clock.h"

#define MOST_READINGS 64
#define SECOND_NS     1000000000u
#define LEAST_NS      700u

/* Two looks at the clock a reading; the n'th narrowest takes LEAST_NS, and the others more. */
static struct {
	bool is_ours;
	unsigned int looks, narrowest;
	uint64_t tsc[2 * MOST_READINGS];
} fake;

static uint64_t took_ns(unsigned int reading)
{
	if (reading == fake.narrowest)
		return LEAST_NS;
	return LEAST_NS + 1000 * (1 + (reading * 5) % 7);
}

/* Instead of the C library's: what is linked in comes first. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	uint64_t ns;

	if (!fake.is_ours || id != CLOCK_MONOTONIC || fake.looks >= 2 * MOST_READINGS)
		return (int)syscall(SYS_clock_gettime, id, ts);
	fake.tsc[fake.looks] = __rdtsc();
	ns = (fake.looks / 2 + 1) * (uint64_t)SECOND_NS;
	if (fake.looks % 2)
		ns += took_ns(fake.looks / 2);
	fake.looks++;
	*ts = (struct timespec){(time_t)(ns / SECOND_NS), (long)(ns % SECOND_NS)};
	return 0;
}

static int now(unsigned int narrowest, struct clock_point *point)
{
	int err;

	fake.looks = 0;
	fake.narrowest = narrowest;
	fake.is_ours = true;
	err = perf_clock__now(point);
	fake.is_ours = false;
	return err;
}

static void skip_without_perf(int err)
{
	if (err != -EACCES && err != -EPERM && err != -ENOSYS)
		return;
	print_message("# skip: this user may have no perf events\n");
	skip();
}

static void test_the_narrowest_of_several_readings(void **state)
{
	struct clock_point point;
	unsigned int readings = 1;

	skip_without_perf(now(0, &point));
	for (unsigned int i = 0; i < readings; i++) {
		assert_int_equal(now(i, &point), 0);
		readings = fake.looks / 2;
		assert_true(fake.looks % 2 == 0 && readings >= 4 && readings <= MOST_READINGS);
		assert_int_equal(point.monotonic_ns, (i + 1) * (uint64_t)SECOND_NS + LEAST_NS / 2);
		/* All three clocks are of the same one. */
		assert_true(point.tsc >= fake.tsc[2 * i] && point.tsc <= fake.tsc[2 * i + 1]);
	}
}

/* Points of later calls lie later on each clock. */
static void test_points_follow_each_other(void **state)
{
	struct clock_point first, last;

	skip_without_perf(perf_clock__now(&first));
	assert_int_equal(perf_clock__now(&first), 0);
	assert_int_equal(perf_clock__now(&last), 0);
	assert_true(last.perf_ns > first.perf_ns && last.tsc > first.tsc);
	assert_true(last.monotonic_ns > first.monotonic_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_narrowest_of_several_readings),
		cmocka_unit_test(test_points_follow_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
