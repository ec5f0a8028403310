// SPDX-License-Identifier: MIT
#include "target/symbols/symbols.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "said.h"
#include "stderr_capture.h"

/* Names as compilers of C++ and Rust make them, halves of split C functions, and aliases. */
#define FUNCTION(name, other)                                                                      \
	__asm__(".pushsection .text.sample, \"ax\", @progbits\n"                                   \
		".type " name ", @function\n.type " other ", @function\n" name ":\n" other         \
		": ret\n.size " name ", 1\n.size " other ", 1\n.popsection\n")

FUNCTION("sample_iter", "__sample_iter");
FUNCTION("sample_twin_one", "sample_twin_two");
FUNCTION("_ZN2ns4overEi", "__over_int");
FUNCTION("_ZN2ns4overEd", "__over_double");
FUNCTION("_ZNK2ns3Foo3getEi", "__get");
FUNCTION("_ZNK2ns3Foo3getEi.cold", "__get_cold");
FUNCTION("_ZN2ns3FooclEv", "__call");
FUNCTION("_ZN3svc8one_iter17h0123456789abcdefE", "__rust");
FUNCTION("sample_static.constprop.0", "__constprop");
FUNCTION("sample_static.part.0", "__part");

struct fixture {
	struct process process;
	struct symbols symbols;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	return process__open(&f->process, getpid()) || symbols__open(&f->symbols, &f->process);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	symbols__close(&f->symbols);
	process__close(&f->process);
	free(f);
	return 0;
}

/* The raw name of what is found, or "" and what was said. */
static const char *find(void **state, const char *name, struct stderr_capture *capture)
{
	struct fixture *f = *state;
	struct symbol_match match;
	int err;

	stderr_capture__begin(capture);
	err = symbols__find(&f->symbols, name, &match);
	stderr_capture__end(capture);
	if (err)
		return "";
	assert_string_equal(capture->text, "");
	return match.function->raw_name;
}

static void assert_found(void **state, const char *name, const char *raw_name)
{
	struct stderr_capture capture;

	assert_string_equal(find(state, name, &capture), raw_name);
}

static void test_modules_are_those_of_the_process(void **state)
{
	struct fixture *f = *state;
	uint64_t here = (uint64_t)(uintptr_t)&test_modules_are_those_of_the_process;
	bool has_libc = false;

	for (size_t i = 0; i < f->symbols.n; i++) {
		const struct module *module = &f->symbols.modules[i];
		const struct function *function;

		has_libc |= strstr(module->mapping.path, "libc.so") != NULL;
		if (!module->is_executable)
			continue;
		function = elf_image__function_at(module->image, here - module->bias);
		assert_string_equal(function->name, "test_modules_are_those_of_the_process");
		assert_int_equal(function->vaddr + module->bias, here);
	}
	assert_true(has_libc);
}

static void test_the_vdso_is_a_module(void **state)
{
	struct fixture *f = *state;
	struct symbol_match match;

	for (size_t i = 0; i < f->process.maps.n; i++) {
		if (strcmp(f->process.maps.v[i].path, "[vdso]"))
			continue;
		assert_found(state, "__vdso_clock_gettime", "__vdso_clock_gettime");
		assert_found(state, "[vdso]:__vdso_time", "__vdso_time");
		assert_int_equal(symbols__find(&f->symbols, "[vdso]:clock_gettime", &match), 0);
		assert_string_equal(
			elf_image__function_at(match.function->image, match.function->vaddr)->name,
			"__vdso_clock_gettime");
		return;
	}
	print_message("# skip: this kernel gives no vdso\n");
	skip();
}

static void test_finds_by_name(void **state)
{
	assert_found(state, "sample_iter", "sample_iter");
	assert_found(state, "_ZN2ns4overEi", "_ZN2ns4overEi");
	assert_found(state, "ns::over(int)", "_ZN2ns4overEi");
	assert_found(state, "ns::Foo::get", "_ZNK2ns3Foo3getEi");
	assert_found(state, "ns::Foo::get(int) const", "_ZNK2ns3Foo3getEi");
	assert_found(state, "ns::Foo::operator()", "_ZN2ns3FooclEv");
	assert_found(state, "svc::one_iter", "_ZN3svc8one_iter17h0123456789abcdefE");
	assert_found(state, "sample_static", "sample_static.constprop.0");
	assert_found(state, "sample_twin_one", "sample_twin_one");
	assert_found(state, "sample_twin_two", "sample_twin_two");
}

static void test_a_module_may_be_named(void **state)
{
	assert_found(state, "getppid", "getppid");
	assert_found(state, "libc:getppid", "getppid");
	assert_found(state, "libc.so:getppid", "getppid");
	assert_found(state, "libc.so.6:getppid", "getppid");
	assert_found(state, "test_symbols:ns::Foo::get", "_ZNK2ns3Foo3getEi");
}

