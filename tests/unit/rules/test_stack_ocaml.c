// SPDX-License-Identifier: MIT
/* Which calls an OCaml exception ends. */
#include "ocaml_code.h"
#include "stack_fixture.h"

#include "target/unwind/ocaml_handlers.h"

enum { CALLEE = 1, RAISER, TAKER_HANDLER, RECURSIVE_HANDLER, SHARED };

/* main, in the fixture's terms: it calls what is here, and knows no handler. */
#define FROM_MAIN (MAIN + 0x10)
#define IN_MAIN	  (FROM_MAIN + CALL_LEN)

struct program {
	struct thread *thread;
	struct ocaml_code code;
	struct elf_image *image;
	/* taker: calls, in its try */
	uint64_t taker, in_taker;
	/* recursive: calls, in a try of its own and before it; jumps to the innermost handler */
	uint64_t recursive, before_try, in_try, raise, by_table;
	/* caml_raise_exn, and its RET */
	uint64_t raiser, raised;
	/* switcher: by its code, what it returns to may be another stack */
	uint64_t switcher, in_switcher;
	/* shared, into whose middle others jump */
	uint64_t shared, shared_middle, jumper, jump_to_shared;
};

static void write_taker(struct program *p)
{
	struct ocaml_code *c = &p->code;

	p->taker = here(c);
	put_push_trap(c, TAKER_HANDLER);
	p->in_taker = put_call(c, CALLEE);
	put_pop_trap(c);
	put_label(c, TAKER_HANDLER);
	put_ret(c);
	end_function(c, "taker");
}

static void write_recursive(struct program *p)
{
	struct ocaml_code *c = &p->code;

	p->recursive = here(c);
	p->before_try = put_call(c, CALLEE);
	put_push_trap(c, RECURSIVE_HANDLER);
	p->in_try = put_call(c, CALLEE);
	put_jump_if_equal(c, RECURSIVE_HANDLER);
	p->by_table = here(c);
	PUT(c, "\xff\xe2"); /* jmp *%rdx */
	put_label(c, RECURSIVE_HANDLER);
	p->raise = put_raise(c);
	end_function(c, "recursive");
}

static void write_others(struct program *p)
{
	struct ocaml_code *c = &p->code;

	p->raiser = here(c);
	put_label(c, RAISER);
	p->raised = here(c);
	put_ret(c);
	end_function(c, "caml_raise_exn");
	p->switcher = here(c);
	PUT(c, "\xff\xd0\x4c\x89\xdc\xc3"); /* call *%rax; mov %r11,%rsp; ret */
	p->in_switcher = p->switcher;
	end_function(c, "switcher");
	p->shared = here(c);
	PUT(c, "\x90\x90");
	put_label(c, SHARED);
	p->shared_middle = here(c);
	put_call(c, CALLEE);
	put_ret(c);
	end_function(c, "shared");
	p->jumper = here(c);
	put_label(c, CALLEE);
	PUT(c, "\x90");
	p->jump_to_shared = here(c);
	put_jump(c, SHARED);
	end_function(c, "jumper");
}

static int start_program(void **state)
{
	struct program *p = calloc(1, sizeof(*p));

	assert_int_equal(start_thread((void **)&p->thread), 0);
	start_code(&p->code, SLOT_4_13);
	write_taker(p);
	write_recursive(p);
	write_others(p);
	p->image = make_image(&p->code);
	assert_int_equal(jit_image__map(p->image, CODE_BASE, p->code.n, p->thread->map), 0);
	begin(p->thread, FROM_MAIN);
	*state = p;
	return 0;
}

static int end_program(void **state)
{
	struct program *p = *state;

	assert_int_equal(end_thread((void **)&p->thread), 0);
	elf_image__free(p->image);
	free(p);
	return 0;
}

