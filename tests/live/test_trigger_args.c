// SPDX-License-Identifier: MIT
/* What a hit's arguments are read from: registers, constants and memory, of every size. */
#include "trigger_fixture.h"

#include <sys/user.h>

#include "target/maps.h"

#define PLACE(name) offsetof(struct user_regs_struct, name)

/* The child has it at the same address. */
static const int8_t table[] = {1, -2, 3, -4, 5, -6, 7, -8, 9, -10};

static struct mt_arg in_register(uint16_t place, int8_t size)
{
	return (struct mt_arg){.kind = MT_ARG_REGISTER, .base = place, .size = size};
}

/* Through rbx, which holds OWN_REGISTER(0). */
static struct mt_arg at(const void *address, int8_t size)
{
	return (struct mt_arg){.kind = MT_ARG_MEMORY,
			       .base = PLACE(rbx),
			       .value = (uint64_t)(uintptr_t)address - OWN_REGISTER(0),
			       .size = size};
}

static struct mt_hit hit_with(struct fixture *fixture, const struct mt_args *args)
{
	attach_to(fixture, (struct trigger_config){.args = args, .n_args = 1}, hit_me);
	arm(fixture);
	run(fixture, HIT_REGISTERS, 0);
	return expect_hit(fixture);
}

static void test_registers_and_constants(void **state)
{
	const struct mt_args args = {
		.n = 7,
		.v = {in_register(PLACE(rbx), 8),
		      in_register(PLACE(r15), 4),
		      in_register(PLACE(r14), 2),
		      in_register(PLACE(r13), -1),
		      {.kind = MT_ARG_CONSTANT, .value = (uint64_t)-5, .size = -4},
		      {.kind = MT_ARG_UNKNOWN, .size = 8},
		      in_register(PLACE(rbx), -8)}};
	struct mt_hit hit = hit_with(*state, &args);

	assert_int_equal(hit.n_args, 7);
	assert_int_equal(hit.args_read, 0x5f);
	assert_int_equal(hit.args_signed, 0x58);
	assert_true(hit.args[0] == OWN_REGISTER(0));
	assert_true(hit.args[1] == (uint32_t)OWN_REGISTER(15));
	assert_true(hit.args[2] == (uint16_t)OWN_REGISTER(14));
	assert_true(hit.args[3] == (uint64_t)(int8_t)OWN_REGISTER(13));
	assert_int_equal((int64_t)hit.args[4], -5);
	assert_true(hit.args[6] == OWN_REGISTER(0));
}

static void test_memory(void **state)
{
	struct mt_arg indexed = at(table, -1), nowhere = at(NULL, 8);
	struct mt_args args = {.n = 6};
	struct mt_hit hit;
	uint64_t eight;

	memcpy(&eight, table, sizeof(eight));
	indexed.index = PLACE(r12); /* OWN_REGISTER(12) */
	indexed.scale = 4;
	indexed.value += 9 - 4 * OWN_REGISTER(12);
	args.v[0] = at(table + 1, -1);
	args.v[1] = at(table + 1, 1);
	args.v[2] = at(table, 8);
	args.v[3] = indexed;
	args.v[4] = nowhere;
	args.v[5] = at(table, 2);
	hit = hit_with(*state, &args);
	assert_int_equal(hit.args_read, 0x2f);
	assert_int_equal((int64_t)hit.args[0], -2);
	assert_int_equal(hit.args[1], 254);
	assert_true(hit.args[2] == eight);
	assert_int_equal((int64_t)hit.args[3], -10);
	assert_int_equal(hit.args[4], 0);
	assert_int_equal(hit.args[5], 0xfe01);
}

/* Where memory ends: as many bytes are read as the argument has, and none behind it. */
static void test_the_last_bytes_of_a_mapping(void **state)
{
	struct mt_args args = {.n = 3};
	const struct mapping *stack;
	struct mappings maps;
	struct mt_hit hit;
	const char *end;

	/* The child has the stack where we have it. */
	assert_int_equal(mappings__read(&maps, getpid()), 0);
	stack = mappings__find(&maps, (uint64_t)(uintptr_t)&hit);
	assert_non_null(stack);
	end = (const char *)(uintptr_t)stack->end;
	args.v[0] = at(end - 2, 2);
	args.v[1] = at(end - 1, -1);
	args.v[2] = at(end - 1, 2);
	mappings__fini(&maps);
	hit = hit_with(*state, &args);
	assert_int_equal(hit.args_read, 0x3);
}

static void test_none(void **state)
{
	const struct mt_args args = {0};
	struct mt_hit hit = hit_with(*state, &args);

	assert_int_equal(hit.n_args, 0);
	assert_int_equal(hit.args_read, 0);
	assert_int_equal(hit.args[0], 0);
}

static void test_as_many_as_there_may_be(void **state)
{
	struct mt_args args = {.n = MT_ARGS_MAX};
	struct mt_hit hit;

	for (uint64_t i = 0; i < MT_ARGS_MAX; i++)
		args.v[i] = (struct mt_arg){.kind = MT_ARG_CONSTANT, .value = i + 1, .size = 8};
	hit = hit_with(*state, &args);
	assert_int_equal(hit.n_args, MT_ARGS_MAX);
	assert_int_equal(hit.args_read, 0xfff);
	for (uint64_t i = 0; i < MT_ARGS_MAX; i++)
		assert_int_equal(hit.args[i], i + 1);
}

/* At the return the registers hold something else. */
static void test_not_at_a_return(void **state)
{
	const struct mt_args args = {.n = 1, .v = {in_register(PLACE(rdi), 8)}};
	struct fixture *fixture = *state;

	attach_to(fixture,
		  (struct trigger_config){.duration_thresh_ns = 1, .args = &args, .n_args = 1},
		  timed);
	arm(fixture);
	run(fixture, TIMED, 1);
	assert_int_equal(expect_hit(fixture).n_args, 0);
}

static int run_group(const char *name)
{
	const struct CMUnitTest tests[] = {
		LIVE(test_registers_and_constants),	LIVE(test_memory),
		LIVE(test_the_last_bytes_of_a_mapping), LIVE(test_none),
		LIVE(test_as_many_as_there_may_be),	LIVE(test_not_at_a_return),
	};

	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
	return run_with_both(run_group);
}
