// SPDX-License-Identifier: MIT
/* The handlers of calls in code as OCaml's compilers and runtimes have it. */
#include "target/unwind/landing_pads.h"

#include "ocaml_code.h"

/* Labels; what is called by them lies behind the function. */
enum {
	HANDLER = 1,
	OUTER,
	INNER,
	LOOP,
	END,
	CALLEE,
	RAISER,
	TABLE,
	NEXT_TABLE,
	CASE_0,
	CASE_1,
	CASE_2
};

static const uint8_t slots[] = {SLOT_4_13, SLOT_5};

static struct elf_image *image;

static void assert_handler(uint64_t vaddr, uint64_t handler)
{
	if (landing_pads__find(image, vaddr) != handler)
		fail_msg("%#jx: %#jx, not %#jx", (uintmax_t)vaddr,
			 (uintmax_t)landing_pads__find(image, vaddr), (uintmax_t)handler);
}

static int free_image(void **state)
{
	elf_image__free(image);
	image = NULL;
	return 0;
}

static void end_with_callee(struct ocaml_code *c, const char *name)
{
	end_function(c, name);
	put_label(c, CALLEE);
	put_ret(c);
	end_function(c, "callee");
	image = make_image(c);
}

static void test_a_handler_is_of_the_calls_within_its_try(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		struct ocaml_code c;
		uint64_t before, in, closure, after;

		start_code(&c, slots[i]);
		before = put_call(&c, CALLEE);
		put_push_trap(&c, HANDLER);
		in = put_call(&c, CALLEE);
		closure = put_call_closure(&c);
		put_pop_trap(&c);
		put_jump(&c, END);
		put_label(&c, HANDLER);
		PUT(&c, "\x90");
		put_label(&c, END);
		after = put_call(&c, CALLEE);
		put_ret(&c);
		end_with_callee(&c, "f");
		assert_handler(before, 0);
		assert_handler(in, c.labels[HANDLER]);
		/* Any of its bytes. */
		assert_handler(in + 4, c.labels[HANDLER]);
		assert_handler(closure, c.labels[HANDLER]);
		assert_handler(after, 0);
		assert_true(landing_pads__kind(image, c.labels[HANDLER]));
		assert_false(landing_pads__kind(image, c.labels[END]));
		assert_false(landing_pads__kind(image, c.labels[CALLEE]));
		assert_handler(0x1234, 0);
		free_image(state);
	}
}

static void test_a_handler_raises_to_the_one_around_it(void **state)
{
	struct ocaml_code c;
	uint64_t in, again, out, jump_in, jump_again;

	start_code(&c, SLOT_5);
	put_push_trap(&c, OUTER);
	put_push_trap(&c, INNER);
	in = put_call(&c, CALLEE);
	put_jump_if_equal(&c, LOOP);
	put_pop_trap(&c);
	out = put_call(&c, CALLEE);
	put_pop_trap(&c);
	put_ret(&c);
	put_label(&c, LOOP);
	jump_in = put_raise(&c);
	put_label(&c, INNER);
	again = put_call(&c, CALLEE);
	jump_again = put_raise(&c);
	put_label(&c, OUTER);
	put_ret(&c);
	end_with_callee(&c, "f");
	assert_handler(in, c.labels[INNER]);
	assert_handler(out, c.labels[OUTER]);
	assert_handler(jump_in, c.labels[INNER]);
	assert_handler(jump_in + 2, c.labels[INNER]);
	assert_handler(again, c.labels[OUTER]);
	assert_handler(jump_again, c.labels[OUTER]);
}

static void test_a_loop_has_the_same_traps_each_time(void **state)
{
	struct ocaml_code c;
	uint64_t in, after;

	start_code(&c, SLOT_4_13);
	put_label(&c, LOOP);
	put_push_trap(&c, HANDLER);
	in = put_call(&c, CALLEE);
	put_pop_trap(&c);
	put_label(&c, HANDLER);
	put_jump_if_equal(&c, LOOP);
	after = put_call(&c, CALLEE);
	put_jump(&c, LOOP);
	end_with_callee(&c, "f");
	assert_handler(in, c.labels[HANDLER]);
	assert_handler(after, 0);
}

static void test_where_ways_disagree_nothing_is_said(void **state)
{
	struct ocaml_code c;
	uint64_t in, joined, behind;

	start_code(&c, SLOT_4_13);
	put_jump_if_equal(&c, END);
	put_push_trap(&c, HANDLER);
	in = put_call(&c, CALLEE);
	put_label(&c, END);
	joined = put_call(&c, CALLEE);
	put_push_trap(&c, INNER);
	behind = put_call(&c, CALLEE);
	put_label(&c, HANDLER);
	put_label(&c, INNER);
	put_ret(&c);
	end_with_callee(&c, "f");
	assert_handler(in, c.labels[HANDLER]);
	assert_handler(joined, 0);
	assert_handler(behind, 0);
}

