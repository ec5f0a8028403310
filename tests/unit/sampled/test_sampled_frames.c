// SPDX-License-Identifier: MIT
/* Samples by frame pointers in functions that have no frame yet, or no longer. */
#include "sampled_fixture.h"

#include <unistd.h>

#include "target/maps.h"

/* A function that calls another by name; and calls of it, by name and by a register. */
extern const char inner[], inner_end[], outer[], outer_back[], top[], top_back[], register_back[];
__asm__(".text\n.type inner, @function\ninner: .cfi_startproc\n"
	"push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset %rbp, -16\n"
	"mov %rsp, %rbp\n .cfi_def_cfa_register %rbp\n nop\n pop %rbp\n"
	" .cfi_def_cfa %rsp, 8\ninner_end: ret\n.cfi_endproc\n.size inner, .-inner\n"
	".type outer, @function\nouter: .cfi_startproc\n"
	"push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset %rbp, -16\n"
	"mov %rsp, %rbp\n .cfi_def_cfa_register %rbp\n call inner\nouter_back: pop %rbp\n"
	" .cfi_def_cfa %rsp, 8\n ret\n.cfi_endproc\n.size outer, .-outer\n"
	".type top, @function\ntop: call outer\ntop_back: call *%rax\n"
	"register_back: ret\n.size top, .-top\n");

#define INNER	  ((uint64_t)inner)
#define OUTER	  ((uint64_t)outer)
#define IN_OUTER  ((uint64_t)outer_back)
#define IN_TOP	  ((uint64_t)top_back)
#define IN_TOP_BY ((uint64_t)register_back)
#define HAS_FRAME 4
#define PUSHED	  1 /* the next instruction makes the frame */

static int set_up_own_code(void **state)
{
	struct mappings maps;
	struct fixture *f;

	assert_int_equal(set_up(state), 0);
	f = *state;
	f->rec.source = strdup("sample");
	f->rec.probe_ip = OUTER;
	assert_int_equal(mappings__read(&maps, getpid()), 0);
	for (size_t i = 0; i < maps.n; i++) {
		const struct mapping *m = &maps.v[i];
		struct rec_map map = {.start = m->start,
				      .len = m->end - m->start,
				      .pgoff = m->pgoff,
				      .ino = m->ino,
				      .maj = m->maj,
				      .min = m->min,
				      .pid = PID,
				      .tid = PID,
				      .path = m->path};

		if (INNER >= m->start && INNER < m->end)
			assert_int_equal(recording__add_map(&f->rec, &map), 0);
	}
	mappings__fini(&maps);
	return 0;
}

static void test_the_caller_is_the_function_called_there(void **state)
{
	struct fixture *f = *state;

	SAMPLE(f, TID, 1000, INNER + HAS_FRAME, IN_OUTER, IN_TOP);
	SAMPLE(f, TID, 1100, INNER, IN_TOP);
	SAMPLE(f, TID, 1200, INNER + PUSHED, IN_TOP);
	SAMPLE(f, TID, 1300, (uint64_t)inner_end, IN_TOP);
	make_trees(f, 1);
	assert_tree(&f->trees[0], "top 1000-1300 inferred-start inferred-end\n"
				  "  outer 1000-1300 inferred-start inferred-end\n"
				  "    inner 1000-1300 inferred-start inferred-end\n");
}

/*
 * It has not been left by a jump: its frame is missing at the probe of what it calls. That call has
 * not begun.
 */
static void test_an_exact_caller_goes_on(void **state)
{
	struct mt_entry entry = entry_of(OUTER, 1050, 0), callee = entry_of(INNER, 1210, 1250);
	struct fixture *f = *state;

	entry.kind = callee.kind = MT_ENTRY_CALL;
	entry.returns_to = IN_TOP;
	callee.returns_to = IN_OUTER;
	assert_int_equal(VEC_ADD(&f->rec.entries, entry), 0);
	assert_int_equal(VEC_ADD(&f->rec.entries, callee), 0);
	SAMPLE(f, TID, 1000, IN_TOP);
	SAMPLE(f, TID, 1100, IN_OUTER, IN_TOP);
	SAMPLE(f, TID, 1200, INNER + PUSHED, IN_TOP);
	SAMPLE(f, TID, 1300, IN_OUTER, IN_TOP);
	make_trees(f, 1);
	assert_tree(&f->trees[0], "top 1000-1300 inferred-start inferred-end\n"
				  "  outer 1050-1300 inferred-end\n"
				  "    inner 1210-1250\n");
}

static void test_a_caller_that_the_code_does_not_tell(void **state)
{
	struct fixture *f = *state;

	SAMPLE(f, TID, 1000, INNER + HAS_FRAME, IN_OUTER, IN_TOP_BY);
	SAMPLE(f, TID, 1100, INNER + PUSHED, IN_TOP_BY);
	make_trees(f, 1);
	assert_tree(&f->trees[0], "top 1000-1100 inferred-start inferred-end\n"
				  "  outer 1000-1050 inferred-start inferred-end\n"
				  "    inner 1000-1050 inferred-start inferred-end\n"
				  "  [unknown] 1050-1100 inferred-start inferred-end\n"
				  "    inner 1050-1100 inferred-start inferred-end\n");
}

/* At a probe it is not known whether the caller is missing: what was seen before goes on. */
static void test_a_stack_at_a_probe_that_may_lack_the_caller(void **state)
{
	struct mt_entry entry = entry_of(INNER, 900, 910);
	struct fixture *f = *state;

	entry.kind = MT_ENTRY_CALL;
	assert_int_equal(VEC_ADD(&f->rec.entries, entry), 0);
	SAMPLE(f, TID, 1000, IN_OUTER, IN_TOP_BY);
	SAMPLE(f, TID, 1100, INNER, IN_TOP_BY)->in_kernel = true;
	SAMPLE(f, TID, 1200, IN_OUTER, IN_TOP_BY);
	make_trees(f, 1);
	assert_tree(&f->trees[0], "inner 900-910\n"
				  "  [not recorded] 900-910\n"
				  "top 955-1200 inferred-start inferred-end\n"
				  "  outer 955-1200 inferred-start inferred-end\n");
}

#define OWN_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_own_code, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OWN_TEST(test_the_caller_is_the_function_called_there),
		OWN_TEST(test_an_exact_caller_goes_on),
		OWN_TEST(test_a_caller_that_the_code_does_not_tell),
		OWN_TEST(test_a_stack_at_a_probe_that_may_lack_the_caller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
