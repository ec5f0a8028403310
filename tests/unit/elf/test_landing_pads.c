// SPDX-License-Identifier: MIT
/* From a call to where an exception out of it goes. */
#include "target/unwind/landing_pads.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "eh_image.h"
#include "util/cleanup.h"

static const struct eh_function functions[] = {
	{"first", 0x1000, 0x100, {{0x10, 5, 0x80}, {0x20, 8, 0}, {0x30, 0x20, 0x90}}},
	{"none", 0x1100, 0x100, {{0}}},
	{"second", 0x1200, 0x300, {{0, 0x200, 0x210}}},
};
#define N_FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

static struct elf_image *make_image(const struct eh_style *style)
{
	_cleanup_free_ uint8_t *bytes = eh_image__bytes(functions, N_FUNCTIONS, style);
	struct elf_image *image = elf_image__from_bytes(bytes, EH_SIZE, "throws");

	assert_non_null(image);
	return image;
}

static void expect_pads(struct elf_image *image)
{
	assert_int_equal(landing_pads__find(image, 0x1010), 0x1080);
	assert_int_equal(landing_pads__find(image, 0x1014), 0x1080);
	assert_int_equal(landing_pads__find(image, 0x1015), 0);
	assert_int_equal(landing_pads__find(image, 0x100f), 0);
	assert_int_equal(landing_pads__find(image, 0x1020), 0);
	assert_int_equal(landing_pads__find(image, 0x104f), 0x1090);
	assert_int_equal(landing_pads__find(image, 0x1050), 0);
	assert_int_equal(landing_pads__find(image, 0x1110), 0);
	assert_int_equal(landing_pads__find(image, 0x1200), 0x1410);
	assert_int_equal(landing_pads__find(image, 0x13ff), 0x1410);
	assert_int_equal(landing_pads__find(image, 0x1400), 0);
	assert_int_equal(landing_pads__find(image, 0), 0);
	assert_int_equal(landing_pads__find(image, UINT64_MAX), 0);
	assert_true(landing_pads__kind(image, 0x1080));
	assert_true(landing_pads__kind(image, 0x1090));
	assert_true(landing_pads__kind(image, 0x1410));
	assert_false(landing_pads__kind(image, 0x1081));
	assert_false(landing_pads__kind(image, 0));
	elf_image__free(image);
}

static void test_call_sites(void **state)
{
	expect_pads(make_image(&(struct eh_style){0}));
}

static void test_encodings(void **state)
{
	static const uint8_t lsda[] = {DW_EH_PE_udata4, DW_EH_PE_absptr, DW_EH_PE_sdata8,
				       DW_EH_PE_udata2, DW_EH_PE_pcrel | DW_EH_PE_sdata8};
	static const uint8_t sites[] = {DW_EH_PE_udata2, DW_EH_PE_udata4, DW_EH_PE_udata8,
					DW_EH_PE_sdata2, DW_EH_PE_sdata4, DW_EH_PE_absptr};

	for (size_t i = 0; i < sizeof(lsda); i++)
		expect_pads(make_image(&(struct eh_style){.lsda = lsda[i]}));
	/* 0 would be the style's own default: absptr has its size said. */
	for (size_t i = 0; i + 1 < sizeof(sites); i++)
		expect_pads(make_image(&(struct eh_style){.sites = sites[i]}));
}

/* Where the unlikely part of a function is elsewhere, its landing pads may be there as well. */
static void test_pads_in_another_part(void **state)
{
	struct elf_image *image = make_image(&(struct eh_style){.pads_from = 0x4000});

	assert_int_equal(landing_pads__find(image, 0x1010), 0x4080);
	assert_int_equal(landing_pads__find(image, 0x1200), 0x4210);
	assert_true(landing_pads__kind(image, 0x4080));
	elf_image__free(image);
}

static void test_what_cannot_be_read_is_none(void **state)
{
	static const struct eh_style styles[] = {
		{.lsda = DW_EH_PE_indirect | DW_EH_PE_pcrel | DW_EH_PE_sdata4},
		{.lsda = DW_EH_PE_datarel | DW_EH_PE_sdata4},
		{.lsda = 0x0f},
		{.sites = 0x0f},
		{.is_without_length = true},
	};

	for (size_t i = 0; i < sizeof(styles) / sizeof(styles[0]); i++) {
		struct elf_image *image = make_image(&styles[i]);

		assert_int_equal(landing_pads__find(image, 0x1010), 0);
		assert_false(landing_pads__kind(image, 0x1080));
		elf_image__free(image);
	}
}

