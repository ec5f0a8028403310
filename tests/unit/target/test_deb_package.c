// SPDX-License-Identifier: MIT
/* Whose file it is, by a database of dpkg's in a folder of our own. */
#include "target/symbols/hints.h"

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
#include <unistd.h>

#include "util/fs.h"

static void put(const char *root, const char *file, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/var/lib/dpkg/info/%s", root, file);
	assert_int_equal(fs__write(path, text, strlen(text)), 0);
}

static int set_up(void **state)
{
	char *root = strdup("/tmp/test_deb_package.XXXXXX"), path[256];

	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/var/lib/dpkg/info/x", root);
	assert_int_equal(fs__make_parents(path, strlen(root)), 0);
	put(root, "postgresql-15.list", "/.\n/usr\n/usr/lib/postgresql/15/bin/postgres\n");
	put(root, "libc6:amd64.list", "/.\n/lib/x86_64-linux-gnu/libc.so.6\n/lib/last");
	put(root, "postgresql-15.md5sums", "/usr/bin/other\n");
	put(root, "\033[2J.list", "/usr/bin/other\n");
	*state = root;
	return 0;
}

static int tear_down(void **state)
{
	int err = fs__remove_dir(*state);

	free(*state);
	return err;
}

static void assert_owner(void **state, const char *path, const char *owner)
{
	char name[DEB_PACKAGE_SIZE] = "";
	int err = deb_package__owning(*state, path, name);

	assert_int_equal(err, owner ? 0 : -ENOENT);
	if (owner)
		assert_string_equal(name, owner);
}

static void test_a_whole_line_names_the_file(void **state)
{
	assert_owner(state, "/usr/lib/postgresql/15/bin/postgres", "postgresql-15");
	assert_owner(state, "/lib/last", "libc6");
	assert_owner(state, "/usr/lib/postgresql/15/bin/postgre", NULL);
	assert_owner(state, "/postgresql/15/bin/postgres", NULL);
	assert_owner(state, "", NULL);
	assert_owner(state, "[vdso]", NULL);
}

static void test_usr_may_be_merged(void **state)
{
	assert_owner(state, "/usr/lib/x86_64-linux-gnu/libc.so.6", "libc6");
	assert_owner(state, "/lib/postgresql/15/bin/postgres", "postgresql-15");
}

static void test_only_lists_of_packages_count(void **state)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/var/lib/dpkg/info/pipe.list", (char *)*state);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_owner(state, "/usr/bin/other", NULL);
}

static void test_no_database(void **state)
{
	char name[DEB_PACKAGE_SIZE];

	assert_int_equal(deb_package__owning("/proc/self/nothing", "/usr/bin/sleep", name),
			 -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_whole_line_names_the_file),
		cmocka_unit_test(test_usr_may_be_merged),
		cmocka_unit_test(test_only_lists_of_packages_count),
		cmocka_unit_test(test_no_database),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
