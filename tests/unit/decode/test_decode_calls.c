// SPDX-License-Identifier: MIT
/*
 * What is left out where not every branch is asked for: jumps within a function. Two functions, f
 * and g, side by side; f falls through into g.
 */
#include "decode_fixture.h"

#define FUNCTION_SIZE 0x100
#define F_AT	      BASE
#define G_AT	      (BASE + FUNCTION_SIZE)

struct piece {
	uint16_t at;
	uint8_t n, bytes[6];
};

static void map_function(struct recording *rec, const char *name, uint64_t start,
			 const struct piece *pieces, size_t n)
{
	uint8_t code[FUNCTION_SIZE];
	struct rec_map map = {
		.start = start, .len = FUNCTION_SIZE, .pid = PID, .tid = PID, .path = (char *)name};
	struct rec_image image = {
		.path = (char *)name, .start = start, .data = code, .size = FUNCTION_SIZE};

	memset(code, 0x90, sizeof(code));
	for (size_t i = 0; i < n; i++)
		memcpy(code + pieces[i].at, pieces[i].bytes, pieces[i].n);
	assert_int_equal(recording__add_map(rec, &map), 0);
	assert_int_equal(recording__add_image(rec, &image), 0);
}

static const struct piece f[] = {
	{0x00, 2, {0xeb, 0x0e}},		   /* jmp f+10 */
	{0x10, 2, {0x75, 0x0e}},		   /* jne f+20 */
	{0x20, 6, {0x0f, 0x84, 0xda, 0, 0, 0}},	   /* je g+0 */
	{0x26, 5, {0xe8, 0xe5, 0, 0, 0}},	   /* call g+10 */
	{0x2b, 2, {0xff, 0xe0}},		   /* jmp *%rax */
	{0x40, 5, {0xe9, 0xbb, 0, 0, 0}},	   /* jmp g+0 */
	{0x50, 5, {0x41, 0x5b, 0x41, 0xff, 0xe3}}, /* pop %r11; jmp *%r11 */
	{0x60, 2, {0x75, 0xfe}},		   /* jne f+60 */
	{0x62, 2, {0xff, 0xe0}},		   /* jmp *%rax */
	{0x58, 5, {0x41, 0x5a, 0x41, 0xff, 0xe3}}, /* pop %r10; jmp *%r11 */
	{0xfe, 2, {0x75, 0x00}},		   /* jne g+0, or on to it */
};

static const struct piece g[] = {
	{0x00, 2, {0x75, 0x0e}}, /* jne g+10 */
	{0x10, 2, {0x75, 0x0e}}, /* jne g+20 */
	{0x20, 1, {0xc3}},	 /* ret */
};

static int set_up(void **state)
{
	static const struct pt_stream_config config = {.psb_period = NO_PSB,
						       .tsc_interval = NO_TSC,
						       .return_compression = true,
						       .cbr = 10};
	struct traced *t = malloc(sizeof(*t));

	*t = (struct traced){.now = START_NS, .rec.pt = {.time_mult = 1}};
	pt_stream__init(&t->stream, &config, pt_bytes__emit, &t->out);
	pt_stream__time(&t->stream, t->now);
	map_function(&t->rec, "f", F_AT, f, sizeof(f) / sizeof(f[0]));
	map_function(&t->rec, "g", G_AT, g, sizeof(g) / sizeof(g[0]));
	*state = t;
	return 0;
}

static int tear_down(void **state)
{
	traced__fini(*state);
	free(*state);
	return 0;
}

