// SPDX-License-Identifier: MIT
/* Files that are not what elf_image would like them to be: code alone, other formats, damage. */
#include "target/elf/elf_image.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include <cmocka.h>

#include "eh_image.h"
#include "util/cleanup.h"

/* f<A<int, int>, A<A<int, int>, A<int, int> >, ...>: every level says the one before twice. */
static void nest(char *raw_name, int levels)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	strcpy(raw_name, "_Z1fI1AIiiE");
	for (int i = 1; i <= levels; i++)
		sprintf(raw_name + strlen(raw_name), "S0_IS%c_S%c_E", digits[i], digits[i]);
	strcat(raw_name, "Evv");
}

static void test_a_name_that_explodes_is_left_as_it_is(void **state)
{
	char raw_name[512], *text;

	nest(raw_name, 1);
	text = elf_image__short_name(raw_name);
	assert_string_equal(text, "f<A<int, int>, A<A<int, int>, A<int, int> > >");
	free(text);
	/* Some 2^38 characters. */
	nest(raw_name, 34);
	assert_null(elf_image__short_name(raw_name));
}

static void test_raw_code_is_one_function(void **state)
{
	struct elf_image *image = elf_image__raw("\x90\xc3", 2, "[uprobes]", "uretprobe");
	const struct function *f = elf_image__function_at(image, 1);
	struct source_place place;

	assert_string_equal(f->name, "uretprobe");
	assert_string_equal(f->module, "[uprobes]");
	assert_int_equal(f->vaddr, 0);
	assert_int_equal(f->size, 2);
	assert_ptr_equal(elf_image__function_at(image, 0), f);
	assert_null(elf_image__function_at(image, 2));
	assert_int_equal(elf_image__vaddr_of_offset(image, 1), 1);
	assert_int_equal(elf_image__function_count(image), 1);
	assert_false(function__source(f, &place));
	assert_string_equal(elf_image__build_id(image), "");
	elf_image__free(image);
	assert_null(elf_image__raw("", 0, "empty", "empty"));
}

static void test_refuses_other_files(void **state)
{
	Elf64_Ehdr ehdr = {.e_ident = ELFMAG, .e_type = ET_REL, .e_machine = EM_X86_64};

	ehdr.e_ident[EI_CLASS] = ELFCLASS64;
	ehdr.e_ident[EI_DATA] = ELFDATA2LSB;
	errno = 0;
	assert_null(elf_image__from_bytes("#!/bin/sh\n", 10, "script"));
	assert_int_equal(errno, ENOEXEC);
	assert_null(elf_image__from_bytes("", 0, "empty"));
	assert_int_equal(errno, ENOEXEC);
	assert_null(elf_image__from_bytes(&ehdr, sizeof(ehdr), "object"));
	assert_int_equal(errno, ENOEXEC);
	ehdr.e_type = ET_DYN;
	ehdr.e_machine = EM_AARCH64;
	assert_null(elf_image__from_bytes(&ehdr, sizeof(ehdr), "arm"));
	assert_int_equal(errno, ENOEXEC);
	ehdr.e_machine = EM_X86_64;
	ehdr.e_phentsize = sizeof(Elf64_Phdr);
	ehdr.e_phnum = 1;
	ehdr.e_phoff = sizeof(ehdr);
	assert_null(elf_image__from_bytes(&ehdr, sizeof(ehdr), "cut off"));
	assert_int_equal(errno, EIO);
}

/* What an escape sequence could do to a terminal; who is looked for is still found as it is. */
static void test_names_are_fit_for_a_terminal(void **state)
{
	static const struct eh_function functions[] = {
		{.name = "\033]0;x\007\nf", .start = 0x1000, .size = 0x10},
		{.name = "g\xff", .start = 0x1010, .size = 0x10},
	};
	_cleanup_free_ uint8_t *bytes = eh_image__bytes(functions, 2, &(struct eh_style){0});
	struct elf_image *image = elf_image__from_bytes(bytes, EH_SIZE, "/a\nb/lib\033.so");
	const struct function *f = elf_image__function_at(image, 0x1004);

	assert_string_equal(f->name, "?]0;x??f");
	assert_string_equal(f->raw_name, functions[0].name);
	assert_string_equal(f->module, "lib?.so");
	assert_string_equal(elf_image__name(image), "/a?b/lib?.so");
	assert_string_equal(elf_image__function_at(image, 0x1010)->name, "g?");
	elf_image__free(image);
}

/* The vdso is a small ELF file that every process has: its bytes, or NULL. */
static const uint8_t *vdso_bytes(size_t *len)
{
	const uint8_t *base = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *ehdr = (const void *)base;

	if (!base)
		return NULL;
	*len = ehdr->e_shoff + (size_t)ehdr->e_shnum * ehdr->e_shentsize;
	return base;
}

static void test_reads_the_vdso(void **state)
{
	size_t len = 0;
	const uint8_t *bytes = vdso_bytes(&len);
	struct elf_image *image;

	if (!bytes) {
		print_message("# skip: this kernel gives no vdso\n");
		skip();
	}
	image = elf_image__from_bytes(bytes, len, "[vdso]");
	assert_non_null(image);
	assert_true(elf_image__function_count(image) > 0);
	assert_string_equal(elf_image__function(image, 0)->module, "[vdso]");
	elf_image__free(image);
}

/* Asks all there is to ask. */
static void use_image(struct elf_image *image)
{
	struct source_place place;
	size_t n = elf_image__function_count(image);

	for (size_t i = 0; i < n; i++) {
		const struct function *f = elf_image__function(image, i);

		assert_non_null(elf_image__function_at(image, f->vaddr));
		function__source(f, &place);
	}
	for (uint64_t offset = 0; offset < 0x4000; offset += 64) {
		uint64_t vaddr = elf_image__vaddr_of_offset(image, offset);

		if (vaddr != UINT64_MAX)
			assert_non_null(elf_image__function_at(image, vaddr)->name);
	}
}

static void test_survives_damage(void **state)
{
	size_t len = 0, opened = 0;
	const uint8_t *bytes = vdso_bytes(&len);
	_cleanup_free_ uint8_t *copy = NULL;
	unsigned int seed = 42;

	if (!bytes) {
		print_message("# skip: this kernel gives no vdso\n");
		skip();
	}
	copy = malloc(len);
	for (int round = 0; round < 1500; round++) {
		size_t cut = round % 5 ? len : (size_t)rand_r(&seed) % len;
		struct elf_image *image;

		memcpy(copy, bytes, len);
		for (int i = 0; i < 1 + round % 8; i++) {
			/* The header, and the tables at the end, are where damage hurts. */
			size_t at = (size_t)rand_r(&seed) % (round % 2 ? 2048 : len);

			copy[round % 3 ? at : len - 1 - at] = (uint8_t)rand_r(&seed);
		}
		image = elf_image__from_bytes(copy, cut, "damaged");
		if (!image) {
			assert_true(errno == EIO || errno == ENOEXEC);
			continue;
		}
		opened++;
		use_image(image);
		elf_image__free(image);
	}
	assert_true(opened > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_name_that_explodes_is_left_as_it_is),
		cmocka_unit_test(test_raw_code_is_one_function),
		cmocka_unit_test(test_refuses_other_files),
		cmocka_unit_test(test_names_are_fit_for_a_terminal),
		cmocka_unit_test(test_reads_the_vdso),
		cmocka_unit_test(test_survives_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
