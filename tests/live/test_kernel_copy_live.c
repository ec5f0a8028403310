// SPDX-License-Identifier: MIT
/* This machine's own kernel: what is copied is what /proc/kcore shows, and its functions are found.
 */
#include "capture/code/kernel_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/symbols/live_image.h"
#include "util/clock.h"
#include "kernel/kernel.h"

#define SKIP_WITHOUT_KCORE                                                                         \
	do {                                                                                       \
		const struct kernel_refusal *refusal = kernel_access__try(true);                   \
		if (refusal) {                                                                     \
			printf("# skip: %s\n", refusal->what);                                     \
			skip();                                                                    \
		}                                                                                  \
	} while (0)

/* Bytes of the kernel by the shortest way: one segment of kcore holds them. */
static void read_kcore(uint64_t vaddr, uint8_t *buf, size_t len)
{
	int fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;
	bool found = false;

	assert_int_equal(read(fd, &ehdr, sizeof(ehdr)), sizeof(ehdr));
	for (int i = 0; i < ehdr.e_phnum && !found; i++) {
		off_t at = (off_t)(ehdr.e_phoff + (uint64_t)i * sizeof(phdr));

		assert_int_equal(pread(fd, &phdr, sizeof(phdr), at), sizeof(phdr));
		found = phdr.p_type == PT_LOAD && vaddr - phdr.p_vaddr < phdr.p_filesz;
	}
	assert_true(found);
	assert_int_equal(pread(fd, buf, len, (off_t)(phdr.p_offset + (vaddr - phdr.p_vaddr))), len);
	close(fd);
}

static void assert_same_code(struct code_map *map, uint64_t vaddr)
{
	uint8_t ours[256], theirs[256];

	assert_int_equal(code_map__read(map, vaddr, ours, sizeof(ours)), sizeof(ours));
	read_kcore(vaddr, theirs, sizeof(theirs));
	assert_memory_equal(ours, theirs, sizeof(ours));
}

/*
 * "foo.cold", found as a part of foo, or of an alias of foo: it may lie in front of foo (Linux 7.3)
 * as well as behind it.
 */
static bool is_cold_part(const char *kallsyms, const struct kallsym *part,
			 const struct code_place *place)
{
	const char *cold = memmem(part->name, part->name_len, ".cold", 5);
	size_t len = cold ? (size_t)(cold - part->name) : 0;
	struct kallsym sym;

	if (!cold)
		return false;
	if (strlen(place->function->name) == len && !memcmp(place->function->name, part->name, len))
		return true;
	while (kallsyms__next(&kallsyms, &sym))
		if (sym.address == place->entry && sym.name_len == len &&
		    !memcmp(sym.name, part->name, len))
			return true;
	return false;
}

/* Every 500th function of the kernel's, and the first of each module, byte by byte. */
static size_t compare_functions(const char *text, struct code_map *map, uint64_t etext)
{
	const char *kallsyms = text;
	struct kallsym sym;
	size_t n = 0, compared = 0;
	const char *module = "";

	while (kallsyms__next(&kallsyms, &sym)) {
		struct code_place place;
		bool is_new = sym.module && strncmp(module, sym.module, sym.module_len + 1);

		if (!kallsym__is_code(&sym) || (!sym.module && sym.address >= etext))
			continue;
		if (sym.module)
			module = sym.module;
		if (!is_new && ++n % 500)
			continue;
		/* Code of a module's start is gone when it has started. */
		if (!code_map__find(map, sym.address, &place)) {
			assert_non_null(sym.module);
			assert_int_not_equal(strncmp(sym.module, "bpf]", 4), 0);
			continue;
		}
		if (place.entry != sym.address && !is_cold_part(text, &sym, &place))
			fail_msg("%.*s is taken for a part of %s", (int)sym.name_len, sym.name,
				 place.function->name);
		assert_same_code(map, sym.address);
		compared++;
	}
	return compared;
}

static void test_the_copy_is_the_kernel(void **state)
{
	struct rec_kernel kernel;
	struct elf_image *image;
	struct code_map *map;
	struct code_place place;
	uint64_t start, etext, began = clock__now_ns();
	struct stat st;
	size_t n;

	SKIP_WITHOUT_KCORE;
	map = code_map__new();
	assert_int_equal(kernel_copy__make("/proc", true, &kernel), 0);
	printf("# copied in %llu ms\n", (unsigned long long)(clock__now_ns() - began) / 1000000);
	fstat(kernel.kcore, &st);
	began = clock__now_ns();
	image = kernel_image__open(kernel.kcore, kernel.kallsyms);
	assert_non_null(image);
	printf("# %zu functions read in %llu ms; %lld KB, %lld on the disk\n",
	       elf_image__function_count(image),
	       (unsigned long long)(clock__now_ns() - began) / 1000000,
	       (long long)st.st_size / 1024, (long long)st.st_blocks / 2);
	assert_int_equal(kernel_image__map(image, map), 0);
	assert_true(kallsyms__find(kernel.kallsyms, "__schedule", &start));
	assert_true(code_map__find(map, start + 1, &place));
	assert_string_equal(place.function->name, "__schedule");
	assert_true(kallsyms__find(kernel.kallsyms, "_etext", &etext));
	n = compare_functions(kernel.kallsyms, map, etext);
	printf("# %zu functions compared\n", n);
	assert_true(n > 20);
	code_map__free(map);
	elf_image__free(image);
	rec_kernel__fini(&kernel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_copy_is_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
