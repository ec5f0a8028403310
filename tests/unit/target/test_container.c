// SPDX-License-Identifier: MIT
/* What runtimes and the kubelet call cgroups, and what they leave on the disk. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "target/container.h"
#include "util/fs.h"
#include "util/vec.h"

#define ID "3f4a1c0d9e8b7a6f5e4d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a0f9e8d"

static void test_names_of_container_cgroups(void **state)
{
	static const char *const shapes[] = {
		"docker-" ID ".scope", "cri-containerd-" ID ".scope", "crio-" ID ".scope",
		"libpod-" ID ".scope", "nerdctl-" ID ".scope",	      "crio-" ID,
		"libpod-" ID,	       "libpod-payload-" ID,	      ID};

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		assert_true(container_cgroup__is(shapes[i], ID));
		assert_true(container_cgroup__is(shapes[i], "3f4a1c0d9e8b"));
		assert_true(container_cgroup__is(shapes[i], "3"));
		assert_true(container_cgroup__is(shapes[i], "3F4A"));
		assert_false(container_cgroup__is(shapes[i], "4a1c"));
		assert_false(container_cgroup__is(shapes[i], ID "0"));
		assert_false(container_cgroup__is(shapes[i], ""));
	}
}

static void test_what_is_no_container_of_it(void **state)
{
	assert_false(container_cgroup__is("libpod-conmon-" ID ".scope", "3f4a"));
	assert_false(container_cgroup__is("crio-conmon-" ID ".scope", ID));
	assert_false(container_cgroup__is("session-3.scope", "3"));
	assert_false(container_cgroup__is("docker-3f4a.scope", "3f"));
	assert_false(container_cgroup__is("3f4a-not-hexadecimal", "3f4a"));
	/* An ID that is a name has to be whole. */
	assert_true(container_cgroup__is("redis", "redis"));
	assert_false(container_cgroup__is("redis", "red"));
}

#define UID	       "12a4f6b8-90cd-4e12-8f3a-5b6c7d8e9fa0"
#define UID_OF_SYSTEMD "12a4f6b8_90cd_4e12_8f3a_5b6c7d8e9fa0"

static void test_names_of_pod_cgroups(void **state)
{
	assert_true(
		container_cgroup__is_pod("kubepods-burstable-pod" UID_OF_SYSTEMD ".slice", UID));
	assert_true(container_cgroup__is_pod("kubepods-pod" UID_OF_SYSTEMD ".slice", UID));
	assert_true(container_cgroup__is_pod("pod" UID, UID));
	/* Of a static pod: a hash. */
	assert_true(container_cgroup__is_pod("pod3f4a1c0d", "3f4a1c0d"));
	assert_false(container_cgroup__is_pod("pod" UID, "9fa0"));
	assert_true(container_cgroup__is_pod(
		"kubelet-kubepods-besteffort-pod" UID_OF_SYSTEMD ".slice", UID));
	assert_false(container_cgroup__is_pod("notkubepods-pod" UID_OF_SYSTEMD ".slice", UID));
	assert_false(container_cgroup__is_pod("other-pod" UID_OF_SYSTEMD ".slice", UID));
	assert_false(container_cgroup__is_pod("kubepods-burstable.slice", UID));
	assert_false(container_cgroup__is_pod("od" UID, UID));
}

/* ---- in a folder */

static int make_root(void **state)
{
	char *root = strdup("/tmp/mtbpf-container.XXXXXX");

	*state = root;
	return root && mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	int err = fs__remove_dir(*state);

	free(*state);
	return err;
}

static void put(const char *root, const char *name, const char *text)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(fs__make_parents(path, strlen(root) + 1), 0);
	assert_int_equal(text ? fs__write(path, text, strlen(text)) : mkdir(path, 0700), 0);
}

static const char *id_of(const struct container_names *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (!strcmp(names->v[i].name, name))
			return names->v[i].id;
	return "";
}

