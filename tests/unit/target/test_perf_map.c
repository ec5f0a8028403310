// SPDX-License-Identifier: MIT
#include "target/symbols/live_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/fs.h"

#define MOST (1u << 20)

/* The entries as "start+size name" lines. */
static void assert_parsed(const char *text, const char *expected)
{
	struct perf_map_entry *entries;
	char seen[4096] = "";
	size_t n;

	assert_int_equal(perf_map__parse(text, &entries, &n), 0);
	for (size_t i = 0; i < n; i++)
		snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%lx+%lx %.*s\n",
			 (unsigned long)entries[i].start, (unsigned long)entries[i].size,
			 (int)entries[i].name_len, entries[i].name);
	assert_string_equal(seen, expected);
	free(entries);
}

static void test_lines(void **state)
{
	assert_parsed("", "");
	assert_parsed("20 8 b\n10 4 a\n", "10+4 a\n20+8 b\n");
	assert_parsed("0x7fff00000000 0xFF LazyCompile:~f a b.js:1", "7fff00000000+ff "
								     "LazyCompile:~f a b.js:1\n");
}

static void test_lines_that_are_none(void **state)
{
	assert_parsed("x 8 b\n10 4\n10 4 \n10 0 empty\n\n 30 4 blank\n-1 4 sign\n40\n"
		      "ffffffffffffffff 8 wraps\n11111111111111111 1 long\n50 1 good\n",
		      "50+1 good\n");
	assert_parsed("10 4\n20 4 name\n", "20+4 name\n");
}

static void test_the_later_line_is_right(void **state)
{
	assert_parsed("10 10 old\n10 10 new\n", "10+10 new\n");
	assert_parsed("10 10 old\n18 10 new\n", "18+10 new\n");
	assert_parsed("18 10 old\n10 10 new\n", "10+10 new\n");
	assert_parsed("10 100 old\n20 8 new\n40 8 newer\n", "20+8 new\n40+8 newer\n");
	assert_parsed("20 8 old\n40 8 older\n10 100 new\n60 1 newest\n", "60+1 newest\n");
	assert_parsed("20 8 old\n40 8 older\n10 100 new\n", "10+100 new\n");
	assert_parsed("10 10 a\n20 10 b\n30 10 c\n", "10+10 a\n20+10 b\n30+10 c\n");
}

static void test_many_lines(void **state)
{
	const size_t n = 20000;
	char *text = malloc(n * 32), *p = text;
	struct perf_map_entry *entries;
	size_t n_entries;

	/* Each name twice: all of the first round are overwritten. */
	for (size_t round = 0; round < 2; round++)
		for (size_t i = 0; i < n / 2; i++)
			p += sprintf(p, "%zx 10 f%zu_%zu\n", 0x1000 + 16 * ((i * 7919) % (n / 2)),
				     round, i);
	assert_int_equal(perf_map__parse(text, &entries, &n_entries), 0);
	assert_int_equal(n_entries, n / 2);
	for (size_t i = 0; i < n_entries; i++)
		assert_int_equal(entries[i].name[1], '1');
	free(entries);
	free(text);
}

static void test_the_map_of_a_process(void **state)
{
	char path[64], *text;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	assert_null(perf_map__read(getpid(), MOST));
	assert_int_equal(fs__write(path, "10 4 mine\n", 10), 0);
	text = perf_map__read(getpid(), MOST);
	assert_string_equal(text, "10 4 mine\n");
	free(text);
	unlink(path);
}

/* The target writes it, and may make it as large as it likes: a sparse one takes no room. */
static void test_a_map_that_is_too_large_is_not_read(void **state)
{
	char path[64], *text;
	int fd;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	assert_int_equal(fs__write(path, "10 4 mine\n", 10), 0);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 3ll << 30), 0);
	text = perf_map__read(getpid(), MOST);
	assert_int_equal(ftruncate(fd, MOST), 0);
	assert_null(text);
	text = perf_map__read(getpid(), MOST);
	close(fd);
	unlink(path);
	assert_string_equal(text, "10 4 mine\n");
	free(text);
}

static void test_a_map_of_somebody_else(void **state)
{
	char path[64], elsewhere[80], *text;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	snprintf(elsewhere, sizeof(elsewhere), "%s.target", path);
	assert_int_equal(fs__write(elsewhere, "10 4 link\n", 10), 0);
	assert_int_equal(symlink(elsewhere, path), 0);
	text = perf_map__read(getpid(), MOST);
	unlink(path);
	unlink(elsewhere);
	assert_null(text);
	if (getuid()) {
		print_message("# skip: only root can make a file of another user\n");
		skip();
	}
	assert_int_equal(fs__write(path, "10 4 theirs\n", 12), 0);
	assert_int_equal(chown(path, 65534, 65534), 0);
	text = perf_map__read(getpid(), MOST);
	unlink(path);
	assert_null(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_lines_that_are_none),
		cmocka_unit_test(test_the_later_line_is_right),
		cmocka_unit_test(test_many_lines),
		cmocka_unit_test(test_the_map_of_a_process),
		cmocka_unit_test(test_a_map_that_is_too_large_is_not_read),
		cmocka_unit_test(test_a_map_of_somebody_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
