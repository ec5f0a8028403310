// SPDX-License-Identifier: MIT
/* Streams in which the kernel is traced too: to branches, and to the call tree. */
#include "kernel_stream.h"

#include <unistd.h>

#include "../../stack_state.h"
#include "tree_text.h"

static int set_up(void **state)
{
	struct traced *t = malloc(sizeof(*t));

	traced__init(t, NO_PSB, NO_TSC, true);
	traced__add_kernel(t);
	*state = t;
	return 0;
}

static int tear_down(void **state)
{
	traced__fini(*state);
	free(*state);
	return 0;
}

static void check(struct traced *t)
{
	traced__decode(t);
	assert_decoded(t);
	for (int i = 0; i < GAP_REASONS; i++)
		assert_int_equal(t->totals.gaps[i], 0);
}

static void test_everything_in_the_kernel(void **state)
{
	struct traced *t = *state;

	traced__run_kernel(t);
	check(t);
}

static void test_every_period_and_interval(void **state)
{
	for (uint32_t psb_period = 40; psb_period < 200; psb_period += 7) {
		struct traced t;

		traced__init(&t, psb_period, psb_period % 3 ? NO_TSC : 0, psb_period & 1);
		traced__add_kernel(&t);
		traced__run_kernel(&t);
		check(&t);
		traced__fini(&t);
	}
}

/* rt_sigreturn's way, and a fault at the target of a branch. */
static void test_a_signal(void **state)
{
	struct traced *t = *state;

	traced__enable(t, 0);
	traced__call(t, 1, 0, F);
	traced__interrupt(t, 0, F, K(PAGE_FAULT));
	traced__leave(t, 2, K(PAGE_FAULT) + 1, HANDLER, 2);
	traced__ret(t, 2, HANDLER + 1, RESTORER);
	traced__enter(t, 2, RESTORER + 7, K(PAGE_FAULT), 2);
	traced__leave(t, 2, K(PAGE_FAULT) + 1, F, 2);
	traced__ret(t, 3, F + 2, 5);
	traced__interrupt(t, 0, 5, K(TIMER));
	traced__async(t, 0, K(TIMER));
	check(t);
}

/* An iret in user code goes to user code: no more than a jump. */
static void test_a_far_return_in_user_code(void **state)
{
	struct traced *t = *state;
	uint8_t code[CODE_SIZE];

	fill_code(code);
	code[1] = 0x48;
	code[2] = 0xcf;
	traced__map(t, 0, "[code, new]", code);
	traced__enable(t, 1);
	traced__jump_indirect(t, 1, 1, F);
	traced__async(t, 1, F + 1);
	check(t);
}

/* What the kernel ran is unknown: a gap, and user code is decoded all the same. */
static void test_without_the_kernels_code(void **state)
{
	bool again = false;
	struct traced t;

	traced__init(&t, 40, NO_TSC, true);
	for (int i = 0; i < 20; i++)
		traced__run_kernel(&t);
	traced__decode(&t);
	assert_true(t.totals.gaps[GAP_UNMAPPED] > 0);
	for (size_t i = 1; i < t.seen.list.n; i++)
		again |= t.seen.list.v[i].kind == BRANCH_BEGIN &&
			 t.seen.list.v[i].to < BASE + CODE_SIZE;
	assert_true(again);
	traced__fini(&t);
}

static void test_a_copy_that_is_no_kcore(void **state)
{
	struct traced *t = *state;

	traced__enable(t, 0);
	traced__call(t, 1, 0, F);
	traced__async(t, 0, F);
	assert_int_equal(ftruncate(t->rec.kernel.kcore, 10), 0);
	traced__decode(t);
	assert_decoded(t);
}

TAKE_EACH(take_to_stack, take_one)

static void test_the_call_tree(void **state)
{
	struct traced *t = *state;
	struct rec_aux aux = {.pid = PID, .tid = TID};
	struct images *images = images__new(&t->rec);
	struct code_map *map = code_map__new();
	struct stack *stack = stack__new(PID, TID, "worker", map);
	struct decode_totals totals = {0};
	struct call_tree tree;

	traced__run_kernel(t);
	aux.data = t->out.bytes.v;
	aux.size = t->out.bytes.n;
	assert_int_equal(decode__run(&(struct decode_request){.rec = &t->rec,
							      .aux = &aux,
							      .images = images,
							      .map = map,
							      .take = take_to_stack,
							      .ctx = stack,
							      .totals = &totals}),
			 0);
	assert_int_equal(stack__finish(stack, &tree), 0);
	for (size_t i = 0; i < tree.calls.n; i++)
		tree.calls.v[i].start_ns = tree.calls.v[i].end_ns = 0;
	assert_tree(&tree, "[code] 0-0 inferred-start inferred-end\n"
			   "  entry_SYSCALL_64 0-0\n"
			   "    do_syscall_64 0-0\n"
			   "      __schedule 0-0\n"
			   "        __perf_event_task_sched_out 0-0 inferred-end\n"
			   "          pt_config_stop 0-0 inferred-end\n"
			   "        [untraced] 0-0\n"
			   "        finish_task_switch.isra.0 0-0 inferred-start\n"
			   "          pt_config_start 0-0 inferred-start\n"
			   "      mod_read [mod] 0-0\n"
			   "        asm_exc_page_fault 0-0\n"
			   "          asm_sysvec_apic_timer_interrupt 0-0\n"
			   "  asm_sysvec_apic_timer_interrupt 0-0\n"
			   "  asm_sysvec_apic_timer_interrupt 0-0 inferred-end\n");
	call_tree__fini(&tree);
	stack__free(stack);
	code_map__free(map);
	images__free(images);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_everything_in_the_kernel),
		cmocka_unit_test(test_every_period_and_interval),
		TEST(test_a_signal),
		TEST(test_a_far_return_in_user_code),
		cmocka_unit_test(test_without_the_kernels_code),
		TEST(test_a_copy_that_is_no_kcore),
		TEST(test_the_call_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
