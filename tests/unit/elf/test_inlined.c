// SPDX-License-Identifier: MIT
/* Inlined functions of a sample, compiled in all the ways that people have. */
#include "inlined_sample.h"

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

	/* Newer compilers give a unit of C++20 its own language code. */
	static const char *const ways[] = {
		"g++ -O2 -g sample.cc -o sample",
		"g++ -O2 -g -flto sample.cc -o sample",
		"g++ -O2 -g -dA -S sample.cc && "
		"sed -i '/DW_AT_language/s/0x21/0x2b/' sample.s && "
		"grep -q '0x2b.*DW_AT_language' sample.s && g++ sample.s -o sample",
	};

	write_source(f, "sample.cc", local_sample);
	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
		struct elf_image *image;

		run_in_folder(f, ways[way]);
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

/* Debian 12's compiler has no std::hint::black_box(). */
static const char rust_sample[] = "#[inline(never)] fn probe(a: u32) -> u32 "
				  "{ unsafe { std::ptr::read_volatile(&a) + 1 } }\n"
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
		cmocka_unit_test_setup_teardown(test_lines_of_instructions, set_up, remove_folder),
		cmocka_unit_test_setup_teardown(test_rust, set_up, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
