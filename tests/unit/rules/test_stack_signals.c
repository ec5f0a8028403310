// SPDX-License-Identifier: MIT
/* Out of user code and back, wherever the kernel sends the thread; and anything at random. */
#include "stack_fixture.h"

#include "decode/pt_note.h"

static void test_syscalls_are_slices(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	enter_kernel(t, A + 0x10);
	assert_on_top(t, "a", 1);
	begin(t, A + 0x12);
	ret(t, A + 0x20, MAIN + 0x15);
	interrupt(t, MAIN + 0x20);
	begin(t, MAIN + 0x20);
	enter_kernel(t, MAIN + 0x30);
	assert_finished(t, "main 10-80 inferred-start inferred-end\n"
			   "  a 20-50\n"
			   "    [syscall] 30-40\n"
			   "  [untraced] 60-70\n"
			   "  [syscall] 80-80 inferred-end\n");
}

/* What Event Trace tells before the branch. */
static void note(struct thread *t, enum pt_note_kind kind, uint64_t ip, uint64_t value)
{
	struct branch entry = {.time_ns = t->now,
			       .from = ip,
			       .to = value,
			       .kind = ENTRY_NOTE,
			       .reason = (uint8_t)kind};

	assert_int_equal(take_one(t->stack, &entry), 0);
}

static void test_events_name_what_is_untraced(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	note(t, PT_NOTE_PFA, 0, 0x7f00);
	note(t, PT_NOTE_CFE, MAIN + 0x10, CFE_INTR | 14 << 8);
	interrupt(t, MAIN + 0x10);
	begin(t, MAIN + 0x10);
	/* The address was of that one only. */
	note(t, PT_NOTE_CFE, MAIN + 0x12, CFE_INTR | 14 << 8);
	interrupt(t, MAIN + 0x12);
	begin(t, MAIN + 0x12);
	note(t, PT_NOTE_PFA, 0, 0x7f00);
	note(t, PT_NOTE_CFE, MAIN + 0x14, CFE_INTR | 0xec << 8);
	interrupt(t, MAIN + 0x14);
	begin(t, MAIN + 0x14);
	/* An int3 is an instruction, as a syscall is. */
	note(t, PT_NOTE_CFE, MAIN + 0x16, CFE_INTR | 3 << 8);
	enter_kernel(t, MAIN + 0x16);
	begin(t, MAIN + 0x17);
	note(t, PT_NOTE_CFE, MAIN + 0x18, CFE_INTR | 3 << 8);
	branch(t, BRANCH_END, MAIN + 0x18, 0, 1);
	begin(t, MAIN + 0x18);
	assert_finished(t, "main 10-110 inferred-start inferred-end\n"
			   "  [page fault] 20-30\n"
			   "  [page fault] 40-50\n"
			   "  [timer interrupt] 60-70\n"
			   "  [int3] 80-90\n"
			   "  [int3] 100-110\n");
}

/* It is told where it happened, and is forgotten with that. */
static void test_an_event_names_its_own_stay_only(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	note(t, PT_NOTE_CFE, MAIN + 0x10, CFE_INTR | 2 << 8);
	interrupt(t, MAIN + 0x20);
	begin(t, MAIN + 0x20);
	interrupt(t, MAIN + 0x10);
	begin(t, MAIN + 0x10);
	note(t, PT_NOTE_CFE, MAIN + 0x30, CFE_INTR | 0x80 << 8);
	enter_kernel(t, MAIN + 0x30);
	begin(t, MAIN + 0x32);
	note(t, PT_NOTE_CFE, 0, CFE_SMI);
	interrupt(t, MAIN + 0x40);
	assert_finished(t, "main 10-80 inferred-start inferred-end\n"
			   "  [untraced] 20-30\n"
			   "  [untraced] 40-50\n"
			   "  [syscall] 60-70\n");
}

