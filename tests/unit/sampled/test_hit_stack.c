// SPDX-License-Identifier: MIT
/* The list of callers from a recording: by .eh_frame, by frame pointer, and from one to the other.
 */
#include "unwind_fixture.h"

#include "sampled/sample_stack.h"
#include "sampled/sampled.h"
#include "stack/stack.h"

struct fixture {
	struct recording rec;
	struct images *images;
	struct taken taken;
	struct libgcc_callers callers;
};

/* What this program has mapped, as if it had been recorded. */
static void add_maps(struct recording *rec)
{
	struct mappings maps;

	assert_int_equal(mappings__read(&maps, getpid()), 0);
	for (size_t i = 0; i < maps.n; i++) {
		const struct mapping *m = &maps.v[i];
		struct rec_map map = {.start = m->start,
				      .len = m->end - m->start,
				      .pgoff = m->pgoff,
				      .ino = m->ino,
				      .maj = m->maj,
				      .min = m->min,
				      .pid = getpid(),
				      .tid = getpid(),
				      .path = m->path};

		if (m->prot & PROT_EXEC && m->path[0] == '/')
			assert_int_equal(recording__add_map(rec, &map), 0);
	}
	mappings__fini(&maps);
}

static __attribute__((noipa)) void take_here(struct fixture *f)
{
	ucontext_t context;

	assert_int_equal(getcontext(&context), 0);
	take_context(&f->taken, &context);
	LIBGCC_CALLERS(&f->callers);
	f->callers.v[0] = (void *)f->taken.start.ip;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	recording__init(&f->rec);
	add_maps(&f->rec);
	f->images = images__new(&f->rec);
	take_here(f);
	assert_true(f->callers.n >= 5);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	images__free(f->images);
	recording__fini(&f->rec);
	taken__fini(&f->taken);
	free(f);
	return 0;
}

/* A hit with this chain, and `copied` bytes of the stack. */
static void add_hit(struct fixture *f, const uint64_t *chain, uint32_t depth, size_t copied)
{
	const struct unwind_start *s = &f->taken.start;
	struct mt_hit hit = {.time_ns = 1,
			     .tgid = (uint32_t)getpid(),
			     .tid = (uint32_t)getpid(),
			     .ip = s->ip,
			     .sp = s->sp,
			     .bp = s->bp,
			     .bx = s->bx,
			     .r12 = s->r12,
			     .r13 = s->r13,
			     .r14 = s->r14,
			     .r15 = s->r15,
			     .stack_depth = depth};

	memcpy(hit.stack, chain, 8 * depth);
	assert_int_equal(VEC_ADD(&f->rec.hits, hit), 0);
	if (copied)
		assert_int_equal(recording__add_stack(&f->rec, s->stack, copied), 0);
}

static void expect(struct fixture *f, const uint64_t *ips, size_t n, bool is_whole)
{
	struct unwound out;

	assert_int_equal(hit_stack__find(&f->rec, &f->rec.hits.v[0], f->images, &out), 0);
	assert_int_equal(out.ips.n, n);
	assert_memory_equal(out.ips.v, ips, 8 * n);
	assert_int_equal(out.is_whole, is_whole);
	unwound__fini(&out);
}

static uint64_t *truth(struct fixture *f)
{
	return (uint64_t *)f->callers.v;
}

/* A part of the copy that holds the first two callers, and no more. */
static size_t size_of_three(struct fixture *f)
{
	struct program_code code;
	size_t size = 0;
	size_t n = 0;

	program_code__open(&code);
	while (n < 3) {
		struct unwind_start start = f->taken.start;
		struct unwound out;

		size += 8;
		start.size = size;
		assert_int_equal(unwind__stack(code.map, &start, &out), 0);
		n = out.ips.n;
		unwound__fini(&out);
	}
	program_code__close(&code);
	assert_int_equal(n, 3);
	return size;
}

static void test_unwound(void **state)
{
	struct fixture *f = *state;

	add_hit(f, truth(f), 2, f->taken.start.size);
	expect(f, truth(f), (size_t)f->callers.n, true);
}

/* A chain that lacks callers, as where only some functions keep a frame pointer. */
static void test_the_chain_does_not_count_where_all_is_unwound(void **state)
{
	struct fixture *f = *state;
	const uint64_t chain[] = {truth(f)[0], truth(f)[2], truth(f)[4]};

	add_hit(f, chain, 3, f->taken.start.size);
	/* As if something had called the outermost. */
	f->rec.hits.v[0].stack[1] = truth(f)[f->callers.n - 1];
	expect(f, truth(f), (size_t)f->callers.n, true);
}

