// SPDX-License-Identifier: MIT
/* From a small kernel's /proc to a recording's kcore_dir, and back as an image. */
#include "kernel_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/code/kernel_copy.h"
#include "recording_fixture.h"
#include "stderr_capture.h"
#include "target/code_map.h"
#include "target/symbols/live_image.h"

struct fixture {
	char proc[40];
	struct rec_kernel kernel;
	struct stderr_capture said;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	make_proc(f->proc);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	rec_kernel__fini(&f->kernel);
	assert_int_equal(fs__remove_dir(f->proc), 0);
	free(f);
	return 0;
}

static void copy(struct fixture *f)
{
	assert_int_equal(kernel_copy__make(f->proc, true, &f->kernel), 0);
}

static void assert_copy_fails(struct fixture *f, int err, const char *text)
{
	stderr_capture__begin(&f->said);
	assert_int_equal(kernel_copy__make(f->proc, true, &f->kernel), err);
	stderr_capture__end(&f->said);
	assert_null(f->kernel.kallsyms);
	assert_non_null(strstr(f->said.text, text));
	assert_non_null(strstr(f->said.text, "hint: "));
}

static void test_ranges(void **state)
{
	kernel_range_vec ranges = {0};

	assert_int_equal(kernel_ranges__find(kernel_kallsyms, kernel_modules, &ranges), 0);
	assert_int_equal(ranges.n, 3);
	/* Whole pages: _etext lies in the second. */
	assert_true(ranges.v[0].start == KERNEL_TEXT && ranges.v[0].end == KERNEL_TEXT + 0x2000);
	assert_true(ranges.v[1].start == MODULE_TEXT && ranges.v[1].end == MODULE_TEXT + 0x3000);
	assert_true(ranges.v[2].start == BPF_TEXT && ranges.v[2].end == BPF_TEXT + 0x10000);
	VEC_FINI(&ranges);
}

static void test_ranges_that_touch_are_one(void **state)
{
	kernel_range_vec ranges = {0};

	assert_int_equal(
		kernel_ranges__find(kernel_kallsyms,
				    "b 4097 0 - Live 0xffffffffa0001000\n"
				    "a 4096 2 b,c, Live 0xffffffffa0000000 (E)\n"
				    "c 100 0 - Live 0xffffffffa0002000\n"
				    "user 4096 0 - Live 0x0000000000400000\n"
				    "last 18446744073709551615 0 - Live 0xfffffffffffff000\n"
				    "no module\n",
				    &ranges),
		0);
	assert_int_equal(ranges.n, 3);
	assert_true(ranges.v[1].start == 0xffffffffa0000000 &&
		    ranges.v[1].end == 0xffffffffa0003000);
	VEC_FINI(&ranges);
}

static void test_a_module_is_bounded(void **state)
{
	kernel_range_vec ranges = {0};

	assert_int_equal(
		kernel_ranges__find("ffffffff81000000 T _stext\nffffffff81001000 T _etext\n",
				    "m 9999999999 0 - Live 0xffffffffa0000000\n", &ranges),
		0);
	assert_int_equal(ranges.n, 2);
	assert_true(ranges.v[1].end - ranges.v[1].start == 64 << 20);
	VEC_FINI(&ranges);
}

static void test_without_the_kernels_text_there_are_no_ranges(void **state)
{
	static const char *const texts[] = {
		"",
		"ffffffff81000000 T _stext\n",
		"0000000000000000 T _stext\n0000000000000000 T _etext\n",
		"ffffffff81001000 T _stext\nffffffff81000000 T _etext\n",
		"ffffffff81000000 T _stext\nffffffffc1000000 T _etext\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		kernel_range_vec ranges = {0};

		assert_int_equal(kernel_ranges__find(texts[i], kernel_modules, &ranges), -ENODATA);
		VEC_FINI(&ranges);
	}
}

/* What the map shows is what kcore showed, and what was not copied is not there. */
static void assert_code(struct code_map *map, uint64_t start, const uint8_t *code, size_t size)
{
	uint8_t *seen = malloc(size);

	assert_int_equal(code_map__read(map, start, seen, size), size);
	assert_memory_equal(seen, code, size);
	free(seen);
}

static void assert_kernel_code(const struct rec_kernel *kernel)
{
	struct elf_image *image = kernel_image__open(kernel->kcore, kernel->kallsyms);
	struct code_map *map = code_map__new();
	uint8_t text[KERNEL_TEXT_SIZE], *area = malloc(MODULE_AREA_SIZE), byte;

	assert_non_null(image);
	assert_int_equal(kernel_image__map(image, map), 0);
	fill_kernel_text(text);
	assert_code(map, KERNEL_TEXT, text, sizeof(text));
	fill_module_area(area);
	assert_code(map, MODULE_TEXT, area + (MODULE_TEXT - MODULE_AREA), 0x3000);
	assert_code(map, BPF_TEXT, area + (BPF_TEXT - MODULE_AREA), 0x10000);
	assert_int_equal(code_map__read(map, MODULE_AREA, &byte, 1), 0);
	assert_int_equal(code_map__read(map, KERNEL_TEXT - 1, &byte, 1), 0);
	free(area);
	code_map__free(map);
	elf_image__free(image);
}