static void test_names_by_runtime(void **state)
{
	struct container_names names = {0};
	const char *task = "run/containerd/io.containerd.runtime.v2.task/";
	char path[256];

	put(*state, "var/lib/docker/containers/aaa/config.v2.json",
	    "{\"ID\": \"aaa\", \"Name\": \"/web\", \"State\": {}}");
	put(*state, "var/lib/docker/containers/bad/config.v2.json", "{\"Name\": \"/br");
	put(*state, "var/lib/docker/containers/odd/config.v2.json", "{\"Name\": 7}");
	put(*state, "var/lib/containers/storage/overlay-containers/containers.json",
	    "[{\"id\": \"bbb\", \"names\": [\"db\", \"db-alias\"]}, {\"names\": [\"no-id\"]},"
	    " {\"id\": \"ccc\"}]");
	put(*state, "var/lib/containers/storage/overlay-containers/volatile-containers.json",
	    "[{\"id\": \"eee\", \"names\": [\"once\"]}]");
	put(*state, "var/lib/containers/storage/vfs-containers/containers.json",
	    "[{\"id\": \"fff\", \"names\": [\"of-vfs\"]}]");
	put(*state, "var/lib/containers/storage/overlay-images/containers.json",
	    "[{\"id\": \"ggg\", \"names\": [\"none\"]}]");
	snprintf(path, sizeof(path), "%sk8s.io/ddd/config.json", task);
	put(*state, path,
	    "{\"annotations\": {\"io.kubernetes.cri.container-name\": \"app\", \"x\": 1}}");
	snprintf(path, sizeof(path), "%sdefault/redis/config.json", task);
	put(*state, path, "[]");
	put(*state, "run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/hhh/config.json",
	    "{\"annotations\": {\"io.kubernetes.cri.container-name\": \"in-k3s\"}}");

	assert_int_equal(container_names__read(&names, *state), 0);
	assert_string_equal(id_of(&names, "web"), "aaa");
	assert_string_equal(id_of(&names, "db"), "bbb");
	assert_string_equal(id_of(&names, "db-alias"), "bbb");
	assert_string_equal(id_of(&names, "no-id"), "");
	assert_string_equal(id_of(&names, "once"), "eee");
	assert_string_equal(id_of(&names, "of-vfs"), "fff");
	assert_string_equal(id_of(&names, "app"), "ddd");
	assert_string_equal(id_of(&names, "redis"), "redis");
	assert_string_equal(id_of(&names, "in-k3s"), "hhh");
	assert_int_equal(names.n, 10);
	container_names__fini(&names);
}

static void test_pods_by_their_logs(void **state)
{
	struct container_names names = {0};

	put(*state, "var/log/pods/shop_web-0_" UID "/app/0.log", "");
	put(*state, "var/log/pods/nothing", "");
	put(*state, "var/log/pods/half_name", "");
	put(*state, "var/log/containers/web-0_shop_app-" ID ".log", "");
	put(*state, "var/log/containers/web-0_shop.log", "");
	assert_int_equal(pod_names__read(&names, *state), 0);
	assert_string_equal(id_of(&names, "shop/web-0"), UID);
	assert_string_equal(id_of(&names, "shop/web-0/app"), ID);
	assert_int_equal(names.n, 2);
	container_names__fini(&names);
}

static void test_nothing_there(void **state)
{
	struct container_names names = {0};

	assert_int_equal(container_names__read(&names, *state), 0);
	assert_int_equal(pod_names__read(&names, *state), 0);
	assert_int_equal(names.n, 0);
}

static void test_search_of_the_tree(void **state)
{
	struct cgroup_paths paths = {0};
	char expected[4096];

	put(*state, "system.slice/docker-" ID ".scope/init", NULL);
	put(*state, "kubepods.slice/a/pod" UID "/" ID "/" ID, NULL);
	put(*state, "other/" ID, ""); /* a file */
	assert_int_equal(container_cgroup__find(&paths, *state, container_cgroup__is, "3f4a"), 0);
	assert_int_equal(paths.n, 2);
	paths.n = 0;
	assert_int_equal(container_cgroup__find(&paths, *state, container_cgroup__is_pod, UID), 0);
	assert_int_equal(paths.n, 1);
	snprintf(expected, sizeof(expected), "%s/kubepods.slice/a/pod" UID, (char *)*state);
	assert_string_equal(paths.v[0], expected);
	VEC_FINI(&paths);
	assert_int_equal(container_cgroup__find(&paths, "/nowhere", container_cgroup__is, "3"),
			 -ENOENT);
}

#define IN_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_of_container_cgroups),
		cmocka_unit_test(test_what_is_no_container_of_it),
		cmocka_unit_test(test_names_of_pod_cgroups),
		IN_ROOT(test_names_by_runtime),
		IN_ROOT(test_pods_by_their_logs),
		IN_ROOT(test_nothing_there),
		IN_ROOT(test_search_of_the_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
