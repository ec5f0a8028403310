// SPDX-License-Identifier: MIT
/* Who can call a function, as far as its file's code tells. */
#include "compiled_fixture.h"

#include "target/elf/elf_callers.h"

static struct elf_callers callers_of(struct elf_image *image, const struct compiled *f,
				     const char *file, const char *name)
{
	const struct function *function = elf_image__function_at(image, address_of(f, file, name));

	assert_string_equal(function->name, name);
	return elf_callers__of(function);
}

static const char program[] = ".globl _start\n"
			      "_start: call twice\n"
			      "behind_1: call twice\n"
			      "behind_2: call named\n"
			      "call jumped\n"
			      "lea loaded(%rip), %rax\n"
			      "call loaded\n"
			      "jmp far\n"
			      "jmp jumped\n"
			      "call far\n"
			      ".rept 9\n"
			      "call often\n"
			      ".endr\n"
			      "call last\n"
			      "ret\n"
			      ".type jumped, @function\n"
			      "jumped: ret\n"
			      ".type twice, @function\n"
			      "twice: nop\n"
			      "jne twice\n" /* a loop of its own */
			      "ret\n"
			      ".skip 200\n"
			      ".type far, @function\n"
			      "far: ret\n"
			      ".type named, @function\n"
			      "named: ret\n"
			      ".type loaded, @function\n"
			      "loaded: ret\n"
			      ".type often, @function\n"
			      "often: ret\n"
			      ".type never, @function\n"
			      "never: ret\n"
			      ".type last, @function\n"
			      ".globl last\n"
			      "last: ret\n"
			      ".data\n"
			      ".quad named\n";

static void test_calls_alone_tell_all_callers(void **state)
{
	const struct compiled *f = *state;
	struct elf_image *image;
	struct elf_callers callers;

	write_source(f, "program.s", program);
	run_in_folder(f, "gcc -nostdlib -static -no-pie -o program program.s");
	image = open_compiled(f, "program");
	for (int again = 0; again < 2; again++) {
		callers = callers_of(image, f, "program", "twice");
		assert_int_equal(callers.n, 2);
		assert_int_equal(callers.behind[0], address_of(f, "program", "behind_1"));
		assert_int_equal(callers.behind[1], address_of(f, "program", "behind_2"));
	}
	assert_int_equal(callers_of(image, f, "program", "last").n, 1);
	elf_image__free(image);
}

static void test_what_else_names_it_may_call_it(void **state)
{
	static const char *const names[] = {"named", "jumped", "far", "loaded", "often", "never"};
	const struct compiled *f = *state;
	struct elf_image *image;

	write_source(f, "program.s", program);
	run_in_folder(f, "gcc -nostdlib -static -no-pie -o program program.s");
	image = open_compiled(f, "program");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(callers_of(image, f, "program", names[i]).n, 0);
	elf_image__free(image);
}

/* Other files find it by its symbol, which names its address. */
static void test_what_a_library_exports_has_a_name_for_others(void **state)
{
	const struct compiled *f = *state;
	struct elf_image *image;
	struct elf_callers callers;

	write_source(f, "library.s",
		     ".text\n"
		     ".rept 0x1234\n" /* no address that is as small as other numbers */
		     "nop\n"
		     ".endr\n"
		     "call exported_here\n"
		     "call bound@plt\n"
		     "call twice_here\n"
		     "call kept\n"
		     "ret\n"
		     ".globl exported\n"
		     ".type exported, @function\n"
		     "exported:\n"
		     "exported_here: ret\n"
		     ".globl bound\n"
		     ".type bound, @function\n"
		     "bound: ret\n"
		     ".globl twice\n"
		     ".globl again\n"
		     ".type twice, @function\n"
		     "again:\n"
		     "twice:\n"
		     "twice_here: ret\n"
		     ".type kept, @function\n"
		     "kept: ret\n");
	run_in_folder(f, "gcc -nostdlib -shared -Wl,-Ttext=0x123000 -o library library.s");
	image = open_compiled(f, "library");
	callers = callers_of(image, f, "library", "exported");
	assert_int_equal(callers.n, 1);
	assert_string_equal(callers.exported_as, "exported");
	/* Its own calls of it go through the PLT. */
	assert_int_equal(callers_of(image, f, "library", "bound").n, 0);
	assert_int_equal(callers_of(image, f, "library", "twice").n, 0);
	callers = callers_of(image, f, "library", "kept");
	assert_int_equal(callers.n, 1);
	assert_null(callers.exported_as);
	assert_true(elf_image__may_hold_text(image, "exported"));
	assert_true(elf_image__may_hold_text(image, "ported"));
	assert_false(elf_image__may_hold_text(image, "export"));
	elf_image__free(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
		TEST(test_calls_alone_tell_all_callers),
		TEST(test_what_else_names_it_may_call_it),
		TEST(test_what_a_library_exports_has_a_name_for_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
