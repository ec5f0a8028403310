// SPDX-License-Identifier: MIT
/* What -if, -key and -print read at a hit: values behind pointers, strings, and whose delay it is.
 */
#include "trigger_fixture.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/user.h>

#include "util/page.h"

/* The child has all of it at the same addresses. */
static char exact[MT_TEXT_MAX], longer[MT_TEXT_MAX + 1], abc[8], *at_end;
static const struct part {
	short number;
	const char *text;
	char own[8];
} part = {-7, "a string", "own"};
static const struct whole {
	uint64_t pad;
	const struct part *part;
	const struct whole *self;
} whole = {1, &part, &whole};
static int64_t lengths[4];

static struct mt_arg constant(const void *address)
{
	return (struct mt_arg){
		.kind = MT_ARG_CONSTANT, .value = (uint64_t)(uintptr_t)address, .size = 8};
}

static struct mt_print print(enum mt_print_kind kind, const void *address)
{
	return (struct mt_print){.kind = (uint8_t)kind, .value = {.from = constant(address)}};
}

/* Pages that were never written to are not in the child's memory: they could not be read. */
static void fill_texts(void)
{
	if (at_end)
		return;
	strcpy(abc, "abcdef");
	lengths[0] = 3;
	lengths[2] = -1;
	lengths[3] = 100000;
	memset(exact, 'e', sizeof(exact) - 1);
	memset(longer, 'l', sizeof(longer) - 1);
	at_end = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(at_end != MAP_FAILED);
	munmap(at_end + PAGE, PAGE);
	at_end += PAGE - 4;
	memcpy(at_end, "end", 4);
}

static struct mt_hit hit_with(struct fixture *fixture, const struct mt_reads *reads,
			      uint32_t n_prints)
{
	attach_to(fixture,
		  (struct trigger_config){.reads = reads, .n_reads = 1, .n_prints = n_prints},
		  hit_me);
	arm(fixture);
	run(fixture, HIT_REGISTERS, 0);
	return expect_hit(fixture);
}

static void assert_text(const struct mt_printed *printed, const char *text)
{
	assert_true(printed->kind == MT_PRINT_STRING || printed->kind == MT_PRINT_BYTES);
	assert_int_equal(printed->length, strlen(text));
	assert_memory_equal(printed->text, text, strlen(text));
}

static void test_values_behind_pointers(void **state)
{
	struct mt_reads reads = {
		.prints = {print(MT_PRINT_NUMBER, &whole), print(MT_PRINT_STRING, &whole),
			   print(MT_PRINT_STRING, &whole), print(MT_PRINT_NUMBER, &whole)}};
	struct mt_hit hit;

	/* whole->self->self->part->number, whole->part->text, whole->part->own, whole->pad->... */
	reads.prints[0].value.n_derefs = 4;
	reads.prints[0].value.size = -2;
	reads.prints[0].value.offsets[0] = offsetof(struct whole, self);
	reads.prints[0].value.offsets[1] = offsetof(struct whole, self);
	reads.prints[0].value.offsets[2] = offsetof(struct whole, part);
	reads.prints[0].value.offsets[3] = offsetof(struct part, number);
	reads.prints[1].value.n_derefs = 2;
	reads.prints[1].value.size = 8;
	reads.prints[1].value.offsets[0] = offsetof(struct whole, part);
	reads.prints[1].value.offsets[1] = offsetof(struct part, text);
	reads.prints[2].value = reads.prints[1].value;
	reads.prints[2].value.is_address = 1;
	reads.prints[2].value.offsets[1] = offsetof(struct part, own);
	reads.prints[3].value.n_derefs = 2;
	reads.prints[3].value.size = 8;
	hit = hit_with(*state, &reads, 4);
	assert_int_equal(hit.n_prints, 4);
	assert_int_equal(hit.prints[0].kind, MT_PRINT_NUMBER);
	assert_int_equal((int64_t)hit.prints[0].number, -7);
	assert_true(hit.prints[0].is_signed);
	assert_text(&hit.prints[1], "a string");
	assert_text(&hit.prints[2], "own");
	/* A pointer to address 1. */
	assert_int_equal(hit.prints[3].kind, MT_PRINT_NONE);
}

