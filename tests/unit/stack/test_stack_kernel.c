// SPDX-License-Identifier: MIT
/* The kernel is traced: its frames on the interrupted ones, however it goes in and out. */
#include "stack_kernel_fixture.h"

static void test_a_system_call(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	enter(t, A + 0x10, k(ENTRY));
	call(t, k(ENTRY) + 0x10, k(DO_SYSCALL));
	assert_on_top(t, "do_syscall", 3);
	ret(t, k(DO_SYSCALL) + 0x20, k(ENTRY) + 0x15);
	leave(t, k(ENTRY) + 0x20, A + 0x12);
	assert_on_top(t, "a", 1);
	ret(t, A + 0x20, MAIN + 0x15);
	assert_finished(t, "main 10-70 inferred-start inferred-end\n"
			   "  a 20-70\n"
			   "    entry_syscall 30-60\n"
			   "      do_syscall 40-50\n");
}

/* Assembler runs on into the next symbol, and jumps about: one entry all the same. */
static void test_an_entry_of_several_symbols(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	enter(t, MAIN + 0x10, k(ENTRY));
	call(t, k(ENTRY_2) + 0x10, k(DO_SYSCALL));
	ret(t, k(DO_SYSCALL) + 0x20, k(ENTRY_2) + 0x15);
	jump(t, k(ENTRY_2) + 0x20, k(FORK) + 0x30);
	leave(t, k(FORK) + 0x40, MAIN + 0x12);
	assert_on_top(t, "main", 0);
	enter(t, MAIN + 0x20, k(ENTRY));
	/* And a RET that is none. */
	ret(t, k(ENTRY) + 0x10, k(ENTRY_2) + 0x30);
	leave(t, k(ENTRY_2) + 0x40, MAIN + 0x22);
	assert_on_top(t, "main", 0);
	assert_finished(t, "main 10-90 inferred-start inferred-end\n"
			   "  entry_syscall 20-30\n"
			   "  entry_after_swapgs 30-50 by-jump\n"
			   "    do_syscall 30-40\n"
			   "  ret_from_fork 50-60 by-jump\n"
			   "  entry_syscall 70-80\n"
			   "  entry_after_swapgs 80-90 by-jump\n");
}

static void test_nested_interrupts(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	take_interrupt(t, MAIN + 0x10, k(FAULT));
	call(t, k(FAULT) + 0x10, k(HANDLE));
	take_interrupt(t, k(HANDLE) + 0x08, k(TIMER));
	/* The same functions again: what lies below an entry is not returned into. */
	call(t, k(TIMER) + 0x10, k(HANDLE));
	take_interrupt(t, k(HANDLE) + 0x08, k(FAULT));
	assert_on_top(t, "entry_fault", 5);
	leave(t, k(FAULT) + 0x20, k(HANDLE) + 0x08);
	assert_on_top(t, "handle", 4);
	ret(t, k(HANDLE) + 0x20, k(TIMER) + 0x15);
	leave(t, k(TIMER) + 0x20, k(HANDLE) + 0x08);
	assert_on_top(t, "handle", 2);
	ret(t, k(HANDLE) + 0x20, k(FAULT) + 0x15);
	leave(t, k(FAULT) + 0x20, MAIN + 0x10);
	assert_on_top(t, "main", 0);
	assert_finished(t, "main 10-110 inferred-start inferred-end\n"
			   "  entry_fault 20-110\n"
			   "    handle 30-100\n"
			   "      entry_timer 40-90\n"
			   "        handle 50-80\n"
			   "          entry_fault 60-70\n");
}

/* What an interrupt lies on is neither returned nor jumped into from it. */
static void test_an_entry_is_a_border(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	take_interrupt(t, MAIN + 0x10, k(FAULT));
	call(t, k(FAULT) + 0x10, k(HANDLE));
	take_interrupt(t, k(HANDLE) + 0x08, k(FAULT));
	jump(t, k(FAULT) + 0x08, k(HANDLE) + 0x40);
	assert_on_top(t, "handle", 3);
	ret(t, k(HANDLE) + 0x50, k(FAULT) + 0x15);
	assert_on_top(t, "entry_fault", 3);
	leave(t, k(FAULT) + 0x20, k(HANDLE) + 0x08);
	assert_on_top(t, "handle", 2);
}

