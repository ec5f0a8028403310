// SPDX-License-Identifier: MIT
/* Stacks made up for functions whose instructions are known: each rule of the unwinder by itself.
 */
#include "unwind_fixture.h"

static struct program_code code;

/* An address behind a call of ours, whose own caller the copy does not reach. */
static __attribute__((noipa)) uint64_t a_caller(void)
{
	return (uint64_t)__builtin_return_address(0);
}

/*
 * What a probe shows: at a function's first instruction, and after each of its pushes. The code
 * before it may end in a call.
 */
extern const char steps[], steps_end[];
__asm__(".text\n.fill 16, 1, 0x90\n.type steps, @function\nsteps: .cfi_startproc\n"
	"endbr64\n push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset %rbp, -16\n"
	"push %rbx\n .cfi_def_cfa_offset 24\n .cfi_offset %rbx, -24\n"
	"sub $24, %rsp\n .cfi_def_cfa_offset 48\n add $24, %rsp\n .cfi_def_cfa_offset 24\n"
	"pop %rbx\n .cfi_def_cfa_offset 16\n pop %rbp\n .cfi_def_cfa_offset 8\n"
	"ret\n.cfi_endproc\nsteps_end: .size steps, .-steps\n");

/* A thread at each of its instructions in turn, with a caller in this program. */
static void test_each_instruction_of_a_function(void **state)
{
	static const struct {
		unsigned int offset, words; /* pushed so far */
	} places[] = {{0, 0}, {4, 0}, {5, 1}, {6, 2}, {10, 5}, {14, 2}, {15, 1}, {16, 0}};
	uint64_t back[2] = {0}, words[8];
	struct unwound out;

	back[0] = a_caller();
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct unwind_start start = {
			.ip = (uint64_t)steps + places[i].offset,
			.sp = 0x7fff0000,
			.bp = 1,
			.stack = (const uint8_t *)words,
			.size = 8 * (places[i].words + 1),
		};

		memset(words, 0x11, sizeof(words));
		words[places[i].words] = back[0];
		assert_int_equal(unwind__stack(code.map, &start, &out), 0);
		assert_int_equal(out.ips.n, 2);
		assert_true(out.ips.v[1] == back[0]);
		assert_false(out.is_whole);
		unwound__fini(&out);
	}
}

/* The same, with a word of the copy cut. */
static void test_a_word_that_is_cut(void **state)
{
	uint64_t words[2] = {0};
	struct unwind_start start = {.ip = (uint64_t)steps,
				     .sp = 0x7fff0000,
				     .stack = (const uint8_t *)words,
				     .size = 7};
	struct unwound out;

	words[0] = a_caller();
	assert_int_equal(unwind__stack(code.map, &start, &out), 0);
	assert_int_equal(out.ips.n, 1);
	unwound__fini(&out);
}

/*
 * A function that ends with a call, and behind it one with another frame; one whose caller lies no
 * higher than itself; a restorer that nothing describes.
 */
extern const char ends_with_call[], behind_it[], same_frame[], same_frame_back[], undescribed[];
__asm__(".text\n.type ends_with_call, @function\nends_with_call: .cfi_startproc\n"
	"sub $24, %rsp\n .cfi_def_cfa_offset 32\n call abort\n.cfi_endproc\n"
	".size ends_with_call, .-ends_with_call\n"
	".type behind_it, @function\nbehind_it: .cfi_startproc\n ret\n.cfi_endproc\n"
	".size behind_it, .-behind_it\n"
	".type same_frame, @function\nsame_frame: .cfi_startproc\n .cfi_def_cfa_offset 0\n"
	".cfi_offset %rip, 0\n call abort\nsame_frame_back: ret\n.cfi_endproc\n"
	".size same_frame, .-same_frame\n"
	".type undescribed, @function\nundescribed: mov $15, %rax\n syscall\n"
	".size undescribed, .-undescribed\n");