/* end: where the thread is in the end */
static void check(struct traced *t, uint64_t end, const struct branch *expected, size_t n)
{
	static const struct decoding calls = {.run = decode__run, .some_branches = true};
	uint64_t insns, branches = 0;

	pt_stream__disable_async(&t->stream, end);
	traced__decode_as(t, &calls, t->out.bytes.v, t->out.bytes.n);
	for (size_t i = 0; i < t->seen.list.n; i++)
		branches += t->seen.list.v[i].n_branches;
	insns = t->totals.insns;
	assert_true(t->seen.list.n >= n + 2);
	for (size_t i = 0; i < n; i++) {
		const struct branch *b = &t->seen.list.v[1 + i];

		if (!same_branch(&expected[i], b) || expected[i].n_branches != b->n_branches) {
			print_branch("expected", &expected[i]);
			print_branch("decoded", b);
			print_message("%u branches, of %u\n", b->n_branches,
				      expected[i].n_branches);
			fail();
		}
	}
	assert_int_equal(t->seen.list.v[1 + n].kind, BRANCH_END_ASYNC);
	/* What is left out is counted all the same. */
	traced__decode(t);
	assert_int_equal(t->totals.insns, insns);
	for (size_t i = 0; i < t->seen.list.n; i++)
		branches -= t->seen.list.v[i].n_branches;
	assert_int_equal(branches, 0);
}

#define CHECK(t, end, ...)                                                                         \
	check(t, end, (const struct branch[]){__VA_ARGS__},                                        \
	      sizeof((const struct branch[]){__VA_ARGS__}) / sizeof(struct branch))
#define BRANCH(k, f, t, l, insns, branches)                                                        \
	{                                                                                          \
		.kind = k, .from = f, .to = t, .len = l, .n_insns = insns, .n_branches = branches  \
	}

static void test_jumps_within_a_function_are_counted_only(void **state)
{
	struct traced *t = *state;

	pt_stream__enable(&t->stream, F_AT);
	pt_stream__cond(&t->stream, true, F_AT + 0x20);
	pt_stream__cond(&t->stream, false, F_AT + 0x26);
	pt_stream__call(&t->stream, F_AT + 0x2b, G_AT + 0x10);
	pt_stream__cond(&t->stream, true, G_AT + 0x20);
	pt_stream__ret(&t->stream, F_AT + 0x2b);
	pt_stream__jump_indirect(&t->stream, F_AT + 0x10);
	pt_stream__cond(&t->stream, true, F_AT + 0x20);
	pt_stream__cond(&t->stream, false, F_AT + 0x26);
	pt_stream__call(&t->stream, F_AT + 0x2b, G_AT + 0x10);
	pt_stream__cond(&t->stream, true, G_AT + 0x20);
	pt_stream__ret(&t->stream, F_AT + 0x2b);
	pt_stream__jump_indirect(&t->stream, F_AT + 0x30);
	CHECK(t, F_AT + 0x30, BRANCH(BRANCH_CALL, F_AT + 0x26, G_AT + 0x10, 5, 4, 3),
	      BRANCH(BRANCH_RETURN, G_AT + 0x20, F_AT + 0x2b, 1, 2, 2),
	      BRANCH(BRANCH_CALL, F_AT + 0x26, G_AT + 0x10, 5, 4, 3),
	      BRANCH(BRANCH_RETURN, G_AT + 0x20, F_AT + 0x2b, 1, 2, 2));
}

/* Most of these packets come in runs that are walked once, then noted, then replayed. */
static void test_a_loop_without_calls_is_counted(void **state)
{
	struct traced *t = *state;

	pt_stream__enable(&t->stream, F_AT + 0x60);
	for (int i = 0; i < 480; i++)
		pt_stream__cond(&t->stream, true, F_AT + 0x60);
	pt_stream__cond(&t->stream, false, F_AT + 0x62);
	pt_stream__jump_indirect(&t->stream, G_AT + 0x20);
	CHECK(t, G_AT + 0x20, BRANCH(BRANCH_JUMP, F_AT + 0x62, G_AT + 0x20, 2, 482, 481));
}