/* On behind the syscall, even where a function begins there: no signal's handler. */
static void test_a_syscall_before_a_function(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	enter(t, A - 2, k(ENTRY));
	leave(t, k(ENTRY) + 0x20, A);
	assert_on_top(t, "main", 0);
}

/* The handlers' inner frames are missing: the thread is back all the same. */
static void test_back_in_user_code_from_any_depth(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	enter(t, MAIN + 0x10, k(ENTRY));
	take_interrupt(t, k(ENTRY) + 0x10, k(TIMER));
	call(t, k(TIMER) + 0x10, k(HANDLE));
	leave(t, k(HANDLE) + 0x10, MAIN + 0x12);
	assert_on_top(t, "main", 0);
	assert_finished(t, "main 10-50 inferred-start inferred-end\n"
			   "  entry_syscall 20-50\n"
			   "    entry_timer 30-50\n"
			   "      handle 40-50\n");
}

/* iret to the next instruction, as sync_core() does it; not out of the interrupt. */
static void test_an_iret_to_itself(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	take_interrupt(t, MAIN + 0x10, k(TIMER));
	call(t, k(TIMER) + 0x10, k(HANDLE));
	leave(t, k(HANDLE) + 0x10, k(HANDLE) + 0x12);
	assert_on_top(t, "handle", 2);
	ret(t, k(HANDLE) + 0x20, k(TIMER) + 0x15);
	leave(t, k(TIMER) + 0x20, MAIN + 0x10);
	assert_on_top(t, "main", 0);
}

/* A fault that the exception table expects: on behind it, in the same function, another, or a
 * caller. */
static void test_a_fault_that_is_expected(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	enter(t, MAIN + 0x10, k(ENTRY));
	call(t, k(ENTRY) + 0x10, k(COPY));
	take_interrupt(t, k(COPY) + 0x10, k(FAULT));
	leave(t, k(FAULT) + 0x20, k(COPY) + 0x50);
	assert_on_top(t, "copy_user", 2);
	take_interrupt(t, k(COPY) + 0x60, k(FAULT));
	leave(t, k(FAULT) + 0x20, k(HANDLE) + 0x50);
	assert_on_top(t, "handle", 2);
	call(t, k(HANDLE) + 0x60, k(COPY));
	take_interrupt(t, k(COPY) + 0x10, k(FAULT));
	leave(t, k(FAULT) + 0x20, k(HANDLE) + 0x80);
	assert_on_top(t, "handle", 2);
	ret(t, k(HANDLE) + 0x90, k(ENTRY) + 0x15);
	leave(t, k(ENTRY) + 0x20, MAIN + 0x12);
	assert_on_top(t, "main", 0);
}

static void test_a_signal(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	take_interrupt(t, A + 0x10, k(TIMER));
	leave(t, k(TIMER) + 0x20, HANDLER);
	assert_on_top(t, "handler", 2);
	enter(t, HANDLER + 0x10, k(ENTRY));
	leave(t, k(ENTRY) + 0x20, HANDLER + 0x12);
	ret(t, HANDLER + 0x20, RESTORER);
	enter(t, RESTORER + 7, k(ENTRY));
	leave(t, k(ENTRY) + 0x20, A + 0x10);
	assert_on_top(t, "a", 1);
	ret(t, A + 0x20, MAIN + 0x15);
	assert_finished(t, "main 10-100 inferred-start inferred-end\n"
			   "  a 20-100\n"
			   "    entry_timer 30-40\n"
			   "    handler 40-70 signal\n"
			   "      entry_syscall 50-60\n"
			   "    restorer 70-90 signal by-jump\n"
			   "      entry_syscall 80-90\n");
}

/* A signal that ends a system call: the handler lies on the function that made it. */
static void test_a_signal_in_a_system_call(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	enter(t, MAIN + 0x10, k(ENTRY));
	call(t, k(ENTRY) + 0x10, k(DO_SYSCALL));
	leave(t, k(DO_SYSCALL) + 0x20, HANDLER);
	assert_on_top(t, "handler", 1);
	ret(t, HANDLER + 0x20, RESTORER);
	enter(t, RESTORER + 7, k(ENTRY));
	/* Restarted: back on the syscall instruction. */
	leave(t, k(ENTRY) + 0x20, MAIN + 0x10);
	assert_on_top(t, "main", 0);
	enter(t, MAIN + 0x10, k(ENTRY));
	leave(t, k(ENTRY) + 0x20, MAIN + 0x12);
	assert_on_top(t, "main", 0);
}

