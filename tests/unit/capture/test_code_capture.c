// SPDX-License-Identifier: MIT
/* What is kept of the code a process runs. The process is this test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/code/live_code.h"
#include "stderr_capture.h"
#include "target/elf/elf_image.h"
#include "util/fs.h"

#define PAGE 4096

struct fixture {
	struct recording rec;
	char dir[40], path[64];
	struct stderr_capture said;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	recording__init(&f->rec);
	strcpy(f->dir, "/tmp/test_code_capture.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/lib.so", f->dir);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	recording__fini(&f->rec);
	assert_int_equal(fs__remove_dir(f->dir), 0);
	free(f);
	return 0;
}

static void *map_file(const char *path)
{
	int fd = open(path, O_RDONLY);
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	close(fd);
	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static void *map_memory(size_t pages, int flags, int fd)
{
	void *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, flags, fd, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static void copy_self(const char *to)
{
	int fd = open("/proc/self/exe", O_RDONLY);

	assert_int_equal(fs__copy(fd, to), 0);
	close(fd);
}

static const struct rec_file *find_path(const struct recording *rec, const char *path)
{
	for (size_t i = 0; i < rec->files.n; i++)
		if (!strcmp(rec->files.v[i].path, path))
			return &rec->files.v[i];
	return NULL;
}

static const struct rec_image *find_start(const struct recording *rec, const void *start)
{
	for (size_t i = 0; i < rec->images.n; i++)
		if (rec->images.v[i].start == (uint64_t)(uintptr_t)start)
			return &rec->images.v[i];
	return NULL;
}

static void test_files_have_their_build_ids(void **state)
{
	struct fixture *f = *state;
	char self[256] = "";
	int fd = open("/proc/self/exe", O_RDONLY);
	struct elf_image *image = elf_image__open(fd, "self");
	struct stat held, st;
	size_t n;

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	assert_int_equal(code_files__note(&f->rec, getpid()), 0);
	n = f->rec.files.n;
	assert_non_null(find_path(&f->rec, self));
	assert_string_equal(find_path(&f->rec, self)->build_id, elf_image__build_id(image));
	assert_int_equal(fstat(find_path(&f->rec, self)->fd, &held), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(held.st_ino, st.st_ino);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(f->rec.files.v[i].path[0], '/');
	/* Once. */
	assert_int_equal(code_files__note(&f->rec, getpid()), 0);
	assert_int_equal(f->rec.files.n, n);
	elf_image__free(image);
	close(fd);
}

static void write_recording(struct fixture *f)
{
	char dir[80];

	snprintf(dir, sizeof(dir), "%s/x.mtbpf", f->dir);
	assert_int_equal(recording_dir__create(dir), 0);
	assert_int_equal(recording__write(&f->rec, dir), 0);
	recording__fini(&f->rec);
	recording__init(&f->rec);
	/* No PT is in it: what is asked for here has been read by then. */
	stderr_capture__begin(&f->said);
	recording__read(&f->rec, dir);
	stderr_capture__end(&f->said);
}

static void assert_same_bytes(int fd, const char *path)
{
	char *expected, *data, link[32];
	size_t n, n_expected;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	assert_int_equal(fs__read(path, &expected, &n_expected), 0);
	assert_int_equal(fs__read(link, &data, &n), 0);
	assert_int_equal(n, n_expected);
	assert_memory_equal(data, expected, n);
	free(data);
	free(expected);
}

/* An upgrade while it runs: nothing but the recording will have the old bytes. */
static void test_replaced_files_are_kept(void **state)
{
	struct fixture *f = *state;
	char new[80];
	void *p;

	snprintf(new, sizeof(new), "%s/new", f->dir);
	copy_self(f->path);
	p = map_file(f->path);
	assert_int_equal(code_files__note(&f->rec, getpid()), 0);
	assert_int_equal(fs__write(new, "other", 5), 0);
	assert_int_equal(rename(new, f->path), 0);
	write_recording(f);
	assert_non_null(find_path(&f->rec, f->path));
	assert_same_bytes(find_path(&f->rec, f->path)->fd, "/proc/self/exe");
	/* And what is still where it was is not. */
	for (size_t i = 0; i < f->rec.files.n; i++)
		assert_true(!strcmp(f->rec.files.v[i].path, f->path) || f->rec.files.v[i].fd == -1);
	munmap(p, PAGE);
}

static void test_deleted_files_are_kept(void **state)
{
	struct fixture *f = *state;
	void *p;

	if (getuid()) {
		print_message("# skip: only root may open what /proc/PID/map_files shows\n");
		skip();
	}
	copy_self(f->path);
	p = map_file(f->path);
	assert_int_equal(unlink(f->path), 0);
	assert_int_equal(code_files__note(&f->rec, getpid()), 0);
	write_recording(f);
	assert_non_null(find_path(&f->rec, f->path));
	assert_same_bytes(find_path(&f->rec, f->path)->fd, "/proc/self/exe");
	munmap(p, PAGE);
}