static void test_the_executable_hides_libraries(void **state)
{
	struct stderr_capture capture;
	struct fixture *f = *state;
	struct symbol_match match;

	assert_int_equal(symbols__find(&f->symbols, "main", &match), 0);
	assert_true(match.module->is_executable);
	assert_string_equal(find(state, "libc:main", &capture), "");
}

static void test_an_unknown_name_gets_a_suggestion(void **state)
{
	struct stderr_capture capture;
	struct fixture *f = *state;
	char where[64];

	assert_string_equal(find(state, "sample_itr", &capture), "");
	snprintf(where, sizeof(where), "process %d (%s)", getpid(), f->process.comm);
	ASSERT_COMPLAINT(capture.text);
	ASSERT_ERROR(capture.text, TEXT_no_function, "sample_itr", where);
	ASSERT_HINT(capture.text, TEXT_meant_function, "sample_iter", getpid());
	find(state, "one_iter", &capture);
	ASSERT_HINT(capture.text, TEXT_meant_function, "svc::one_iter", getpid());
	find(state, "ns::Foo::got", &capture);
	ASSERT_HINT(capture.text, TEXT_meant_function, "ns::Foo::get", getpid());
	find(state, "no such thing at all", &capture);
	assert_null(strstr(capture.text, "did you mean"));
	assert_non_null(strstr(capture.text, "hint: "));
	find(state, "libcc.so.6:getppid", &capture);
	ASSERT_ERROR(capture.text, TEXT_no_module, "libcc.so.6", where);
	ASSERT_HINT(capture.text, TEXT_meant_module, "libc.so.6", "getppid");
}

static void test_an_ambiguous_name_lists_candidates_that_work(void **state)
{
	struct stderr_capture capture;
	char precise[64], where[64];
	struct fixture *f = *state;
	const char *at;

	assert_string_equal(find(state, "ns::over", &capture), "");
	snprintf(where, sizeof(where), "process %d (%s)", getpid(), f->process.comm);
	ASSERT_ERROR(capture.text, TEXT_ambiguous_function, "ns::over", (size_t)2, where);
	assert_non_null(strstr(capture.text, " ns::over(int) test_symbols\n"));
	assert_non_null(strstr(capture.text, " ns::over(double) test_symbols\n"));
	at = strstr(capture.text, "name one as '");
	assert_non_null(at);
	assert_int_equal(sscanf(at, "name one as '%63[^']'", precise), 1);
	assert_found(state, precise, "_ZN2ns4overEi");
}

struct seen {
	unsigned int n, limit;
	const char *last;
};

static int count(void *ctx, const struct symbol_match *match)
{
	struct seen *seen = ctx;

	seen->last = match->function->raw_name;
	return ++seen->n == seen->limit ? 7 : 0;
}

static void test_each_matches_globs(void **state)
{
	struct fixture *f = *state;
	struct seen seen = {0};

	assert_int_equal(symbols__each(&f->symbols, "ns::over(*)", count, &seen), 0);
	assert_int_equal(seen.n, 2);
	seen = (struct seen){0};
	assert_int_equal(symbols__each(&f->symbols, "sample_it*", count, &seen), 0);
	assert_int_equal(seen.n, 1);
	assert_string_equal(seen.last, "sample_iter");
	/* Both names of one address match, and it is one function. */
	seen = (struct seen){0};
	assert_int_equal(symbols__each(&f->symbols, "sample_twin_*", count, &seen), 0);
	assert_int_equal(seen.n, 1);
	seen = (struct seen){.limit = 3};
	assert_int_equal(symbols__each(&f->symbols, "*", count, &seen), 7);
	assert_int_equal(seen.n, 3);
}

static void test_an_offset_in_a_function(void **state)
{
	struct fixture *f = *state;
	struct stderr_capture capture;
	char where[64];
	struct symbol_match match;

	assert_int_equal(symbols__find(&f->symbols, "main+0x1", &match), 0);
	assert_string_equal(match.function->raw_name, "main");
	assert_int_equal(match.offset, 1);
	assert_int_equal(symbols__find(&f->symbols, "symbol:main+1", &match), 0);
	assert_int_equal(match.offset, 1);
	assert_string_equal(find(state, "main+0x100000", &capture), "");
	ASSERT_ERROR(capture.text, TEXT_beyond_its_end, match.function->name, match.function->size,
		     "main+0x100000");
	assert_string_equal(find(state, "main+", &capture), "");
	assert_string_equal(find(state, "main+0y", &capture), "");
	assert_string_equal(find(state, "+1", &capture), "");
	snprintf(where, sizeof(where), "process %d (%s)", getpid(), f->process.comm);
	ASSERT_ERROR(capture.text, TEXT_no_function, "+1", where);
}

