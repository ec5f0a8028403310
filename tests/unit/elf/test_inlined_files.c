// SPDX-License-Identifier: MIT
/* Inlined functions whose entries are in files of their own: stripped, split, put apart by dwz. */
#include "inlined_sample.h"

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

/* Units whose entries are in files of their own. */
static void test_split(void **state)
{
	const struct compiled *f = *state;

	check(f, "g++ -O2 -g -gdwarf-5 -gsplit-dwarf sample.cc -o sample");
	check(f, "g++ -O2 -g -gdwarf-4 -gsplit-dwarf sample.cc -o sample");
	if (has_tool("clang++"))
		check(f, "clang++ -O2 -g -gdwarf-5 -gsplit-dwarf sample.cc -o sample");
}

static void test_names_in_two_units_split(void **state)
{
	const struct compiled *f = *state;
	struct elf_image *image;

	write_source(f, "sample.cc", local_sample);
	run_in_folder(f, "sed -e 's/in_/of_/g; s/work/play/g' -e /main/d sample.cc >a-sample.cc &&"
			 "sed -e 's/static __attr/__attr/' -i a-sample.cc sample.cc &&"
			 "g++ -O2 -g -gsplit-dwarf sample.cc a-sample.cc -o sample");
	image = open_compiled(f, "sample");
	assert_non_null(strstr(at(f, image, "in_hidden")->function->name, "ns::hidden"));
	assert_non_null(strstr(at(f, image, "of_hidden")->function->name, "ns::hidden"));
	elf_image__free(image);
}

/* Each has a file of its own, whose entries lie where those of the other's do. */
static void test_two_units_split(void **state)
{
	const struct compiled *f = *state;
	struct elf_image *image;

	run_in_folder(f, "sed -e 's/read/seek/g; s/in_/of_/g; s/work/play/g; s/probe/check/g'"
			 " -e /main/d sample.cc >a-sample.cc &&"
			 "g++ -O2 -g -gdwarf-5 -gsplit-dwarf sample.cc a-sample.cc -o sample");
	image = open_compiled(f, "sample");
	assert_inlined(at(f, image, "of_seek"), "ns::Meter::seek(int) const",
		       "_ZNK2ns5Meter4seekEi", 8);
	assert_inlined(at(f, image, "in_read"), "ns::Meter::read(int) const",
		       "_ZNK2ns5Meter4readEi", 8);
	elf_image__free(image);
}

/*
 * What two files have in common is in a third: named with a whole path, or from where the one is
 * that has the link.
 */
static void check_dwz(const struct compiled *f, const char *command)
{
	struct elf_image *image;
	char path[80];

	run_in_folder(f, command);
	image = open_compiled(f, "sample");
	snprintf(path, sizeof(path), "%s/sample", f->dir);
	debug_file__use(image, path, NULL);
	check_chain(f, image);
	check_twins(f, image);
	elf_image__free(image);
	run_in_folder(f, "rm -rf sample other alt.debug debug.d .debug");
}

#define COMPILE "g++ -O2 -g -Wl,--build-id sample.cc -o sample && cp sample other && "

static void test_dwz(void **state)
{
	const struct compiled *f = *state;

	if (!has_tool("dwz")) {
		print_message("# skip: dwz is missing (package dwz)\n");
		skip();
	}
	check_dwz(f, COMPILE "{ dwz sample || [ $? = 3 ]; }");
	check_dwz(f, COMPILE "dwz -m $PWD/alt.debug sample other");
	check_dwz(f, COMPILE "dwz -r -m alt.debug sample other");
	/* The link is in the debug file. */
	check_dwz(f, COMPILE "dwz -r -m alt.debug sample other && mkdir .debug &&"
			     "objcopy --only-keep-debug sample .debug/dbg &&"
			     "objcopy --strip-debug -R .gnu_debugaltlink"
			     " --add-gnu-debuglink=.debug/dbg sample && mv alt.debug .debug");
}

/* Another file by that name is not the one. */
static void test_dwz_of_another(void **state)
{
	const struct compiled *f = *state;
	struct elf_image *image;
	char path[80];

	if (!has_tool("dwz")) {
		print_message("# skip: dwz is missing (package dwz)\n");
		skip();
	}
	run_in_folder(f, "sed -e 's/read/seek/g; s/outer/inner/g' sample.cc >a-sample.cc &&"
			 "g++ -O2 -g -Wl,--build-id a-sample.cc -o sample && cp sample other &&"
			 "dwz -r -m alt.debug sample other && mv alt.debug another &&" COMPILE
			 "dwz -r -m alt.debug sample other && mv another alt.debug");
	image = open_compiled(f, "sample");
	snprintf(path, sizeof(path), "%s/sample", f->dir);
	debug_file__use(image, path, NULL);
	assert_null(at(f, image, "in_read"));
	elf_image__free(image);
}

/* Nothing there, or in a file of its own that is not there: nothing is said. */
static void test_without(void **state)
{
	const struct compiled *f = *state;
	struct elf_image *image;

	for (int i = 0; i < 4; i++) {
		run_in_folder(f, i == 0	  ? "g++ -O2 sample.cc -o sample"
				 : i == 1 ? "g++ -O2 -g -gdwarf-5 -gsplit-dwarf sample.cc -o sample"
					    " && rm *.dwo"
				 : i == 2 ? "g++ -O2 -g1 -gdwarf-4 -gsplit-dwarf sample.cc -o "
					    "sample && rm *.dwo"
					  : "g++ -O2 -g -gdwarf-5 -gsplit-dwarf sample.cc -o sample"
					    " && rm sample.dwo && mkfifo sample.dwo");
		image = open_compiled(f, "sample");
		assert_null(at(f, image, "in_read"));
		elf_image__free(image);
	}
	image = elf_image__raw("\x90\xc3", 2, "[jit]", "f");
	assert_null(elf_image__inlined_at(image, 1));
	elf_image__free(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_in_a_separate_file, set_up, remove_folder),
		cmocka_unit_test_setup_teardown(test_split, set_up, remove_folder),
		cmocka_unit_test_setup_teardown(test_names_in_two_units_split, set_up,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_two_units_split, set_up, remove_folder),
		cmocka_unit_test_setup_teardown(test_dwz, set_up, remove_folder),
		cmocka_unit_test_setup_teardown(test_dwz_of_another, set_up, remove_folder),
		cmocka_unit_test_setup_teardown(test_without, set_up, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
