// SPDX-License-Identifier: MIT
#include "target/elf/elf_image.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/cleanup.h"

/*
 * This program is its own sample. Code that a compiler would not lay out for us to rely on: a cold
 * part, a hole with a frame in it, a label without type and size, and names in their mangled form.
 */
__asm__(".pushsection .text.unlikely, \"ax\", @progbits\n"
	".type sample_hot.cold, @function\n"
	"sample_hot.cold: nop\n nop\n ret\n"
	".size sample_hot.cold, 3\n"
	".type sample_orphan.cold.1, @function\n"
	"sample_orphan.cold.1: nop\n ret\n"
	".size sample_orphan.cold.1, 2\n"
	".popsection\n"

	".pushsection .text.sample, \"ax\", @progbits\n"
	".globl sample_hot, sample_alias, _short\n"
	".type sample_hot, @function\n"
	"sample_hot: nop\n ret\n"
	".size sample_hot, 2\n"
	/* 30 bytes that no symbol covers, of which 10 have a frame. */
	".skip 10, 0x90\n"
	".cfi_startproc\n"
	".skip 10, 0x90\n"
	".cfi_endproc\n"
	".skip 10, 0x90\n"
	".type sample_alias, @function\n"
	".type _short, @function\n"
	"sample_alias:\n"
	"_short: nop\n"
	"sample_inner_label: nop\n ret\n"
	".size sample_alias, 3\n"
	".size _short, 3\n"
	/* Said to be far longer than there is room for. */
	".type sample_long, @function\n"
	"sample_long: ret\n"
	".size sample_long, 0x1000\n"
	".type _ZN2ns3Foo3barEi, @function\n"
	"_ZN2ns3Foo3barEi: ret\n"
	".size _ZN2ns3Foo3barEi, 1\n"
	".type _ZN3svc8one_iter17h0123456789abcdefE, @function\n"
	"_ZN3svc8one_iter17h0123456789abcdefE: ret\n"
	".size _ZN3svc8one_iter17h0123456789abcdefE, 1\n"
	".type _RNvCs1234_7mycrate3foo, @function\n"
	"_RNvCs1234_7mycrate3foo: ret\n"
	".size _RNvCs1234_7mycrate3foo, 1\n"
	".popsection\n"

	".pushsection .text.labels, \"ax\", @progbits\n"
	"sample_label: nop\n nop\n"
	".type sample_labelled, @function\n"
	"sample_labelled: ret\n"
	".size sample_labelled, 1\n"
	".popsection\n");

enum { SAMPLE_LINE = __LINE__ + 1 };
__attribute__((noipa)) static int sample_with_a_line(int x)
{
	return x + 1;
}

static struct elf_image *open_self(void)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY);

	return elf_image__open(fd, "/somewhere/test_elf_image");
}

/* By raw name, from the list of all. */
static const struct function *find(struct elf_image *image, const char *raw_name)
{
	for (size_t i = 0; i < elf_image__function_count(image); i++)
		if (!strcmp(elf_image__raw_name(image, i), raw_name))
			return elf_image__function(image, i);
	fail_msg("%s is not in the image", raw_name);
	return NULL;
}

static void test_describes_the_file(void **state)
{
	struct elf_image *image = *state;
	const char *id = elf_image__build_id(image);

	assert_string_equal(elf_image__name(image), "/somewhere/test_elf_image");
	assert_int_equal(strspn(id, "0123456789abcdef"), strlen(id));
}

static void test_lists_functions_in_order(void **state)
{
	struct elf_image *image = *state;
	size_t n = elf_image__function_count(image);

	assert_true(n > 20);
	for (size_t i = 0; i < n; i++) {
		const struct function *f = elf_image__function(image, i);

		assert_true(f->size > 0);
		assert_ptr_equal(f->image, image);
		assert_string_equal(f->module, "test_elf_image");
		assert_true(!i || elf_image__function(image, i - 1)->vaddr <= f->vaddr);
		assert_ptr_equal(f, elf_image__function(image, i));
	}
}

static void test_an_address_has_one_function(void **state)
{
	struct elf_image *image = *state;
	const struct function *hot = find(image, "sample_hot");

	assert_ptr_equal(elf_image__function_at(image, hot->vaddr), hot);
	assert_ptr_equal(elf_image__function_at(image, hot->vaddr + 1), hot);
	assert_ptr_not_equal(elf_image__function_at(image, hot->vaddr + 2), hot);
	assert_int_equal(hot->kind, FUNCTION_SYMBOL);
	assert_int_equal(hot->size, 2);
	assert_ptr_equal(hot->name, hot->raw_name);
}