static void test_ends_the_calls_up_to_the_handler(void **state)
{
	struct program *p = *state;
	struct thread *t = p->thread;

	call(t, FROM_MAIN, p->taker);
	call(t, p->in_taker, p->recursive);
	call(t, p->before_try, p->recursive);
	call(t, p->before_try, p->raiser);
	ret(t, p->raised, p->code.labels[TAKER_HANDLER]);
	assert_on_top(t, "taker", 1);
	ret(t, p->code.labels[TAKER_HANDLER], IN_MAIN);
	assert_on_top(t, "main", 0);
	assert_finished(t, "main 10-70 inferred-start inferred-end\n"
			   "  taker 20-70\n"
			   "    recursive 30-60 cut by-raise\n"
			   "      recursive 40-60 cut by-raise\n"
			   "        caml_raise_exn 50-60 cut by-raise\n");
}

/* Only the outermost is within its try: the jump is within the function, and leaves two calls. */
static void test_a_jump_to_another_activation(void **state)
{
	struct program *p = *state;
	struct thread *t = p->thread;

	call(t, FROM_MAIN, p->recursive);
	call(t, p->in_try, p->recursive);
	call(t, p->before_try, p->recursive);
	jump(t, p->raise, p->code.labels[RECURSIVE_HANDLER]);
	assert_on_top(t, "recursive", 1);
	jump(t, p->raise, p->code.labels[RECURSIVE_HANDLER]);
}

/* Each within its try: the innermost takes it, and raises to the next. */
static void test_raises_again(void **state)
{
	struct program *p = *state;
	struct thread *t = p->thread;

	call(t, FROM_MAIN, p->taker);
	call(t, p->in_taker, p->recursive);
	call(t, p->in_try, p->recursive);
	call(t, p->in_try, p->raiser);
	ret(t, p->raised, p->code.labels[RECURSIVE_HANDLER]);
	assert_on_top(t, "recursive", 3);
	jump(t, p->raise, p->code.labels[RECURSIVE_HANDLER]);
	assert_on_top(t, "recursive", 2);
	jump(t, p->raise, p->code.labels[TAKER_HANDLER]);
	assert_on_top(t, "taker", 1);
}

static void test_through_a_function_that_could_switch_stacks(void **state)
{
	struct program *p = *state;
	struct thread *t = p->thread;

	call(t, FROM_MAIN, p->taker);
	call(t, p->in_taker, p->switcher);
	call(t, p->in_switcher, A);
	call(t, A + 0x10, p->raiser);
	ret(t, p->raised, p->code.labels[TAKER_HANDLER]);
	assert_on_top(t, "taker", 1);
}

static void test_says_what_ended_them(void **state)
{
	struct program *p = *state;
	struct thread *t = p->thread;
	struct call_tree tree;

	call(t, FROM_MAIN, p->taker);
	call(t, p->in_taker, p->recursive);
	jump(t, p->raise, p->code.labels[TAKER_HANDLER]);
	assert_int_equal(stack__finish(t->stack, &tree), 0);
	assert_int_equal(tree.calls.n, 3);
	assert_int_equal(tree.calls.v[1].left_by, LEFT_BY_UNKNOWN);
	assert_int_equal(tree.calls.v[2].left_by, LEFT_BY_RAISE);
	call_tree__fini(&tree);
}

/* A switch. */
static void test_other_jumps_within_a_function_leave_nothing(void **state)
{
	struct program *p = *state;
	struct thread *t = p->thread;

	call(t, FROM_MAIN, p->recursive);
	call(t, p->in_try, p->recursive);
	jump(t, p->by_table, p->code.labels[RECURSIVE_HANDLER]);
	assert_on_top(t, "recursive", 2);
}

/* What took it was called before the segment began. */
static void test_the_handler_was_there_before(void **state)
{
	struct program *p = *state;
	struct thread *t = p->thread;

	call(t, FROM_MAIN, p->recursive);
	jump(t, p->raise, p->code.labels[TAKER_HANDLER]);
	assert_int_equal(strcmp(top_function(t->stack)->name, "taker"), 0);
	assert_finished(t, "taker 10-30 inferred-start inferred-end inferred\n"
			   "  main 10-30 inferred-start cut by-raise\n"
			   "    recursive 20-30 cut by-raise\n");
}