static void test_a_call_at_the_end_of_a_function(void **state)
{
	uint64_t words[] = {(uint64_t)behind_it, 1, 1, 1, 0};
	struct unwind_start start = {.ip = (uint64_t)steps,
				     .sp = 0x7fff0000,
				     .stack = (const uint8_t *)words,
				     .size = sizeof(words)};
	struct unwound out;

	words[4] = a_caller();
	assert_int_equal(unwind__stack(code.map, &start, &out), 0);
	assert_int_equal(out.ips.n, 3);
	assert_true(out.ips.v[1] == words[0] && out.ips.v[2] == words[4]);
	unwound__fini(&out);
}

static void test_a_frame_that_is_its_own_caller(void **state)
{
	uint64_t back = (uint64_t)same_frame_back;
	struct unwind_start start = {.ip = (uint64_t)same_frame,
				     .sp = 0x7fff0000,
				     .stack = (const uint8_t *)&back,
				     .size = sizeof(back)};
	struct unwound out;

	assert_int_equal(unwind__stack(code.map, &start, &out), 0);
	assert_int_equal(out.ips.n, 1);
	unwound__fini(&out);
}

/* A handler at its entry, the restorer, the kernel's frame, and what it interrupted. */
static void test_a_restorer_that_nothing_describes(void **state)
{
	struct {
		uint64_t restorer;
		ucontext_t context;
		uint64_t back;
	} stack = {.restorer = (uint64_t)undescribed};
	greg_t *regs = stack.context.uc_mcontext.gregs;
	struct unwind_start start = {.ip = (uint64_t)steps,
				     .sp = 0x7fff0000,
				     .stack = (const uint8_t *)&stack,
				     .size = sizeof(stack)};
	struct unwound out;

	stack.back = a_caller();
	regs[REG_RIP] = (greg_t)behind_it;
	regs[REG_RSP] = (greg_t)(start.sp + 8 + sizeof(ucontext_t));
	assert_int_equal(unwind__stack(code.map, &start, &out), 0);
	assert_int_equal(out.ips.n, 3);
	assert_true(out.ips.v[1] == (uint64_t)behind_it && out.ips.v[2] == stack.back);
	unwound__fini(&out);
}

/* As CPython's trampolines: nothing describes it, and it has no frame pointer. */
extern const char trampoline[], trampoline_back[], other_end[], other_back[], not_an_end[];
__asm__(".text\n.type trampoline, @function\ntrampoline: sub $8, %rsp\n call *%rcx\n"
	"trampoline_back: add $8, %rsp\n ret\n.size trampoline, .-trampoline\n"
	".type other_end, @function\nother_end: call *%rcx\nother_back: add $0x100, %rsp\n"
	"pop %rbx\n pop %r12\n ret\n.size other_end, .-other_end\n"
	".type ends_here, @function\nends_here: call *%rcx\n.size ends_here, .-ends_here\n"
	".type not_an_end, @function\nnot_an_end: ret\n.size not_an_end, .-not_an_end\n");

static void test_the_end_of_a_function_says_where_it_returns_to(void **state)
{
	uint64_t words[64] = {(uint64_t)trampoline_back, 1, (uint64_t)other_back};
	struct unwind_start start = {.ip = (uint64_t)steps,
				     .sp = 0x7fff0000,
				     .bp = 1,
				     .stack = (const uint8_t *)words,
				     .size = sizeof(words)};
	struct unwound out;

	words[3 + 0x100 / 8 + 2] = a_caller();
	assert_int_equal(unwind__stack(code.map, &start, &out), 0);
	assert_int_equal(out.ips.n, 4);
	assert_true(out.ips.v[1] == words[0] && out.ips.v[2] == words[2]);
	assert_true(out.ips.v[3] == words[3 + 0x100 / 8 + 2]);
	unwound__fini(&out);
}