static void test_no_copy(void **state)
{
	struct fixture *f = *state;

	add_hit(f, truth(f), (uint32_t)f->callers.n, 0);
	expect(f, truth(f), (size_t)f->callers.n, false);
}

/* What rbp held was no frame pointer. */
static void test_a_chain_that_goes_astray(void **state)
{
	struct fixture *f = *state;
	uint64_t chain[] = {truth(f)[0], truth(f)[1], 0x1234, truth(f)[2]};

	add_hit(f, chain, 4, 0);
	expect(f, chain, 2, false);
	f->rec.hits.v[0].stack[2] = (uint64_t)set_up; /* code, but nothing returns there */
	expect(f, chain, 2, false);
}

static void test_no_chain_either(void **state)
{
	struct fixture *f = *state;

	add_hit(f, truth(f), 0, 0);
	expect(f, truth(f), 1, false);
}

/* The kernel follows frame pointers beyond what is copied. */
static void test_behind_the_copy_the_chain_goes_on(void **state)
{
	struct fixture *f = *state;
	const uint64_t chain[] = {truth(f)[0], truth(f)[2], truth(f)[3], truth(f)[4]};

	add_hit(f, chain, 4, size_of_three(f));
	expect(f, truth(f), 5, false);
}

/* No place where they meet: which caller would come next nobody can tell. */
static void test_a_chain_of_another_place(void **state)
{
	struct fixture *f = *state;
	const uint64_t chain[] = {truth(f)[0], truth(f)[3], truth(f)[4]};

	add_hit(f, chain, 3, size_of_three(f));
	expect(f, truth(f), 3, false);
}

static int take_tree(void *ctx, struct call_tree *tree)
{
	*(struct call_tree *)ctx = *tree;
	return 0;
}

static void add_sample(struct fixture *f, uint64_t time_ns, const uint64_t *ips, uint32_t n)
{
	const struct rec_sample sample = {.time_ns = time_ns,
					  .pid = getpid(),
					  .tid = getpid(),
					  .at_switch = true,
					  .n_ips = n};

	assert_int_equal(recording__add_sample(&f->rec, &sample, ips), 0);
}

/*
 * Others have copies of their stacks, which get to the outermost caller. Where %rbp leads to is not
 * who has called it.
 */
static void test_a_switch_whose_stack_could_not_be_copied(void **state)
{
	struct fixture *f = *state;
	const struct unwind_start *s = &f->taken.start;
	const struct rec_user user = {.ip = s->ip,
				      .sp = s->sp,
				      .bp = s->bp,
				      .bx = s->bx,
				      .r12 = s->r12,
				      .r13 = s->r13,
				      .r14 = s->r14,
				      .r15 = s->r15,
				      .stack = (uint8_t *)s->stack,
				      .size = s->size};
	const uint64_t chain[] = {truth(f)[0], truth(f)[2], truth(f)[3]};
	struct sampled_totals totals = {0};
	struct call_tree tree = {0};
	const struct call *last;

	f->rec.source = strdup("sample");
	f->rec.sample_period_ns = 100;
	add_sample(f, 1000, chain, 3);
	assert_int_equal(recording__add_sample_user(&f->rec, &user), 0);
	add_sample(f, 1100, chain, 3);
	f->rec.frozen_ns = 1200;
	assert_int_equal(sampled__trees(&f->rec, f->images, take_tree, &tree, &totals), 0);
	assert_int_equal(tree.calls.n, (size_t)f->callers.n + 2);
	assert_int_equal(tree.calls.v[0].kind, CALL_FUNCTION);
	last = &tree.calls.v[tree.calls.n - 1];
	assert_string_equal(last->function->name, "take_here");
	assert_int_equal(last->depth, 1);
	assert_string_equal(call__name(last - 1), "[callers not recorded]");
	assert_int_equal((last - 1)->depth, 0);
	call_tree__fini(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_unwound),
		TEST(test_the_chain_does_not_count_where_all_is_unwound),
		TEST(test_no_copy),
		TEST(test_a_chain_that_goes_astray),
		TEST(test_no_chain_either),
		TEST(test_behind_the_copy_the_chain_goes_on),
		TEST(test_a_chain_of_another_place),
		TEST(test_a_switch_whose_stack_could_not_be_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
