// SPDX-License-Identifier: MIT
#include "target/maps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include "util/vec.h"

static void expect(const char *mountinfo, const char *path, const char *const *expected, size_t n)
{
	struct layer_paths paths = {0};

	assert_int_equal(overlay__lower_paths(&paths, mountinfo, path), 0);
	assert_int_equal(paths.n, n);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(paths.v[i], expected[i]);
	VEC_FINI(&paths);
}

#define EXPECT(mountinfo, path, ...)                                                               \
	do {                                                                                       \
		const char *const expected[] = {__VA_ARGS__};                                      \
		expect(mountinfo, path, expected, sizeof(expected) / sizeof(expected[0]));         \
	} while (0)

#define ROOT                                                                                       \
	"500 400 0:40 / / rw,relatime master:1 shared:2 - overlay overlay "                        \
	"rw,lowerdir=/l/top:/l/base,upperdir=/u,workdir=/w,uuid=on\n"

static void test_lower_layers_topmost_first(void **state)
{
	EXPECT(ROOT, "/bin/service", "/l/top/bin/service", "/l/base/bin/service");
}

static void test_the_innermost_mount_counts(void **state)
{
	static const char mounts[] = ROOT "501 500 8:1 /srv /data rw - ext4 /dev/sda rw\n"
					  "502 501 0:41 /sub /data/app rw - overlay none "
					  "rw,lowerdir=/other,upperdir=/u2,workdir=/w2\n";

	expect(mounts, "/data/service", NULL, 0);
	EXPECT(mounts, "/data/app/service", "/other/sub/service");
	EXPECT(mounts, "/data-app/service", "/l/top/data-app/service", "/l/base/data-app/service");
}

static void test_of_two_on_one_point_the_later_is_on_top(void **state)
{
	expect(ROOT "503 500 8:1 / / rw - ext4 /dev/sda rw\n", "/bin/service", NULL, 0);
	EXPECT("500 1 8:1 / / rw - ext4 /dev/sda rw\n" ROOT, "/a", "/l/top/a", "/l/base/a");
}

static void test_names_with_special_characters(void **state)
{
	/* The blank by the kernel, the colon and the comma by overlayfs. */
	EXPECT("500 400 0:40 / /my\\040app rw - overlay overlay "
	       "rw,lowerdir=/a\\134:b:/c\\134,d\\040e,upperdir=/u,workdir=/w\n",
	       "/my app/x", "/a:b/x", "/c,d e/x");
}

static void test_layers_that_are_named_one_by_one(void **state)
{
	EXPECT("500 400 0:40 / / rw - overlay overlay "
	       "rw,lowerdir+=/a,lowerdir+=/b,upperdir=/u,workdir=/w\n",
	       "/x", "/a/x", "/b/x");
}

static void test_relative_layers_are_those_of_a_runtime(void **state)
{
	EXPECT("500 400 0:40 / / rw - overlay overlay rw,lowerdir=l/ABC,upperdir=u,workdir=w\n",
	       "/x", "/var/lib/docker/overlay2/l/ABC/x",
	       "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/l/ABC/x",
	       "/var/lib/containers/storage/overlay/l/ABC/x");
}

static void test_what_is_no_mountinfo(void **state)
{
	expect("", "/x", NULL, 0);
	expect("500\n - \n500 400 0:40 / / rw - overlay\n500 400 0:40 / / rw\n", "/x", NULL, 0);
	expect("500 400 0:40 / / rw - overlay overlay rw,lowerdir=,upperdir=/u\n", "/x", NULL, 0);
	expect("500 400 0:40 / / rw - overlay overlay rw,lowerdir=/a\\134\n", "relative", NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lower_layers_topmost_first),
		cmocka_unit_test(test_the_innermost_mount_counts),
		cmocka_unit_test(test_of_two_on_one_point_the_later_is_on_top),
		cmocka_unit_test(test_names_with_special_characters),
		cmocka_unit_test(test_layers_that_are_named_one_by_one),
		cmocka_unit_test(test_relative_layers_are_those_of_a_runtime),
		cmocka_unit_test(test_what_is_no_mountinfo),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
