// SPDX-License-Identifier: MIT
/* Symbols and lines in another file. The file is this test itself, taken apart with objcopy. */
#include "target/elf/debug_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/fs.h"

/* Its name and its line are what the stripped file lacks. */
static __attribute__((noipa)) int sample_of_debug_file(void)
{
	return 7;
}
enum { SAMPLE_LINE = __LINE__ - 3 };

struct fixture {
	char dir[48];	/* the root that is searched */
	char path[128]; /* the stripped file, in it */
};

static int shell(const char *dir, const char *command)
{
	char *line;
	int status;

	assert_true(asprintf(&line, "cd %s && (%s) >/dev/null 2>&1", dir, command) > 0);
	status = system(line);
	free(line);
	return status;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char *command;
	int status;

	strcpy(f->dir, "/tmp/test_debug_file.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/opt/prog", f->dir);
	assert_true(asprintf(&command,
			     "mkdir opt && cp /proc/%d/exe opt/whole && cd opt &&"
			     "objcopy --only-keep-debug whole prog.dbg &&"
			     "objcopy --strip-all --add-gnu-debuglink=prog.dbg whole prog",
			     (int)getpid()) > 0);
	status = shell(f->dir, command);
	free(command);
	*state = f;
	return status;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	int err = fs__remove_dir(f->dir);

	free(f);
	return err;
}

static struct elf_image *open_image(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_image *image = elf_image__open(fd, path);

	close(fd);
	assert_non_null(image);
	return image;
}

static const struct function *find_sample(struct elf_image *image)
{
	for (size_t i = 0; i < elf_image__function_count(image); i++)
		if (!strcmp(elf_image__raw_name(image, i), "sample_of_debug_file"))
			return elf_image__function(image, i);
	return NULL;
}

/* Whether the stripped file's function has its name and its line back. */
static bool has_names(const struct fixture *f)
{
	struct elf_image *image = open_image(f->path);
	/* The way programs see it: as a path in the root of a process. */
	bool found = debug_file__use(image, "/opt/prog", f->dir);
	const struct function *sample = find_sample(image);
	struct source_place place;

	assert_int_equal(sample != NULL, found);
	if (sample) {
		assert_true(function__source(sample, &place));
		assert_int_equal(place.line, SAMPLE_LINE);
		assert_ptr_equal(elf_image__function_at(image, sample->vaddr), sample);
	}
	elf_image__free(image);
	return found;
}

static void remove_build_id(const struct fixture *f)
{
	assert_int_equal(shell(f->dir,
			       "cd opt && rm prog* &&"
			       "objcopy --remove-section .note.gnu.build-id whole bare &&"
			       "objcopy --only-keep-debug bare prog.dbg &&"
			       "objcopy --strip-all --add-gnu-debuglink=prog.dbg bare prog"),
			 0);
}

/* To /usr/lib/debug/.build-id in the root. */
static void put_by_build_id(const struct fixture *f, const char *id)
{
	char *command;

	assert_true(asprintf(&command,
			     "mkdir -p usr/lib/debug/.build-id/%.2s && "
			     "mv opt/prog.dbg usr/lib/debug/.build-id/%.2s/%s.debug",
			     id, id, id + 2) > 0);
	assert_int_equal(shell(f->dir, command), 0);
	free(command);
}

static void test_whole_files_need_none(void **state)
{
	struct fixture *f = *state;
	struct elf_image *image;

	strcat(strcpy(f->path, f->dir), "/opt/whole");
	image = open_image(f->path);
	assert_false(elf_image__is_stripped(image));
	assert_int_equal(debug_file__open(image, "/opt/whole", f->dir), -ENOENT);
	assert_non_null(find_sample(image));
	elf_image__free(image);
}

static void test_beside_the_file(void **state)
{
	struct fixture *f = *state;

	assert_true(has_names(f));
	assert_int_equal(shell(f->dir, "mkdir opt/.debug && mv opt/prog.dbg opt/.debug"), 0);
	assert_true(has_names(f));
	assert_int_equal(shell(f->dir, "mkdir -p usr/lib/debug/opt && "
				       "mv opt/.debug/prog.dbg usr/lib/debug/opt"),
			 0);
	assert_true(has_names(f));
	assert_int_equal(shell(f->dir, "rm usr/lib/debug/opt/prog.dbg"), 0);
	assert_false(has_names(f));
}

