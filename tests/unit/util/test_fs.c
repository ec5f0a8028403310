// SPDX-License-Identifier: MIT
#include "util/fs.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "util/cleanup.h"

/* A folder a test, which is also the working directory. */
static int enter_dir(void **state)
{
	const char *tmp = getenv("TMPDIR");
	char *dir;

	if (asprintf(&dir, "%s/test_fs.XXXXXX", tmp ? tmp : "/tmp") < 0)
		return -1;
	*state = dir;
	return mkdtemp(dir) ? chdir(dir) : -1;
}

static int leave_dir(void **state)
{
	int err = chdir("/") ? -errno : fs__remove_dir(*state);

	free(*state);
	return err;
}

static void make_file(const char *path, const char *text)
{
	assert_int_equal(fs__write(path, text, strlen(text)), 0);
}

static void expect_content(const char *path, const char *content, size_t len)
{
	_cleanup_free_ char *data = NULL;
	size_t n = 12345;

	assert_int_equal(fs__read(path, &data, &n), 0);
	assert_int_equal(n, len);
	assert_memory_equal(data, content, len);
	assert_int_equal(data[n], '\0');
}

static void test_reads_what_was_written(void **state)
{
	static const size_t sizes[] = {0, 1, 4094, 4095, 4096, 4097, 8192, 1 << 20};
	_cleanup_free_ char *content = malloc(1 << 20);

	for (size_t i = 0; i < 1 << 20; i++)
		content[i] = (char)(i * 7 + i / 256);
	/* From large to small: each must cut off what the one before left. */
	for (size_t i = sizeof(sizes) / sizeof(sizes[0]); i-- > 0;) {
		assert_int_equal(fs__write("file", content, sizes[i]), 0);
		expect_content("file", content, sizes[i]);
	}
}

#define MAPPINGS 1000
#define PAGE	 4096

