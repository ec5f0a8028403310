// SPDX-License-Identifier: MIT
/* Files that are not, or no longer, what ran. The file is this test itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "decode/images.h"
#include "failing_realloc.h"
#include "stderr_capture.h"

#define START 0x10000

struct fixture {
	struct recording rec;
	struct rec_map map;
	struct images *images;
	struct code_map *code;
	struct elf_image *self; /* opened beside the images */
	char path[PATH_MAX];
	struct stat st;
	struct stderr_capture err;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fd;

	assert_true(readlink("/proc/self/exe", f->path, sizeof(f->path) - 1) > 0);
	fd = open(f->path, O_RDONLY);
	assert_int_equal(fstat(fd, &f->st), 0);
	f->self = elf_image__open(fd, "self");
	assert_non_null(f->self);
	close(fd);
	f->map = (struct rec_map){
		.start = START, .len = 0x1000, .path = f->path, .ino = f->st.st_ino, .pid = 1};
	f->images = images__new(&f->rec);
	f->code = code_map__new();
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	images__free(f->images);
	code_map__free(f->code);
	elf_image__free(f->self);
	recording__fini(&f->rec);
	free(f);
	return 0;
}

/* What it says; the file is mapped or not. */
static const char *apply(struct fixture *f, bool *mapped)
{
	uint8_t byte;
	size_t next = 0;

	assert_int_equal(recording__add_map(&f->rec, &f->map), 0);
	stderr_capture__begin(&f->err);
	assert_int_equal(images__apply(f->images, 1, 0, &next, f->code), 0);
	stderr_capture__end(&f->err);
	*mapped = code_map__read(f->code, START, &byte, 1) == 1 && byte == 0x7f;
	return f->err.text;
}

static void test_the_file_itself(void **state)
{
	struct fixture *f = *state;
	bool mapped;

	assert_string_equal(apply(f, &mapped), "");
	assert_true(mapped);
}

static void test_a_build_id_that_fits(void **state)
{
	struct fixture *f = *state;
	bool mapped;

	/* Copied from elsewhere: another inode. */
	f->map.ino++;
	snprintf(f->map.build_id, sizeof(f->map.build_id), "%s", elf_image__build_id(f->self));
	assert_int_equal(strlen(f->map.build_id), 40);
	assert_string_equal(apply(f, &mapped), "");
	assert_true(mapped);
}

static void test_another_build_id(void **state)
{
	struct fixture *f = *state;
	const char *said;
	bool mapped;

	strcpy(f->map.build_id, "0123456789abcdef");
	said = apply(f, &mapped);
	assert_false(mapped);
	assert_non_null(strstr(said, f->path));
	assert_non_null(strstr(said, "0123456789abcdef"));
	assert_non_null(strstr(said, elf_image__build_id(f->self)));
	assert_non_null(strstr(said, "hint: "));
}

static void test_no_file(void **state)
{
	struct fixture *f = *state;
	bool mapped;

	f->map.path = "/no/such/file";
	assert_non_null(strstr(apply(f, &mapped), "/no/such/file (No such file or directory)"));
	assert_false(mapped);
}

/* Whichever allocation fails, the file is not called missing. */
static void test_no_memory_is_an_error(void **state)
{
	struct fixture *f = *state;
	int err = -ENOMEM, n_failed = 0;

	not_with_own_allocator();
	assert_int_equal(recording__add_map(&f->rec, &f->map), 0);
	stderr_capture__begin(&f->err);
	for (; err; n_failed += err != 0) {
		struct images *images = images__new(&f->rec);
		struct code_map *code = code_map__new();
		size_t next = 0;
		uint8_t byte;

		realloc_left = n_failed;
		err = images__apply(images, 1, 0, &next, code);
		realloc_left = -1;
		assert_true(err == -ENOMEM || code_map__read(code, START, &byte, 1) == 1);
		code_map__free(code);
		images__free(images);
	}
	assert_string_equal(stderr_capture__end(&f->err), "");
	assert_true(n_failed >= 2);
}