static void test_by_build_id(void **state)
{
	struct fixture *f = *state;
	struct elf_image *image = open_image(f->path);

	if (!elf_image__build_id(image)[0]) {
		elf_image__free(image);
		print_message("# skip: the linker gave this program no build id\n");
		skip();
	}
	put_by_build_id(f, elf_image__build_id(image));
	elf_image__free(image);
	assert_true(has_names(f));
}

static void test_another_build_id_is_refused(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(shell(f->dir, "cp opt/whole other && printf 'int main(void){return 1;}' "
				       ">o.c && ${CC:-cc} -g -o o o.c -Wl,--build-id && "
				       "objcopy --only-keep-debug o opt/prog.dbg"),
			 0);
	assert_false(has_names(f));
}

static void test_by_crc(void **state)
{
	struct fixture *f = *state;

	remove_build_id(f);
	assert_true(has_names(f));
	/* A byte of padding at the end is no symbol, but another file. */
	assert_int_equal(shell(f->dir, "printf x >>opt/prog.dbg"), 0);
	assert_false(has_names(f));
}

/* libdw decompresses in place, and changes the headers as well. */
static void test_compressed_sections(void **state)
{
	struct fixture *f = *state;
	struct source_place place;
	struct elf_image *image;

	assert_int_equal(shell(f->dir, "cd opt && objcopy --compress-debug-sections prog.dbg && "
				       "objcopy --compress-debug-sections whole"),
			 0);
	assert_true(has_names(f));
	strcat(strcpy(f->path, f->dir), "/opt/whole");
	image = open_image(f->path);
	assert_true(function__source(find_sample(image), &place));
	assert_int_equal(place.line, SAMPLE_LINE);
	elf_image__free(image);
}

static void test_what_is_no_debug_file(void **state)
{
	struct fixture *f = *state;
	struct elf_image *image;
	int fd;

	assert_int_equal(shell(f->dir, "cd opt && rm prog.dbg && mkfifo prog.dbg"), 0);
	assert_false(has_names(f));
	assert_int_equal(shell(f->dir, "cd opt && rm prog.dbg && : >prog.dbg"), 0);
	assert_false(has_names(f));
	assert_int_equal(shell(f->dir, "cd opt && head -c 100 whole >prog.dbg"), 0);
	assert_false(has_names(f));
	/* Too late: somebody has looked names up. */
	image = open_image(f->path);
	elf_image__function_count(image);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_image__set_debug_file(image, fd), -EBUSY);
	close(fd);
	elf_image__free(image);
}

static void test_places_of_a_build_id(void **state)
{
	char path[256];

	assert_int_equal(build_id__path("abcdef", 0, path, sizeof(path)), 0);
	assert_string_equal(path, "/usr/lib/debug/.build-id/ab/cdef");
	setenv("HOME", "/home/x", 1);
	assert_int_equal(build_id__path("abcdef", 2, path, sizeof(path)), 0);
	assert_string_equal(path, "/home/x/.debug/.build-id/ab/cdef/elf");
	assert_int_equal(build_id__path("abcdef", 3, path, sizeof(path)), 0);
	assert_string_equal(path, "/home/x/.cache/debuginfod_client/abcdef/executable");
	setenv("DEBUGINFOD_CACHE_PATH", "/c", 1);
	assert_int_equal(build_id__path("abcdef", 3, path, sizeof(path)), 0);
	assert_string_equal(path, "/c/abcdef/executable");
	unsetenv("DEBUGINFOD_CACHE_PATH");
	assert_int_equal(build_id__path("abcdef", 4, path, sizeof(path)), -ENOENT);
	assert_int_equal(build_id__path("", 0, path, sizeof(path)), -ENOENT);
	assert_int_equal(build_id__path("../../etc/passwd", 0, path, sizeof(path)), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_whole_files_need_none),
		TEST(test_beside_the_file),
		TEST(test_by_build_id),
		TEST(test_another_build_id_is_refused),
		TEST(test_by_crc),
		TEST(test_compressed_sections),
		TEST(test_what_is_no_debug_file),
		cmocka_unit_test(test_places_of_a_build_id),
	};

	assert_int_equal(sample_of_debug_file(), 7);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