/* With mitigations a function's RET is a jump to one that all share. */
static void test_return_thunks_are_returns(void **state)
{
	struct thread *t = *state;

	begin(t, MAIN);
	enter(t, MAIN + 0x10, k(ENTRY));
	call(t, k(ENTRY) + 0x10, k(DO_SYSCALL));
	jump(t, k(DO_SYSCALL) + 0x20, k(THUNK));
	ret(t, k(THUNK) + 0x10, k(ENTRY) + 0x15);
	leave(t, k(ENTRY) + 0x20, MAIN + 0x12);
	assert_finished(t, "main 10-60 inferred-start inferred-end\n"
			   "  entry_syscall 20-60\n"
			   "    do_syscall 30-50\n");
}

/* ---- at random, against the stack that the generator keeps */

#define MAX_DEPTH 40

struct model {
	struct thread *t;
	unsigned int seed;
	int depth; /* of v; v[0] is main */
	struct {
		uint64_t base;	    /* of the function */
		uint64_t return_ip; /* of a call; 0: an entry, which goes on at resume_ip */
		uint64_t resume_ip;
	} v[MAX_DEPTH + 1];
};

static uint64_t somewhere(struct model *m)
{
	return 8 + 8 * ((uint64_t)rand_r(&m->seed) % 20);
}

static bool in_kernel(const struct model *m)
{
	return m->v[m->depth].base >> 63;
}

static void push_model(struct model *m, uint64_t base, uint64_t return_ip, uint64_t resume_ip)
{
	m->depth++;
	m->v[m->depth].base = base;
	m->v[m->depth].return_ip = return_ip;
	m->v[m->depth].resume_ip = resume_ip;
}

static void go_deeper(struct model *m)
{
	uint64_t from = m->v[m->depth].base + somewhere(m);
	uint64_t to = in_kernel(m) ? k(DO_SYSCALL + rand_r(&m->seed) % 4)
				   : MAIN * (1 + (uint64_t)rand_r(&m->seed) % 4);

	switch (rand_r(&m->seed) % 4) {
	case 0:
		to = k(rand_r(&m->seed) % 2 ? FAULT : TIMER);
		take_interrupt(m->t, from, to);
		push_model(m, to, 0, from);
		break;
	case 1:
		if (!in_kernel(m)) {
			enter(m->t, from, k(ENTRY));
			push_model(m, k(ENTRY), 0, from + 2);
			break;
		}
		/* fallthrough */
	default:
		call(m->t, from, to);
		push_model(m, to, from + CALL_LEN, 0);
	}
}

static void come_back(struct model *m)
{
	uint64_t from = m->v[m->depth].base + 0xf0;

	if (m->v[m->depth].return_ip)
		ret(m->t, from, m->v[m->depth].return_ip);
	else
		leave(m->t, from, m->v[m->depth].resume_ip);
	m->depth--;
}

/* Through __schedule, off and on again, back to where it was called. */
static void switch_threads(struct model *m)
{
	uint64_t from = m->v[m->depth].base + somewhere(m);

	call(m->t, from, k(SCHEDULE));
	call(m->t, k(SCHEDULE) + 0x10, k(SCHED_OUT));
	stop(m->t, k(SCHED_OUT) + 0x10);
	begin(m->t, k(PT_START) + 0x10);
	if (rand_r(&m->seed) % 2)
		ret(m->t, k(PT_START) + 0x20, k(SCHED_IN) + 0x26);
	ret(m->t, k(SCHED_IN) + 0x30, k(SCHEDULE) + 0x26);
	ret(m->t, k(SCHEDULE) + 0x30, from + CALL_LEN);
}

static const char *model_top(struct model *m)
{
	struct code_place place;

	assert_true(code_map__find(m->t->map, m->v[m->depth].base, &place));
	return place.function->name;
}