/* A function that jumps to another, one that jumps to that one, and a call of each. */
extern const char jumps[], calls_jumps[], jumps_back[], jumps_twice[], jumps_twice_back[];
__asm__(".text\n.type jumps, @function\njumps: endbr64\n nop\n jmp steps\n.size jumps, .-jumps\n"
	".type calls_jumps, @function\ncalls_jumps: call jumps\njumps_back: ret\n"
	".size calls_jumps, .-calls_jumps\n"
	".type jumps_twice, @function\njumps_twice: nop\n jmp jumps\n"
	".size jumps_twice, .-jumps_twice\n"
	".type calls_twice, @function\ncalls_twice: call jumps_twice\njumps_twice_back: ret\n"
	".size calls_twice, .-calls_twice\n");

/* The return of a function is probed, and the one to which it jumped returns for it. */
static void test_a_probed_call_that_ended_by_a_jump(void **state)
{
	uint64_t word = 0x7ffff000;
	struct unwind_start start = {.ip = (uint64_t)steps,
				     .sp = 0x7fff0000,
				     .stack = (const uint8_t *)&word,
				     .size = 8,
				     .trampoline = word,
				     .n_calls = 1};
	struct code_place place;
	struct probed_call call;
	struct unwound out;

	for (int i = 0; i < 2; i++) {
		uint64_t back = (uint64_t)(i ? jumps_twice_back : jumps_back);

		assert_true(code_map__find(code.map, (uint64_t)(i ? jumps_twice : jumps), &place));
		call = (struct probed_call){place.function, back};
		start.calls = &call;
		assert_int_equal(unwind__stack(code.map, &start, &out), 0);
		assert_int_equal(out.ips.n, 2);
		assert_true(out.ips.v[1] == back);
		unwound__fini(&out);
	}
	/* That function does not jump to it: somebody else probes the one that runs. */
	start.ip = (uint64_t)same_frame_back;
	assert_int_equal(unwind__stack(code.map, &start, &out), 0);
	assert_int_equal(out.ips.n, 1);
	unwound__fini(&out);
}

/* A leaf that leaves %rbp alone, one that saves it, and calls of all kinds in a function. */
extern const char no_frame[], saves_rbp[], owner[], to_owner[], calls[], by_name[], by_stub[],
	by_register[], of_leaf[], calls_end[];
__asm__(".text\n.type no_frame, @function\nno_frame: .cfi_startproc\n"
	"sub $24, %rsp\n .cfi_def_cfa_offset 32\n nop\n add $24, %rsp\n"
	" .cfi_def_cfa_offset 8\n ret\n.cfi_endproc\n.size no_frame, .-no_frame\n"
	".type saves_rbp, @function\nsaves_rbp: .cfi_startproc\n"
	"push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset %rbp, -16\n nop\n pop %rbp\n"
	" .cfi_def_cfa_offset 8\n .cfi_restore %rbp\n ret\n.cfi_endproc\n"
	".size saves_rbp, .-saves_rbp\n"
	".type owner, @function\nowner: endbr64\n push %rbp\n pop %rbp\n ret\n"
	".size owner, .-owner\n"
	".type to_owner, @function\nto_owner: endbr64\n jmp owner\n.size to_owner, .-to_owner\n"
	".type calls, @function\ncalls: call owner\nby_name: call to_owner\nby_stub: call *%rax\n"
	"by_register: call no_frame\nof_leaf: nop\ncalls_end: ret\n.size calls, .-calls\n");

static void test_frame_pointers_miss_the_caller_of_what_has_no_frame(void **state)
{
	uint64_t inside = (uint64_t)no_frame + 4;
	struct code_place caller;

	assert_true(unwind__misses_caller(code.map, inside, (uint64_t)by_name, &caller));
	assert_string_equal(caller.function->name, "owner");
	assert_true(caller.entry == (uint64_t)owner);
	/* Whoever that went on to. */
	assert_true(unwind__misses_caller(code.map, inside, (uint64_t)by_stub, &caller));
	assert_null(caller.function);
	assert_true(unwind__misses_caller(code.map, inside, (uint64_t)by_register, &caller));
	assert_null(caller.function);
	/* Then the chain is one that misses nobody. */
	assert_false(unwind__misses_caller(code.map, inside, (uint64_t)of_leaf, &caller));
	/* No return address; its %rbp is no frame pointer; it has a frame. */
	assert_false(unwind__misses_caller(code.map, inside, (uint64_t)calls_end, &caller));
	assert_false(unwind__misses_caller(code.map, (uint64_t)saves_rbp + 1, (uint64_t)by_name,
					   &caller));
	assert_false(
		unwind__misses_caller(code.map, (uint64_t)owner + 5, (uint64_t)by_name, &caller));
}

