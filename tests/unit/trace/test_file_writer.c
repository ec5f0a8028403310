// SPDX-License-Identifier: MIT
#include "trace/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define LARGE ((size_t)4 << 20)

struct file {
	char path[64];
	int fd;
	uint8_t *data; /* LARGE, at a page's begin; no two pages alike */
};

static int set_up(void **state)
{
	struct file *file = calloc(1, sizeof(*file));

	snprintf(file->path, sizeof(file->path), "/tmp/test_file_writer.XXXXXX");
	file->fd = mkstemp(file->path);
	assert_true(file->fd >= 0);
	assert_int_equal(posix_memalign((void **)&file->data, FILE_WRITER_PAGE, LARGE), 0);
	for (size_t i = 0; i < LARGE; i++)
		file->data[i] = (uint8_t)(i * 7 + i / FILE_WRITER_PAGE);
	*state = file;
	return 0;
}

static int tear_down(void **state)
{
	struct file *file = *state;

	close(file->fd);
	unlink(file->path);
	free(file->data);
	free(file);
	return 0;
}

/* The file holds these bytes, and nothing behind them. */
static void expect_bytes(struct file *file, off_t at, const void *data, size_t len)
{
	uint8_t *found = malloc(len + 1);

	assert_int_equal(fcntl(file->fd, F_SETFL, fcntl(file->fd, F_GETFL) & ~O_DIRECT), 0);
	assert_int_equal(pread(file->fd, found, len + 1, at), len);
	assert_memory_equal(found, data, len);
	free(found);
}

static bool is_direct(const struct file *file)
{
	return fcntl(file->fd, F_GETFL) & O_DIRECT;
}

/* False where this file system has no other way. */
static bool can_be_direct(const struct file *file)
{
	int flags = fcntl(file->fd, F_GETFL);
	bool can = !fcntl(file->fd, F_SETFL, flags | O_DIRECT);

	assert_int_equal(fcntl(file->fd, F_SETFL, flags), 0);
	return can;
}

static void test_goes_past_the_cache(void **state)
{
	struct file *file = *state;
	struct file_writer writer = {.fd = file->fd};

	if (!can_be_direct(file)) {
		print_message("# skip: no O_DIRECT in /tmp\n");
		skip();
	}
	assert_int_equal(file_writer__write(&writer, file->data, LARGE), 0);
	assert_true(is_direct(file));
	expect_bytes(file, 0, file->data, LARGE);
}

/* As a trace ends. */
static void test_rest_of_no_page(void **state)
{
	struct file *file = *state;
	struct file_writer writer = {.fd = file->fd};

	assert_int_equal(file_writer__write(&writer, file->data, LARGE), 0);
	assert_int_equal(file_writer__write(&writer, file->data + 8, 1000), 0);
	assert_false(is_direct(file));
	expect_bytes(file, LARGE, file->data + 8, 1000);
}

static void test_not_aligned(void **state)
{
	struct file *file = *state;
	struct file_writer writer = {.fd = file->fd};

	assert_int_equal(file_writer__write(&writer, file->data + 1, LARGE - 1), 0);
	expect_bytes(file, 0, file->data + 1, LARGE - 1);
}

static void test_small_stays_in_the_cache(void **state)
{
	struct file *file = *state;
	struct file_writer writer = {.fd = file->fd};

	assert_int_equal(file_writer__write(&writer, file->data, FILE_WRITER_PAGE), 0);
	assert_false(is_direct(file));
	expect_bytes(file, 0, file->data, FILE_WRITER_PAGE);
}

static void test_full_disk(void **state)
{
	struct file *file = *state;
	struct file_writer writer = {.fd = open("/dev/full", O_WRONLY)};

	assert_true(writer.fd >= 0);
	assert_int_equal(file_writer__write(&writer, file->data, LARGE), -ENOSPC);
	close(writer.fd);
}

/* Some of it is written before a limit is met: what is missing is told, and what is there is right.
 */
static void test_short_write(void **state)
{
	struct file *file = *state;
	struct file_writer writer = {.fd = file->fd};
	struct rlimit before, limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){LARGE / 2, before.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(file_writer__write(&writer, file->data, LARGE), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_DFL);
	expect_bytes(file, 0, file->data, LARGE / 2);
}

static void test_slow_disk(void **state)
{
	const uint64_t second = 1000000000, mb = 1 << 20;

	(void)state;
	assert_true(file_writer__is_slow(100 * mb, second));
	assert_false(file_writer__is_slow(1000 * mb, second));
	/* One piece may have had to wait. */
	assert_false(file_writer__is_slow(4 * mb, second));
	assert_false(file_writer__is_slow(0, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_goes_past_the_cache, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rest_of_no_page, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_not_aligned, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_small_stays_in_the_cache, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_full_disk, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_short_write, set_up, tear_down),
		cmocka_unit_test(test_slow_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
