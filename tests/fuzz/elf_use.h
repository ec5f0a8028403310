/* SPDX-License-Identifier: MIT */
/* Asks an image all that mtbpf ever asks one. */
#ifndef MTBPF_TESTS_FUZZ_ELF_USE_H
#define MTBPF_TESTS_FUZZ_ELF_USE_H

#include "fuzz.h"

#include "target/elf/debug_file.h"
#include "target/elf/elf_image.h"
#include "target/elf/elf_lines.h"
#include "target/usdt.h"
#include "target/elf/elf_inlined.h"
#include "target/unwind/cfi.h"
#include "target/unwind/landing_pads.h"

static inline void use_function(struct elf_image *image, const struct function *f)
{
	struct source_place place;
	char *name;

	CHECK(f && f->name && f->raw_name && f->module);
	name = strdup(f->name);
	fuzz__check_lines(name);
	free(name);
	if (function__source(f, &place))
		CHECK(place.file);
}

static inline void use_place(struct elf_image *image, uint64_t vaddr)
{
	const struct function *f = elf_image__function_at(image, vaddr);
	struct source_place place;
	struct cfi_row row;

	if (f)
		use_function(image, f);
	for (const struct inlined *i = elf_image__inlined_at(image, vaddr); i; i = i->outer)
		use_function(image, i->function);
	if (elf_image__source_at(image, vaddr, &place))
		CHECK(place.file);
	landing_pads__find(image, vaddr);
	landing_pads__kind(image, vaddr);
	cfi__find(image, vaddr, &row);
}

static inline void use_usdt(struct elf_image *image)
{
	usdt_place_vec places = {0};
	struct mt_args args;

	CHECK(!elf_image__usdt_places(image, &places));
	VEC_EACH(&places, place) {
		CHECK(*place->provider && *place->name);
		usdt_args__parse(place->args, &args);
	}
	VEC_FINI(&places);
}

static inline void use_lines(struct elf_image *image)
{
	struct line_found found = {0};

	CHECK(!elf_image__find_line(image, "sample.cc", 8, &found));
	for (size_t i = 1; i < found.vaddrs.n; i++)
		CHECK(found.vaddrs.v[i - 1] < found.vaddrs.v[i]);
	VEC_FINI(&found.vaddrs);
}

/* So many places are looked at; code has more. */
#define USE_PLACES 64

static inline void use_image(struct elf_image *image)
{
	size_t n = elf_image__function_count(image);
	char build_id[200];
	uint32_t crc;

	for (size_t i = 0; i < n && i < USE_PLACES; i++) {
		use_function(image, elf_image__function(image, i));
		use_place(image, elf_image__function(image, i)->vaddr);
	}
	for (uint64_t offset = 0; offset < 0x4000; offset += 0x4000 / USE_PLACES) {
		uint64_t vaddr = elf_image__vaddr_of_offset(image, offset);

		if (vaddr != UINT64_MAX) {
			CHECK(elf_image__function_at(image, vaddr));
			use_place(image, vaddr + 1);
		}
	}
	use_usdt(image);
	use_lines(image);
	elf_image__holds_rust(image);
	elf_image__debug_link(image, &crc);
	elf_image__alt_link(image, build_id, sizeof(build_id));
	CHECK(strlen(elf_image__build_id(image)) % 2 == 0);
}

#endif