static void test_a_portable_recording_has_all_files(void **state)
{
	struct fixture *f = *state;
	size_t n;

	f->rec.portable = true;
	assert_int_equal(code_files__note(&f->rec, getpid()), 0);
	n = f->rec.files.n;
	assert_true(n > 2);
	write_recording(f);
	assert_int_equal(f->rec.files.n, n);
	for (size_t i = 0; i < n; i++)
		assert_same_bytes(f->rec.files.v[i].fd, f->rec.files.v[i].path);
}

/* Code in a file that is no ELF, of which only a hash tells which one it is. */
static void test_files_without_a_build_id(void **state)
{
	struct fixture *f = *state;
	char other[80];
	void *a, *b;

	snprintf(other, sizeof(other), "%s/other", f->dir);
	assert_int_equal(fs__write(f->path, "one", 3), 0);
	assert_int_equal(fs__write(other, "two", 3), 0);
	a = map_file(f->path);
	b = map_file(other);
	f->rec.portable = true;
	assert_int_equal(code_files__note(&f->rec, getpid()), 0);
	write_recording(f);
	assert_string_equal(find_path(&f->rec, other)->build_id, "");
	assert_same_bytes(find_path(&f->rec, f->path)->fd, f->path);
	assert_same_bytes(find_path(&f->rec, other)->fd, other);
	munmap(a, PAGE);
	munmap(b, PAGE);
}

