// SPDX-License-Identifier: MIT
/* The quota of a process, of files as the kernel writes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "target/cgroup.h"

static char top[] = "/tmp/test_cpu_quota.XXXXXX";

/* Folders on the way are made. */
static void put(const char *name, const char *text)
{
	char path[512];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", top, name);
	for (char *at = strchr(path + sizeof(top), '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		mkdir(path, 0700);
		*at = '/';
	}
	out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(top + strlen(top) - 6, "XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", top);
	return system(command);
}

static void put_mount(const char *type, const char *options)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "31 23 0:28 / /sys rw - sysfs sysfs rw\n"
		 "32 31 0:29 / %s/fs rw,relatime shared:9 - %s cgroup rw,%s\n",
		 top, type, options);
	put("proc/self/mountinfo", text);
}

static void assert_quota(const char *expected)
{
	struct cpu_quota quota;
	char proc[128];

	snprintf(proc, sizeof(proc), "%s/proc", top);
	assert_int_equal(cpu_quota__find(proc, 7, &quota), 0);
	assert_string_equal(quota.text, expected);
}

static void test_version_1(void **state)
{
	(void)state;
	put_mount("cgroup", "cpu,cpuacct");
	put("proc/7/cgroup", "4:cpuset:/other\n3:cpu,cpuacct:/web/a\n0::/x\n");
	put("fs/web/a/cpu.cfs_quota_us", "10000\n");
	put("fs/web/a/cpu.cfs_period_us", "100000\n");
	assert_quota("cgroup /web/a, quota 10.0 ms of 100 ms");
	/* Of the nearest that has one. */
	put("fs/web/a/cpu.cfs_quota_us", "-1\n");
	assert_quota("");
	put("fs/web/cpu.cfs_quota_us", "250000\n");
	put("fs/web/cpu.cfs_period_us", "100000\n");
	assert_quota("cgroup /web, quota 250 ms of 100 ms");
}

static void test_version_2(void **state)
{
	(void)state;
	put_mount("cgroup2", "nsdelegate");
	put("proc/7/cgroup", "0::/web/a\n");
	put("fs/web/a/cpu.max", "max 100000\n");
	put("fs/web/cpu.max", "50000 100000\n");
	assert_quota("cgroup /web, quota 50.0 ms of 100 ms");
}

static void assert_limit(const char *expected)
{
	struct cpu_quota limit;
	char proc[128];

	snprintf(proc, sizeof(proc), "%s/proc", top);
	assert_int_equal(memory_limit__find(proc, 7, &limit), 0);
	assert_string_equal(limit.text, expected);
}

/* The nearest, unless one above may have been reached instead. */
static void test_memory(void **state)
{
	(void)state;
	put_mount("cgroup", "memory");
	put("proc/7/cgroup", "4:cpu:/other\n3:memory:/web/a\n0::/x\n");
	put("fs/web/a/memory.limit_in_bytes", "9223372036854771712\n");
	assert_limit("");
	put("fs/web/memory.limit_in_bytes", "67108864\n");
	assert_limit("the limit of cgroup /web");
	put("fs/web/a/memory.limit_in_bytes", "33554432\n");
	assert_limit("the limit of cgroup /web/a, or of one above it");
}

static void test_memory_of_version_2(void **state)
{
	(void)state;
	put_mount("cgroup2", "nsdelegate");
	put("proc/7/cgroup", "0::/web/a\n");
	put("fs/web/a/memory.max", "max\n");
	put("fs/web/a/memory.high", "33554432\n");
	put("fs/web/memory.max", "max\n");
	assert_limit("the limit of cgroup /web/a");
}

static void test_what_is_not_there(void **state)
{
	struct cpu_quota quota;
	char proc[128];

	(void)state;
	snprintf(proc, sizeof(proc), "%s/proc", top);
	put_mount("cgroup", "memory");
	assert_int_equal(cpu_quota__find(proc, 7, &quota), -ENOENT);
	put("proc/7/cgroup", "3:cpu:/web/a\nno line of it\n");
	assert_int_equal(cpu_quota__find(proc, 7, &quota), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_version_1),		TEST(test_version_2),	      TEST(test_memory),
		TEST(test_memory_of_version_2), TEST(test_what_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
