// SPDX-License-Identifier: MIT
/* DWARF that was made to mislead: entries that go in circles, without end, or nowhere. */
#include "target/elf/elf_inlined.h"

#include "compiled_fixture.h"

/* A unit of version 4 with one function, `work`; what it holds is the test's. */
static const char head[] =
	".text\n.globl work\nwork: .rept 16\nnop\n.endr\nwork_end:\n"
	".section .debug_abbrev,\"\",@progbits\n"
	/* DW_TAG_compile_unit, DW_TAG_subprogram: low_pc, high_pc; with children. The unit: C++ */
	".byte 1, 0x11, 1, 0x11, 1, 0x12, 7, 0x13, 0x0b, 0, 0\n"
	".byte 2, 0x2e, 1, 0x11, 1, 0x12, 7, 0, 0\n"
	/* DW_TAG_inlined_subroutine: name, low_pc, high_pc; with children */
	".byte 3, 0x1d, 1, 3, 8, 0x11, 1, 0x12, 7, 0, 0\n"
	/* DW_TAG_variable: sibling; DW_TAG_lexical_block: nothing, and children; the same: sibling
	 */
	".byte 4, 0x34, 0, 1, 0x13, 0, 0\n"
	".byte 5, 0x0b, 1, 0, 0\n"
	".byte 6, 0x0b, 1, 1, 0x13, 0, 0\n"
	/* DW_TAG_inlined_subroutine: abstract_origin, low_pc, high_pc; no children */
	".byte 7, 0x1d, 0, 0x31, 0x13, 0x11, 1, 0x12, 7, 0, 0\n"
	/* DW_TAG_structure_type: nothing, and children */
	".byte 8, 0x13, 1, 0, 0\n"
	/* DW_TAG_inlined_subroutine: name, ranges; no children */
	".byte 9, 0x1d, 0, 3, 8, 0x55, 0x17, 0, 0, 0\n"
	".section .debug_info,\"\",@progbits\n"
	"unit: .long unit_end - unit - 4\n.short 4\n.long 0\n.byte 8\n"
	".byte 1\n.quad work, 16\n.byte 4\n";
static const char work[] = ".byte 2\n.quad work, 16\n";
static const char tail[] = ".byte 0\nunit_end:\n";

#define INLINED(name, start, len)                                                                  \
	".byte 3\n.asciz \"" name "\"\n.quad work + " #start ", " #len "\n"
#define END ".byte 0\n"

static struct elf_image *assemble(const struct compiled *f, const char *before, const char *inside)
{
	char text[4096];

	snprintf(text, sizeof(text), "%s%s%s%s%s%s", head, before, work, inside, END, tail);
	write_source(f, "made.s", text);
	run_in_folder(f, "gcc -nostdlib -static -Wl,-e,work made.s -o made");
	return open_compiled(f, "made");
}

/* The names of what is inlined at work + offset, from the inside: "b < a". */
static void assert_chain(const struct compiled *f, struct elf_image *image, unsigned int offset,
			 const char *expected)
{
	uint64_t vaddr = address_of(f, "made", "work") + offset;
	const struct inlined *i = elf_image__inlined_at(image, vaddr);
	char text[200] = "";

	for (; i; i = i->outer)
		sprintf(text + strlen(text), "%s%s", i->function->name, i->outer ? " < " : "");
	assert_string_equal(text, expected);
}

static void check(const struct compiled *f, const char *before, const char *inside,
		  const char *expected)
{
	struct elf_image *image = assemble(f, before, inside);

	assert_chain(f, image, 5, expected);
	elf_image__free(image);
}

static void test_the_made_unit_is_good(void **state)
{
	struct elf_image *image =
		assemble(*state, "", INLINED("a", 2, 10) INLINED("b", 4, 4) END END);

	assert_chain(*state, image, 5, "b < a");
	assert_chain(*state, image, 2, "a");
	assert_chain(*state, image, 1, "");
	elf_image__free(image);
	check(*state, "", ".byte 5\n.byte 5\n" INLINED("a", 2, 10) END END END, "a");
}

