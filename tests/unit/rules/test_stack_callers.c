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

struct loaded_program {
	struct thread t;
	struct elf_image *image;
};

static void link_and_load(const struct compiled *f, const char *text, const char *link,
			  struct loaded_program *p)
{
	uint64_t page;

	*p = (struct loaded_program){.t.map = code_map__new()};
	write_source(f, "program.s", text);
	run_in_folder(f, link);
	p->image = open_compiled(f, "program");
	page = at(f, "_start") & ~0xfffull;
	assert_int_equal(code_map__add(p->t.map, page, 0x1000,
				       elf_image__offset_of_vaddr(p->image, page), p->image),
			 0);
	p->t.stack = stack__new(42, 43, "worker", p->t.map);
}

static void load(const struct compiled *f, const char *text, struct loaded_program *p)
{
	link_and_load(f, text, "gcc -nostdlib -static -no-pie -o program program.s", p);
}

static void finish(struct loaded_program *p, const char *expected)
{
	assert_finished(&p->t, expected);
	stack__free(p->t.stack);
	code_map__free(p->t.map);
	elf_image__free(p->image);
}

/* Up to before(), a gap, and then in step(), which work() has called. */
static void run_passes(const struct compiled *f, const char *text, unsigned int passes,
		       bool goes_on, const char *expected)
{
	struct loaded_program p;
	struct thread *t = &p.t;

	load(f, text, &p);
	t->stack->passes_off = ~passes;
	begin(t, at(f, "_start"));
	call(t, at(f, "_start"), at(f, "run"));
	call(t, at(f, "run"), at(f, "before"));
	gap(t, GAP_OVERFLOW);
	begin(t, at(f, "step"));
	if (goes_on) {
		gap(t, GAP_OVERFLOW);
		begin(t, at(f, "step"));
	}
	ret(t, at(f, "step"), at(f, "work") + CALL_LEN);
	if (goes_on)
		jump(t, at(f, "work") + CALL_LEN, at(f, "rest"));
	finish(&p, expected);
}