static void test_aliases_share_an_address(void **state)
{
	struct elf_image *image = *state;
	const struct function *plain = find(image, "sample_alias");
	const struct function *other = find(image, "_short");

	assert_ptr_not_equal(plain, other);
	assert_int_equal(plain->vaddr, other->vaddr);
	assert_ptr_equal(elf_image__function_at(image, other->vaddr), plain);
	/* A label within a function that has a size is no function. */
	assert_ptr_equal(elf_image__function_at(image, plain->vaddr + 1), plain);
	assert_ptr_equal(elf_image__function_at(image, plain->vaddr + 2), plain);
}

static void test_sizes_end_at_the_next_symbol(void **state)
{
	struct elf_image *image = *state;
	const struct function *cut = find(image, "sample_long");
	const struct function *next = find(image, "_ZN2ns3Foo3barEi");

	assert_int_equal(cut->vaddr + cut->size, next->vaddr);
}

static void test_a_label_extends_to_the_next_symbol(void **state)
{
	struct elf_image *image = *state;
	const struct function *label = find(image, "sample_label");

	assert_int_equal(label->size, 2);
	assert_ptr_equal(elf_image__function_at(image, label->vaddr + 1), label);
	assert_string_equal(elf_image__function_at(image, label->vaddr + 2)->name,
			    "sample_labelled");
}

static void test_a_cold_part_is_its_function(void **state)
{
	struct elf_image *image = *state;
	const struct function *hot = find(image, "sample_hot");
	const struct function *cold = find(image, "sample_hot.cold");
	const struct function *orphan = find(image, "sample_orphan.cold.1");

	assert_int_not_equal(cold->vaddr, hot->vaddr);
	assert_ptr_equal(elf_image__function_at(image, cold->vaddr), hot);
	assert_ptr_equal(elf_image__function_at(image, cold->vaddr + 2), hot);
	assert_ptr_equal(elf_image__function_at(image, orphan->vaddr), orphan);
}

static void test_a_hole_is_split_by_frames(void **state)
{
	struct elf_image *image = *state;
	uint64_t at = find(image, "sample_hot")->vaddr + 2;
	char expected[64];

	for (int i = 0; i < 3; i++, at += 10) {
		const struct function *hole = elf_image__function_at(image, at);

		assert_int_equal(hole->kind, FUNCTION_UNKNOWN);
		assert_int_equal(hole->vaddr, at);
		assert_int_equal(hole->size, 10);
		snprintf(expected, sizeof(expected), "[test_elf_image+0x%" PRIx64 "]", at);
		assert_string_equal(hole->name, expected);
		assert_string_equal(hole->raw_name, expected);
		assert_ptr_equal(elf_image__function_at(image, at + 9), hole);
	}
	assert_string_equal(elf_image__function_at(image, at)->name, "sample_alias");
}

/* A stripped program: what stands at the ELF header's entry has no symbol. */
static void test_where_a_program_begins_has_a_name(void **state)
{
	const struct function *hole =
		elf_image__function_at(*state, find(*state, "sample_hot")->vaddr + 2);
	const uint64_t entry = hole->vaddr + hole->size;
	_cleanup_close_ int own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int copy = memfd_create("copy", MFD_CLOEXEC);
	const struct function *start;
	struct elf_image *image;

	while (sendfile(copy, own, NULL, 1 << 20) > 0)
		;
	assert_int_equal(pwrite(copy, &entry, sizeof(entry), offsetof(Elf64_Ehdr, e_entry)),
			 sizeof(entry));
	image = elf_image__open(copy, "copy");
	assert_non_null(image);
	start = elf_image__function_at(image, entry + 1);
	assert_string_equal(start->name, "_start");
	assert_string_equal(start->raw_name, "_start");
	assert_int_equal(start->vaddr, entry);
	assert_int_equal(elf_image__function_at(image, hole->vaddr)->name[0], '[');
	elf_image__free(image);
}

static void test_names_are_made_readable(void **state)
{
	struct elf_image *image = *state;
	char *text;

	assert_string_equal(find(image, "_ZN2ns3Foo3barEi")->name, "ns::Foo::bar(int)");
	assert_string_equal(find(image, "_ZN3svc8one_iter17h0123456789abcdefE")->name,
			    "svc::one_iter");
	assert_string_equal(find(image, "_RNvCs1234_7mycrate3foo")->name, "mycrate::foo");
	text = elf_image__short_name("_ZNK2ns3Foo3barEi");
	assert_string_equal(text, "ns::Foo::bar");
	free(text);
	assert_null(elf_image__short_name("main"));
	assert_null(elf_image__short_name("_Z"));
}