/* What lies behind a raise is not gone on to: it is come to from elsewhere, with other traps. */
static void check_raiser(const char *name, const char *code, size_t len)
{
	struct ocaml_code c;
	uint64_t raise, behind;

	start_code(&c, SLOT_5);
	put_push_trap(&c, HANDLER);
	put_jump_if_equal(&c, END);
	raise = put_call(&c, RAISER);
	put_label(&c, HANDLER);
	put_jump_if_equal(&c, LOOP);
	put_raise(&c);
	put_label(&c, LOOP);
	put_call(&c, RAISER);
	put_label(&c, END);
	behind = put_call(&c, CALLEE);
	put_pop_trap(&c);
	put_ret(&c);
	end_function(&c, "f");
	put_label(&c, RAISER);
	put(&c, code, len);
	end_function(&c, name);
	if (!strcmp(name, "nameless"))
		c.names[0] = '\0';
	end_with_callee(&c, "other");
	assert_handler(raise, c.labels[HANDLER]);
	assert_handler(behind, strcmp(name, "returns") ? c.labels[HANDLER] : 0);
	free_image(NULL);
}
#define CHECK_RAISER(name, code) check_raiser(name, code, sizeof(code) - 1)

static void test_what_raises_does_not_return(void **state)
{
	CHECK_RAISER("caml_raise_exn", "\x90");
	CHECK_RAISER("caml_reraise_exn", "\x90");
	CHECK_RAISER("caml_ml_array_bound_error", "\x90");
	CHECK_RAISER("caml_raise_exn@plt", "\x90");
	CHECK_RAISER("returns", "\xc3");
}

static void test_raisers_without_names(void **state)
{
	/* caml_raise_exn of 4.13: testq $1,0xe8(%r14); jne; mov 0x10(%r14),%rsp; ... */
	CHECK_RAISER("nameless", "\x49\xf7\x86\xe8\0\0\0\1\0\0\0\x75\x09\x49\x8b\x66\x10"
				 "\x41\x8f\x46\x10\xc3");
	/* caml_ml_array_bound_error: lea caml_array_bound_error,%rax; jmp caml_c_call */
	CHECK_RAISER("nameless", "\x48\x8d\x05\1\0\0\0\xe9\0\0\0\0");
	/* 5.1: sub $8,%rsp before it */
	CHECK_RAISER("nameless", "\x48\x83\xec\x08\x48\x8d\x05\1\0\0\0\xe9\0\0\0\0");
}

/*
 * Two tables, one behind the other, whose cases have traps: what is read beyond the end of one must
 * not spoil what is known. An entry of the second, taken for one of the first, leads 8 bytes before
 * its case.
 */
static void test_switches(void **state)
{
	struct ocaml_code c;
	uint64_t in_0, in_1, in_2, before_1;

	start_code(&c, SLOT_4_13);
	put_push_trap(&c, HANDLER);
	put_jump_if_equal(&c, LOOP);
	put_table_jump(&c, TABLE);
	put_label(&c, CASE_0);
	in_0 = put_call(&c, CALLEE);
	put_push_trap(&c, INNER);
	in_1 = put_call(&c, CALLEE);
	put_table_jump(&c, NEXT_TABLE);
	put_label(&c, CASE_2);
	before_1 = put_call(&c, CALLEE);
	PUT(&c, "\x90\x90\x90");
	put_label(&c, CASE_1);
	in_2 = put_call(&c, CALLEE);
	put_pop_trap(&c);
	put_label(&c, INNER);
	put_label(&c, LOOP);
	put_pop_trap(&c);
	put_label(&c, HANDLER);
	put_ret(&c);
	end_function(&c, "f");
	put_label(&c, TABLE);
	put_entry(&c, TABLE, CASE_0);
	put_entry(&c, TABLE, LOOP);
	put_label(&c, NEXT_TABLE);
	put_entry(&c, NEXT_TABLE, CASE_1);
	put_entry(&c, NEXT_TABLE, CASE_2);
	/* Of another function's. */
	put_entry(&c, NEXT_TABLE, CASE_0);
	end_function(&c, "tables");
	end_with_callee(&c, "other");
	assert_handler(in_0, c.labels[HANDLER]);
	assert_handler(in_1, c.labels[INNER]);
	assert_handler(in_2, c.labels[INNER]);
	assert_handler(before_1, c.labels[INNER]);
}

static void test_a_handler_elsewhere_is_none(void **state)
{
	struct ocaml_code c;
	uint64_t in;

	start_code(&c, SLOT_4_13);
	put_push_trap(&c, CALLEE);
	in = put_call(&c, CALLEE);
	put_pop_trap(&c);
	put_ret(&c);
	end_with_callee(&c, "f");
	assert_handler(in, 0);
}

