// SPDX-License-Identifier: MIT
#include "sink_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void catch_stderr(struct folder *folder)
{
	int fd = open(folder->stderr_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	folder->stderr_fd = dup(STDERR_FILENO);
	dup2(fd, STDERR_FILENO);
	close(fd);
}

/* One "mtbpf: " line that holds `what`, one "hint: " line, nothing else. */
static void expect_message(struct folder *folder, const char *what)
{
	size_t len;
	char *text, *hint;

	dup2(folder->stderr_fd, STDERR_FILENO);
	close(folder->stderr_fd);
	text = read_whole_file(folder->stderr_file, &len);
	hint = strchr(text, '\n');
	assert_non_null(hint);
	*hint++ = '\0';
	assert_memory_equal(text, "mtbpf: ", 7);
	assert_non_null(strstr(text, what));
	assert_memory_equal(hint, "hint: ", 6);
	assert_ptr_equal(strchr(hint, '\n'), hint + strlen(hint) - 1);
	free(text);
}

static uint64_t write_file(struct folder *folder, const char *data)
{
	struct sink *sink = sink__open(folder->file);
	uint64_t bytes;

	assert_non_null(sink);
	write_data(sink, data);
	assert_int_equal(sink__error(sink), 0);
	assert_int_equal(sink__close(sink, &bytes), 0);
	return bytes;
}

static void test_plain(void **state)
{
	struct folder *folder = *state;
	char *data = make_data(), *found;
	size_t len;

	assert_int_equal(write_file(folder, data), DATA_SIZE);
	found = read_whole_file(folder->file, &len);
	assert_int_equal(len, DATA_SIZE);
	assert_memory_equal(found, data, DATA_SIZE);
	free(found);
	free(data);
}

static void test_gzip(void **state)
{
	struct folder *folder = *state;
	char *data = make_data(), *found = malloc(2 * DATA_SIZE);
	struct stat st;
	uint64_t bytes;

	use_suffix(folder, ".fxt.gz");
	bytes = write_file(folder, data);
	assert_int_equal(stat(folder->file, &st), 0);
	assert_int_equal(bytes, st.st_size);
	assert_true(bytes < DATA_SIZE / 2);
	assert_int_equal(inflate_file(folder->file, found, 2 * DATA_SIZE), DATA_SIZE);
	assert_memory_equal(found, data, DATA_SIZE);
	free(found);
	free(data);
}

static void test_zstd(void **state)
{
	struct folder *folder = *state;
	char *data = make_data(), *found = malloc(2 * DATA_SIZE);

	use_suffix(folder, ".fxt.zst");
	assert_true(write_file(folder, data) < DATA_SIZE / 2);
	assert_int_equal(decompress_file(folder->file, found, 2 * DATA_SIZE), DATA_SIZE);
	assert_memory_equal(found, data, DATA_SIZE);
	free(found);
	free(data);
}

/* Of this, the codecs hand out more at once than their output buffer takes. */
static void test_noise(void **state)
{
	struct folder *folder = *state;
	char *data = make_noise(), *found = malloc(2 * DATA_SIZE);

	use_suffix(folder, ".gz");
	write_file(folder, data);
	assert_int_equal(inflate_file(folder->file, found, 2 * DATA_SIZE), DATA_SIZE);
	assert_memory_equal(found, data, DATA_SIZE);
	unlink(folder->file);
	use_suffix(folder, ".zst");
	write_file(folder, data);
	assert_int_equal(decompress_file(folder->file, found, 2 * DATA_SIZE), DATA_SIZE);
	assert_memory_equal(found, data, DATA_SIZE);
	free(found);
	free(data);
}

static void test_mode_is_0600(void **state)
{
	struct folder *folder = *state;
	struct stat st;

	assert_int_equal(sink__close(sink__open(folder->file), NULL), 0);
	assert_int_equal(stat(folder->file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_existing_file_is_renamed(void **state)
{
	struct folder *folder = *state;
	struct sink *sink;
	size_t len;
	char *text;

	use_suffix(folder, ".fxt");
	for (int i = 0; i < 3; i++) {
		sink = sink__open(folder->file);
		sink__write(sink, "0\0001\0002" + 2 * i, 2);
		assert_int_equal(sink__close(sink, NULL), 0);
	}
	text = read_whole_file(folder->file, &len);
	assert_string_equal(text, "2");
	free(text);
	text = read_whole_file(folder->old, &len);
	assert_string_equal(text, "1");
	free(text);
}

/* So many files are in the folder. */
static int count_files(const struct folder *folder)
{
	DIR *dir = opendir(folder->path);
	int n = 0;

	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

/* Nobody takes half a file for one; and what was there goes when there is another. */
static void test_has_its_name_when_it_is_whole(void **state)
{
	struct folder *folder = *state;
	struct sink *sink;
	char *text;
	size_t len;

	use_suffix(folder, ".fxt");
	sink = sink__open(folder->file);
	sink__write(sink, "1", 1);
	assert_int_equal(access(folder->file, F_OK), -1);
	assert_int_equal(count_files(folder), 1);
	assert_int_equal(sink__close(sink, NULL), 0);
	assert_int_equal(access(folder->file, F_OK), 0);
	assert_int_equal(count_files(folder), 1);
	sink__abort(sink__open(folder->file));
	assert_int_equal(count_files(folder), 1);
	text = read_whole_file(folder->file, &len);
	assert_string_equal(text, "1");
	free(text);
}

/* It is known before the work. */
static void test_folder_where_the_old_one_goes(void **state)
{
	struct folder *folder = *state;

	use_suffix(folder, ".fxt");
	assert_int_equal(sink__close(sink__open(folder->file), NULL), 0);
	assert_int_equal(mkdir(folder->old, 0700), 0);
	catch_stderr(folder);
	assert_null(sink__open(folder->file));
	assert_int_equal(errno, EEXIST);
	expect_message(folder, ".old exists and is not a regular file");
	assert_int_equal(rmdir(folder->old), 0);
}

static void test_folder_in_the_way(void **state)
{
	struct folder *folder = *state;

	catch_stderr(folder);
	errno = 0;
	assert_null(sink__open(folder->path));
	assert_int_equal(errno, EEXIST);
	expect_message(folder, "is not a regular file");
}

static void test_missing_folder(void **state)
{
	struct folder *folder = *state;

	snprintf(folder->file, sizeof(folder->file), "%s/none/out.gz", folder->path);
	catch_stderr(folder);
	assert_null(sink__open(folder->file));
	assert_int_equal(errno, ENOENT);
	expect_message(folder, "No such file or directory");
}

/* Writes until it fails, and expects -err, the message, and no file left. */
static void expect_failure(struct folder *folder, int err, const char *what)
{
	char *data = make_noise();
	struct sink *sink = sink__open(folder->file);

	assert_non_null(sink);
	for (int i = 0; i < 100 && !sink__error(sink); i++)
		write_data(sink, data);
	assert_int_equal(sink__error(sink), -err);
	catch_stderr(folder);
	assert_int_equal(sink__close(sink, NULL), -err);
	expect_message(folder, what);
	assert_int_equal(access(folder->file, F_OK), -1);
	free(data);
}

static void test_file_size_limit(void **state)
{
	struct folder *folder = *state;
	struct rlimit old, limit;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	limit = old;
	limit.rlim_cur = 200000;
	setrlimit(RLIMIT_FSIZE, &limit);
	expect_failure(folder, EFBIG, "File too large");
	use_suffix(folder, ".zst");
	expect_failure(folder, EFBIG, "File too large");
	setrlimit(RLIMIT_FSIZE, &old);
}

static void test_full_file_system(void **state)
{
	struct folder *folder = *state;
	char *stderr_file = folder->stderr_file;

	if (unshare(CLONE_NEWNS) || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", folder->path, "tmpfs", 0, "size=256k")) {
		print_message("# skip: cannot mount a tmpfs: %s\n", strerror(errno));
		skip();
	}
	snprintf(stderr_file, sizeof(folder->stderr_file), "%s.stderr", folder->path);
	expect_failure(folder, ENOSPC, "No space left on device");
	use_suffix(folder, ".gz");
	expect_failure(folder, ENOSPC, "No space left on device");
	assert_int_equal(umount(folder->path), 0);
}

static void test_first_error_sticks(void **state)
{
	struct folder *folder = *state;
	struct sink *sink = sink__open(folder->file);

	sink__fail(sink, -ENOMEM);
	sink__fail(sink, -EIO);
	sink__write(sink, "x", 1);
	assert_int_equal(sink__error(sink), -ENOMEM);
	catch_stderr(folder);
	assert_int_equal(sink__close(sink, NULL), -ENOMEM);
	expect_message(folder, "Cannot allocate memory");
	assert_int_equal(access(folder->file, F_OK), -1);
}

static void test_abort_removes_the_file(void **state)
{
	struct folder *folder = *state;
	struct sink *sink;

	use_suffix(folder, ".gz");
	sink = sink__open(folder->file);
	sink__write(sink, "x", 1);
	sink__abort(sink);
	sink__abort(NULL);
	assert_int_equal(access(folder->file, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(test_plain),
		FOLDER_TEST(test_gzip),
		FOLDER_TEST(test_zstd),
		FOLDER_TEST(test_noise),
		FOLDER_TEST(test_mode_is_0600),
		FOLDER_TEST(test_existing_file_is_renamed),
		FOLDER_TEST(test_has_its_name_when_it_is_whole),
		FOLDER_TEST(test_folder_where_the_old_one_goes),
		FOLDER_TEST(test_folder_in_the_way),
		FOLDER_TEST(test_missing_folder),
		FOLDER_TEST(test_file_size_limit),
		FOLDER_TEST(test_full_file_system),
		FOLDER_TEST(test_first_error_sticks),
		FOLDER_TEST(test_abort_removes_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