/* It holds anything as soon as a function has put it away, and is a frame pointer where that finds
 * its frame by it: after two instructions, until it has been restored. */
extern const char framed[];
__asm__(".text\n.type framed, @function\nframed: .cfi_startproc\n"
	"push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset %rbp, -16\n"
	"mov %rsp, %rbp\n .cfi_def_cfa_register %rbp\n nop\n pop %rbp\n"
	" .cfi_def_cfa %rsp, 8\n ret\n.cfi_endproc\n.size framed, .-framed\n");

static void test_a_function_without_its_frame_at_its_begin_and_its_end(void **state)
{
	static const unsigned int without[] = {0, 1, 6}, with[] = {4, 5};
	struct code_place caller;

	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
		assert_true(unwind__misses_caller(code.map, (uint64_t)framed + without[i],
						  (uint64_t)by_name, &caller));
		assert_string_equal(caller.function->name, "owner");
		assert_false(unwind__reuses_frame_pointer(code.map, (uint64_t)framed + without[i]));
	}
	for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++)
		assert_false(unwind__misses_caller(code.map, (uint64_t)framed + with[i],
						   (uint64_t)by_name, &caller));
	/* At a probe there the kernel adds the caller. */
	assert_true(
		unwind__misses_caller(code.map, (uint64_t)no_frame, (uint64_t)by_name, &caller));
	assert_false(
		unwind__misses_caller(code.map, (uint64_t)no_frame, (uint64_t)of_leaf, &caller));
}

static void test_what_is_no_frame_pointer_any_more(void **state)
{
	assert_true(unwind__reuses_frame_pointer(code.map, (uint64_t)saves_rbp + 1));
	assert_false(unwind__reuses_frame_pointer(code.map, (uint64_t)saves_rbp));
	assert_false(unwind__reuses_frame_pointer(code.map, (uint64_t)framed + 4));
	assert_false(unwind__reuses_frame_pointer(code.map, (uint64_t)no_frame + 4));
	/* Nothing describes it, or nothing is there. */
	assert_false(unwind__reuses_frame_pointer(code.map, (uint64_t)owner + 5));
	assert_false(unwind__reuses_frame_pointer(code.map, 0x1000));
	assert_true(unwind__has_rules(code.map, (uint64_t)no_frame + 4));
	assert_false(unwind__has_rules(code.map, (uint64_t)owner + 5));
	assert_false(unwind__has_rules(code.map, 0x1000));
}

/* Behind a call that never returns: the next function's begin is no end of this one. */
static void test_the_end_of_another_function_says_nothing(void **state)
{
	uint64_t words[] = {(uint64_t)not_an_end, 0, 0};
	struct unwind_start start = {.ip = (uint64_t)steps,
				     .sp = 0x7fff0000,
				     .stack = (const uint8_t *)words,
				     .size = sizeof(words)};
	struct unwound out;

	words[1] = a_caller();
	assert_int_equal(unwind__stack(code.map, &start, &out), 0);
	assert_int_equal(out.ips.n, 2);
	unwound__fini(&out);
}

/* A return address that is no such: not code, or not behind a call. */
static void test_what_is_no_return_address(void **state)
{
	const uint64_t wrong[] = {
		0, 1, (uint64_t)steps, (uint64_t)steps + 5, UINT64_MAX, (uint64_t)&code};
	struct unwound out;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct unwind_start start = {.ip = (uint64_t)steps,
					     .sp = 0x7fff0000,
					     .stack = (const uint8_t *)&wrong[i],
					     .size = 8};

		assert_int_equal(unwind__stack(code.map, &start, &out), 0);
		assert_int_equal(out.ips.n, 1);
		assert_false(out.is_whole);
		assert_false(unwind__is_behind_call(code.map, wrong[i]));
		unwound__fini(&out);
	}
}

