// SPDX-License-Identifier: MIT
/* Samples with the kernel's part of the stack: what it did there is slices as well. */
#include "kernel_fixture.h"
#include "sampled_fixture.h"

#include <unistd.h>

#include "capture/code/kernel_copy.h"

/* Where in these functions: behind a call. */
#define IN(function) (KERNEL_TEXT + (function) + 5)

/* Innermost first; user code was innermost in ITER. */
static void sample_in(struct fixture *f, uint64_t time_ns, bool at_switch, const uint64_t *ips,
		      uint32_t n)
{
	struct rec_sample *s = SAMPLE(f, TID, time_ns, ITER + 4, MAIN + 8);

	s->in_kernel = true;
	s->at_switch = at_switch;
	assert_int_equal(recording__add_sample_kernel(&f->rec, ips, n), 0);
}

static void know_kernel(struct fixture *f)
{
	char proc[40];

	make_proc(proc);
	assert_int_equal(kernel_copy__make(proc, false, &f->rec.kernel), 0);
	assert_int_equal(fs__remove_dir(proc), 0);
}

static const uint64_t deep[] = {IN(SCHEDULE), IN(DO_SYSCALL)}, flat[] = {IN(DO_SYSCALL)};

/* By its symbols alone: its code is not needed, and not copied. */
static void test_slices_of_the_kernel(void **state)
{
	struct fixture *f = *state;

	know_kernel(f);
	sample_in(f, 1000, false, flat, 1);
	sample_in(f, 1100, true, deep, 2);
	sched(f, 1101, REC_SCHED_BLOCKED);
	sched(f, 1500, REC_SCHED_IN);
	SAMPLE(f, TID, 1600, MAIN + 8);
	f->rec.frozen_ns = 1600;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-1600 inferred-start inferred-end\n"
				  "  [iter] 1000-1550 inferred-start inferred-end\n"
				  "    [kernel] 1000-1550 inferred-start inferred-end\n"
				  "      do_syscall_64 1000-1550 inferred-start inferred-end\n"
				  "        __schedule 1050-1550 inferred-start inferred-end\n"
				  "          [blocked] 1101-1500\n");
	assert_int_equal(f->trees[0].calls.v[3].kind, CALL_IN_KERNEL);
}

/* A call of the user's begins outside of it, whether a stack shows that or not. */
static void test_calls_are_made_out_of_it(void **state)
{
	struct fixture *f = *state;
	struct mt_entry find = entry_of(FIND, 1040, 1060);

	know_kernel(f);
	sample_in(f, 1000, true, flat, 1);
	assert_int_equal(VEC_ADD(&f->rec.entries, find), 0);
	sample_in(f, 1100, true, flat, 1);
	f->rec.frozen_ns = 1100;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-1100 inferred-start inferred-end\n"
				  "  [iter] 1000-1100 inferred-start inferred-end\n"
				  "    [kernel] 1000-1020 inferred-start inferred-end\n"
				  "      do_syscall_64 1000-1020 inferred-start inferred-end\n"
				  "    [find] 1040-1060\n"
				  "    [kernel] 1080-1100 inferred-start inferred-end\n"
				  "      do_syscall_64 1080-1100 inferred-start inferred-end\n");
}

/* Where a stack lacks the call that runs (its probe is being handled), that is no part of it. */
static void test_a_call_that_a_stack_lacks(void **state)
{
	struct fixture *f = *state;
	struct mt_entry find = entry_of(FIND, 1040, 1060);

	know_kernel(f);
	sample_in(f, 1000, false, flat, 1);
	assert_int_equal(VEC_ADD(&f->rec.entries, find), 0);
	sample_in(f, 1050, false, flat, 1);
	SAMPLE(f, TID, 1100, ITER + 4, MAIN + 8);
	f->rec.frozen_ns = 1100;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-1100 inferred-start inferred-end\n"
				  "  [iter] 1000-1100 inferred-start inferred-end\n"
				  "    [kernel] 1000-1020 inferred-start inferred-end\n"
				  "      do_syscall_64 1000-1020 inferred-start inferred-end\n"
				  "    [find] 1040-1060\n"
				  "      [kernel] 1045-1055 inferred-start inferred-end\n"
				  "        do_syscall_64 1045-1055 inferred-start inferred-end\n");
}

/* The probe of its return is being handled: the address that the kernel returns to is the call's,
 * too. */
static void test_a_call_whose_return_is_probed(void **state)
{
	struct fixture *f = *state;
	struct mt_entry find = entry_of(FIND, 1040, 1060);

	know_kernel(f);
	find.returns_to = ITER + 4;
	SAMPLE(f, TID, 1000, ITER + 4, MAIN + 8);
	assert_int_equal(VEC_ADD(&f->rec.entries, find), 0);
	sample_in(f, 1059, false, flat, 1);
	SAMPLE(f, TID, 1100, ITER + 4, MAIN + 8);
	f->rec.frozen_ns = 1100;
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-1100 inferred-start inferred-end\n"
				  "  [iter] 1000-1100 inferred-start inferred-end\n"
				  "    [find] 1040-1060\n"
				  "      [kernel] 1049-1059 inferred-start inferred-end\n"
				  "        do_syscall_64 1049-1059 inferred-start inferred-end\n");
}

/* perf record -g leaves its addresses, and no symbols: they would all be unknown. */
static void test_without_its_symbols(void **state)
{
	struct fixture *f = *state;

	sample_in(f, 1000, false, deep, 2);
	make_trees(f, 1);
	assert_tree(&f->trees[0], "[main] 1000-1000 inferred-start inferred-end\n"
				  "  [iter] 1000-1000 inferred-start inferred-end\n"
				  "    [kernel] 1000-1000 inferred-start inferred-end\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_slices_of_the_kernel),      TEST(test_calls_are_made_out_of_it),
		TEST(test_a_call_that_a_stack_lacks), TEST(test_a_call_whose_return_is_probed),
		TEST(test_without_its_symbols),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
