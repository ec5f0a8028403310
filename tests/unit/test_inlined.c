// SPDX-License-Identifier: MIT
/* Inlined functions of a sample, compiled in all the ways that people have. */
#include "target/elf/inlined.h"

#include "compiled_fixture.h"
#include "target/elf/debug_file.h"

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

static int set_up(void **state)
{
	int err = make_folder(state);

	if (!err)
		write_source(*state, "sample.cc", sample);
	return err;
}

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), e = strlen(end);

	return n >= e && !strcmp(text + n - e, end);
}

static void assert_place(struct source_place place, unsigned int line)
{
	assert_non_null(place.file);
	assert_true(ends_in(place.file, "sample.cc"));
	assert_int_equal(place.line, line);
}

static void assert_inlined(const struct inlined *inlined, const char *name, const char *raw_name,
			   unsigned int line)
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

static const struct inlined *at(const struct compiled *f, struct elf_image *image,
				const char *label)
{
	return elf_image__inlined_at(image, address_of(f, "sample", label));
}

static void check_chain(const struct compiled *f, struct elf_image *image)
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
static void check_twins(const struct compiled *f, struct elf_image *image)
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

static void check(const struct compiled *f, const char *command)
{
	struct elf_image *image;

	run_in_folder(f, command);
	image = open_compiled(f, "sample");
	check_chain(f, image);
	check_twins(f, image);
	elf_image__free(image);
}

static void test_gcc(void **state)
{
	check(*state, "g++ -O2 -g -gdwarf-5 sample.cc -o sample");
	check(*state, "g++ -O2 -g -gdwarf-4 sample.cc -o sample");
	check(*state, "g++ -O2 -g -gz=zlib -no-pie sample.cc -o sample");
	check(*state, "g++ -O2 -g -fPIC -shared -ffunction-sections sample.cc -o sample");
	check(*state, "g++ -O2 -g -flto sample.cc -o sample");
}