/* Where nothing is mapped, nothing is known. */
static void test_no_code(void **state)
{
	struct unwind_start start = {.ip = 0x1000, .sp = 0x2000};
	struct unwound out;

	assert_int_equal(unwind__stack(code.map, &start, &out), 0);
	assert_int_equal(out.ips.n, 1);
	assert_false(out.is_whole);
	unwound__fini(&out);
}

/* Frames at the same place, each the caller of itself, by frame pointers. */
extern const char bare[], bare_back[], bare_entry[];
__asm__(".text\n.type bare, @function\nbare: nop\n call bare\nbare_back: nop\n ret\n.size bare, "
	".-bare\n"
	".type bare_entry, @function\nbare_entry: endbr64\n push %rax\n ret\n"
	".size bare_entry, .-bare_entry\n");

static void test_frame_pointers_where_nothing_else_is(void **state)
{
	/* The innermost frame, its caller's, and one whose frame pointer leads down again. */
	uint64_t stack[] = {
		0, 0, 0x7fff0030, (uint64_t)bare_back, 5, 5, 0x7fff0010, (uint64_t)bare_back, 0};
	struct unwind_start start = {.ip = (uint64_t)bare + 1,
				     .sp = 0x7fff0000,
				     .bp = 0x7fff0010,
				     .stack = (const uint8_t *)stack,
				     .size = sizeof(stack)};
	struct unwound out;

	assert_int_equal(unwind__stack(code.map, &start, &out), 0);
	assert_int_equal(out.ips.n, 3);
	assert_true(out.ips.v[1] == (uint64_t)bare_back && out.ips.v[2] == (uint64_t)bare_back);
	assert_false(out.is_whole);
	unwound__fini(&out);
	/* 0 marks the outermost. */
	stack[6] = 0;
	assert_int_equal(unwind__stack(code.map, &start, &out), 0);
	assert_int_equal(out.ips.n, 3);
	assert_true(out.is_whole);
	unwound__fini(&out);
	stack[6] = 0x7fff0010;
	/* At its entry a function has no frame: its caller is at the stack pointer. */
	stack[0] = (uint64_t)bare_back;
	for (int i = 0; i < 2; i++) {
		start.ip = (uint64_t)bare_entry + (i ? 4 : 0);
		assert_int_equal(unwind__stack(code.map, &start, &out), 0);
		assert_int_equal(out.ips.n, 4);
		assert_true(out.ips.v[1] == (uint64_t)bare_back);
		unwound__fini(&out);
	}
}

static int open_code(void **state)
{
	program_code__open(&code);
	return 0;
}

static int close_code(void **state)
{
	program_code__close(&code);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_instruction_of_a_function),
		cmocka_unit_test(test_a_word_that_is_cut),
		cmocka_unit_test(test_a_call_at_the_end_of_a_function),
		cmocka_unit_test(test_a_frame_that_is_its_own_caller),
		cmocka_unit_test(test_a_restorer_that_nothing_describes),
		cmocka_unit_test(test_the_end_of_a_function_says_where_it_returns_to),
		cmocka_unit_test(test_frame_pointers_miss_the_caller_of_what_has_no_frame),
		cmocka_unit_test(test_a_function_without_its_frame_at_its_begin_and_its_end),
		cmocka_unit_test(test_what_is_no_frame_pointer_any_more),
		cmocka_unit_test(test_a_probed_call_that_ended_by_a_jump),
		cmocka_unit_test(test_the_end_of_another_function_says_nothing),
		cmocka_unit_test(test_what_is_no_return_address),
		cmocka_unit_test(test_no_code),
		cmocka_unit_test(test_frame_pointers_where_nothing_else_is),
	};

	return cmocka_run_group_tests(tests, open_code, close_code);
}
