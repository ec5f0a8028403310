/* SPDX-License-Identifier: MIT */
/* Samples whose functions are inlined, and what must be known of them. */
#ifndef MTBPF_TESTS_INLINED_SAMPLE_H
#define MTBPF_TESTS_INLINED_SAMPLE_H

#include "compiled_fixture.h"
#include "target/elf/debug_file.h"
#include "target/elf/elf_inlined.h"

/* What lies where is told by labels, each within one function. */
static const char sample[] =
	"#define INLINE inline __attribute__((always_inline))\n"
	"#define LABEL(name) asm volatile(\".globl \" #name \"\\n\" #name \": nop\")\n"
	"extern \"C\" __attribute__((noinline)) int probe(int a)\n"
	"{ asm volatile(\"\" : \"+r\"(a)); return a + 1; }\n"
	"namespace ns {\n"
	"struct Meter {\n"
	"	int unit;\n"
	"	INLINE int read(int a) const\n" /* line 8 */
	"	{\n"
	"		LABEL(in_read);\n"
	"		return probe(a) * unit;\n"
	"	}\n"
	"};\n"
	"INLINE int twice(int a) { return probe(probe(a)); }\n" /* 14 */
	"INLINE int outer(const Meter &m, int a)\n"		/* 15 */
	"{\n"
	"	LABEL(in_outer);\n"
	"	return m.read(a) +\n" /* 18 */
	"		1;\n"
	"}\n"
	"}\n"
	"extern \"C\" __attribute__((noinline)) int work(int argc)\n"
	"{\n"
	"	ns::Meter m{argc};\n"
	"	LABEL(in_work);\n"
	"	return ns::outer(m, argc) +\n" /* 26 */
	"		ns::twice(argc) + ns::twice(argc + 1);\n"
	"}\n"
	"int main(int argc, char **) { return work(argc); }\n";

static inline int set_up(void **state)
{
	int err = make_folder(state);

	if (!err)
		write_source(*state, "sample.cc", sample);
	return err;
}

static inline bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), e = strlen(end);

	return n >= e && !strcmp(text + n - e, end);
}

static inline void assert_place(struct source_place place, unsigned int line)
{
	assert_non_null(place.file);
	assert_true(ends_in(place.file, "sample.cc"));
	assert_int_equal(place.line, line);
}

static inline void assert_inlined(const struct inlined *inlined, const char *name,
				  const char *raw_name, unsigned int line)
{
	struct source_place place;

	assert_non_null(inlined);
	assert_int_equal(inlined->function->kind, FUNCTION_INLINED);
	assert_string_equal(inlined->function->name, name);
	assert_string_equal(inlined->function->raw_name, raw_name);
	assert_string_equal(inlined->function->module, "sample");
	assert_true(function__source(inlined->function, &place));
	assert_place(place, line);
}

static inline const struct inlined *at(const struct compiled *f, struct elf_image *image,
				       const char *label)
{
	return elf_image__inlined_at(image, address_of(f, "sample", label));
}

static inline void check_chain(const struct compiled *f, struct elf_image *image)
{
	const struct inlined *read = at(f, image, "in_read"), *outer = at(f, image, "in_outer");

	assert_inlined(read, "ns::Meter::read(int) const", "_ZNK2ns5Meter4readEi", 8);
	assert_inlined(outer, "ns::outer(ns::Meter const&, int)", "_ZN2ns5outerERKNS_5MeterEi", 15);
	assert_ptr_equal(read->outer, outer);
	assert_null(outer->outer);
	assert_int_equal(read->depth, 1);
	assert_int_equal(outer->depth, 0);
	assert_place(read->call, 18);
	assert_place(outer->call, 26);
	assert_null(at(f, image, "in_work"));
	assert_null(at(f, image, "probe"));
	assert_null(elf_image__inlined_at(image, 0));
	assert_null(elf_image__inlined_at(image, UINT64_MAX));
}

/* twice() is in work() twice: one function, two calls. */
static inline void check_twins(const struct compiled *f, struct elf_image *image)
{
	uint64_t end = address_of(f, "sample", "work");
	const struct inlined *seen[2] = {NULL};
	size_t n = 0;

	for (uint64_t v = end; v < end + 0x80; v++) {
		const struct inlined *i = elf_image__inlined_at(image, v);

		if (!i || !strstr(i->function->raw_name, "twice") || i == seen[0] || i == seen[1])
			continue;
		assert_true(n < 2);
		seen[n++] = i;
	}
	assert_int_equal(n, 2);
	assert_ptr_equal(seen[0]->function, seen[1]->function);
	assert_place(seen[0]->call, 27);
}

static inline void check(const struct compiled *f, const char *command)
{
	struct elf_image *image;

	run_in_folder(f, command);
	image = open_compiled(f, "sample");
	check_chain(f, image);
	check_twins(f, image);
	elf_image__free(image);
}

static const char local_sample[] =
	"#define INLINE inline __attribute__((always_inline))\n"
	"#define LABEL(name) asm volatile(\".globl \" #name \"\\n\" #name \": nop\")\n"
	"namespace ns {\n"
	"static INLINE int hidden(int a) { LABEL(in_hidden); return a * 3; }\n"
	"namespace { struct Local { INLINE int get(int a) { LABEL(in_get); return a + 1; } }; }\n"
	"static __attribute__((noinline)) int work(int a)\n"
	"{\n"
	"	auto add = [&](int b) __attribute__((always_inline)) { LABEL(in_add); return a + "
	"b; };\n"
	"	return hidden(a) + Local().get(a) + add(5);\n"
	"}\n"
	"}\n"
	"int main(int argc, char **) { return ns::work(argc); }\n";

#endif