static void test_every_code_byte_has_a_function(void **state)
{
	struct elf_image *image = *state;
	const struct function *main_fn = find(image, "main"), *last = NULL;
	bool has_stub = false;
	uint64_t vaddr = main_fn->vaddr;
	const struct function *f;

	while (elf_image__offset_of_vaddr(image, vaddr - 1) != UINT64_MAX)
		vaddr--;
	assert_null(elf_image__function_at(image, vaddr - 1));
	for (; elf_image__offset_of_vaddr(image, vaddr) != UINT64_MAX; vaddr++, last = f) {
		f = elf_image__function_at(image, vaddr);
		assert_non_null(f);
		if (f == last)
			continue;
		if (f->kind != FUNCTION_SYMBOL)
			assert_true(f->vaddr == vaddr);
		has_stub |= f->kind == FUNCTION_PLT && !strcmp(f->name, "getppid@plt");
	}
	assert_null(elf_image__function_at(image, vaddr));
	/* Called here, so that the linker makes a stub for it. */
	assert_true(getppid() > 0);
	assert_true(has_stub);
}

static void test_converts_addresses_and_reads_bytes(void **state)
{
	struct elf_image *image = *state;
	const struct function *hot = find(image, "sample_hot");
	uint64_t offset = elf_image__offset_of_vaddr(image, hot->vaddr);
	const uint8_t *bytes;
	size_t len, all;

	assert_int_equal(elf_image__vaddr_of_offset(image, offset), hot->vaddr);
	bytes = elf_image__bytes(image, offset, &all);
	assert_true(all > 2);
	assert_memory_equal(bytes, "\x90\xc3", 2);
	assert_int_equal(elf_image__offset_of_vaddr(image, UINT64_MAX - 1), UINT64_MAX);
	assert_int_equal(elf_image__vaddr_of_offset(image, UINT64_MAX - 1), UINT64_MAX);
	assert_null(elf_image__bytes(image, UINT64_MAX, &len));
	assert_int_equal(len, 0);
	assert_null(elf_image__bytes(image, offset + all, &len));
	assert_non_null(elf_image__bytes(image, offset + all - 1, &len));
	assert_int_equal(len, 1);
}

static void test_finds_the_line(void **state)
{
	struct elf_image *image = *state;
	const struct function *f = find(image, "sample_with_a_line");
	struct source_place place, again;

	assert_int_equal(sample_with_a_line(1), 2);
	if (!function__source(f, &place)) {
		print_message("# skip: built without debug info\n");
		skip();
	}
	assert_non_null(strstr(place.file, "test_elf_image.c"));
	/* Compilers do not agree on whether a function begins at its name or at its brace. */
	assert_in_range(place.line, SAMPLE_LINE, SAMPLE_LINE + 1);
	assert_true(function__source(f, &again));
	assert_ptr_equal(again.file, place.file);
	/* Assembler code without line information. */
	assert_false(function__source(find(image, "sample_label"), &again));
}

static void *look_everywhere(void *arg)
{
	struct elf_image *image = arg;
	uint64_t sum = 0;

	for (size_t i = 0; i < elf_image__function_count(image); i++) {
		const struct function *f = elf_image__function(image, i);
		struct source_place place;

		for (uint64_t v = f->vaddr; v < f->vaddr + f->size + 16; v++) {
			const struct function *at = elf_image__function_at(image, v);

			sum += at ? strlen(at->name) : 0;
		}
		sum += function__source(f, &place) ? place.line : 0;
	}
	return (void *)(uintptr_t)sum;
}

static void test_threads_share_an_image(void **state)
{
	struct elf_image *image = open_self();
	pthread_t threads[4];
	void *sums[4];

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, look_everywhere, image), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &sums[i]);
		assert_ptr_equal(sums[i], sums[0]);
	}
	assert_non_null(sums[0]);
	elf_image__free(image);
}

static int set_up(void **state)
{
	*state = open_self();
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	elf_image__free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_describes_the_file),
		cmocka_unit_test(test_lists_functions_in_order),
		cmocka_unit_test(test_an_address_has_one_function),
		cmocka_unit_test(test_aliases_share_an_address),
		cmocka_unit_test(test_sizes_end_at_the_next_symbol),
		cmocka_unit_test(test_a_label_extends_to_the_next_symbol),
		cmocka_unit_test(test_a_cold_part_is_its_function),
		cmocka_unit_test(test_a_hole_is_split_by_frames),
		cmocka_unit_test(test_where_a_program_begins_has_a_name),
		cmocka_unit_test(test_names_are_made_readable),
		cmocka_unit_test(test_every_code_byte_has_a_function),
		cmocka_unit_test(test_converts_addresses_and_reads_bytes),
		cmocka_unit_test(test_finds_the_line),
		cmocka_unit_test(test_threads_share_an_image),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