/* 4.13: caml_start_program, which callbacks jump into. */
static void test_the_runtime_of_4(void **state)
{
	struct ocaml_code c;
	uint64_t start;

	start_code(&c, SLOT_4_13);
	PUT(&c, "\x41\xff\xb6\xe0\0\0\0"); /* push gc_regs(%r14) */
	PUT(&c, "\x4d\x8b\x7e\x08");	   /* mov young_ptr(%r14),%r15 */
	PUT(&c, "\x4c\x8d\x2d");	   /* lea handler,%r13 */
	put_use(&c, HANDLER, 0);
	PUT(&c, "\x41\x55");	      /* push %r13 */
	put_slot(&c, "\x41\xff\x76"); /* push slot(%r14) */
	put_slot(&c, "\x49\x89\x66"); /* mov %rsp,slot(%r14) */
	PUT(&c, "\x41\xff\xd4");      /* call *%r12 */
	start = here(&c) - 3;
	put_slot(&c, "\x41\x8f\x46"); /* pop slot(%r14) */
	PUT(&c, "\x41\x5c");	      /* pop %r12 */
	put_label(&c, LOOP);
	PUT(&c, "\x41\x8f\x86\xe0\0\0\0\xc3"); /* pop gc_regs(%r14); ret */
	put_label(&c, HANDLER);
	put_jump(&c, LOOP);
	end_with_callee(&c, "caml_start_program");
	assert_handler(start, c.labels[HANDLER]);
}

/* 5.x: on the stack of the OCaml code, which is switched to then. */
static void test_the_runtime_of_5(void **state)
{
	struct ocaml_code c;
	uint64_t start, after;

	start_code(&c, SLOT_5);
	PUT(&c, "\x49\x83\xea\x10"); /* sub $16,%r10 */
	PUT(&c, "\x4c\x8d\x1d");     /* lea handler,%r11 */
	put_use(&c, HANDLER, 0);
	PUT(&c, "\x4d\x89\x5a\x08");	     /* mov %r11,8(%r10) */
	put_slot(&c, "\x4d\x8b\x5e");	     /* mov slot(%r14),%r11 */
	PUT(&c, "\x4d\x89\x1a");	     /* mov %r11,(%r10) */
	put_slot(&c, "\x4d\x89\x56");	     /* mov %r10,slot(%r14) */
	PUT(&c, "\x4c\x89\xd4\x41\xff\xd4"); /* mov %r10,%rsp; call *%r12 */
	start = here(&c) - 3;
	PUT(&c, "\x4c\x8b\x1c\x24");  /* mov (%rsp),%r11 */
	put_slot(&c, "\x4d\x89\x5e"); /* mov %r11,slot(%r14) */
	after = put_call(&c, CALLEE);
	put_label(&c, LOOP);
	put_ret(&c);
	put_label(&c, HANDLER);
	PUT(&c, "\x48\x83\xc8\x02"); /* or $2,%rax */
	put_jump(&c, LOOP);
	end_with_callee(&c, "caml_start_program");
	assert_handler(start, c.labels[HANDLER]);
	assert_handler(after, 0);
}

/* Bytes made of the shapes' own, in any order: whatever is said, it ends. */
static void test_any_bytes(void **state)
{
	static const char *const pieces[] = {
		"\x4c\x8d\x1d\x10\x01\x01\x01",
		"\x4c\x8d\x1d\xf0\xff\xff\xff",
		"\x41\x53",
		"\x41\xff\x76\x10",
		"\x49\x89\x66\x10",
		"\x41\x8f\x46\x10",
		"\x49\x8b\x66\x10",
		"\x41\x5b\x41\xff\xe3",
		"\xeb\xe0",
		"\x75\xd0",
		"\x74\x20",
		"\xeb\x11",
		"\xff\xd7",
		"\xe8\x10\xff\xff\xff",
		"\x48\x8d\x15\x80\xff\xff\xff",
		"\x48\x63\x04\x82\x48\x01\xc2\xff\xe2",
	};
	uint32_t seed = 1;

	for (int round = 0; round < 300; round++) {
		struct ocaml_code c;

		start_code(&c, SLOT_4_13);
		while (c.n < 4000) {
			const char *piece;

			seed = seed * 1103515245 + 12345;
			piece = pieces[(seed >> 16) % (sizeof(pieces) / sizeof(pieces[0]))];
			put(&c, piece, strlen(piece) - ((seed >> 8) % 64 == 0));
			if (seed >> 28 == 0)
				put_push_trap(&c, HANDLER);
			c.n_uses = 0;
		}
		end_with_callee(&c, "f");
		for (uint64_t at = CODE_BASE; at < CODE_BASE + 4000; at++)
			landing_pads__find(image, at);
		free_image(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_a_handler_is_of_the_calls_within_its_try,
					  free_image),
		cmocka_unit_test_teardown(test_a_handler_raises_to_the_one_around_it, free_image),
		cmocka_unit_test_teardown(test_a_loop_has_the_same_traps_each_time, free_image),
		cmocka_unit_test_teardown(test_where_ways_disagree_nothing_is_said, free_image),
		cmocka_unit_test(test_what_raises_does_not_return),
		cmocka_unit_test(test_raisers_without_names),
		cmocka_unit_test_teardown(test_switches, free_image),
		cmocka_unit_test_teardown(test_a_handler_elsewhere_is_none, free_image),
		cmocka_unit_test_teardown(test_the_runtime_of_4, free_image),
		cmocka_unit_test_teardown(test_the_runtime_of_5, free_image),
		cmocka_unit_test(test_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