static void test_reads_proc(void **state)
{
	char *pages = mmap(NULL, MAPPINGS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	_cleanup_free_ char *data = NULL;
	size_t len;

	/* Every second page has other rights, and so a line of its own: far more than one read. */
	assert_ptr_not_equal(pages, MAP_FAILED);
	for (size_t i = 0; i < MAPPINGS; i += 2)
		mprotect(pages + i * PAGE, PAGE, PROT_READ);
	assert_int_equal(fs__read("/proc/self/maps", &data, &len), 0);
	munmap(pages, MAPPINGS * PAGE);
	assert_true(len > MAPPINGS * strlen("7f0000000000-7f0000001000 r--p"));
	assert_int_equal(strlen(data), len);
	assert_non_null(strstr(data, "[stack]"));
}

static void test_reads_numbers(void **state)
{
	assert_int_equal(fs__write("n", "-1\nrest", 7), 0);
	assert_int_equal(fs__read_number("n", 7), -1);
	assert_int_equal(fs__write("n", "none", 4), 0);
	assert_int_equal(fs__read_number("n", 7), 7);
	assert_int_equal(fs__read_number("missing", 7), 7);
}

static void test_new_files_are_private(void **state)
{
	struct stat st;

	umask(0);
	make_file("secret", "x");
	assert_int_equal(stat("secret", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* But what is there already may be /dev/null: its mode is not ours to change. */
	assert_int_equal(chmod("secret", 0644), 0);
	make_file("secret", "y");
	assert_int_equal(stat("secret", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
}

static void test_errors(void **state)
{
	char *data = NULL;
	size_t len;

	assert_int_equal(fs__read("none", &data, &len), -ENOENT);
	assert_int_equal(fs__read(".", &data, &len), -EISDIR);
	assert_null(data);
	assert_int_equal(fs__write("none/file", "x", 1), -ENOENT);
	assert_int_equal(fs__write(".", "x", 1), -EISDIR);
	assert_int_equal(fs__write_fd(-1, "x", 1), -EBADF);
	if (!access("/dev/full", W_OK))
		assert_int_equal(fs__write("/dev/full", "x", 1), -ENOSPC);
}

#define PIPE_BYTES (1 << 20)

static void *drain(void *arg)
{
	static char sum[PIPE_BYTES];
	int fd = *(int *)arg;
	size_t n = 0;
	ssize_t got;

	/* Late enough for the writer to be blocked in a full pipe when the timer fires. */
	usleep(9000);
	while ((got = read(fd, sum + n, sizeof(sum) - n)) > 0)
		n += (size_t)got;
	return n == sizeof(sum) ? sum : NULL;
}

static void ignore_signal(int sig)
{
}

/* A blocking write of more than a pipe holds, interrupted by a timer: short writes and EINTR. */
static void test_writes_through_interruptions(void **state)
{
	struct sigaction act = {.sa_handler = ignore_signal};
	struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
	_cleanup_free_ char *content = malloc(PIPE_BYTES);
	pthread_t reader;
	sigset_t alarm_only;
	void *received;
	int fds[2], err;

	for (size_t i = 0; i < PIPE_BYTES; i++)
		content[i] = (char)(i * 31 + i / 1000);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
	/* The reader inherits the mask: only the writer is to be interrupted. */
	sigemptyset(&alarm_only);
	sigaddset(&alarm_only, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
	assert_int_equal(pthread_create(&reader, NULL, drain, &fds[0]), 0);
	pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	err = fs__write_fd(fds[1], content, PIPE_BYTES);
	setitimer(ITIMER_REAL, &never, NULL);
	close(fds[1]);
	pthread_join(reader, &received);
	close(fds[0]);
	assert_int_equal(err, 0);
	assert_non_null(received);
	assert_memory_equal(received, content, PIPE_BYTES);
}

static void test_removes_the_whole_tree(void **state)
{
	assert_int_equal(mkdir("tree", 0700), 0);
	assert_int_equal(mkdir("tree/images", 0700), 0);
	assert_int_equal(mkdir("tree/images/deep", 0700), 0);
	make_file("tree/data", "x");
	make_file("tree/.hidden", "x");
	make_file("tree/images/deep/vdso", "x");
	assert_int_equal(fs__remove_dir("tree"), 0);
	assert_int_equal(access("tree", F_OK), -1);
}

static void test_removes_links_not_what_they_name(void **state)
{
	assert_int_equal(mkdir("kept", 0700), 0);
	make_file("kept/file", "x");
	assert_int_equal(mkdir("tree", 0700), 0);
	assert_int_equal(symlink("../kept", "tree/to-dir"), 0);
	assert_int_equal(symlink("../kept/file", "tree/to-file"), 0);
	assert_int_equal(symlink("nowhere", "tree/dangling"), 0);
	assert_int_equal(symlink("kept", "link"), 0);

	assert_int_equal(fs__remove_dir("tree"), 0);
	expect_content("kept/file", "x", 1);
	assert_int_equal(fs__remove_dir("link"), -ENOTDIR);
	expect_content("kept/file", "x", 1);
}

static void test_removes_directories_only(void **state)
{
	make_file("file", "x");
	assert_int_equal(fs__remove_dir("file"), -ENOTDIR);
	assert_int_equal(access("file", F_OK), 0);
	assert_int_equal(fs__remove_dir("none"), -ENOENT);
}

static void test_puts_in_place_and_keeps_what_was_there(void **state)
{
	make_file("x.part", "1");
	assert_int_equal(fs__put_in_place("x.part", "x", "x.old"), 0);
	expect_content("x", "1", 1);
	assert_int_equal(access("x.old", F_OK), -1);
	for (int i = 0; i < 2; i++) {
		make_file("x.part", i ? "3" : "2");
		assert_int_equal(fs__put_in_place("x.part", "x", "x.old"), 0);
	}
	expect_content("x", "3", 1);
	expect_content("x.old", "2", 1);
	assert_int_equal(access("x.part", F_OK), -1);
	assert_int_equal(fs__put_in_place("x.part", "x", "x.old"), -ENOENT);
	/* What cannot be kept is not replaced. */
	make_file("x.part", "4");
	assert_int_equal(mkdir("folder", 0700), 0);
	assert_int_equal(fs__put_in_place("x.part", "x", "folder"), -EISDIR);
	expect_content("x", "3", 1);
	expect_content("x.part", "4", 1);
}

static void test_copies_whole_files(void **state)
{
	size_t n = 200000, len;
	char *big = malloc(n), *back;
	int fd;

	for (size_t i = 0; i < n; i++)
		big[i] = (char)(i * 7);
	assert_int_equal(fs__write("big", big, n), 0);
	fd = open("big", O_RDONLY);
	assert_int_equal(lseek(fd, 5, SEEK_SET), 5);
	assert_int_equal(fs__make_parents("a/b/copy", 0), 0);
	assert_int_equal(fs__make_parents("a/b/copy", 0), 0);
	assert_int_equal(fs__copy(fd, "a/b/copy"), 0);
	assert_int_equal(fs__copy(fd, "a/b/copy"), -EEXIST);
	close(fd);
	assert_int_equal(fs__read("a/b/copy", &back, &len), 0);
	assert_int_equal(len, n);
	assert_memory_equal(back, big, n);
	free(back);
	/* copy_file_range() does nothing with these. */
	fd = open("/proc/self/comm", O_RDONLY);
	assert_int_equal(fs__copy(fd, "comm"), 0);
	close(fd);
	assert_int_equal(fs__read("comm", &back, &len), 0);
	assert_true(len > 1);
	free(back);
	free(big);
}

static void test_a_copy_that_fails_leaves_nothing(void **state)
{
	int fd = open("/", O_RDONLY);

	assert_int_equal(fs__copy(fd, "none"), -EISDIR);
	assert_int_equal(access("none", F_OK), -1);
	close(fd);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, enter_dir, leave_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIR(test_reads_what_was_written),
		IN_DIR(test_reads_proc),
		IN_DIR(test_reads_numbers),
		IN_DIR(test_new_files_are_private),
		IN_DIR(test_errors),
		cmocka_unit_test(test_writes_through_interruptions),
		IN_DIR(test_removes_the_whole_tree),
		IN_DIR(test_removes_links_not_what_they_name),
		IN_DIR(test_removes_directories_only),
		IN_DIR(test_puts_in_place_and_keeps_what_was_there),
		IN_DIR(test_copies_whole_files),
		IN_DIR(test_a_copy_that_fails_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