/* Of who may not look into the process's own: below no other name it is there. */
static void test_the_file_in_a_tree_that_is_held(void **state)
{
	struct fixture *f = *state;
	char *slash = strrchr(f->path, '/');
	struct rec_root *root = VEC_PUSH(&f->rec.roots);
	bool mapped;

	f->map.path = strdup(slash);
	*slash = '\0';
	*root = (struct rec_root){
		.pid = 1, .fd = open(f->path, O_PATH | O_CLOEXEC), .is_owner = true};
	assert_true(root->fd >= 0);
	assert_string_equal(apply(f, &mapped), "");
	assert_true(mapped);
	free(f->map.path);
}

static const char *mismatch(struct fixture *f)
{
	struct code_place place;

	assert_true(code_map__find(f->code, START, &place));
	stderr_capture__begin(&f->err);
	images__mismatch(f->images, place.image);
	images__mismatch(f->images, place.image);
	return stderr_capture__end(&f->err);
}

/* Somewhere in the code of this file, so that a place is found there. */
static void map_code(struct fixture *f)
{
	uint64_t offset = 0;

	while (elf_image__vaddr_of_offset(f->self, offset) == UINT64_MAX)
		offset += 0x1000;
	f->map.pgoff = offset;
}

static void test_a_mismatch_is_said_once(void **state)
{
	struct fixture *f = *state;
	bool mapped;
	const char *said;

	map_code(f);
	assert_string_equal(apply(f, &mapped), "");
	said = mismatch(f);
	assert_non_null(strstr(said, f->path));
	assert_null(strstr(strstr(said, f->path) + 1, f->path));
	assert_null(strstr(said, "inode"));
}

/* With no build id the name is all there is; the inode tells why it may not fit. */
static void test_a_mismatch_of_a_replaced_file(void **state)
{
	struct fixture *f = *state;
	char inodes[100];
	bool mapped;

	map_code(f);
	f->map.ino = f->st.st_ino + 7;
	assert_string_equal(apply(f, &mapped), "");
	snprintf(inodes, sizeof(inodes), "its inode was %llu and is now %llu",
		 (unsigned long long)f->map.ino, (unsigned long long)f->st.st_ino);
	assert_non_null(strstr(mismatch(f), inodes));
}

/* The recording's own file is the code, whatever else has its name by now. */
static void test_the_file_in_the_recording_comes_first(void **state)
{
	struct fixture *f = *state;
	struct rec_file file = {.path = "/bin/sh", .ino = 5, .debug_fd = -1};
	struct code_place place;
	bool mapped;

	map_code(f);
	file.fd = open(f->path, O_RDONLY | O_CLOEXEC);
	strcpy(file.build_id, elf_image__build_id(f->self));
	assert_int_equal(recording__add_file(&f->rec, &file), 0);
	f->map.path = "/bin/sh (deleted)";
	f->map.ino = 5;
	assert_string_equal(apply(f, &mapped), "");
	assert_true(code_map__find(f->code, START, &place));
	assert_string_equal(elf_image__build_id(place.image), elf_image__build_id(f->self));
}

static void add_copy(struct fixture *f, pid_t pid, uint64_t start, uint8_t byte)
{
	struct rec_image image = {.path = "", .start = start, .data = &byte, .size = 1, .pid = pid};

	assert_int_equal(recording__add_image(&f->rec, &image), 0);
}

static void test_memory_is_of_its_process(void **state)
{
	struct fixture *f = *state;
	struct code_map *code;
	uint8_t byte = 0;
	size_t next = 0;
	bool mapped;

	add_copy(f, 2, START, 0x22);
	add_copy(f, 1, START, 0x11);
	add_copy(f, 1, START + 0x1000, 0x33);
	assert_int_equal(recording__add_perf_map(&f->rec, 2, "10000 1 wrong\n"), 0);
	assert_int_equal(recording__add_perf_map(&f->rec, 1, "10000 1 right\n"), 0);
	f->map.path = "";
	f->map.ino = 0;
	assert_string_equal(apply(f, &mapped), "");
	assert_int_equal(code_map__read(f->code, START, &byte, 1), 1);
	assert_int_equal(byte, 0x11);
	/* Behind the mapping's end. */
	assert_int_equal(code_map__read(f->code, START + 0x1000, &byte, 1), 0);
	f->map.pid = 2;
	assert_int_equal(recording__add_map(&f->rec, &f->map), 0);
	code = code_map__new();
	assert_int_equal(images__apply(f->images, 2, 0, &next, code), 0);
	assert_int_equal(code_map__read(code, START, &byte, 1), 1);
	assert_int_equal(byte, 0x22);
	code_map__free(code);
}