/* Its units have no .debug_aranges, its entries no DW_AT_sibling. */
static void test_clang(void **state)
{
	if (!has_tool("clang++")) {
		print_message("# skip: clang++ is missing\n");
		skip();
	}
	check(*state, "clang++ -O2 -g -gdwarf-5 sample.cc -o sample");
	check(*state, "clang++ -O2 -g -gdwarf-4 sample.cc -o sample");
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

/* They have no mangled name: theirs is made of what they lie in. clang mangles them all the same.
 */
static void test_names_without_a_symbol(void **state)
{
	static const char *const names[][2] = {
		{"in_hidden", "ns::hidden"},
		{"in_get", "ns::(anonymous namespace)::Local::get"},
		{"in_add", "operator()"},
	};
	const struct compiled *f = *state;

	write_source(f, "sample.cc", local_sample);
	for (int flto = 0; flto < 2; flto++) {
		struct elf_image *image;

		run_in_folder(f, flto ? "g++ -O2 -g -flto sample.cc -o sample"
				      : "g++ -O2 -g sample.cc -o sample");
		image = open_compiled(f, "sample");
		for (size_t i = 0; i < 3; i++) {
			const struct inlined *inlined = at(f, image, names[i][0]);

			assert_non_null(inlined);
			assert_non_null(strstr(inlined->function->name, names[i][1]));
			assert_non_null(strstr(inlined->function->name, "ns::"));
		}
		elf_image__free(image);
	}
}

static void test_in_a_separate_file(void **state)
{
	const struct compiled *f = *state;
	struct elf_image *image;
	char path[80];

	run_in_folder(f, "g++ -O2 -g sample.cc -o whole && objcopy --only-keep-debug whole dbg &&"
			 "objcopy --strip-all --add-gnu-debuglink=dbg whole sample");
	image = open_compiled(f, "sample");
	snprintf(path, sizeof(path), "%s/sample", f->dir);
	assert_true(debug_file__use(image, path, NULL));
	run_in_folder(f, "cp whole sample");
	check_chain(f, image);
	elf_image__free(image);
}

/* Nothing there, or in a file of its own that nobody reads: nothing is said. */
static void test_without(void **state)
{
	const struct compiled *f = *state;
	struct elf_image *image;

	for (int i = 0; i < 3; i++) {
		run_in_folder(f, i == 0	  ? "g++ -O2 sample.cc -o sample"
				 : i == 1 ? "g++ -O2 -g -gdwarf-5 -gsplit-dwarf sample.cc -o sample"
					  : "g++ -O2 -g1 -gdwarf-4 -gsplit-dwarf sample.cc -o "
					    "sample");
		image = open_compiled(f, "sample");
		assert_null(at(f, image, "in_read"));
		elf_image__free(image);
	}
	image = elf_image__raw("\x90\xc3", 2, "[jit]", "f");
	assert_null(elf_image__inlined_at(image, 1));
	elf_image__free(image);
}

static void test_lines_of_instructions(void **state)
{
	const struct compiled *f = *state;
	struct source_place place;
	struct elf_image *image;

	for (int i = 0; i < 2; i++) {
		run_in_folder(f, i ? "g++ -O2 -g -gsplit-dwarf -gdwarf-5 sample.cc -o sample"
				   : "g++ -O2 -g sample.cc -o sample");
		image = open_compiled(f, "sample");
		assert_true(
			elf_image__source_at(image, address_of(f, "sample", "in_read"), &place));
		assert_place(place, 10);
		assert_true(
			elf_image__source_at(image, address_of(f, "sample", "in_work"), &place));
		assert_place(place, 25);
		assert_false(
			elf_image__source_at(image, address_of(f, "sample", "_start"), &place));
		assert_false(elf_image__source_at(image, UINT64_MAX, &place));
		elf_image__free(image);
	}
}

static const char rust_sample[] = "#[inline(never)] fn probe(a: u32) -> u32 "
				  "{ std::hint::black_box(a) + 1 }\n"
				  "struct Meter;\n"
				  "impl Meter {\n"
				  "	#[inline(always)]\n"
				  "	fn read(&self, a: u32) -> u32 { probe(a) }\n"
				  "}\n"
				  "#[no_mangle] #[inline(never)]\n"
				  "pub fn work(a: u32) -> u32 { Meter.read(a) * 3 }\n"
				  "fn main() { std::process::exit(work(1) as i32 - 6) }\n";

static void test_rust(void **state)
{
	const struct compiled *f = *state;

	if (!has_tool("rustc")) {
		print_message("# skip: rustc is missing\n");
		skip();
	}
	write_source(f, "sample.rs", rust_sample);
	for (int v0 = 0; v0 < 2; v0++) {
		const struct inlined *found = NULL;
		struct elf_image *image;
		uint64_t start;

		run_in_folder(f, v0 ? "rustc -C symbol-mangling-version=v0 -O -g sample.rs"
				    : "rustc -O -g sample.rs");
		image = open_compiled(f, "sample");
		start = address_of(f, "sample", "work");
		for (uint64_t v = start; v < start + 32 && !found; v++)
			found = elf_image__inlined_at(image, v);
		assert_non_null(found);
		/* As its compiler mangles: v0 tells that it is a method. */
		assert_true(!strcmp(found->function->name, "<sample::Meter>::read") ||
			    (!v0 && !strcmp(found->function->name, "sample::Meter::read")));
		assert_int_equal(found->call.line, 8);
		elf_image__free(image);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_gcc, set_up, remove_folder),
		cmocka_unit_test_setup_teardown(test_clang, set_up, remove_folder),
		cmocka_unit_test_setup_teardown(test_names_without_a_symbol, set_up, remove_folder),
		cmocka_unit_test_setup_teardown(test_in_a_separate_file, set_up, remove_folder),
		cmocka_unit_test_setup_teardown(test_without, set_up, remove_folder),
		cmocka_unit_test_setup_teardown(test_lines_of_instructions, set_up, remove_folder),
		cmocka_unit_test_setup_teardown(test_rust, set_up, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
