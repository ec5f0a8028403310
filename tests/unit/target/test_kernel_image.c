// SPDX-License-Identifier: MIT
/* The kernel's functions: names, modules, sizes; one image for all processes. */
#include "kernel_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "capture/code/kernel_copy.h"
#include "target/symbols/live_image.h"

static struct rec_kernel kernel;
static struct elf_image *image;

static int open_it(void **state)
{
	char proc[40];

	make_proc(proc);
	assert_int_equal(kernel_copy__make(proc, true, &kernel), 0);
	fs__remove_dir(proc);
	image = kernel_image__open(kernel.kcore, kernel.kallsyms);
	return image ? 0 : -1;
}

static int close_it(void **state)
{
	elf_image__free(image);
	rec_kernel__fini(&kernel);
	return 0;
}

static const struct function *at(uint64_t ip)
{
	return elf_image__function_at(image, ip);
}

static void test_the_kernels_functions(void **state)
{
	const struct function *f = at(KERNEL_TEXT + SCHEDULE + 5);

	assert_string_equal(f->name, "__schedule");
	assert_string_equal(f->module, KERNEL_MODULE);
	assert_true(f->vaddr == KERNEL_TEXT + SCHEDULE);
	assert_int_equal(f->size, SCHED_OUT - SCHEDULE);
	assert_ptr_equal(f, at(KERNEL_TEXT + SCHEDULE));
	assert_ptr_not_equal(f, at(KERNEL_TEXT + SCHED_OUT));
	assert_null(at(KERNEL_TEXT - 1));
}

static void test_modules_stand_behind_the_names(void **state)
{
	const struct function *f = at(MODULE_TEXT + 0x10);

	assert_string_equal(f->name, "mod_write [mod]");
	assert_string_equal(f->raw_name, "mod_write");
	assert_string_equal(f->module, "mod");
	assert_string_equal(at(MODULE_TEXT + 0xf)->name, "mod_read [mod]");
	assert_string_equal(at(BPF_TEXT)->name, "bpf_prog_0123_on_hit [bpf]");
}

static void test_aliases_and_cold_parts(void **state)
{
	const struct function *f = at(KERNEL_TEXT + DO_SYSCALL);

	assert_string_equal(f->name, "do_syscall_64");
	assert_ptr_equal(at(KERNEL_TEXT + DO_SYSCALL_COLD + 1), f);
	assert_string_equal(at(KERNEL_TEXT)->name, "entry_SYSCALL_64");
}

static void test_data_are_no_functions(void **state)
{
	assert_string_equal(at(MODULE_TEXT + 0x800)->name, "mod_write [mod]");
	for (size_t i = 0; i < elf_image__function_count(image); i++)
		assert_null(strstr(elf_image__raw_name(image, i), "data"));
}

static void test_every_process_has_it(void **state)
{
	const struct function *seen = NULL;

	for (int i = 0; i < 3; i++) {
		struct code_map *map = code_map__new();
		struct code_place place;

		assert_int_equal(kernel_image__map(image, map), 0);
		/* Twice is as good as once. */
		assert_int_equal(kernel_image__map(image, map), 0);
		assert_true(code_map__find(map, KERNEL_TEXT + TIMER + 1, &place));
		assert_true(place.entry == KERNEL_TEXT + TIMER);
		assert_true(!seen || seen == place.function);
		seen = place.function;
		code_map__free(map);
	}
}

/* A program is no kernel, and a kcore no program. */
static void test_only_core_files(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_null(kernel_image__open(fd, kernel_kallsyms));
	assert_int_equal(errno, ENOEXEC);
	close(fd);
	assert_null(elf_image__open(kernel.kcore, "kcore"));
	assert_int_equal(errno, ENOEXEC);
}

static void test_symbols_that_are_damaged(void **state)
{
	static const char *const texts[] = {"", "ffffffff81000040", "\n\n\t[",
					    "ffffffff81000040 T x\t["};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct elf_image *other = kernel_image__open(kernel.kcore, texts[i]);
		const struct function *f;

		assert_non_null(other);
		f = elf_image__function_at(other, KERNEL_TEXT + 0x40);
		assert_non_null(f);
		assert_true(f->name[0]);
		elf_image__free(other);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_kernels_functions),
		cmocka_unit_test(test_modules_stand_behind_the_names),
		cmocka_unit_test(test_aliases_and_cold_parts),
		cmocka_unit_test(test_data_are_no_functions),
		cmocka_unit_test(test_every_process_has_it),
		cmocka_unit_test(test_only_core_files),
		cmocka_unit_test(test_symbols_that_are_damaged),
	};

	return cmocka_run_group_tests(tests, open_it, close_it);
}
