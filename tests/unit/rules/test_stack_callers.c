// SPDX-License-Identifier: MIT
/* Behind a gap, on frames that no branch shows: what the code says of who has called them. */
#include "compiled_fixture.h"
#include "stack_fixture.h"

/*
 * run() has called before(), and calls start() later, which calls work(). Who else calls that is
 * called by nobody, unless run() does.
 */
#define PROGRAM(more_of_run)                                                                       \
	".globl _start\n"                                                                          \
	"_start: call run\n"                                                                       \
	"ret\n"                                                                                    \
	".type run, @function\n"                                                                   \
	"run: call before\n"                                                                       \
	"call start\n" more_of_run "ret\n"                                                         \
	".type before, @function\n"                                                                \
	"before: ret\n"                                                                            \
	".type start, @function\n"                                                                 \
	"start: call work\n"                                                                       \
	"ret\n"                                                                                    \
	".type other, @function\n"                                                                 \
	"other: call work\n"                                                                       \
	"ret\n"                                                                                    \
	".type work, @function\n"                                                                  \
	"work: call step\n"                                                                        \
	"jmp rest\n"                                                                               \
	".type step, @function\n"                                                                  \
	"step: ret\n"                                                                              \
	".type rest, @function\n"                                                                  \
	"rest: ret\n"

static uint64_t at(const struct compiled *f, const char *symbol)
{
	return address_of(f, "program", symbol);
}

/* Up to before(), a gap, and then in step(), which work() has called. */
static void run_program(const struct compiled *f, const char *text, bool goes_on,
			const char *expected)
{
	struct thread t = {.map = code_map__new()};
	struct elf_image *image;
	uint64_t vaddr;

	write_source(f, "program.s", text);
	run_in_folder(f, "gcc -nostdlib -static -no-pie -o program program.s");
	image = open_compiled(f, "program");
	vaddr = at(f, "_start");
	assert_int_equal(code_map__add(t.map, vaddr & ~0xfffull, 0x1000,
				       elf_image__offset_of_vaddr(image, vaddr & ~0xfffull), image),
			 0);
	t.stack = stack__new(42, 43, "worker", t.map);
	begin(&t, vaddr);
	call(&t, vaddr, at(f, "run"));
	call(&t, at(f, "run"), at(f, "before"));
	gap(&t, GAP_OVERFLOW);
	begin(&t, at(f, "step"));
	if (goes_on) {
		gap(&t, GAP_OVERFLOW);
		begin(&t, at(f, "step"));
	}
	ret(&t, at(f, "step"), at(f, "work") + CALL_LEN);
	if (goes_on)
		jump(&t, at(f, "work") + CALL_LEN, at(f, "rest"));
	assert_finished(&t, expected);
	stack__free(t.stack);
	code_map__free(t.map);
	elf_image__free(image);
}

static void test_the_only_way_to_what_waits_is_taken(void **state)
{
	run_program(*state, PROGRAM(""), false,
		    "_start 10-60 inferred-start inferred-end inferred\n"
		    "  run 20-60 inferred-end inferred\n"
		    "    before 30-40 inferred-end\n"
		    "    [gap: overflow] 40-50\n"
		    "    start 50-60 inferred-start inferred-end inferred\n"
		    "      work 50-60 inferred-start inferred-end\n"
		    "        step 50-60 inferred-start\n");
}

/* Only a later segment shows work(). */
static void test_also_for_what_has_gone_on_by_a_jump(void **state)
{
	run_program(*state, PROGRAM(""), true,
		    "_start 10-90 inferred-start inferred-end inferred\n"
		    "  run 20-90 inferred-end inferred\n"
		    "    before 30-40 inferred-end\n"
		    "    [gap: overflow] 40-50\n"
		    "    start 50-90 inferred-start inferred-end inferred\n"
		    "      work 50-90 inferred-start inferred\n"
		    "        step 50-80 inferred-start inferred\n"
		    "          [gap: overflow] 60-70\n"
		    "      rest 90-90 inferred-end by-jump\n");
}

static void test_of_two_ways_none_is_taken(void **state)
{
	run_program(*state, PROGRAM("call other\n"), false,
		    "_start 10-40 inferred-start inferred-end\n"
		    "  run 20-40 inferred-end\n"
		    "    before 30-40 inferred-end\n"
		    "[gap: overflow] 40-50\n"
		    "work 50-60 inferred-start inferred-end\n"
		    "  step 50-60 inferred-start\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
		TEST(test_the_only_way_to_what_waits_is_taken),
		TEST(test_also_for_what_has_gone_on_by_a_jump),
		TEST(test_of_two_ways_none_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