static void test_the_copy_holds_what_kcore_shows(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	copy(f);
	assert_kernel_code(&f->kernel);
	assert_string_equal(f->kernel.kallsyms, kernel_kallsyms);
	assert_string_equal(f->kernel.modules, kernel_modules);
	/* A file without a name, which takes no room where nothing is mapped. */
	assert_int_equal(fstat(f->kernel.kcore, &st), 0);
	assert_int_equal(st.st_nlink, 0);
	assert_int_equal(st.st_size, 0x1000 + 0x2000 + 0x3000 + 0x10000);
}

static void test_a_kernel_without_modules(void **state)
{
	struct fixture *f = *state;
	char path[64];

	snprintf(path, sizeof(path), "%s/modules", f->proc);
	assert_int_equal(unlink(path), 0);
	copy(f);
	assert_string_equal(f->kernel.modules, "");
}

static void test_what_cannot_be_copied_is_said(void **state)
{
	struct fixture *f = *state;
	char path[64];

	write_in(f->proc, "kallsyms", "", 0);
	assert_copy_fails(f, -ENODATA, "cannot copy the kernel's code");
	write_in(f->proc, "kallsyms", kernel_kallsyms, sizeof(kernel_kallsyms) - 1);
	write_in(f->proc, "kcore", "\177ELF", 4);
	assert_copy_fails(f, -EIO, "kcore");
	snprintf(path, sizeof(path), "%s/kcore", f->proc);
	assert_int_equal(unlink(path), 0);
	assert_copy_fails(f, -ENOENT, "No such file");
}

static void test_kcore_without_the_text(void **state)
{
	struct fixture *f = *state;

	write_in(f->proc, "kallsyms", "ffffffffe1000000 T _stext\nffffffffe1001000 T _etext\n", 52);
	write_in(f->proc, "modules", "", 0);
	assert_copy_fails(f, -ENODATA, "No data available");
}

static void test_a_recording_keeps_it(void **state)
{
	struct fixture *f = *state;
	struct recording rec, back;
	char path[64];

	copy(f);
	recording__fill(&rec, 3);
	rec.kernel = f->kernel;
	f->kernel = (struct rec_kernel){0};
	snprintf(path, sizeof(path), "%s/x.mtbpf", f->proc);
	assert_int_equal(recording_dir__create(path), 0);
	assert_int_equal(recording__write(&rec, path), 0);
	recording__init(&back);
	assert_int_equal(recording__read(&back, path), 0);
	assert_kernel_code(&back.kernel);
	assert_string_equal(back.kernel.kallsyms, rec.kernel.kallsyms);
	assert_string_equal(back.kernel.modules, rec.kernel.modules);
	/* The kernel's mapping is perf's affair. */
	assert_int_equal(back.maps.n, rec.maps.n);
	recording__fini(&rec);
	recording__fini(&back);
}

static int read_back(const char *path)
{
	struct stderr_capture said;
	struct recording back;
	int err;

	recording__init(&back);
	stderr_capture__begin(&said);
	err = recording__read(&back, path);
	stderr_capture__end(&said);
	assert_int_equal(err != 0, strstr(said.text, "hint: ") != NULL);
	recording__fini(&back);
	return err;
}

static void test_a_damaged_kcore_dir(void **state)
{
	static const char *const names[] = {"kallsyms", "modules", "kcore"};
	struct fixture *f = *state;
	struct recording rec;
	char path[64], file[128];

	copy(f);
	recording__fill(&rec, 3);
	rec.kernel = f->kernel;
	f->kernel = (struct rec_kernel){0};
	snprintf(path, sizeof(path), "%s/x.mtbpf", f->proc);
	assert_int_equal(recording_dir__create(path), 0);
	assert_int_equal(recording__write(&rec, path), 0);
	for (size_t i = 0; i < 3; i++) {
		char kept[136];

		snprintf(file, sizeof(file), "%s/kcore_dir/%s", path, names[i]);
		snprintf(kept, sizeof(kept), "%s.kept", file);
		assert_int_equal(rename(file, kept), 0);
		assert_int_equal(read_back(path), -ENOENT);
		/* Out of the recording, or waiting for ever. */
		assert_int_equal(symlink("/etc/passwd", file), 0);
		assert_int_equal(read_back(path), -ELOOP);
		assert_int_equal(unlink(file), 0);
		assert_int_equal(mkfifo(file, 0600), 0);
		assert_int_equal(read_back(path), -EINVAL);
		assert_int_equal(unlink(file), 0);
		assert_int_equal(rename(kept, file), 0);
		assert_int_equal(read_back(path), 0);
	}
	recording__fini(&rec);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_ranges_that_touch_are_one),
		cmocka_unit_test(test_a_module_is_bounded),
		cmocka_unit_test(test_without_the_kernels_text_there_are_no_ranges),
		TEST(test_the_copy_holds_what_kcore_shows),
		TEST(test_a_kernel_without_modules),
		TEST(test_what_cannot_be_copied_is_said),
		TEST(test_kcore_without_the_text),
		TEST(test_a_recording_keeps_it),
		TEST(test_a_damaged_kcore_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
