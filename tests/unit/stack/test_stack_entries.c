// SPDX-License-Identifier: MIT
/* Where functions are entered: at their first instruction, inside, or by way of a PLT stub. */
#include "stack_fixture.h"

#include <fcntl.h>
#include <unistd.h>

enum {
	RESOLVE = 0xa000,
	START = 0xb000,
};

/* Past the first instruction: by a call or a jump. */
static void test_functions_that_are_entered_inside(void **state)
{
	static const bool inside[] = {false, false, true, true, false};
	struct thread *t = *state;
	struct call_tree tree;

	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	call(t, A + 0x10, B + 4);
	jump(t, B + 0x10, C + 4);
	jump(t, C + 0x10, HANDLER);
	assert_int_equal(stack__finish(t->stack, &tree), 0);
	assert_int_equal(tree.calls.n, 5);
	for (size_t i = 1; i < 5; i++)
		assert_int_equal(!!(tree.calls.v[i].flags & CALL_INSIDE), inside[i]);
	call_tree__fini(&tree);
}

/* A stub of this program's own. */
static uint64_t find_plt(struct elf_image *image)
{
	for (uint64_t vaddr = 0; vaddr < 1 << 24; vaddr += 16) {
		const struct function *f = elf_image__function_at(image, vaddr);

		if (f && f->kind == FUNCTION_PLT)
			return vaddr;
	}
	return 0;
}

/* Maps a stub of this program's, which must be freed behind the stack. */
static uint64_t add_stub(struct thread *t)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	struct elf_image *image = elf_image__open(fd, "self");
	const uint64_t bias = 0x10000000;
	uint64_t plt;

	close(fd);
	assert_non_null(image);
	plt = find_plt(image);
	assert_int_not_equal(plt, 0);
	assert_int_equal(code_map__add(t->map, bias + plt, 16,
				       elf_image__offset_of_vaddr(image, plt), image),
			 0);
	t->images[t->n_images++] = image;
	return bias + plt;
}

static void test_a_plt_stub_becomes_what_it_jumps_to(void **state)
{
	struct thread *t = *state;
	uint64_t stub = add_stub(t);

	begin(t, MAIN);
	call(t, MAIN + 0x10, stub);
	assert_int_equal(top_function(t->stack)->kind, FUNCTION_PLT);
	jump(t, stub + 4, A);
	assert_on_top(t, "a", 1);
	ret(t, A + 0x20, MAIN + 0x15);
	interrupt(t, MAIN + 0x15);
	assert_finished(t, "main 10-50 inferred-start inferred-end\n"
			   "  a 20-40\n");
}

/* What the resolver calls is over before the function begins. */
static void test_lazy_binding_is_one_frame(void **state)
{
	struct thread *t = *state;
	uint64_t stub = add_stub(t);

	add_function(t, RESOLVE, "_dl_runtime_resolve_xsave", "", 0);
	begin(t, MAIN);
	call(t, MAIN + 0x10, stub);
	jump(t, stub + 4, RESOLVE);
	assert_on_top(t, "_dl_runtime_resolve_xsave", 1);
	call(t, RESOLVE + 0x10, B);
	ret(t, B + 0x10, RESOLVE + 0x15);
	jump(t, RESOLVE + 0x20, A);
	assert_on_top(t, "a", 1);
	call(t, A + 0x10, B);
	ret(t, B + 0x10, A + 0x15);
	/* A tail call, which is none of the resolver's. */
	jump(t, A + 0x20, C);
	ret(t, C + 0x20, MAIN + 0x15);
	assert_finished(t, "main 10-100 inferred-start inferred-end\n"
			   "  a 20-90\n"
			   "    b 40-50\n"
			   "    b 70-80\n"
			   "  c 90-100 by-jump\n");
}

/* Nothing of the old program's stack is left; and it was no signal. */
static void test_exec_begins_anew(void **state)
{
	struct thread *t = *state;

	add_function(t, START, "_start", "", 0);
	begin(t, MAIN);
	call(t, MAIN + 0x10, A);
	enter_kernel(t, A + 0x10);
	begin(t, START);
	call(t, START + 0x10, B);
	assert_on_top(t, "b", 1);
	assert_finished(t, "main 10-40 inferred-start cut\n"
			   "  a 20-40 cut\n"
			   "    [syscall] 30-40\n"
			   "_start 40-50 inferred-start inferred-end\n"
			   "  b 50-50 inferred-end\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_thread, end_thread)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_functions_that_are_entered_inside),
		TEST(test_a_plt_stub_becomes_what_it_jumps_to),
		TEST(test_lazy_binding_is_one_frame),
		TEST(test_exec_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