/* The kernel sets the thread back to the syscall, which may be a function's first instruction. */
static void test_a_restarted_syscall(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	enter_kernel(t, A);
	begin(t, A);
	enter_kernel(t, A);
	/* And behind a handler. */
	begin(t, HANDLER);
	leave_handler(t, HANDLER + 0x20, A);
	enter_kernel(t, A);
	begin(t, A + 2);
	ret(t, A + 2, MAIN + 0x15);
	interrupt(t, MAIN + 0x15);
	assert_finished(t, "main 10-130 inferred-start inferred-end\n"
			   "  a 20-120\n"
			   "    [syscall] 30-40\n"
			   "    [syscall] 50-60\n"
			   "    handler 60-70 signal\n"
			   "    restorer 70-90 signal by-jump\n"
			   "      [syscall] 80-90\n"
			   "    [syscall] 100-110\n");
}

static void test_a_probed_instruction_is_no_signal(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	interrupt(t, A);
	begin(t, A + 1);
	assert_on_top(t, "a", 1);
	ret(t, A + 0x20, MAIN + 0x15);
	interrupt(t, MAIN + 0x15);
	assert_finished(t, "main 10-60 inferred-start inferred-end\n"
			   "  a 20-50\n"
			   "    [untraced] 30-40\n");
}

/* A probe on a RET: the kernel steps a copy of it, and the thread goes on in the caller. */
static void test_a_probed_return(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, A);
	interrupt(t, A + 0x20);
	begin(t, A + 0x15);
	assert_on_top(t, "a", 1);
	interrupt(t, A + 0x20);
	begin(t, MAIN + 0x15);
	assert_on_top(t, "main", 0);
	interrupt(t, MAIN + 0x15);
	assert_finished(t, "main 10-80 inferred-start inferred-end\n"
			   "  a 20-70\n"
			   "    a 30-50\n"
			   "      [untraced] 40-50\n"
			   "    [untraced] 60-70\n");
}

static void test_a_signal(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	interrupt(t, MAIN + 0x10);
	begin(t, HANDLER);
	assert_on_top(t, "handler", 1);
	call(t, HANDLER + 0x10, A);
	ret(t, A + 0x20, HANDLER + 0x15);
	leave_handler(t, HANDLER + 0x20, MAIN + 0x10);
	assert_on_top(t, "main", 0);
	call(t, MAIN + 0x10, A);
	interrupt(t, A + 1);
	assert_finished(t, "main 10-100 inferred-start inferred-end\n"
			   "  [untraced] 20-30\n"
			   "  handler 30-60 signal\n"
			   "    a 40-50\n"
			   "  restorer 60-80 signal by-jump\n"
			   "    [syscall] 70-80\n"
			   "  a 90-100 inferred-end\n");
}

static void test_a_signal_in_a_syscall(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	enter_kernel(t, MAIN + 0x10);
	begin(t, HANDLER);
	leave_handler(t, HANDLER + 0x20, MAIN + 0x12);
	enter_kernel(t, MAIN + 0x20);
	begin(t, HANDLER);
	/* Restarted. */
	leave_handler(t, HANDLER + 0x20, MAIN + 0x20);
	assert_on_top(t, "main", 0);
	enter_kernel(t, MAIN + 0x20);
	assert_finished(t, "main 10-120 inferred-start inferred-end\n"
			   "  [syscall] 20-30\n"
			   "  handler 30-40 signal\n"
			   "  restorer 40-60 signal by-jump\n"
			   "    [syscall] 50-60\n"
			   "  [syscall] 70-80\n"
			   "  handler 80-90 signal\n"
			   "  restorer 90-110 signal by-jump\n"
			   "    [syscall] 100-110\n"
			   "  [syscall] 120-120 inferred-end\n");
}

static void test_nested_signals(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	interrupt(t, MAIN + 0x10);
	begin(t, HANDLER);
	interrupt(t, HANDLER + 0x10);
	begin(t, HANDLER_2);
	assert_on_top(t, "handler_2", 2);
	leave_handler(t, HANDLER_2 + 0x20, HANDLER + 0x10);
	assert_on_top(t, "handler", 1);
	leave_handler(t, HANDLER + 0x20, MAIN + 0x10);
	assert_on_top(t, "main", 0);
	interrupt(t, MAIN + 0x10);
	assert_finished(t, "main 10-120 inferred-start inferred-end\n"
			   "  [untraced] 20-30\n"
			   "  handler 30-90 signal\n"
			   "    [untraced] 40-50\n"
			   "    handler_2 50-60 signal\n"
			   "    restorer 60-80 signal by-jump\n"
			   "      [syscall] 70-80\n"
			   "  restorer 90-110 signal by-jump\n"
			   "    [syscall] 100-110\n");
}

