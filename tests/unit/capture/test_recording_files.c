// SPDX-License-Identifier: MIT
/* The files in a recording's images/: which go there, how they are named, what is refused. */
#include "recording_dir_fixture.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "capture/recording/recording.h"

#define ID "00112233445566778899aabbccddeeff01234567"

static int file_of(const char *text)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_int_equal(fs__write_fd(fd, text, strlen(text)), 0);
	return fd;
}

static void add_file(struct fixture *f, const char *path, const char *build_id, const char *text,
		     const char *debug)
{
	struct rec_file file = {.path = (char *)path,
				.ino = f->rec.files.n + 7,
				.fd = text ? file_of(text) : -1,
				.debug_fd = debug ? file_of(debug) : -1};

	strcpy(file.build_id, build_id);
	assert_int_equal(recording__add_file(&f->rec, &file), 0);
}

static void assert_text(int fd, const char *text)
{
	char buf[64] = "";

	assert_true(fd >= 0);
	assert_true(pread(fd, buf, sizeof(buf) - 1, 0) >= 0);
	assert_string_equal(buf, text);
}

static bool exists(const struct fixture *f, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", f->path, name);
	return !access(path, F_OK);
}

static void test_round_trip(void **state)
{
	struct fixture *f = *state;
	const struct rec_file *files;

	f->rec.portable = true;
	add_file(f, "/usr/bin/x (deleted)", ID, "code", "names");
	add_file(f, "/opt/no id", "", "raw", NULL);
	add_file(f, "/gone", "abcd", NULL, NULL);
	/* The same file by another name is there once. */
	add_file(f, "/usr/bin/y", ID, "code", NULL);
	assert_int_equal(recording_files__size(&f->rec), strlen("code"
								"names"
								"raw"
								"code"));
	write_it(f);
	assert_int_equal(recording_files__size(&f->rec), 0);
	assert_int_equal(read_it(f), 0);
	assert_int_equal(f->back.files.n, 4);
	files = f->back.files.v;
	assert_string_equal(files[0].path, "/usr/bin/x");
	assert_string_equal(files[0].build_id, ID);
	assert_int_equal(files[0].ino, 7);
	assert_text(files[0].fd, "code");
	assert_text(files[0].debug_fd, "names");
	assert_text(files[1].fd, "raw");
	assert_int_equal(files[1].debug_fd, -1);
	assert_string_equal(files[2].build_id, "abcd");
	assert_int_equal(files[2].fd, -1);
	assert_text(files[3].fd, "code");
	/* What `perf --buildid-dir` looks for. */
	assert_true(exists(f, "images/.build-id/00/112233445566778899aabbccddeeff01234567/elf"));
	assert_true(exists(f, "images/.build-id/00/112233445566778899aabbccddeeff01234567/debug"));
}

/* Known by path and inode, whatever /proc adds to the path. */
static void test_mappings_get_their_build_ids(void **state)
{
	struct fixture *f = *state;
	struct rec_map map = {.path = "/lib/a", .ino = 7, .len = 1, .time_ns = 1000};

	add_file(f, "/lib/a", "aa11", "old", NULL);
	add_file(f, "/lib/a", "bb22", "new", NULL);
	assert_int_equal(recording__add_map(&f->rec, &map), 0);
	map.ino = 8;
	assert_int_equal(recording__add_map(&f->rec, &map), 0);
	map.path = "/lib/a (deleted)";
	assert_int_equal(recording__add_map(&f->rec, &map), 0);
	map.ino = 9;
	assert_int_equal(recording__add_map(&f->rec, &map), 0);
	write_it(f);
	assert_int_equal(read_it(f), 0);
	map = f->back.maps.v[f->back.maps.n - 4];
	assert_string_equal(map.build_id, "aa11");
	assert_string_equal(f->back.maps.v[f->back.maps.n - 3].build_id, "bb22");
	assert_string_equal(f->back.maps.v[f->back.maps.n - 2].build_id, "bb22");
	assert_string_equal(f->back.maps.v[f->back.maps.n - 1].build_id, "");
}