static void test_an_address(void **state)
{
	struct fixture *f = *state;
	struct symbol_match match, there;
	char text[40];

	assert_int_equal(symbols__find(&f->symbols, "main", &match), 0);
	snprintf(text, sizeof(text), "addr:%#" PRIx64, match.function->vaddr + 1);
	assert_int_equal(symbols__find(&f->symbols, text, &there), 0);
	assert_ptr_equal(there.function, match.function);
	assert_int_equal(there.offset, 1);
	/* As the process has it. */
	snprintf(text, sizeof(text), "addr:%#" PRIx64, match.function->vaddr + match.module->bias);
	assert_int_equal(symbols__find(&f->symbols, text, &there), 0);
	assert_ptr_equal(there.function, match.function);
	assert_int_equal(there.offset, 0);
}

static void test_a_bad_address_has_a_caret_under_it(void **state)
{
	struct stderr_capture capture;

	assert_string_equal(find(state, "addr:0x12g4", &capture), "");
	ASSERT_ERROR(capture.text, TEXT_not_of_an_address, 'g');
	assert_non_null(strstr(capture.text, "\n  addr:0x12g4\n           ^\nhint"));
	assert_string_equal(find(state, "addr:", &capture), "");
	assert_non_null(strstr(capture.text, "\n  addr:\n       ^\nhint"));
	assert_string_equal(find(state, "addr:1", &capture), "");
	assert_non_null(strstr(capture.text, " at 0x1\n"));
	assert_string_equal(find(state, "addr:0xffffffffffffffff", &capture), "");
	ASSERT_ERROR(capture.text, TEXT_address_too_large);
	assert_string_equal(find(state, "addr:0x10000000000000000", &capture), "");
	ASSERT_ERROR(capture.text, TEXT_address_too_large);
}

static void test_opens_a_program_that_does_not_run(void **state)
{
	struct stderr_capture capture;
	struct symbol_match match;
	struct symbols symbols;

	assert_int_equal(symbols__open_file(&symbols, "/proc/self/exe"), 0);
	assert_int_equal(symbols__find(&symbols, "sample_iter", &match), 0);
	assert_int_equal(match.module->bias, 0);
	assert_string_equal(match.module->mapping.path, "/proc/self/exe");
	stderr_capture__begin(&capture);
	assert_int_equal(symbols__find(&symbols, "sample_itr", &match), -ENOENT);
	stderr_capture__end(&capture);
	assert_non_null(
		strstr(capture.text, "in /proc/self/exe\nhint: did you mean 'sample_iter'"));
	symbols__close(&symbols);
}

static void test_refuses_what_is_no_program(void **state)
{
	struct stderr_capture capture;
	char path[] = "/tmp/mtbpf-test-XXXXXX";
	struct symbols symbols;
	int fd = mkstemp(path);

	assert_int_equal(write(fd, "#!/bin/sh\n", 10), 10);
	close(fd);
	stderr_capture__begin(&capture);
	assert_int_equal(symbols__open_file(&symbols, path), -ENOEXEC);
	stderr_capture__end(&capture);
	ASSERT_ERROR(capture.text, TEXT_is_a_script, path);
	unlink(path);
	stderr_capture__begin(&capture);
	assert_int_equal(symbols__open_file(&symbols, path), -ENOENT);
	stderr_capture__end(&capture);
	assert_non_null(strstr(capture.text, "No such file"));
}

static void test_a_process_without_symbols_says_so(void **state)
{
	struct stderr_capture capture;
	struct symbols symbols = {0};
	struct symbol_match match;

	symbols.label = (char *)"process 1 (bare)";
	stderr_capture__begin(&capture);
	assert_int_equal(symbols__find(&symbols, "main", &match), -ENODATA);
	stderr_capture__end(&capture);
	ASSERT_ERROR(capture.text, TEXT_is_stripped, symbols.label);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modules_are_those_of_the_process),
		cmocka_unit_test(test_the_vdso_is_a_module),
		cmocka_unit_test(test_finds_by_name),
		cmocka_unit_test(test_a_module_may_be_named),
		cmocka_unit_test(test_the_executable_hides_libraries),
		cmocka_unit_test(test_an_unknown_name_gets_a_suggestion),
		cmocka_unit_test(test_an_ambiguous_name_lists_candidates_that_work),
		cmocka_unit_test(test_each_matches_globs),
		cmocka_unit_test_setup_teardown(test_an_offset_in_a_function, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_address, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_bad_address_has_a_caret_under_it, set_up,
						tear_down),
		cmocka_unit_test(test_opens_a_program_that_does_not_run),
		cmocka_unit_test(test_refuses_what_is_no_program),
		cmocka_unit_test(test_a_process_without_symbols_says_so),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