static void test_memory_is_named(void **state)
{
	struct fixture *f = *state;
	struct code_place place;
	bool mapped;

	add_copy(f, 1, START, 0x11);
	assert_int_equal(recording__add_perf_map(&f->rec, 2, "10000 1 wrong\n"), 0);
	assert_int_equal(recording__add_perf_map(&f->rec, 1, "10000 1 old\n"), 0);
	assert_int_equal(recording__add_perf_map(&f->rec, 1, "10000 1 right\n"), 0);
	f->map.path = "/memfd:jit (deleted)";
	assert_string_equal(apply(f, &mapped), "");
	assert_true(code_map__find(f->code, START, &place));
	assert_string_equal(place.function->name, "right");
}

/* A recording of somebody who could not open the file has its memory at least. */
static void test_memory_of_a_file(void **state)
{
	struct fixture *f = *state;
	uint8_t byte;
	bool mapped;

	add_copy(f, 1, START, 0x11);
	f->map.ino++;
	assert_string_equal(apply(f, &mapped), "");
	assert_int_equal(code_map__read(f->code, START, &byte, 1), 1);
	assert_int_equal(byte, 0x11);
}

/* A probe that the kernel has made a call: its bytes, in the file's function. */
static void test_patches_of_a_file(void **state)
{
	static const uint8_t call[] = {0xe8, 1, 2, 3, 4};
	struct rec_file file = {.ino = 5, .path = "/bin/x", .debug_fd = -1};
	struct fixture *f = *state;
	struct rec_image image = {.path = f->path, .data = (uint8_t *)call, .size = 5, .pid = 1};
	struct code_place place;
	uint8_t bytes[5];
	bool mapped;

	map_code(f);
	file.fd = open(f->path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(recording__add_file(&f->rec, &file), 0);
	f->map.path = "/bin/x";
	f->map.ino = 5;
	image.start = START + 0x100;
	assert_int_equal(recording__add_image(&f->rec, &image), 0);
	image.start = START + 0x200;
	image.pid = 2;
	assert_int_equal(recording__add_image(&f->rec, &image), 0);
	assert_string_equal(apply(f, &mapped), "");
	assert_int_equal(code_map__read(f->code, START + 0x100, bytes, 5), 5);
	assert_memory_equal(bytes, call, 5);
	assert_int_equal(code_map__read(f->code, START + 0x200, bytes, 5), 5);
	assert_memory_not_equal(bytes, call, 5);
	assert_true(code_map__find(f->code, START + 0x100, &place));
	assert_string_equal(elf_image__build_id(place.image), elf_image__build_id(f->self));
}

/* What comes back from missing code fits nothing: the right file is not to blame. */
static void test_no_blame_where_code_is_missing(void **state)
{
	struct fixture *f = *state;
	struct code_place place;
	bool mapped;

	map_code(f);
	assert_string_equal(apply(f, &mapped), "");
	f->map.path = "/no/such/file";
	f->map.start = 2 * START;
	assert_string_not_equal(apply(f, &mapped), "");
	assert_true(code_map__find(f->code, START, &place));
	stderr_capture__begin(&f->err);
	images__mismatch(f->images, place.image);
	assert_string_equal(stderr_capture__end(&f->err), "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_file_itself),
		TEST(test_a_build_id_that_fits),
		TEST(test_another_build_id),
		TEST(test_no_file),
		TEST(test_no_memory_is_an_error),
		TEST(test_the_file_in_a_tree_that_is_held),
		TEST(test_a_mismatch_is_said_once),
		TEST(test_a_mismatch_of_a_replaced_file),
		TEST(test_the_file_in_the_recording_comes_first),
		TEST(test_memory_is_of_its_process),
		TEST(test_memory_is_named),
		TEST(test_memory_of_a_file),
		TEST(test_patches_of_a_file),
		TEST(test_no_blame_where_code_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