/* An entry whose sibling is itself, or is before it, seen or skipped. */
static void test_circles(void **state)
{
	static const char *const targets[] = {"here - unit", "11", "0", "0xfffffff0"};

	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		char text[400];

		snprintf(text, sizeof(text), ".byte 8\nhere: .byte 4\n.long %s\n" END, targets[i]);
		check(*state, text, INLINED("a", 2, 10) END, "");
		check(*state, "", text, "");
		snprintf(text, sizeof(text), "here: .byte 6\n.long %s\n" END, targets[i]);
		check(*state, text, INLINED("a", 2, 10) END, "");
		check(*state, "", text, "");
		/* Where it came from is the name's to follow. */
		snprintf(text, sizeof(text), "here: .byte 7\n.long %s\n.quad work, 16\n",
			 targets[i]);
		check(*state, "", text, "");
	}
}

static void test_depth(void **state)
{
	check(*state, "",
	      ".rept 100\n.byte 5\n.endr\n" INLINED("a", 2, 10) END ".rept 100\n" END ".endr\n",
	      "a");
	check(*state, "", ".rept 100000\n.byte 5\n.endr\n", "");
	check(*state, ".rept 100000\n.byte 8\n.endr\n", "", "");
	check(*state, ".rept 1000\n.byte 8\n.endr\n.rept 1000\n" END ".endr\n",
	      INLINED("a", 2, 10) END, "a");
}

/* More than is read of one image: each of many has a long list of ranges, the same. */
static void test_too_many(void **state)
{
	static const char ranges[] = ".section .debug_ranges,\"\",@progbits\n"
				     ".rept 4000\n.quad 2, 12\n.endr\n.quad 0, 0\n"
				     ".section .debug_info,\"\",@progbits\n";
	static const char one[] = ".byte 9\n.asciz \"a\"\n.long 0\n";
	char text[400];

	snprintf(text, sizeof(text), "%s.rept 10\n%s.endr\n", ranges, one);
	check(*state, "", text, "a");
	snprintf(text, sizeof(text), "%s.rept 2000\n%s.endr\n", ranges, one);
	check(*state, "", text, "");
}

/* b says that it is in a, but where it lies a is not. */
static void test_what_sticks_out_is_not_there(void **state)
{
	check(*state, "", INLINED("a", 2, 2) INLINED("b", 0, 16) END END, "");
	check(*state, "", INLINED("a", 9, -8) END, "");
	check(*state, "", ".byte 7\n.long 0x7fffffff\n.quad work, 16\n", "");
}

static const char sample[] = "static inline __attribute__((always_inline)) int in(int a)\n"
			     "{ asm volatile(\"here: nop\"); return a * 3; }\n"
			     "int main(int c, char **v) { return in(c); }\n";

/* Each damaged section is read to its end, or given up. */
static void test_damage(void **state)
{
	const struct compiled *f = *state;
	unsigned int seed = 11, found = 0;
	char path[80], *bytes, *copy;
	uint64_t here;
	size_t len;

	write_source(f, "sample.c", sample);
	run_in_folder(f,
		      "gcc -O2 -g -c sample.c && gcc -nostdlib -static -Wl,-e,main sample.o -o s");
	snprintf(path, sizeof(path), "%s/s", f->dir);
	assert_int_equal(fs__read(path, &bytes, &len), 0);
	copy = malloc(len);
	here = address_of(f, "s", "here");
	for (int round = 0; round < 3000; round++) {
		struct source_place place;
		struct elf_image *image;
		const struct inlined *i;

		memcpy(copy, bytes, len);
		/* Code lies in the first page, the symbols at the end. */
		for (int k = 0; k < 1 + round % 4; k++)
			copy[4096 + (size_t)rand_r(&seed) % (len - 4096 - 1500)] =
				(char)rand_r(&seed);
		image = elf_image__from_bytes(copy, len, "damaged");
		if (!image)
			continue;
		for (uint64_t v = here - 8; v < here + 8; v++) {
			i = elf_image__inlined_at(image, v);
			found += i && !strcmp(i->function->name, "in");
			elf_image__source_at(image, v, &place);
		}
		elf_image__free(image);
	}
	assert_true(found > 1000);
	free(copy);
	free(bytes);
}

#define FOLDER_TEST(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(test_the_made_unit_is_good),
		FOLDER_TEST(test_circles),
		FOLDER_TEST(test_depth),
		FOLDER_TEST(test_too_many),
		FOLDER_TEST(test_what_sticks_out_is_not_there),
		FOLDER_TEST(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
