// SPDX-License-Identifier: MIT
/* Where a cgroup's name leads: absolute paths, and names in the hierarchy that is mounted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "said.h"
#include "stderr_capture.h"
#include "target/cgroup.h"

#define UNIFIED                                                                                    \
	"24 1 0:22 / / rw - ext4 /dev/sda1 rw\n"                                                   \
	"30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

#define HYBRID                                                                                     \
	"31 30 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"                                        \
	"32 31 0:29 / /sys/fs/cgroup/perf_event rw - cgroup cgroup rw,perf_event\n"                \
	"41 31 0:38 / /sys/fs/cgroup/unified rw shared:9 master:1 - cgroup2 cgroup2 rw\n"

static void assert_at(const char *mountinfo, const char *name, const char *where)
{
	char path[PATH_MAX];

	assert_int_equal(cgroup__locate(mountinfo, name, path), 0);
	assert_string_equal(path, where);
}

static void test_names_are_below_the_mount_point(void **state)
{
	assert_at(UNIFIED, "system.slice/a.service", "/sys/fs/cgroup/system.slice/a.service");
	assert_at(HYBRID, "box", "/sys/fs/cgroup/unified/box");
}

static void test_absolute_paths_are_themselves(void **state)
{
	assert_at(UNIFIED, "/sys/fs/cgroup/box", "/sys/fs/cgroup/box");
	assert_at("", "/anywhere", "/anywhere");
}

static void test_no_v2_hierarchy(void **state)
{
	const char *v1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup2 rw,cpu\n";
	const char *named = "40 31 0:9 / /mnt/cgroup2 rw - ext4 cgroup2 rw\n";
	char path[PATH_MAX];

	assert_int_equal(cgroup__locate("", "box", path), -ENOENT);
	assert_int_equal(cgroup__locate(v1, "box", path), -ENOENT);
	assert_int_equal(cgroup__locate(named, "box", path), -ENOENT);
	/* Cut in the middle of a line. */
	assert_int_equal(cgroup__locate("30 24 0:26 / ", "box", path), -ENOENT);
}

static void test_too_long_a_name(void **state)
{
	char name[PATH_MAX], path[PATH_MAX];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(cgroup__locate(UNIFIED, name, path), -ENAMETOOLONG);
	name[0] = '/';
	assert_int_equal(cgroup__locate(UNIFIED, name, path), 0);
}

static void test_what_is_no_cgroup_is_refused(void **state)
{
	struct stderr_capture said;
	struct cgroup cgroup;

	stderr_capture__begin(&said);
	assert_int_equal(cgroup__open(&cgroup, "/"), -EINVAL);
	assert_int_equal(cgroup__open(&cgroup, "/no/such/cgroup"), -EINVAL);
	assert_int_equal(cgroup__open(&cgroup, "/etc/passwd"), -EINVAL);
	stderr_capture__end(&said);
	assert_int_equal(cgroup.fd, -1);
	ASSERT_ERROR(said.text, TEXT_not_a_cgroup, "/");
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_the_cpus_of_the_nearest_cpuset(void **state)
{
	char dir[] = "/tmp/cgroup-XXXXXX", at[64], below[64], file[128];
	struct cgroup cgroup;
	cpu_set_t cpus;

	assert_non_null(mkdtemp(dir));
	snprintf(at, sizeof(at), "%s/at", dir);
	snprintf(below, sizeof(below), "%s/at/below", dir);
	assert_int_equal(mkdir(at, 0755) | mkdir(below, 0755), 0);
	cgroup.fd = open(below, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(cgroup.fd >= 0);
	snprintf(file, sizeof(file), "%s/cpuset.cpus.effective", at);
	write_file(file, "0-2,5\n");
	assert_int_equal(cgroup__cpus(&cgroup, &cpus), 0);
	assert_int_equal(CPU_COUNT(&cpus), 4);
	assert_true(CPU_ISSET(2, &cpus) && !CPU_ISSET(3, &cpus) && CPU_ISSET(5, &cpus));
	write_file(file, "7\n");
	assert_int_equal(cgroup__cpus(&cgroup, &cpus), 0);
	assert_true(CPU_COUNT(&cpus) == 1 && CPU_ISSET(7, &cpus));
	/* More than there can be. */
	write_file(file, "0-99999999\n");
	assert_int_equal(cgroup__cpus(&cgroup, &cpus), 0);
	assert_int_equal(CPU_COUNT(&cpus), CPU_SETSIZE);
	write_file(file, "\n");
	assert_int_equal(cgroup__cpus(&cgroup, &cpus), -ENOENT);
	close(cgroup.fd);
	assert_int_equal(unlink(file) | rmdir(below) | rmdir(at) | rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_are_below_the_mount_point),
		cmocka_unit_test(test_absolute_paths_are_themselves),
		cmocka_unit_test(test_no_v2_hierarchy),
		cmocka_unit_test(test_the_cpus_of_the_nearest_cpuset),
		cmocka_unit_test(test_too_long_a_name),
		cmocka_unit_test(test_what_is_no_cgroup_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
