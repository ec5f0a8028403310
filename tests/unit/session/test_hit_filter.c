// SPDX-License-Identifier: MIT
/* -if: its text to terms, and the registers that arguments are in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "session/probe/hit_filter.h"
#include "session/probe/probes.h"
#include "stderr_capture.h"

static int parse(struct hit_filter *filter, const char *text)
{
	struct stderr_capture said;
	int err;

	stderr_capture__begin(&said);
	err = hit_filter__parse(filter, text);
	assert_true(!err == !*stderr_capture__end(&said));
	return err;
}

static void test_terms(void **state)
{
	struct hit_filter f;

	assert_int_equal(parse(&f, NULL), 0);
	assert_int_equal(f.n, 0);
	assert_int_equal(
		parse(&f,
		      " (unsigned int)arg3>=0x10&&tid!=-1 && comm == \"a b\" && (int)retval&8 "),
		0);
	assert_int_equal(f.n, 4);
	assert_int_equal(f.terms[0].field, MT_FIELD_ARG);
	assert_int_equal(f.terms[0].arg, 2);
	assert_int_equal(f.terms[0].size, 4);
	assert_int_equal(f.terms[0].op, MT_OP_GE);
	assert_int_equal(f.terms[0].value, 16);
	assert_int_equal(f.terms[1].op, MT_OP_NE);
	assert_true(f.terms[1].value == UINT64_MAX);
	assert_string_equal((const char *)f.terms[2].comm, "a b");
	assert_int_equal(f.terms[3].size, -4);
	assert_int_equal(f.terms[3].op, MT_OP_AND);
	assert_true(hit_filter__has_return(&f));
	assert_int_equal(parse(&f, "comm != \"123456789012345\""), 0);
	assert_false(hit_filter__has_return(&f));
}

static void test_what_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"arg0 == 1",
		"arg1x == 1",
		"(int)arg1 = 1",
		"(int)arg1 && 1",
		"(float)arg1 == 1",
		"comm == \"1234567890123456\"",
		"comm == \"a",
		"comm & \"a\"",
		"tid == 1 tid == 2",
		"tid == 1 &&",
		"tid == 1x",
		"tid == 18446744073709551616",
		"retval == 0",
	};
	struct hit_filter f;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(parse(&f, texts[i]), -EINVAL);
}

static int apply(const char *text, struct probe *probe)
{
	struct probes probes = {0};
	struct stderr_capture said;
	struct hit_filter f;
	int err = parse(&f, text);

	assert_int_equal(err, 0);
	assert_int_equal(VEC_ADD(&probes.all, *probe), 0);
	stderr_capture__begin(&said);
	err = hit_filter__apply(&f, &probes);
	stderr_capture__end(&said);
	*probe = probes.all.v[0];
	VEC_FINI(&probes.all);
	return err;
}

static void test_arguments(void **state)
{
	static struct probe function, inside = {.is_inside = true}, go = {.is_go = true},
				      usdt = {.args = {.n = 2}};

	assert_int_equal(apply("(short)arg6 == 1 && (long)arg1 == 1", &function), 0);
	assert_int_equal(function.args.n, 6);
	assert_int_equal(function.args.v[5].base, 64); /* r9 */
	assert_int_equal(function.args.v[5].size, -2);
	assert_int_equal(function.args.v[0].base, 112); /* di */
	assert_int_equal(function.args.v[1].kind, MT_ARG_UNKNOWN);
	function = (struct probe){0};
	assert_int_equal(apply("arg1 == 1", &function), -EINVAL);
	assert_int_equal(apply("(int)arg1 > 1 && (long)arg1 < 5", &function), -EINVAL);
	assert_int_equal(apply("(int)arg1 == 1", &inside), -EINVAL);
	assert_int_equal(apply("(int)arg1 == 1", &go), -EINVAL);
	assert_int_equal(apply("arg2 == 1", &usdt), 0);
	assert_int_equal(apply("arg3 == 1", &usdt), -EINVAL);
	assert_int_equal(apply("(int)arg2 == 1", &usdt), -EINVAL);
	assert_int_equal(apply("tid == 1", &inside), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_terms),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
