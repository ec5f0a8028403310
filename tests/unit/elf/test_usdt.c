// SPDX-License-Identifier: MIT
/* USDT probes in files of our own making: where they are, by name, and notes that lie. */
#include "compiled_fixture.h"

#include <errno.h>

#include "stderr_capture.h"
#include "target/usdt.h"
#include "util/fs.h"

/* A note of a probe at `at`; what it says is given as assembly. */
static const char macros[] = ".macro note at, base, semaphore, strings:vararg\n"
			     ".pushsection .note.stapsdt, \"\", \"note\"\n.balign 4\n"
			     ".4byte 8, 994f-993f, 3\n.asciz \"stapsdt\"\n"
			     "993: .8byte \\at, \\base, \\semaphore\n\\strings\n"
			     "994: .balign 4\n.popsection\n.endm\n";

static const char good[] = ".text\n.globl work\n.type work, @function\nwork: nop\nfirst: "
			   "nop\nsecond: nop\nthird: nop\nfourth: nop\n"
			   "ret\n.size work, .-work\n"
			   ".section .probes, \"aw\"\n.space 6\ncounter: .2byte 0\n"
			   ".section .stapsdt.base, \"a\"\n.globl base\nbase: .space 1\n"
			   "note first, base, counter, .asciz \"app\", \"work\", \"-4@%edi\"\n"
			   "note second, base, 0, .asciz \"app\", \"idle\", \"\"\n"
			   "note third, base, counter, .asciz \"app\", \"work\", \"8@%rax\"\n"
			   "note third, base, counter, .asciz \"app\", \"work\", \"8@%rbx\"\n"
			   "note fourth, base, 0, .asciz \"other\", \"work\", \"\"\n";

static void compile(const struct compiled *f, const char *notes)
{
	char text[4096];

	snprintf(text, sizeof(text), "%s%s", macros, notes);
	write_source(f, "probes.S", text);
	run_in_folder(f, "gcc -shared -nostdlib -o probes.so probes.S");
}

static void test_places(void **state)
{
	const struct compiled *f = *state;
	usdt_place_vec places = {0};
	struct elf_image *image;
	const uint8_t *bytes;
	size_t len;

	compile(f, good);
	image = open_compiled(f, "probes.so");
	assert_int_equal(elf_image__usdt_places(image, &places), 0);
	assert_int_equal(places.n, 5);
	assert_string_equal(places.v[0].provider, "app");
	assert_string_equal(places.v[0].name, "work");
	assert_string_equal(places.v[0].args, "-4@%edi");
	assert_int_equal(places.v[0].vaddr, address_of(f, "probes.so", "first"));
	assert_int_equal(places.v[1].vaddr, address_of(f, "probes.so", "second"));
	assert_string_equal(places.v[1].args, "");
	assert_int_equal(places.v[1].semaphore_offset, 0);
	/* .probes lies elsewhere in the file than in memory. */
	bytes = elf_image__bytes(image, places.v[0].semaphore_offset - 6, &len);
	assert_memory_equal(bytes, "\0\0\0\0\0\0\0", 8);
	assert_true(places.v[0].semaphore_offset != address_of(f, "probes.so", "counter"));
	VEC_FINI(&places);
	elf_image__free(image);
}

/* prelink(8): everything lies 64 KiB higher than the notes say. */
static void test_a_file_that_was_moved(void **state)
{
	const struct compiled *f = *state;
	usdt_place_vec places = {0};
	struct elf_image *image;

	compile(f, ".text\nnop\nfirst: nop\nret\n.section .probes, \"aw\"\ncounter: .2byte 0\n"
		   ".section .stapsdt.base, \"a\"\nbase: .space 1\n"
		   "note first-0x10000, base-0x10000, counter-0x10000, "
		   ".asciz \"app\", \"work\", \"\"\n");
	image = open_compiled(f, "probes.so");
	assert_int_equal(elf_image__usdt_places(image, &places), 0);
	assert_int_equal(places.n, 1);
	assert_int_equal(places.v[0].vaddr, address_of(f, "probes.so", "first"));
	assert_true(places.v[0].semaphore_offset);
	VEC_FINI(&places);
	elf_image__free(image);
}

static void test_notes_that_make_no_sense(void **state)
{
	const struct compiled *f = *state;
	usdt_place_vec places = {0};
	struct elf_image *image;

	compile(f, ".text\nfirst: nop\nret\n.data\ndata: .2byte 0\n.bss\nzeroes: .space 2\n.text\n"
		   "note first, 0, 0, .ascii \"no end\"\n"
		   "note first, 0, 0, .asciz \"app\", \"two strings\"\n"
		   "note first, 0, 0, .asciz \"\", \"name\", \"\"\n"
		   "note first, 0, 0, .asciz \"app\", \"\", \"\"\n"
		   "note data, 0, 0, .asciz \"app\", \"is data\", \"\"\n"
		   "note 0x7fffffffffff, 0, 0, .asciz \"app\", \"is nowhere\", \"\"\n"
		   "note first, 0, first, .asciz \"app\", \"counts in code\", \"\"\n"
		   "note first, 0, zeroes, .asciz \"app\", \"is not in the file\", \"\"\n"
		   "note first, 0, 0xffffffffffffffff, .asciz \"app\", \"at the end\", \"\"\n"
		   "note first, 0, data, .asciz \"app\", \"good\", \"\"\n");
	image = open_compiled(f, "probes.so");
	assert_int_equal(elf_image__usdt_places(image, &places), 0);
	assert_int_equal(places.n, 1);
	assert_string_equal(places.v[0].name, "good");
	VEC_FINI(&places);
	elf_image__free(image);
}