static void test_code_without_a_file(void **state)
{
	struct elf_image *image = elf_image__raw("\x90\xc3", 2, "[uprobes]", "uretprobe");

	assert_int_equal(landing_pads__find(image, 0), 0);
	assert_false(landing_pads__kind(image, 1));
	elf_image__free(image);
}

/* Bytes of a table that ends within each of its parts. */
static void test_tables_that_end_early(void **state)
{
	static const uint8_t whole[] = {
		DW_EH_PE_udata4,
		0,
		0x10,
		0,
		0,
		DW_EH_PE_udata4,
		0x81,
		0x02,
		DW_EH_PE_uleb128,
		0x84,
		0x00,
		0x10,
		0x05,
		0x20,
		0x00,
	};
	struct lsda_site site;
	struct lsda lsda;

	for (size_t len = 0; len <= sizeof(whole); len++) {
		/* A copy of its own: to read behind it is an error that tools see. */
		_cleanup_free_ uint8_t *copy = malloc(len ? len : 1);
		struct eh_bytes bytes = {copy, copy + len, 0};

		memcpy(copy, whole, len);
		if (len < sizeof(whole)) {
			assert_false(lsda__open(&lsda, bytes, 0x2000));
			continue;
		}
		assert_true(lsda__open(&lsda, bytes, 0x2000));
		assert_true(lsda__next(&lsda, &site));
		assert_int_equal(site.start, 0x2010);
		assert_int_equal(site.end, 0x2015);
		assert_int_equal(site.pad, 0x1020);
		assert_false(lsda__next(&lsda, &site));
	}
}

static void test_numbers(void **state)
{
	static const uint8_t minus_two[] = {0x7e}, minus_129[] = {0xff, 0x7e},
			     endless[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					  0xff, 0xff, 0xff, 0xff, 0x01};
	struct eh_bytes bytes = {minus_two, minus_two + 1, 0};
	uint64_t value;

	assert_true(eh_bytes__pointer(&bytes, DW_EH_PE_sleb128, &value));
	assert_int_equal(value, (uint64_t)-2);
	bytes = (struct eh_bytes){minus_129, minus_129 + 2, 0x1000};
	assert_true(eh_bytes__pointer(&bytes, DW_EH_PE_sleb128 | DW_EH_PE_pcrel, &value));
	assert_int_equal(value, 0x1000 - 129);
	assert_int_equal(bytes.vaddr, 0x1002);
	bytes = (struct eh_bytes){minus_129, minus_129 + 2, 0};
	assert_true(eh_bytes__pointer(&bytes, DW_EH_PE_sdata2, &value));
	assert_int_equal(value, 0x7eff);
	bytes = (struct eh_bytes){endless, endless + sizeof(endless), 0};
	assert_false(eh_bytes__pointer(&bytes, DW_EH_PE_uleb128, &value));
	assert_true(eh_bytes__pointer(&bytes, DW_EH_PE_omit, &value));
	assert_int_equal(value, 0);
}

static void ask_everywhere(struct elf_image *image)
{
	for (uint64_t vaddr = 0xff0; vaddr < 0x1600; vaddr += 3) {
		uint64_t pad = landing_pads__find(image, vaddr);

		/* What is found is known, unless a table is too long to be. */
		if (pad)
			landing_pads__kind(image, pad);
	}
}

static void test_survives_damage(void **state)
{
	unsigned int seed = 7;
	size_t opened = 0;

	for (int round = 0; round < 3000; round++) {
		_cleanup_free_ uint8_t *bytes =
			eh_image__bytes(functions, N_FUNCTIONS, &(struct eh_style){0});
		struct elf_image *image;

		for (int i = 0; i < 1 + round % 6; i++) {
			uint64_t at = round % 2 ? EH_FRAME : EH_TABLE;

			bytes[at + (size_t)rand_r(&seed) % (round % 2 ? 160 : 48)] =
				(uint8_t)rand_r(&seed);
		}
		/* Or the sections' headers. */
		if (round % 7 == 0)
			bytes[EH_HEADERS + 2 * sizeof(Elf64_Shdr) + (size_t)rand_r(&seed) % 128] =
				(uint8_t)rand_r(&seed);
		image = elf_image__from_bytes(bytes, EH_SIZE, "damaged");
		if (!image)
			continue;
		opened++;
		ask_everywhere(image);
		elf_image__free(image);
	}
	assert_true(opened > 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call_sites),
		cmocka_unit_test(test_encodings),
		cmocka_unit_test(test_pads_in_another_part),
		cmocka_unit_test(test_what_cannot_be_read_is_none),
		cmocka_unit_test(test_code_without_a_file),
		cmocka_unit_test(test_tables_that_end_early),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_survives_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