/* The kernel stacks both frames: the handler set up last runs first, and returns into the other. */
static void test_two_signals_at_once(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	interrupt(t, MAIN + 0x10);
	begin(t, HANDLER_2);
	leave_handler(t, HANDLER_2 + 0x20, HANDLER);
	assert_on_top(t, "handler", 1);
	leave_handler(t, HANDLER + 0x20, MAIN + 0x10);
	assert_on_top(t, "main", 0);
	interrupt(t, MAIN + 0x10);
	assert_finished(t, "main 10-100 inferred-start inferred-end\n"
			   "  [untraced] 20-30\n"
			   "  handler_2 30-40 signal\n"
			   "  restorer 40-60 signal by-jump\n"
			   "    [syscall] 50-60\n"
			   "  handler 60-70 signal\n"
			   "  restorer 70-90 signal by-jump\n"
			   "    [syscall] 80-90\n");
}

static void test_a_segment_that_begins_in_a_handler(void **state)
{
	struct thread *t = *state;

	begin(t, A + 0x10);
	ret(t, A + 0x20, HANDLER + 0x15);
	leave_handler(t, HANDLER + 0x20, MAIN + 0x10);
	assert_on_top(t, "main", -2);
	ret(t, MAIN + 0x20, B + 0x15);
	assert_on_top(t, "b", -3);
	interrupt(t, B + 0x15);
	assert_finished(t, "b 10-70 inferred-start inferred-end\n"
			   "  main 10-60 inferred-start\n"
			   "    handler 10-30 signal inferred-start\n"
			   "      a 10-20 inferred-start\n"
			   "    restorer 30-50 signal by-jump\n"
			   "      [syscall] 40-50\n");
}

static void test_a_longjmp_out_of_a_handler(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	interrupt(t, A + 0x10);
	begin(t, HANDLER);
	call(t, HANDLER + 0x10, B);
	jump(t, B + 0x10, MAIN + 0x80);
	assert_on_top(t, "main", 0);
	interrupt(t, MAIN + 0x90);
	assert_finished(t, "main 10-70 inferred-start inferred-end\n"
			   "  a 20-60 cut\n"
			   "    [untraced] 30-40\n"
			   "    handler 40-60 signal cut\n"
			   "      b 50-60 cut\n");
}

/* A handler that changes the context it returns to. */
static void test_a_handler_that_sends_the_thread_elsewhere(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	interrupt(t, A + 0x10);
	begin(t, HANDLER);
	leave_handler(t, HANDLER + 0x20, MAIN + 0x80);
	assert_on_top(t, "main", 0);
	interrupt(t, MAIN + 0x90);
	begin(t, C + 0x10);
	assert_on_top(t, "c", 0);
	interrupt(t, C + 0x20);
	assert_finished(t, "main 10-90 inferred-start cut\n"
			   "  a 20-70 cut\n"
			   "    [untraced] 30-40\n"
			   "    handler 40-50 signal\n"
			   "    restorer 50-70 signal by-jump\n"
			   "      [syscall] 60-70\n"
			   "  [untraced] 80-90\n"
			   "c 90-100 inferred-start inferred-end\n");
}

static uint64_t random_ip(unsigned int *seed)
{
	static const uint64_t offsets[] = {0, 0, 0x15, 0x15, 0x25, 0x50};
	uint64_t ip = MAIN * (1 + (uint64_t)rand_r(seed) % 9) + offsets[rand_r(seed) % 6];

	return rand_r(seed) % 50 ? ip : 0;
}