/*
 * It was called within a gap, and is no caller of main, which the frames behind the gap hang
 * together with.
 */
static void test_nothing_unknown_lies_below_main(void **state)
{
	struct program *p = *state;
	struct thread *t = p->thread;

	call(t, FROM_MAIN, A);
	call(t, A + 0x10, B);
	gap(t, GAP_OVERFLOW);
	begin(t, B + 0x40);
	ret(t, B + 0x50, A + 0x15);
	call(t, A + 0x20, p->recursive);
	jump(t, p->raise, p->code.labels[TAKER_HANDLER]);
	assert_finished(t, "main 10-80 inferred-start inferred-end inferred\n"
			   "  a 20-80 cut inferred by-raise\n"
			   "    b 30-60 inferred\n"
			   "      [gap: overflow] 40-50\n"
			   "    recursive 70-80 cut by-raise\n"
			   "taker 80-80 inferred-start inferred-end\n");
}

/* As caml_callback_asm goes on in caml_start_program, which may be further out as well. */
static void test_a_direct_jump_into_the_middle_of_a_caller(void **state)
{
	struct program *p = *state;
	struct thread *t = p->thread;

	call(t, FROM_MAIN, p->shared);
	call(t, p->shared_middle, p->jumper);
	jump(t, p->jump_to_shared, p->shared_middle);
	assert_on_top(t, "shared", 2);
}

/* The handler is one of the list; that it is in the taker's code is all that is known. */
static void test_a_list_of_handlers(void **state)
{
	struct program *p = *state;
	struct thread *t = p->thread;
	uint64_t ip = A + 0x80;
	const struct ocaml_traps traps = {.ips = {.v = &ip, .n = 1}};

	stack__set_traps(t->stack, &traps);
	call(t, FROM_MAIN, A);
	call(t, A + 0x10, A);
	call(t, A + 0x10, p->recursive);
	jump(t, p->raise, ip);
	assert_on_top(t, "a", 2);
	call(t, A + 0x90, p->raiser);
	ret(t, p->raised, ip);
	assert_on_top(t, "a", 2);
	/* That is none of it. */
	call(t, A + 0x90, p->recursive);
	jump(t, p->raise, ip + 4);
	assert_on_top(t, "a", 2);
	assert_finished(t, "main 10-90 inferred-start inferred-end\n"
			   "  a 20-90 inferred-end\n"
			   "    a 30-90 inferred-end\n"
			   "      recursive 40-50 cut by-raise\n"
			   "      caml_raise_exn 60-70 cut by-raise\n"
			   "      recursive 80-90 cut\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ends_the_calls_up_to_the_handler,
						start_program, end_program),
		cmocka_unit_test_setup_teardown(test_a_jump_to_another_activation, start_program,
						end_program),
		cmocka_unit_test_setup_teardown(test_raises_again, start_program, end_program),
		cmocka_unit_test_setup_teardown(test_through_a_function_that_could_switch_stacks,
						start_program, end_program),
		cmocka_unit_test_setup_teardown(test_says_what_ended_them, start_program,
						end_program),
		cmocka_unit_test_setup_teardown(test_other_jumps_within_a_function_leave_nothing,
						start_program, end_program),
		cmocka_unit_test_setup_teardown(test_the_handler_was_there_before, start_program,
						end_program),
		cmocka_unit_test_setup_teardown(test_nothing_unknown_lies_below_main, start_program,
						end_program),
		cmocka_unit_test_setup_teardown(test_a_direct_jump_into_the_middle_of_a_caller,
						start_program, end_program),
		cmocka_unit_test_setup_teardown(test_a_list_of_handlers, start_program,
						end_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