static void test_memory_is_copied_where_it_is_used(void **state)
{
	struct fixture *f = *state;
	uint8_t *p = map_memory(16, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	memset(p + PAGE, 0xc3, 2 * PAGE);
	p[9 * PAGE + 5] = 0x90;
	assert_int_equal(code_copy__take(&f->rec, getpid(), CODE_COPY_MAX), 0);
	assert_null(find_start(&f->rec, p));
	assert_non_null(find_start(&f->rec, p + PAGE));
	assert_int_equal(find_start(&f->rec, p + PAGE)->size, 2 * PAGE);
	assert_memory_equal(find_start(&f->rec, p + PAGE)->data, p + PAGE, 2 * PAGE);
	assert_int_equal(find_start(&f->rec, p + PAGE)->pid, getpid());
	assert_non_null(find_start(&f->rec, p + 9 * PAGE));
	assert_int_equal(find_start(&f->rec, p + 9 * PAGE)->size, PAGE);
	munmap(p, 16 * PAGE);
}

static void test_the_newer_copy_replaces_the_older(void **state)
{
	struct fixture *f = *state;
	uint8_t *p = map_memory(1, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct rec_image kept = {.path = "[vdso]", .start = 1, .data = p, .size = 1};
	size_t n;

	assert_int_equal(recording__add_image(&f->rec, &kept), 0);
	p[0] = 1;
	assert_int_equal(code_copy__take(&f->rec, getpid(), CODE_COPY_MAX), 0);
	n = f->rec.images.n;
	p[0] = 2;
	assert_int_equal(code_copy__take(&f->rec, getpid(), CODE_COPY_MAX), 0);
	assert_int_equal(f->rec.images.n, n);
	assert_int_equal(find_start(&f->rec, p)->data[0], 2);
	assert_string_equal(f->rec.images.v[0].path, "[vdso]");
	munmap(p, PAGE);
}

/* Mapped twice: written here, run there. */
static void test_a_memfd_is_memory(void **state)
{
	struct fixture *f = *state;
	int fd = memfd_create("jit", 0);
	uint8_t *p;

	assert_int_equal(ftruncate(fd, PAGE), 0);
	p = map_memory(1, MAP_SHARED, fd);
	p[7] = 0xc3;
	assert_int_equal(code_files__note(&f->rec, getpid()), 0);
	assert_int_equal(code_copy__take(&f->rec, getpid(), CODE_COPY_MAX), 0);
	assert_non_null(find_start(&f->rec, p));
	assert_int_equal(find_start(&f->rec, p)->data[7], 0xc3);
	assert_non_null(strstr(find_start(&f->rec, p)->path, "/memfd:jit"));
	munmap(p, PAGE);
	close(fd);
}

static void test_files_are_not_copied_from_memory(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(code_files__note(&f->rec, getpid()), 0);
	assert_int_equal(code_copy__take(&f->rec, getpid(), CODE_COPY_MAX), 0);
	for (size_t i = 0; i < f->rec.images.n; i++)
		assert_int_not_equal(f->rec.images.v[i].path[0], '/');
}

/* Nobody may open it: its pages are in memory still. */
static void test_a_file_that_cannot_be_opened_is_copied(void **state)
{
	struct fixture *f = *state;
	void *p;

	copy_self(f->path);
	p = map_file(f->path);
	assert_int_equal(*(volatile char *)p, 0x7f);
	assert_int_equal(code_copy__take(&f->rec, getpid(), CODE_COPY_MAX), 0);
	assert_non_null(find_start(&f->rec, p));
	assert_string_equal(find_start(&f->rec, p)->path, f->path);
	assert_memory_equal(find_start(&f->rec, p)->data, p, PAGE);
	munmap(p, PAGE);
}

static void test_too_much_is_cut_and_said(void **state)
{
	struct fixture *f = *state;
	uint8_t *p = map_memory(64, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	size_t total = 0;

	/* In several pieces. */
	memset(p, 0xc3, 10 * PAGE);
	memset(p + 20 * PAGE, 0xc3, 10 * PAGE);
	memset(p + 40 * PAGE, 0xc3, 10 * PAGE);
	assert_int_equal(code_files__note(&f->rec, getpid()), 0);
	stderr_capture__begin(&f->said);
	assert_int_equal(code_copy__take(&f->rec, getpid(), 16 * PAGE), 0);
	stderr_capture__end(&f->said);
	for (size_t i = 0; i < f->rec.images.n; i++)
		total += f->rec.images.v[i].size;
	assert_int_equal(total, 16 * PAGE);
	assert_non_null(strstr(f->said.text,
			       "more code outside of files (JIT) than the limit of 64.0 KiB"));
	munmap(p, 64 * PAGE);
}

/* Calls in patched code are copied in any case: all copies can be larger than the limit. */
static void test_no_process_copies_more_than_is_left(void **state)
{
	struct fixture *f = *state;
	const struct rec_image other = {.size = CODE_COPY_MAX + 5, .pid = 1};
	uint8_t *code = map_memory(2, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct pid_set own = {0};

	memset(code, 0xc3, 2 * PAGE);
	assert_int_equal(VEC_ADD(&f->rec.images, other), 0);
	f->rec.images.v[0].path = strdup("[heap]");
	assert_int_equal(pid_set__add(&own, getpid()), 0);
	stderr_capture__begin(&f->said);
	assert_int_equal(live_code__take(&f->rec, &own, NULL), 0);
	stderr_capture__end(&f->said);
	assert_null(find_start(&f->rec, code));
	assert_non_null(strstr(f->said.text, "more code outside of files (JIT) than the limit"));
	pid_set__fini(&own);
	munmap(code, 2 * PAGE);
}

static void test_the_perf_map_comes_along(void **state)
{
	struct fixture *f = *state;
	uint8_t *p = map_memory(1, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	char path[64], text[64];

	p[0] = 0xc3;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	snprintf(text, sizeof(text), "%lx 10 my_jit\n", (unsigned long)(uintptr_t)p);
	assert_int_equal(fs__write(path, text, strlen(text)), 0);
	assert_int_equal(code_copy__take(&f->rec, getpid(), CODE_COPY_MAX), 0);
	unlink(path);
	assert_int_equal(f->rec.perf_maps.n, 1);
	write_recording(f);
	assert_int_equal(f->rec.perf_maps.n, 1);
	assert_int_equal(f->rec.perf_maps.v[0].pid, getpid());
	assert_string_equal(f->rec.perf_maps.v[0].text, text);
	assert_int_equal(find_start(&f->rec, p)->pid, getpid());
	munmap(p, PAGE);
}

static void test_a_process_that_is_gone(void **state)
{
	struct fixture *f = *state;
	uint8_t byte = 0xc3;
	struct rec_image image = {
		.path = "", .start = PAGE, .data = &byte, .size = 1, .pid = 0x7ffffffe};

	assert_int_equal(recording__add_image(&f->rec, &image), 0);
	assert_int_equal(code_files__note(&f->rec, 0x7ffffffe), 0);
	assert_int_equal(code_copy__take(&f->rec, 0x7ffffffe, CODE_COPY_MAX), 0);
	assert_int_equal(f->rec.images.n, 1);
	assert_int_equal(f->rec.files.n, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_files_have_their_build_ids),
		TEST(test_replaced_files_are_kept),
		TEST(test_deleted_files_are_kept),
		TEST(test_a_portable_recording_has_all_files),
		TEST(test_files_without_a_build_id),
		TEST(test_memory_is_copied_where_it_is_used),
		TEST(test_the_newer_copy_replaces_the_older),
		TEST(test_a_memfd_is_memory),
		TEST(test_files_are_not_copied_from_memory),
		TEST(test_a_file_that_cannot_be_opened_is_copied),
		TEST(test_too_much_is_cut_and_said),
		TEST(test_no_process_copies_more_than_is_left),
		TEST(test_the_perf_map_comes_along),
		TEST(test_a_process_that_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