/* Each byte of the notes in turn; what is found lies in the file. For the sanitizers. */
static void test_damaged_notes(void **state)
{
	static const uint8_t lies[] = {0, 1, 0x7f, 0x80, 0xff};
	const struct compiled *f = *state;
	char path[80], *data, *notes;
	size_t size;

	compile(f, good);
	snprintf(path, sizeof(path), "%s/probes.so", f->dir);
	assert_int_equal(fs__read(path, &data, &size), 0);
	notes = memmem(data, size, "\10\0\0\0", 4);
	while (notes && memcmp(notes + 12, "stapsdt", 8))
		notes = memmem(notes + 1, size - (size_t)(notes + 1 - data), "\10\0\0\0", 4);
	assert_non_null(notes);
	for (size_t i = 0; i < 5 * 64 * sizeof(lies); i++) {
		char *byte = notes + i / sizeof(lies), truth = *byte;
		usdt_place_vec places = {0};
		struct elf_image *image;

		*byte = (char)lies[i % sizeof(lies)];
		image = elf_image__from_bytes(data, size, "probes.so");
		assert_int_equal(elf_image__usdt_places(image, &places), 0);
		for (size_t j = 0; j < places.n; j++)
			assert_true(elf_image__offset_of_vaddr(image, places.v[j].vaddr) < size &&
				    strlen(places.v[j].args) < size);
		VEC_FINI(&places);
		elf_image__free(image);
		*byte = truth;
	}
	free(data);
}

static void open_symbols(const struct compiled *f, struct symbols *symbols)
{
	char path[80];

	compile(f, good);
	snprintf(path, sizeof(path), "%s/probes.so", f->dir);
	assert_int_equal(symbols__open_file(symbols, path), 0);
}

static void test_by_name(void **state)
{
	const struct compiled *f = *state;
	const char *const names[] = {"usdt:app:work", "usdt:probes.so:app:work",
				     "usdt:probes:app:work", "usdt:app:w*", "usdt:a*:work"};
	struct symbols symbols;
	usdt_match_vec found;
	char text[120];

	open_symbols(f, &symbols);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(symbols__find_usdt(&symbols, names[i], &found), 0);
		assert_int_equal(found.n, 2); /* the third is where the second is */
		assert_int_equal(found.v[0].place.vaddr, address_of(f, "probes.so", "first"));
		assert_int_equal(found.v[1].place.vaddr, address_of(f, "probes.so", "third"));
		VEC_FINI(&found);
	}
	snprintf(text, sizeof(text), "usdt:%s/probes.so:app:idle", f->dir);
	assert_int_equal(symbols__find_usdt(&symbols, text, &found), 0);
	assert_int_equal(found.n, 1);
	VEC_FINI(&found);
	symbols__close(&symbols);
}

static void assert_refused(const struct symbols *symbols, const char *text, int err,
			   const char *said)
{
	struct stderr_capture capture;
	usdt_match_vec found;
	int got;

	stderr_capture__begin(&capture);
	got = symbols__find_usdt(symbols, text, &found);
	stderr_capture__end(&capture);
	assert_int_equal(got, err);
	if (!strstr(capture.text, said))
		assert_string_equal(capture.text, said);
}

static void test_refusals(void **state)
{
	struct symbols symbols;

	open_symbols(*state, &symbols);
	assert_refused(&symbols, "usdt:app:wrok", -ENOENT, "did you mean 'usdt:app:work'?");
	assert_refused(&symbols, "usdt:zzzzzzz:qqqqqq", -ENOENT,
		       "'mtbpf list' with 'usdt:*' shows them");
	assert_refused(&symbols, "usdt:*:work", -ENOTUNIQ, "names 2 USDT probes");
	assert_refused(&symbols, "usdt:*:work", -ENOTUNIQ, "  usdt:other:work\n");
	assert_refused(&symbols, "usdt:libc.so.6:app:work", -ENODATA,
		       "does not contain USDT probes in libc.so.6");
	assert_refused(&symbols, "usdt:work", -EINVAL, "  usdt:work\n           ^\n");
	assert_refused(&symbols, "usdt::work", -EINVAL, "  usdt::work\n       ^\n");
	assert_refused(&symbols, "usdt:app:", -EINVAL, "  usdt:app:\n           ^\n");
	assert_refused(&symbols, "usdt:", -EINVAL, "  usdt:\n       ^\n");
	symbols__close(&symbols);
}

static int count(void *ctx, const struct usdt_match *match)
{
	++*(int *)ctx;
	return 0;
}

static void test_listed(void **state)
{
	static const struct {
		const char *glob;
		int n;
	} cases[] = {{"usdt:*", 5},	   {"usdt:app:*", 4},	    {"usdt:probes.so:other:*", 1},
		     {"usdt:app:idle", 1}, {"usdt:libc.so.6:*", 0}, {"app:*", 0}};
	struct symbols symbols;

	open_symbols(*state, &symbols);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int n = 0;

		symbols__each_usdt(&symbols, cases[i].glob, count, &n);
		assert_int_equal(n, cases[i].n);
	}
	symbols__close(&symbols);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_places),
		TEST(test_a_file_that_was_moved),
		TEST(test_notes_that_make_no_sense),
		TEST(test_damaged_notes),
		TEST(test_by_name),
		TEST(test_refusals),
		TEST(test_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