static void check_file(struct fixture *f, const char *fields)
{
	char meta[512];

	snprintf(meta, sizeof(meta), "{\"version\": 1, \"files\": [{%s}]}", fields);
	write_file(f, "meta.json", meta, strlen(meta));
	assert_int_equal(read_it(f), -EINVAL);
	ASSERT_SAID(f, "cannot read ");
}

static void test_damaged_meta(void **state)
{
	static const char *const names[] = {"../../etc/passwd",
					    "/etc/passwd",
					    "images/../../x",
					    "images/.build-id/ab/../elf",
					    "images/",
					    "meta.json",
					    "",
					    "images/.build-id/ab/cd/x",
					    "images/ab/cd",
					    "images/0/elf",
					    "data",
					    "images/.build-id/ab/cd"};
	struct fixture *f = *state;
	char fields[256];

	write_it(f);
	check_file(f, "\"path\": 1, \"build_id\": \"ab\"");
	check_file(f, "\"path\": \"/x\"");
	check_file(f, "\"path\": \"/x\", \"build_id\": \"" ID ID "\"");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(fields, sizeof(fields),
			 "\"path\": \"/x\", \"build_id\": \"\", \"file\": \"%s\"", names[i]);
		check_file(f, fields);
		snprintf(fields, sizeof(fields),
			 "\"path\": \"/x\", \"build_id\": \"\", \"debug\": \"%s\"", names[i]);
		check_file(f, fields);
	}
}

static void check_open(struct fixture *f, int err)
{
	const char *meta = "{\"version\": 1, \"files\": [{\"path\": \"/x\", \"build_id\": \"abcd\","
			   "\"file\": \"images/.build-id/ab/cd/elf\"}]}";

	write_file(f, "meta.json", meta, strlen(meta));
	assert_int_equal(read_it(f), err);
	ASSERT_SAID(f, "cannot read ");
}

/* No link leads out of a recording somebody sent, nor does a pipe make us wait. */
static void test_links_and_pipes_are_refused(void **state)
{
	struct fixture *f = *state;
	char dir[PATH_MAX], path[PATH_MAX + 8];

	write_it(f);
	check_open(f, -ENOENT);
	snprintf(dir, sizeof(dir), "%s/images/.build-id/ab/cd", f->path);
	snprintf(path, sizeof(path), "%s/elf", dir);
	assert_int_equal(fs__make_parents(path, 1), 0);
	assert_int_equal(symlink("/proc/self/exe", path), 0);
	check_open(f, -ELOOP);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	check_open(f, -EINVAL);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(symlink(f->folder, dir), 0);
	check_open(f, -ELOOP);
}

static void read_other(struct fixture *f, const char *path, int err)
{
	struct recording rec;

	recording__init(&rec);
	stderr_capture__begin(&f->said);
	assert_int_equal(recording__read(&rec, path), err);
	stderr_capture__end(&f->said);
	recording__fini(&rec);
	ASSERT_COMPLAINT(f->said.text);
	ASSERT_ERROR(f->said.text, TEXT_cannot_open, path, strerror(-err));
}

static void test_each_path_that_cannot_be_opened_is_named(void **state)
{
	static const char no_mmap[] = "/sys/kernel/mm/transparent_hugepage/enabled";
	struct fixture *f = *state;
	char path[PATH_MAX] = "/tmp";

	for (size_t len = 4; len + 2 < sizeof(path) - 1; len += 2)
		strcpy(path + len, "/.");
	read_other(f, path, -ENAMETOOLONG);
	read_other(f, f->path, -ENOENT);
	if (!access(no_mmap, R_OK))
		read_other(f, no_mmap, -ENODEV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_round_trip),
		TEST(test_mappings_get_their_build_ids),
		TEST(test_damaged_meta),
		TEST(test_links_and_pipes_are_refused),
		TEST(test_each_path_that_cannot_be_opened_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