static void test_strings_are_cut(void **state)
{
	struct mt_reads reads;
	struct mt_hit hit;

	fill_texts();
	reads = (struct mt_reads){
		.prints = {print(MT_PRINT_STRING, exact), print(MT_PRINT_STRING, longer),
			   print(MT_PRINT_STRING, at_end), print(MT_PRINT_STRING, NULL)}};
	/* The child is older than the texts: they are the parent's alone. */
	tear_down(state);
	assert_int_equal(set_up(state), 0);
	hit = hit_with(*state, &reads, 4);
	assert_text(&hit.prints[0], exact);
	assert_false(hit.prints[0].is_cut);
	assert_int_equal(hit.prints[1].length, MT_TEXT_MAX - 1);
	assert_true(hit.prints[1].is_cut);
	assert_text(&hit.prints[2], "end");
	assert_int_equal(hit.prints[3].kind, MT_PRINT_NONE);
}

static struct mt_print print_array(const void *address, uint32_t room)
{
	struct mt_print of = print(MT_PRINT_STRING, address);

	of.value.n_derefs = 1;
	of.value.is_address = 1;
	of.value.room = room;
	return of;
}

/* What follows an array without a NUL is not of it. */
static void test_strings_end_with_their_array(void **state)
{
	struct mt_reads reads;
	struct mt_hit hit;

	fill_texts();
	reads = (struct mt_reads){.prints = {print_array(abc, 4), print_array(abc, sizeof(abc)),
					     print_array(longer, sizeof(longer)),
					     print_array(longer, MT_TEXT_MAX - 1)}};
	tear_down(state);
	assert_int_equal(set_up(state), 0);
	hit = hit_with(*state, &reads, 4);
	assert_text(&hit.prints[0], "abcd");
	assert_false(hit.prints[0].is_cut);
	assert_text(&hit.prints[1], "abcdef");
	assert_int_equal(hit.prints[2].length, MT_TEXT_MAX - 1);
	assert_true(hit.prints[2].is_cut);
	assert_int_equal(hit.prints[3].length, MT_TEXT_MAX - 1);
	assert_false(hit.prints[3].is_cut);
}

static void test_strings_with_a_length(void **state)
{
	struct mt_reads reads = {0};
	struct mt_hit hit;

	fill_texts();
	for (size_t i = 0; i < MT_PRINTS; i++) {
		reads.prints[i] = print(MT_PRINT_BYTES, i == 3 ? longer : abc);
		reads.prints[i].length =
			(struct mt_value){.from = constant(&lengths[i]), .n_derefs = 1, .size = -8};
	}
	tear_down(state);
	assert_int_equal(set_up(state), 0);
	hit = hit_with(*state, &reads, 4);
	assert_text(&hit.prints[0], "abc");
	assert_text(&hit.prints[1], "");
	assert_int_equal(hit.prints[2].kind, MT_PRINT_NONE);
	assert_int_equal(hit.prints[3].length, MT_TEXT_MAX);
	assert_true(hit.prints[3].is_cut);
}

/* The stack pointer tells when it was read: behind the return it has been raised. */
static void test_a_call_keeps_what_its_entry_read(void **state)
{
	const struct mt_value sp = {.from = {.kind = MT_ARG_REGISTER,
					     .base = offsetof(struct user_regs_struct, rsp),
					     .size = 8}};
	const struct mt_reads reads = {
		.prints = {{.kind = MT_PRINT_NUMBER, .value = sp},
			   {.kind = MT_PRINT_NUMBER, .value = sp, .at_return = 1},
			   print(MT_PRINT_STRING, part.text)}};
	const struct trigger_config config = {
		.duration_thresh_ns = THRESH_NS, .reads = &reads, .n_reads = 1, .n_prints = 3};
	struct fixture *fixture = *state;
	struct mt_hit hit;

	if (latch == TRIGGER_LATCH_LRU_HASH) {
		/* Without the kernel's BTF it is refused. */
		struct trigger_config other = config;

		other.tgid = fixture->child.pid;
		assert_null(trigger__new_with_latch(&other, latch));
		assert_int_equal(errno, ENOTSUP);
		return;
	}
	attach_to(fixture, config, timed);
	arm(fixture);
	/* Those that are left leave their entries behind, and the slow one is around four others.
	 */
	run(fixture, TIMED_JUMP_OUT, 3);
	run(fixture, TIMED_NESTED, 5);
	hit = expect_hit(fixture);
	assert_int_equal(hit.reason, MT_HIT_DURATION);
	assert_true(hit.prints[1].number == hit.sp);
	assert_true(hit.prints[0].number == hit.sp - 8);
	assert_text(&hit.prints[2], "a string");
}

