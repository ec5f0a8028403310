// SPDX-License-Identifier: MIT
#include "perf/perf_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "decode/branch.h"

#define USER   0x401000ull
#define KERNEL 0xffffffff81000000ull

static struct perf_words parse(const char *text)
{
	struct perf_words words;

	perf_words__parse(&words, text, strlen(text));
	return words;
}

static void expect(const char *text, uint64_t from, uint64_t to, enum branch_kind kind)
{
	struct perf_words words = parse(text);
	uint8_t is = perf_flags__kind(words.flags, from, to);

	if (is != kind)
		fail_msg("'%s' is %s", text, branch_kind__name((enum branch_kind)is));
	if (words.has_unknown)
		fail_msg("'%s' is not known", text);
}

static void test_near(void **state)
{
	expect("call", USER, USER, BRANCH_CALL);
	expect("return", USER, USER, BRANCH_RETURN);
	expect("jmp", USER, USER, BRANCH_JUMP);
	expect("jcc", USER, USER, BRANCH_COND);
	expect("tx abrt", USER, USER, BRANCH_JUMP);
	expect("br miss", USER, USER, BRANCH_JUMP);
}

static void test_begin_and_end(void **state)
{
	expect("tr strt", 0, USER, BRANCH_BEGIN);
	expect("tr strt jmp", USER, USER, BRANCH_BEGIN);
	expect("tr end", USER, 0, BRANCH_END_ASYNC);
	expect("tr end (x)", USER, 0, BRANCH_END_ASYNC);
	expect("tr end  call", USER, 0, BRANCH_END);
	expect("tr end  return", USER, 0, BRANCH_END);
	expect("tr end  syscall", USER, 0, BRANCH_END_SYSCALL);
	expect("tr end  int", USER, 0, BRANCH_END_SYSCALL);
	expect("tr end  hw int", USER, 0, BRANCH_END_ASYNC);
	expect("tr end  async", USER, 0, BRANCH_END_ASYNC);
	expect("tr end  sysret", KERNEL, 0, BRANCH_END);
	/* Nobody says so, but there is nowhere that it came from, or went to. */
	expect("jmp", 0, USER, BRANCH_BEGIN);
	expect("jmp", USER, 0, BRANCH_END);
}

static void test_kernel(void **state)
{
	expect("syscall", USER, KERNEL, BRANCH_ENTER);
	expect("int", USER, KERNEL, BRANCH_ENTER);
	expect("hw int", USER, KERNEL, BRANCH_ENTER);
	expect("hw int", KERNEL, KERNEL, BRANCH_ENTER);
	expect("async", USER, KERNEL, BRANCH_ENTER);
	expect("sysret", KERNEL, USER, BRANCH_LEAVE);
	expect("iret", KERNEL, USER, BRANCH_LEAVE);
	expect("iret", KERNEL, KERNEL, BRANCH_LEAVE);
	/* What a handler in the program itself would be. */
	expect("async", USER, USER, BRANCH_JUMP);
	expect("iret", USER, USER, BRANCH_JUMP);
	expect("vmentry", KERNEL, KERNEL, BRANCH_JUMP);
	expect("vmexit", KERNEL, KERNEL, BRANCH_JUMP);
}

/* What is said beside, by newer versions. */
static void test_marks(void **state)
{
	expect("call                   (x)", USER, USER, BRANCH_CALL);
	expect("return (xDt)", USER, USER, BRANCH_RETURN);
	expect("jcc/miss/", USER, USER, BRANCH_COND);
	expect("tr end  hw int (D)", USER, 0, BRANCH_END_ASYNC);
	assert_true(parse("call (x)").flags & PERF_IN_TRANSACTION);
	assert_true(parse("jcc/miss,not_taken/").flags & PERF_IS_NOT_TAKEN);
	assert_false(parse("jcc/miss/").flags & PERF_IS_NOT_TAKEN);
}

/* Before 4.11: tools/perf/builtin-script.c printed letters. */
static void test_letters(void **state)
{
	expect("bc", USER, USER, BRANCH_CALL);
	expect("br", USER, USER, BRANCH_RETURN);
	expect("bo", USER, USER, BRANCH_COND);
	expect("b", USER, USER, BRANCH_JUMP);
	expect("bcs", USER, KERNEL, BRANCH_ENTER);
	expect("brs", KERNEL, USER, BRANCH_LEAVE);
	expect("bcsE", USER, 0, BRANCH_END_SYSCALL);
	expect("bB", 0, USER, BRANCH_BEGIN);
	expect("bcyiE", USER, 0, BRANCH_END_ASYNC);
	assert_true(perf_words__are_letters("bc", 2));
	assert_false(perf_words__are_letters("bead", 4));
	assert_false(perf_words__are_letters("cb", 2));
	assert_false(perf_words__are_letters("", 0));
}

static void test_unknown(void **state)
{
	struct perf_words words = parse("call sideways");

	assert_true(words.has_unknown);
	assert_int_equal(perf_flags__kind(words.flags, USER, USER), BRANCH_CALL);
	words = parse("sideways");
	assert_true(words.has_unknown);
	assert_int_equal(perf_flags__kind(words.flags, USER, USER), BRANCH_JUMP);
	assert_true(parse("call (q)").has_unknown);
	assert_int_equal(parse("").flags, 0);
	assert_int_equal(parse("((/,").flags, 0);
}

static void test_length(void **state)
{
	assert_int_equal(perf_flags__insn_len(BRANCH_END_SYSCALL, parse("syscall").flags), 2);
	assert_int_equal(perf_flags__insn_len(BRANCH_ENTER, parse("syscall").flags), 2);
	/* An interrupt comes before the instruction. */
	assert_int_equal(perf_flags__insn_len(BRANCH_ENTER, parse("hw int").flags), 0);
	assert_int_equal(perf_flags__insn_len(BRANCH_CALL, parse("call").flags), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_near),	cmocka_unit_test(test_begin_and_end),
		cmocka_unit_test(test_kernel),	cmocka_unit_test(test_marks),
		cmocka_unit_test(test_letters), cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