static void test_jumps_to_another_function_are_handed_on(void **state)
{
	struct traced *t = *state;

	pt_stream__enable(&t->stream, F_AT + 0x20);
	pt_stream__cond(&t->stream, true, G_AT);
	pt_stream__cond(&t->stream, true, G_AT + 0x10);
	pt_stream__cond(&t->stream, true, G_AT + 0x20);
	pt_stream__ret(&t->stream, F_AT + 0x2b);
	pt_stream__jump_indirect(&t->stream, G_AT + 0x20);
	pt_stream__ret(&t->stream, F_AT + 0x40);
	pt_stream__cond(&t->stream, true, G_AT + 0x10);
	CHECK(t, G_AT + 0x10, BRANCH(BRANCH_COND, F_AT + 0x20, G_AT, 6, 1, 1),
	      BRANCH(BRANCH_RETURN, G_AT + 0x20, F_AT + 0x2b, 1, 3, 3),
	      BRANCH(BRANCH_JUMP, F_AT + 0x2b, G_AT + 0x20, 2, 1, 1),
	      BRANCH(BRANCH_RETURN, G_AT + 0x20, F_AT + 0x40, 1, 1, 1),
	      BRANCH(BRANCH_JUMP, F_AT + 0x40, G_AT, 5, 1, 1));
}

/* Where it is in the code does not tell which activation it went to: OCaml's raise. */
static void test_jumps_to_what_was_popped_are_handed_on(void **state)
{
	struct traced *t = *state;

	pt_stream__enable(&t->stream, F_AT + 0x50);
	for (int i = 0; i < 3; i++)
		pt_stream__jump_indirect(&t->stream, F_AT + 0x50);
	pt_stream__jump_indirect(&t->stream, F_AT + 0x58);
	pt_stream__jump_indirect(&t->stream, F_AT + 0x50);
	pt_stream__jump_indirect(&t->stream, F_AT + 0xf0);
	CHECK(t, F_AT + 0xf0, BRANCH(BRANCH_JUMP, F_AT + 0x52, F_AT + 0x50, 3, 2, 1),
	      BRANCH(BRANCH_JUMP, F_AT + 0x52, F_AT + 0x50, 3, 2, 1),
	      BRANCH(BRANCH_JUMP, F_AT + 0x52, F_AT + 0x50, 3, 2, 1),
	      BRANCH(BRANCH_JUMP, F_AT + 0x52, F_AT + 0x58, 3, 2, 1),
	      BRANCH(BRANCH_JUMP, F_AT + 0x52, F_AT + 0xf0, 3, 4, 2));
}

/* The first branch of a function that the one before it ran into says so; then all is known. */
static void test_code_that_is_fallen_into(void **state)
{
	struct traced *t = *state;

	pt_stream__enable(&t->stream, F_AT + 0xfe);
	pt_stream__cond(&t->stream, false, G_AT);
	pt_stream__cond(&t->stream, true, G_AT + 0x10);
	pt_stream__cond(&t->stream, true, G_AT + 0x20);
	pt_stream__ret(&t->stream, F_AT + 0xf0);
	/* Within one block. */
	pt_stream__cond(&t->stream, false, G_AT);
	pt_stream__cond(&t->stream, false, G_AT + 2);
	pt_stream__cond(&t->stream, true, G_AT + 0x20);
	pt_stream__ret(&t->stream, F_AT);
	CHECK(t, F_AT, BRANCH(BRANCH_COND, G_AT, G_AT + 0x10, 2, 2, 1),
	      BRANCH(BRANCH_RETURN, G_AT + 0x20, F_AT + 0xf0, 1, 2, 2),
	      BRANCH(BRANCH_COND, G_AT + 0x10, G_AT + 0x20, 2, 31, 1),
	      BRANCH(BRANCH_RETURN, G_AT + 0x20, F_AT, 1, 1, 1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_jumps_within_a_function_are_counted_only),
		TEST(test_a_loop_without_calls_is_counted),
		TEST(test_jumps_to_another_function_are_handed_on),
		TEST(test_jumps_to_what_was_popped_are_handed_on),
		TEST(test_code_that_is_fallen_into),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