static void test_at_random_as_the_generator_has_it(void **state)
{
	struct model m = {.t = *state, .seed = 11};
	struct call_tree tree;

	m.v[0].base = MAIN;
	begin(m.t, MAIN);
	for (int i = 0; i < 20000; i++) {
		if (m.depth && (m.depth == MAX_DEPTH || rand_r(&m.seed) % 2))
			come_back(&m);
		else if (in_kernel(&m) && rand_r(&m.seed) % 5 == 0)
			switch_threads(&m);
		else
			go_deeper(&m);
		assert_string_equal(top_function(m.t->stack)->name, model_top(&m));
	}
	while (m.depth)
		come_back(&m);
	assert_string_equal(top_function(m.t->stack)->name, "main");
	assert_int_equal(stack__finish(m.t->stack, &tree), 0);
	assert_well_formed(&tree);
	assert_string_equal(call__name(&tree.calls.v[0]), "main");
	for (size_t i = 1; i < tree.calls.n; i++) {
		assert_true(tree.calls.v[i].depth > 0);
		assert_false(tree.calls.v[i].flags & CALL_CUT_SHORT);
	}
	call_tree__fini(&tree);
}

/* Whatever comes, a tree comes of it. */
static void test_nonsense_gives_a_tree(void **state)
{
	struct thread *t = *state;
	unsigned int seed = 3;
	struct call_tree tree;

	for (int i = 0; i < 50000; i++) {
		uint64_t ips[2];

		for (int n = 0; n < 2; n++)
			ips[n] = rand_r(&seed) % 2 ? k(rand_r(&seed) % (int)KERNEL_COUNT) +
							     (uint64_t)(rand_r(&seed) % 2 * 0x20)
						   : MAIN * (1 + (uint64_t)rand_r(&seed) % 9) +
							     (uint64_t)(rand_r(&seed) % 2 * 0x20);
		if (rand_r(&seed) % 100 == 0)
			gap(t, GAP_OVERFLOW);
		branch(t, (enum branch_kind)(rand_r(&seed) % BRANCH_GAP), ips[0], ips[1],
		       (uint8_t)(rand_r(&seed) % 4));
	}
	assert_int_equal(stack__finish(t->stack, &tree), 0);
	assert_well_formed(&tree);
	call_tree__fini(&tree);
}

static void patch(struct thread *t, uint64_t ip, const char *code, size_t n)
{
	assert_int_equal(code_map__patch(t->map, ip, (const uint8_t *)code, n), 0);
}

/* User code is not traced: each entry is a root, and what lies between them is outside. */
static void test_the_kernel_alone(void **state)
{
	struct thread *t = *state;

	patch(t, k(ENTRY) + 0x20, "\x48\x0f\x07", 3);
	patch(t, k(FAULT) + 0x20, "\x48\xcf", 2);
	begin(t, k(ENTRY));
	call(t, k(ENTRY) + 0x10, k(DO_SYSCALL));
	ret(t, k(DO_SYSCALL) + 0x20, k(ENTRY) + 0x15);
	branch(t, BRANCH_END_SYSCALL, k(ENTRY) + 0x20, 0, 3);
	begin(t, k(FAULT));
	assert_on_top(t, "entry_fault", 0);
	call(t, k(FAULT) + 0x10, k(HANDLE));
	ret(t, k(HANDLE) + 0x20, k(FAULT) + 0x15);
	branch(t, BRANCH_END_SYSCALL, k(FAULT) + 0x20, 0, 2);
	begin(t, k(ENTRY));
	call(t, k(ENTRY) + 0x10, k(DO_SYSCALL));
	assert_finished(t, "entry_syscall 10-40 inferred-start\n"
			   "  do_syscall 20-30\n"
			   "[untraced] 40-50\n"
			   "entry_fault 50-80\n"
			   "  handle 60-70\n"
			   "[untraced] 80-90\n"
			   "entry_syscall 90-100 inferred-end\n"
			   "  do_syscall 100-100 inferred-end\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_kernel_alone),
		TEST(test_a_system_call),
		TEST(test_an_entry_of_several_symbols),
		TEST(test_nested_interrupts),
		TEST(test_an_entry_is_a_border),
		TEST(test_a_syscall_before_a_function),
		TEST(test_back_in_user_code_from_any_depth),
		TEST(test_an_iret_to_itself),
		TEST(test_a_fault_that_is_expected),
		TEST(test_a_signal),
		TEST(test_a_signal_in_a_system_call),
		TEST(test_return_thunks_are_returns),
		TEST(test_at_random_as_the_generator_has_it),
		TEST(test_nonsense_gives_a_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