static void run_program(const struct compiled *f, const char *text, bool goes_on,
			const char *expected)
{
	run_passes(f, text, ~0u, goes_on, expected);
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

/* It looks at what stitching has found: where it has put nothing, there is nothing to lie on. */
static void test_the_pass_alone_and_all_but_it(void **state)
{
	run_passes(*state, PROGRAM(""), PASS_ROOTS | PASS_STITCHING | PASS_CALLERS, false,
		   "_start 10-60 inferred-start inferred-end inferred\n"
		   "  run 20-60 inferred-end inferred\n"
		   "    before 30-40 inferred-end\n"
		   "    [gap: overflow] 40-50\n"
		   "    start 50-60 inferred-start inferred-end inferred\n"
		   "      work 50-60 inferred-start inferred-end\n"
		   "        step 50-60 inferred-start\n");
	run_passes(*state, PROGRAM(""), ~PASS_CALLERS, false,
		   "_start 10-40 inferred-start inferred-end\n"
		   "  run 20-40 inferred-end\n"
		   "    before 30-40 inferred-end\n"
		   "[gap: overflow] 40-50\n"
		   "work 50-60 inferred-start inferred-end\n"
		   "  step 50-60 inferred-start\n");
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

/* A later segment, of which nothing is known, does not hide who has called work(). */
static void test_under_a_run_that_stays_apart(void **state)
{
	const struct compiled *f = *state;
	struct loaded_program p;
	struct thread *t = &p.t;

	load(f, PROGRAM(""), &p);
	begin(t, at(f, "_start"));
	call(t, at(f, "_start"), at(f, "run"));
	call(t, at(f, "run"), at(f, "before"));
	gap(t, GAP_OVERFLOW);
	begin(t, at(f, "step"));
	ret(t, at(f, "step"), at(f, "work") + CALL_LEN);
	gap(t, GAP_OVERFLOW);
	begin(t, at(f, "other"));
	call(t, at(f, "other"), at(f, "before"));
	finish(&p, "_start 10-70 inferred-start inferred-end inferred\n"
		   "  run 20-70 inferred-end inferred\n"
		   "    before 30-40 inferred-end\n"
		   "    [gap: overflow] 40-50\n"
		   "    start 50-70 inferred-start inferred-end inferred\n"
		   "      work 50-70 inferred-start inferred-end\n"
		   "        step 50-60 inferred-start\n"
		   "[gap: overflow] 70-80\n"
		   "other 80-90 inferred-start inferred-end\n"
		   "  before 90-90 inferred-end\n");
}

/* What runs at the end is on outer(): work() is known to have been on run() nevertheless. */
static void test_between_runs_each_is_on_its_callers(void **state)
{
	const struct compiled *f = *state;
	struct loaded_program p;
	struct thread *t = &p.t;

	load(f,
	     PROGRAM("") ".type outer, @function\n"
			 "outer: call _start\n"
			 "call late\n"
			 "ret\n"
			 ".type late, @function\n"
			 "late: call tail\n"
			 "ret\n"
			 ".type tail, @function\n"
			 "tail: ret\n",
	     &p);
	begin(t, at(f, "outer"));
	call(t, at(f, "outer"), at(f, "_start"));
	call(t, at(f, "_start"), at(f, "run"));
	call(t, at(f, "run"), at(f, "before"));
	gap(t, GAP_OVERFLOW);
	begin(t, at(f, "step"));
	ret(t, at(f, "step"), at(f, "work") + CALL_LEN);
	gap(t, GAP_OVERFLOW);
	begin(t, at(f, "tail"));
	ret(t, at(f, "tail"), at(f, "late") + CALL_LEN);
	finish(&p, "outer 10-100 inferred-start inferred-end inferred\n"
		   "  _start 20-80 inferred-end inferred\n"
		   "    run 30-80 inferred-end inferred\n"
		   "      before 40-50 inferred-end\n"
		   "      [gap: overflow] 50-60\n"
		   "      start 60-80 inferred-start inferred-end inferred\n"
		   "        work 60-80 inferred-start inferred-end\n"
		   "          step 60-70 inferred-start\n"
		   "  [gap: overflow] 80-90\n"
		   "  late 90-100 inferred-start inferred-end\n"
		   "    tail 90-100 inferred-start\n");
}

/* work() is exported: another file that has this name may call it. */
static void run_exported(const struct compiled *f, const char *name, const char *expected)
{
	struct loaded_program p;
	struct thread *t = &p.t;
	struct elf_image *other;
	char source[100];

	link_and_load(f,
		      PROGRAM("") ".globl exported\n"
				  ".set exported, work\n",
		      "gcc -nostdlib -shared -Wl,-Ttext=0x523000 -o program program.s", &p);
	snprintf(source, sizeof(source), ".globl _start\n_start: ret\n.string \"%s\"\n", name);
	write_source(f, "other.s", source);
	run_in_folder(f, "gcc -nostdlib -static -no-pie -o other other.s");
	other = open_compiled(f, "other");
	assert_int_equal(code_map__add(t->map, 0x900000, 0x1000, 0, other), 0);
	begin(t, at(f, "run"));
	call(t, at(f, "run"), at(f, "before"));
	gap(t, GAP_OVERFLOW);
	begin(t, at(f, "step"));
	ret(t, at(f, "step"), at(f, "work") + CALL_LEN);
	finish(&p, expected);
	elf_image__free(other);
}

static void test_an_exported_function_that_no_other_file_names(void **state)
{
	run_exported(*state, "other",
		     "run 10-50 inferred-start inferred-end inferred\n"
		     "  before 20-30 inferred-end\n"
		     "  [gap: overflow] 30-40\n"
		     "  start 40-50 inferred-start inferred-end inferred\n"
		     "    exported 40-50 inferred-start inferred-end\n"
		     "      step 40-50 inferred-start\n");
}

static void test_a_name_that_another_file_has_as_well(void **state)
{
	run_exported(*state, "exported",
		     "run 10-30 inferred-start inferred-end\n"
		     "  before 20-30 inferred-end\n"
		     "[gap: overflow] 30-40\n"
		     "exported 40-50 inferred-start inferred-end\n"
		     "  step 40-50 inferred-start\n");
}

/* As glibc has it: main() is called by its address, in what __libc_start_main() calls, which has no
 * name. */
#define LIBC(exit_code)                                                                            \
	".globl _start\n"                                                                          \
	"_start: lea main(%rip), %rdi\n"                                                           \
	"call __libc_start_main\n"                                                                 \
	"hlt\n"                                                                                    \
	".type __libc_start_main, @function\n"                                                     \
	"__libc_start_main: call before\n"                                                         \
	"call start_call_main\n"                                                                   \
	".size __libc_start_main, . - __libc_start_main\n"                                         \
	".type before, @function\n"                                                                \
	"before: ret\n"                                                                            \
	".type start_call_main, @function\n"                                                       \
	"start_call_main: call before\n"                                                           \
	"test %eax, %eax\n"                                                                        \
	"jne exited\n"                                                                             \
	"call *%rax\n" exit_code "exited: call exit\n"                                             \
	".type exit, @function\n"                                                                  \
	"exit: hlt\n"                                                                              \
	".type main, @function\n"                                                                  \
	"main: call work\n"                                                                        \
	"ret\n"                                                                                    \
	".type work, @function\n"                                                                  \
	"work: ret\n"

/* Up to before(), a gap, and then in work(), which main() has called. */
static void run_main(const struct compiled *f, const char *text, const char *expected)
{
	struct loaded_program p;
	struct thread *t = &p.t;

	load(f, text, &p);
	begin(t, at(f, "_start"));
	call(t, at(f, "_start"), at(f, "__libc_start_main"));
	call(t, at(f, "__libc_start_main"), at(f, "before"));
	gap(t, GAP_OVERFLOW);
	begin(t, at(f, "work"));
	ret(t, at(f, "work"), at(f, "main") + CALL_LEN);
	finish(&p, expected);
}

static void test_main_is_called_by_its_address(void **state)
{
	run_main(*state, LIBC("mov %eax, %edi\ncall exit\n"),
		 "_start 10-60 inferred-start inferred-end inferred\n"
		 "  __libc_start_main 20-60 inferred-end inferred\n"
		 "    before 30-40 inferred-end\n"
		 "    [gap: overflow] 40-50\n"
		 "    start_call_main 50-60 inferred-start inferred-end inferred\n"
		 "      main 50-60 inferred-start inferred-end\n"
		 "        work 50-60 inferred-start\n");
}

/* Some other function of it calls something by its address: that is not main(). */
static void test_whose_result_nobody_exits_with_is_not_main(void **state)
{
	run_main(*state, LIBC("nop\n"),
		 "_start 10-40 inferred-start inferred-end\n"
		 "  __libc_start_main 20-40 inferred-end\n"
		 "    before 30-40 inferred-end\n"
		 "[gap: overflow] 40-50\n"
		 "main 50-60 inferred-start inferred-end\n"
		 "  work 50-60 inferred-start\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
		TEST(test_the_only_way_to_what_waits_is_taken),
		TEST(test_also_for_what_has_gone_on_by_a_jump),
		TEST(test_of_two_ways_none_is_taken),
		TEST(test_the_pass_alone_and_all_but_it),
		TEST(test_under_a_run_that_stays_apart),
		TEST(test_between_runs_each_is_on_its_callers),
		TEST(test_an_exported_function_that_no_other_file_names),
		TEST(test_a_name_that_another_file_has_as_well),
		TEST(test_main_is_called_by_its_address),
		TEST(test_whose_result_nobody_exits_with_is_not_main),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