static void test_terms(void **state)
{
	static const struct mt_term terms[] = {{.field = MT_FIELD_ARG, .op = MT_OP_LT, .value = 0},
					       {.field = MT_FIELD_ARG, .op = MT_OP_EQ, .value = 8}};
	struct mt_reads reads = {.terms = {{.from = constant(&part), .n_derefs = 1, .size = -2},
					   {.from = {.kind = MT_ARG_CONSTANT, .value = 8}}}};
	struct trigger_config config = {
		.reads = &reads, .n_reads = 1, .terms = terms, .n_terms = 2};
	struct fixture *fixture = *state;

	reads.terms[1].from.size = 4;
	attach_to(fixture, config, hit_me);
	arm(fixture);
	run(fixture, HIT, 3);
	expect_hit(fixture);
	assert_int_equal(stats_of(fixture).hits, 3);
	/* What cannot be read is not true. */
	remove_probes(fixture);
	reads.terms[0].from = constant(NULL);
	attach_to(fixture, config, hit_me);
	run(fixture, HIT, 3);
	assert_int_equal(stats_of(fixture).hits, 0);
}

/* One thread hits each 10 ms, and another one twice: of one key, all of it is one row of hits. */
static void test_delays_of_one_key(void **state)
{
	const struct mt_reads reads = {.key = {.from = {.kind = MT_ARG_CONSTANT, .value = 77}}};
	struct mt_reads own = reads;
	struct fixture *fixture = *state;
	struct mt_stats stats;
	struct mt_hit hit;
	int tid;

	own.key.from.size = 8;
	attach_to(
		fixture,
		(struct trigger_config){
			.delay_thresh_ns = THRESH_NS, .reads = &own, .n_reads = 1, .by_key = true},
		hit_me);
	arm(fixture);
	/* The new thread's own two hits are far apart, but not those of the key. */
	run(fixture, HIT_THREADS, 2 * SLOW_MS);
	stats = stats_of(fixture);
	/* Of two hits at the same moment one may not be measured. */
	assert_in_range(histogram_sum(&stats), stats.hits - 4, stats.hits - 1);
	/* Then two more, with nothing between them. */
	run(fixture, HIT_LATE, SLOW_MS);
	tid = run(fixture, HIT_THREADS, 0);
	assert_true(tid > 0);
	hit = expect_hit(fixture);
	assert_int_equal(hit.reason, MT_HIT_DELAY);
	assert_int_equal(hit.key, 77);
	assert_true(hit.since_tid);
	assert_true(hit.value_ns >= THRESH_NS);
	assert_int_equal(stats_of(fixture).evicted, 0);
}

static void test_a_key_that_cannot_be_read(void **state)
{
	const struct mt_reads reads = {.key = {.from = constant(NULL), .n_derefs = 1, .size = 8}};
	struct fixture *fixture = *state;
	struct mt_stats stats;

	attach_to(fixture,
		  (struct trigger_config){
			  .delay_thresh_ns = 1, .reads = &reads, .n_reads = 1, .by_key = true},
		  hit_me);
	arm(fixture);
	run(fixture, HIT, 5);
	expect_no_hit(fixture);
	stats = stats_of(fixture);
	assert_int_equal(stats.hits, 5);
	assert_int_equal(stats.keyless, 5);
	assert_int_equal(histogram_sum(&stats), 0);
}

static int run_group(const char *name)
{
	const struct CMUnitTest tests[] = {
		LIVE(test_values_behind_pointers),
		LIVE(test_strings_are_cut),
		LIVE(test_strings_end_with_their_array),
		LIVE(test_strings_with_a_length),
		LIVE(test_a_call_keeps_what_its_entry_read),
		LIVE(test_terms),
		LIVE(test_delays_of_one_key),
		LIVE(test_a_key_that_cannot_be_read),
	};

	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
	return run_with_both(run_group);
}