static struct branch random_branch(unsigned int *seed, uint64_t *now)
{
	static const uint8_t kinds[] = {BRANCH_CALL,	  BRANCH_CALL,	BRANCH_RETURN,
					BRANCH_RETURN,	  BRANCH_JUMP,	BRANCH_COND,
					BRANCH_BEGIN,	  BRANCH_BEGIN, BRANCH_END_SYSCALL,
					BRANCH_END_ASYNC, BRANCH_END,	BRANCH_GAP};
	struct branch b = {.from = random_ip(seed),
			   .to = random_ip(seed),
			   .n_insns = (uint32_t)rand_r(seed) % 100,
			   .kind = kinds[rand_r(seed) % sizeof(kinds)],
			   .len = 5};

	if (rand_r(seed) % 3)
		*now += (uint64_t)rand_r(seed) % 20;
	b.time_ns = *now;
	if (rand_r(seed) % 4 == 0)
		b.from = MAIN * (1 + (uint64_t)rand_r(seed) % 7) + 0x10;
	if (rand_r(seed) % 20 == 0)
		b.from = RESTORER + 7;
	return b;
}

/* Whatever the branches are, what comes out is a tree. */
static void test_random_branches_give_a_tree(void **state)
{
	struct thread *t = *state;
	unsigned int seed = 5;

	for (int round = 0; round < 3000; round++) {
		struct stack *stack = stack__new(42, 43, "worker", t->map);
		struct call_tree tree;
		uint64_t now = 100;

		for (int i = rand_r(&seed) % 80; i >= 0; i--) {
			struct branch b = random_branch(&seed, &now);

			assert_int_equal(take_one(stack, &b), 0);
			top_level(stack);
			top_function(stack);
		}
		assert_int_equal(stack__finish(stack, &tree), 0);
		assert_well_formed(&tree);
		call_tree__fini(&tree);
		stack__free(stack);
	}
}

/* A program that only calls and returns: the true depth, and each instruction, at every branch. */
static void test_random_calls_are_as_deep_as_they_were(void **state)
{
	struct thread *t = *state;
	unsigned int seed = 9;
	uint64_t returns[64], self = 0, insns = 0;
	struct call_tree tree;
	int depth = 0;

	begin(t, MAIN);
	for (int i = 0; i < 5000; i++) {
		bool is_call = depth == 0 || (depth < 60 && rand_r(&seed) % 2);
		const struct function *top = top_function(t->stack);
		uint64_t ip;

		insns++;
		for (ip = MAIN; ip <= RESTORER; ip += MAIN) {
			struct code_place place;

			code_map__find(t->map, ip, &place);
			if (place.function == top)
				break;
		}
		if (is_call) {
			uint64_t from = ip + 8 * (1 + (uint64_t)rand_r(&seed) % 20);

			returns[depth++] = from + CALL_LEN;
			call(t, from, MAIN * (1 + (uint64_t)rand_r(&seed) % 6));
		} else {
			ret(t, ip + 0x90, returns[--depth]);
		}
		assert_int_equal(top_level(t->stack), depth);
	}
	assert_int_equal(stack__finish(t->stack, &tree), 0);
	assert_well_formed(&tree);
	for (size_t i = 0; i < tree.calls.n; i++) {
		self += tree.calls.v[i].self_insns;
		assert_false(tree.calls.v[i].flags & (CALL_CUT_SHORT | CALL_BY_JUMP));
	}
	assert_int_equal(self, insns);
	call_tree__fini(&tree);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_thread, end_thread)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_syscalls_are_slices),
		TEST(test_events_name_what_is_untraced),
		TEST(test_an_event_names_its_own_stay_only),
		TEST(test_a_restarted_syscall),
		TEST(test_a_probed_instruction_is_no_signal),
		TEST(test_a_probed_return),
		TEST(test_a_signal),
		TEST(test_a_signal_in_a_syscall),
		TEST(test_nested_signals),
		TEST(test_two_signals_at_once),
		TEST(test_a_segment_that_begins_in_a_handler),
		TEST(test_a_longjmp_out_of_a_handler),
		TEST(test_a_handler_that_sends_the_thread_elsewhere),
		TEST(test_random_branches_give_a_tree),
		TEST(test_random_calls_are_as_deep_as_they_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
