// SPDX-License-Identifier: MIT
#include "keep/folder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "said.h"
#include "stderr_capture.h"
#include "util/fs.h"

/* Ten seconds apart, from 10:00:00 on. */
#define AT(i) (1795255200000 + (uint64_t)(i)*10000)

struct fixture {
	char top[40], dir[64];
	struct folder folder;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->top, "/tmp/test_folder.XXXXXX");
	assert_non_null(mkdtemp(f->top));
	snprintf(f->dir, sizeof(f->dir), "%s/d", f->top);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(fs__remove_dir(f->top), 0);
	free(f);
	return 0;
}

static void open_it(struct fixture *f, size_t keep, uint64_t max_bytes)
{
	assert_int_equal(folder__open(&f->folder, f->dir, keep, max_bytes), 0);
}

static void write_bytes(const char *dir, size_t n)
{
	char path[PATH_MAX + 8];
	char *data = calloc(1, n);

	snprintf(path, sizeof(path), "%s/data", dir);
	assert_int_equal(fs__write(path, data, n), 0);
	free(data);
}

static int put(struct fixture *f, int i, size_t n)
{
	struct folder_slot slot;
	uint64_t bytes = 0;
	int err = folder__begin(&f->folder, "web", AT(i), &slot);

	assert_int_equal(err, 0);
	write_bytes(slot.partial, n);
	err = folder__finish(&f->folder, &slot, &bytes);
	if (!err)
		assert_int_equal(bytes, n);
	return err;
}

/* "0 2 5": which of put()'s are there, oldest first. */
static const char *kept(struct fixture *f)
{
	static char text[256];
	struct folder_content content;
	size_t n = 0;

	text[0] = '\0';
	assert_int_equal(folder__list(&f->folder, &content), 0);
	for (size_t i = 0; i < content.items.n; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%d", i ? " " : "",
				      (int)((content.items.v[i].unix_ms - AT(0)) / 10000));
	folder_content__fini(&content);
	return text;
}

static size_t entries(struct fixture *f)
{
	struct stat st;

	/* A directory's links: itself, its name, and each directory in it. */
	assert_int_equal(stat(f->dir, &st), 0);
	return st.st_nlink - 2;
}

static void test_the_newest_are_kept(void **state)
{
	struct fixture *f = *state;

	open_it(f, 3, 1 << 20);
	for (int i = 0; i < 5; i++)
		assert_int_equal(put(f, i, 100), 0);
	assert_string_equal(kept(f), "2 3 4");
	assert_int_equal(entries(f), 3);
}

static void test_all_together_are_no_larger(void **state)
{
	struct fixture *f = *state;

	open_it(f, 100, 1000);
	for (int i = 0; i < 4; i++)
		assert_int_equal(put(f, i, 300), 0);
	assert_string_equal(kept(f), "1 2 3");
	assert_int_equal(put(f, 4, 700), 0);
	assert_string_equal(kept(f), "3 4");
	assert_int_equal(put(f, 5, 1000), 0);
	assert_string_equal(kept(f), "5");
}

static void test_what_is_larger_than_all_costs_none_its_place(void **state)
{
	struct fixture *f = *state;

	open_it(f, 100, 1000);
	assert_int_equal(put(f, 0, 300), 0);
	assert_int_equal(put(f, 1, 1001), -EFBIG);
	assert_string_equal(kept(f), "0");
	assert_int_equal(entries(f), 1);
}

static void test_one_that_is_written_is_not_seen(void **state)
{
	struct fixture *f = *state;
	struct folder_slot slot;
	struct stat st;

	open_it(f, 1, 1 << 20);
	assert_int_equal(folder__begin(&f->folder, "web", AT(0), &slot), 0);
	write_bytes(slot.partial, 10);
	assert_string_equal(kept(f), "");
	assert_int_equal(stat(slot.path, &st), -1);
	assert_true(strrchr(slot.partial, '/')[1] == '.');
	/* Nor is it removed, by whoever else works here. */
	open_it(f, 1, 1 << 20);
	assert_int_equal(put(f, 1, 10), 0);
	assert_int_equal(put(f, 2, 10), 0);
	assert_int_equal(stat(slot.partial, &st), 0);
	folder__abandon(&slot);
	assert_string_equal(kept(f), "2");
	assert_int_equal(entries(f), 1);
}

