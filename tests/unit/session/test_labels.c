// SPDX-License-Identifier: MIT
/* What recordings say of the container that they were made in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/labels.h"
#include "util/fs.h"

#define DOCKER_ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD_ID	  "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

/* NULL: the label is not set. */
static const char *find_label(const struct recording *rec, const char *key)
{
	for (size_t i = 0; i < rec->labels.n; i++)
		if (!strcmp(rec->labels.v[i].key, key))
			return rec->labels.v[i].value;
	return NULL;
}

static void put(const char *root, const char *name, const char *text)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(fs__make_parents(path, strlen(root) + 1), 0);
	assert_int_equal(fs__write(path, text, strlen(text)), 0);
}

static int make_root(void **state)
{
	char *root = strdup("/tmp/test_labels.XXXXXX");

	*state = root;
	return root && mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	fs__remove_dir(*state);
	free(*state);
	return 0;
}

static void test_docker(void **state)
{
	struct recording rec;

	recording__init(&rec);
	put(*state, "var/lib/docker/containers/" DOCKER_ID "/config.v2.json",
	    "{\"Name\": \"/web\", \"Config\": {\"Image\": \"shop/web:1.2\"}}");
	assert_int_equal(labels__add_container(&rec, *state,
					       "0::/system.slice/docker-" DOCKER_ID ".scope\n"),
			 0);
	assert_string_equal(find_label(&rec, "container"), "web");
	assert_string_equal(find_label(&rec, "image"), "shop/web:1.2");
	assert_null(find_label(&rec, "pod"));
	recording__fini(&rec);
}

static void test_pod(void **state)
{
	struct recording rec;

	recording__init(&rec);
	put(*state, "var/log/containers/web-1_shop_server-" POD_ID ".log", "");
	put(*state, "run/containerd/io.containerd.runtime.v2.task/k8s.io/" POD_ID "/config.json",
	    "{\"annotations\": {\"io.kubernetes.cri.container-name\": \"server\","
	    " \"io.kubernetes.cri.image-name\": \"shop/web:2\"}}");
	assert_int_equal(labels__add_container(
				 &rec, *state,
				 "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" POD_ID
				 ".scope\n"),
			 0);
	assert_string_equal(find_label(&rec, "container"), "server");
	assert_string_equal(find_label(&rec, "pod"), "shop/web-1");
	assert_string_equal(find_label(&rec, "image"), "shop/web:2");
	recording__fini(&rec);
}

static void test_no_container(void **state)
{
	struct recording rec;

	recording__init(&rec);
	assert_int_equal(labels__add_container(&rec, *state, "0::/user.slice/abc\n"), 0);
	assert_int_equal(rec.labels.n, 0);
	/* One that no runtime's files tell of has its ID. */
	assert_int_equal(labels__add_container(&rec, "/none", "0::/" POD_ID "\n"), 0);
	assert_string_equal(find_label(&rec, "container"), POD_ID);
	recording__fini(&rec);
}

static void test_labels_are_replaced_and_cleaned(void **state)
{
	struct recording rec;

	recording__init(&rec);
	assert_int_equal(recording__set_label(&rec, "zone", "a\033[2J"), 0);
	assert_string_equal(find_label(&rec, "zone"), "a?[2J");
	assert_int_equal(recording__set_label(&rec, "zone", "b"), 0);
	assert_string_equal(find_label(&rec, "zone"), "b");
	assert_int_equal(rec.labels.n, 1);
	assert_int_equal(recording__set_label(&rec, "zo\033ne", "c"), 0);
	assert_int_equal(recording__set_label(&rec, "zo\033ne", "d"), 0);
	assert_int_equal(rec.labels.n, 2);
	assert_string_equal(find_label(&rec, "zo?ne"), "d");
	recording__fini(&rec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_docker, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_pod, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_no_container, make_root, remove_root),
		cmocka_unit_test(test_labels_are_replaced_and_cleaned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
