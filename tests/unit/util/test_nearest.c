// SPDX-License-Identifier: MIT
#include "util/names.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static const char *nearest_of(const char *word, const char *const *candidates)
{
	struct nearest nearest = {.word = word};

	for (; *candidates; candidates++)
		nearest__offer(&nearest, *candidates);
	return nearest__result(&nearest);
}

static const char *const option_names[] = {"pid",	   "symbol", "threshold", "output",
					   "multi-thread", "format", NULL};

static void expect(const char *word, const char *meant)
{
	const char *found = nearest_of(word, option_names);

	if (!found || !meant) {
		if (found != meant)
			fail_msg("'%s': %s, not %s", word, found ? found : "nothing",
				 meant ? meant : "nothing");
		return;
	}
	assert_string_equal(found, meant);
}

static void test_one_mistake(void **state)
{
	expect("symbl", "symbol");   /* left out */
	expect("symbool", "symbol"); /* put in */
	expect("symbok", "symbol");  /* wrong */
	expect("smybol", "symbol");  /* swapped */
	expect("SYMBOL", "symbol");  /* case costs nothing */
	expect("symbol", "symbol");
	expect("pdi", "pid");
	expect("pi", "pid");
}

static void test_longer_words_may_have_more(void **state)
{
	expect("multithraed", "multi-thread");
	expect("treshhold", "threshold");
	/* Two in a short word are another word. */
	expect("pax", NULL);
	expect("symxxx", NULL);
}

static void test_prefixes(void **state)
{
	expect("thre", "threshold");
	expect("MULTI", "multi-thread");
	expect("symbolname", "symbol");
	/* Too little in common to tell. */
	expect("th", NULL);
	expect("pidgin-holes", NULL);
}

static void test_nothing_near(void **state)
{
	static const char *const none[] = {NULL};
	static const char *const letters[] = {"a", "b", NULL};

	expect("banana", NULL);
	expect("x", NULL);
	expect("", NULL);
	assert_null(nearest_of("symbol", none));
	/* One letter for another is a mistake in all of the word. */
	assert_null(nearest_of("x", letters));
}

static void test_best_of_many_in_any_order(void **state)
{
	static const char *const up[] = {"request_loop_all", "requests_loop", "request_loop", NULL};
	static const char *const down[] = {"request_loop", "requests_loop", "request_loop_all",
					   NULL};
	static const char *const prefixes[] = {"handle_request_slow_path", "handle_request",
					       "handle_request_fast", NULL};

	assert_string_equal(nearest_of("reqeust_loop", up), "request_loop");
	assert_string_equal(nearest_of("reqeust_loop", down), "request_loop");
	assert_string_equal(nearest_of("handle", prefixes), "handle_request");
}

static void test_a_spelling_beats_a_prefix(void **state)
{
	static const char *const first[] = {"handl_rqs_slow", "hand_rqs", NULL};
	static const char *const last[] = {"hand_rqs", "handl_rqs_slow", NULL};

	assert_string_equal(nearest_of("handl_rqs", first), "hand_rqs");
	assert_string_equal(nearest_of("handl_rqs", last), "hand_rqs");
	/* Even where the spelling is the longer word. */
	assert_string_equal(
		nearest_of("request_loop", (const char *const[]){"request", "requests_loop", NULL}),
		"requests_loop");
}

static void test_a_swap_is_one_mistake(void **state)
{
	struct nearest nearest = {.word = "ca_handler"};

	nearest__offer(&nearest, "ac_handler");
	assert_int_equal(nearest.distance, 1);
	nearest__offer(&nearest, "CA_handler");
	assert_int_equal(nearest.distance, 0);
}

/* Mangled C++ names have thousands of letters. */
static void test_very_long_words(void **state)
{
	static char name[5000];
	struct nearest nearest = {.word = name};
	char other[300];

	memset(name, 'a', sizeof(name) - 1);
	memset(other, 'a', sizeof(other) - 1);
	other[sizeof(other) - 1] = '\0';
	nearest__offer(&nearest, other);
	assert_null(nearest__result(&nearest));
	nearest__offer(&nearest, name);
	assert_ptr_equal(nearest__result(&nearest), name);

	nearest = (struct nearest){.word = "aaa"};
	nearest__offer(&nearest, name);
	assert_ptr_equal(nearest__result(&nearest), name);

	/* As long as the rows are: still compared. */
	other[255] = '\0';
	name[254] = 'b';
	name[255] = '\0';
	nearest = (struct nearest){.word = other};
	nearest__offer(&nearest, name);
	assert_ptr_equal(nearest__result(&nearest), name);
	assert_int_equal(nearest.distance, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_mistake),
		cmocka_unit_test(test_longer_words_may_have_more),
		cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_nothing_near),
		cmocka_unit_test(test_best_of_many_in_any_order),
		cmocka_unit_test(test_a_spelling_beats_a_prefix),
		cmocka_unit_test(test_a_swap_is_one_mistake),
		cmocka_unit_test(test_very_long_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
