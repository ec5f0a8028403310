// SPDX-License-Identifier: MIT
/* Picking a line without fzf: what is shown, and what is taken. */
#include "cli/picker.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *const lines[] = {"  4711  service   ./service -scale 7", "  4712  Web-1     web",
				    "  4713  web-2     web", "    17  nginx     nginx: web"};

static char *shown;

/* What is picked when these lines are typed; `shown` is what was asked. */
static int typed(const char *const *from, size_t n, const char *answers)
{
	size_t size;
	FILE *in = fmemopen((void *)answers, strlen(answers), "r"), *out;
	int picked;

	free(shown);
	out = open_memstream(&shown, &size);
	picked = picker__pick_typed("process", from, n, in, out);
	fclose(in);
	fclose(out);
	return picked;
}

static int pick(const char *answers)
{
	return typed(lines, 4, answers);
}

static int tear_down(void **state)
{
	free(shown);
	shown = NULL;
	return 0;
}

static void test_a_number(void **state)
{
	assert_int_equal(pick("3\n"), 2);
	assert_string_equal(shown, "1\t  4711  service   ./service -scale 7\n"
				   "2\t  4712  Web-1     web\n"
				   "3\t  4713  web-2     web\n"
				   "4\t    17  nginx     nginx: web\n"
				   "(with fzf installed, this is a search)\n"
				   "process: a number, or a part of the line: ");
}

static void test_words_narrow_it_down(void **state)
{
	assert_int_equal(pick("web-\n3\n"), 2);
	assert_non_null(strstr(shown, "search)\n"
				      "process: a number, or a part of the line: "
				      "2\t  4712  Web-1     web\n"
				      "3\t  4713  web-2     web\n"
				      "process: a number, or a part of the line: "));
	/* Each answer is a new search. */
	assert_int_equal(pick("web-\nnginx\n4\n"), 3);
	/* All words, in any order; what is no number of a line may be one in it. */
	assert_int_equal(pick("WEB 4712\n\n"), 1);
	assert_int_equal(pick("17\n\n"), 3);
}

static void test_the_only_line_left_is_taken_by_enter(void **state)
{
	assert_int_equal(pick("scale\n\n"), 0);
	assert_non_null(strstr(shown, "part of the line; Enter takes this one: "));
	assert_int_equal(pick("web\n\n"), -ECANCELED);
}

static void test_what_no_line_has_is_said(void **state)
{
	assert_int_equal(pick("web-\nweb-3\n\n"), -ECANCELED);
	assert_non_null(strstr(shown, "no line has 'web-3'\nprocess: "));
	/* A number that is not shown is looked for, as words are. */
	assert_int_equal(pick("nginx\n3\n\n"), 2);
}

static void test_nothing_typed(void **state)
{
	assert_int_equal(pick("\n"), -ECANCELED);
	assert_int_equal(pick("web"), -ECANCELED);
	assert_int_equal(pick("0\n"), -ECANCELED);
}

static void test_more_lines_than_anybody_reads(void **state)
{
	const char *many[3580];

	for (size_t i = 0; i < 3580; i++)
		many[i] = i == 3000 ? "one_iter" : "table_rehash";
	assert_int_equal(typed(many, 3580, "iter\n\n"), 3000);
	assert_non_null(strstr(shown, "\n200\ttable_rehash\n... and 3380 more\n(with fzf"));
	assert_non_null(strstr(shown, ": 3001\tone_iter\nprocess: "));
}

static void test_what_a_process_calls_itself_moves_no_cursor(void **state)
{
	static const char *const evil[] = {"\033[2Jevil"};

	assert_int_equal(typed(evil, 1, "\n"), 0);
	assert_non_null(strstr(shown, "1\t?[2Jevil\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_a_number, tear_down),
		cmocka_unit_test_teardown(test_words_narrow_it_down, tear_down),
		cmocka_unit_test_teardown(test_the_only_line_left_is_taken_by_enter, tear_down),
		cmocka_unit_test_teardown(test_what_no_line_has_is_said, tear_down),
		cmocka_unit_test_teardown(test_nothing_typed, tear_down),
		cmocka_unit_test_teardown(test_more_lines_than_anybody_reads, tear_down),
		cmocka_unit_test_teardown(test_what_a_process_calls_itself_moves_no_cursor,
					  tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