static void test_what_a_killed_one_left_is_swept(void **state)
{
	struct fixture *f = *state;
	struct stderr_capture said;
	struct folder_slot slot;

	open_it(f, 5, 1 << 20);
	assert_int_equal(put(f, 0, 10), 0);
	assert_int_equal(folder__begin(&f->folder, "web", AT(1), &slot), 0);
	write_bytes(slot.partial, 10);
	close(slot.lock_fd); /* as the kernel does for the dead */
	stderr_capture__begin(&said);
	open_it(f, 5, 1 << 20);
	assert_non_null(
		strstr(stderr_capture__end(&said), "incomplete recording of an earlier mtbpf"));
	assert_string_equal(kept(f), "0");
	assert_int_equal(entries(f), 1);
}

static void test_one_that_is_read_stays(void **state)
{
	struct fixture *f = *state;
	struct stderr_capture said;
	struct folder_slot slot;
	uint64_t bytes;
	int fd;

	open_it(f, 2, 1 << 20);
	assert_int_equal(folder__begin(&f->folder, "web", AT(0), &slot), 0);
	assert_int_equal(folder__finish(&f->folder, &slot, &bytes), 0);
	fd = open(slot.path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	stderr_capture__begin(&said);
	for (int i = 1; i < 4; i++)
		assert_int_equal(put(f, i, 10), 0);
	ASSERT_WARNING(stderr_capture__end(&said), TEXT_not_removed_while_read, slot.path);
	assert_string_equal(kept(f), "0 3");
	close(fd);
	assert_int_equal(put(f, 4, 10), 0);
	assert_string_equal(kept(f), "3 4");
}

static void test_what_is_not_ours_stays(void **state)
{
	struct fixture *f = *state;
	char path[80];

	open_it(f, 1, 1000);
	snprintf(path, sizeof(path), "%s/mine.mtbpf", f->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	write_bytes(path, 5000);
	for (int i = 0; i < 3; i++)
		assert_int_equal(put(f, i, 10), 0);
	assert_string_equal(kept(f), "2");
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(entries(f), 2);
}

static void test_two_of_one_moment_are_both_kept(void **state)
{
	struct fixture *f = *state;

	open_it(f, 10, 1000);
	assert_int_equal(put(f, 0, 10), 0);
	assert_int_equal(put(f, 0, 20), 0);
	assert_string_equal(kept(f), "0 0");
}

static void test_what_fails_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct folder_slot slot;
	uint64_t bytes;

	open_it(f, 10, 1000);
	assert_int_equal(folder__begin(&f->folder, "web", AT(0), &slot), 0);
	/* Somebody has taken its name: rename(2) fails. */
	assert_int_equal(mkdir(slot.path, 0700), 0);
	write_bytes(slot.path, 1);
	assert_int_equal(folder__finish(&f->folder, &slot, &bytes), -ENOTEMPTY);
	assert_int_equal(entries(f), 1);
}

static void test_a_folder_that_is_none(void **state)
{
	struct fixture *f = *state;
	struct stderr_capture said;
	char deep[100];

	assert_int_equal(fs__write(f->dir, "x", 1), 0);
	stderr_capture__begin(&said);
	assert_int_equal(folder__open(&f->folder, f->dir, 1, 1), -ENOTDIR);
	assert_non_null(strstr(stderr_capture__end(&said), "hint:"));
	snprintf(deep, sizeof(deep), "%s/no/such", f->top);
	stderr_capture__begin(&said);
	assert_int_equal(folder__open(&f->folder, deep, 1, 1), -ENOENT);
	assert_non_null(strstr(stderr_capture__end(&said), "hint:"));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(test_the_newest_are_kept),
		IN_FOLDER(test_all_together_are_no_larger),
		IN_FOLDER(test_what_is_larger_than_all_costs_none_its_place),
		IN_FOLDER(test_one_that_is_written_is_not_seen),
		IN_FOLDER(test_what_a_killed_one_left_is_swept),
		IN_FOLDER(test_one_that_is_read_stays),
		IN_FOLDER(test_what_is_not_ours_stays),
		IN_FOLDER(test_two_of_one_moment_are_both_kept),
		IN_FOLDER(test_what_fails_leaves_nothing),
		IN_FOLDER(test_a_folder_that_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
