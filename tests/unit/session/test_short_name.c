// SPDX-License-Identifier: MIT
/* Names of functions, as long as a line has room for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "util/names.h"

#define STRING	  "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
#define NAMESPACE "a_namespace_with_a_long_name::another_namespace_with_a_longer_name::"

static void assert_short(const char *name, const char *expected)
{
	char buf[SHORT_NAME_SIZE];

	assert_string_equal(short_name(buf, name), expected);
	assert_true(strlen(expected) <= SHORT_NAME_MAX);
}

static void test_what_fits_stays(void **state)
{
	assert_short("main", "main");
	assert_short("std::vector<int>::push_back(int const&)",
		     "std::vector<int>::push_back(int const&)");
	assert_short(
		"a23456789_b23456789_c23456789_d23456789_e23456789_f23456789_g23456789_h234567<T>",
		"a23456789_b23456789_c23456789_d23456789_e23456789_f23456789_g23456789_h234567<T>");
}

/* As much as there is room for: of brackets those within others go first. */
static void test_brackets_are_left_out(void **state)
{
	assert_short("std::map<" STRING ", int>::at(int)",
		     "std::map<std::__cxx11::basic_string<...>, int>::at(int)");
	assert_short("std::vector<" STRING ", std::allocator<" STRING " > >::push_back(" STRING
		     "&&)",
		     "std::vector<...>::push_back(...)");
	assert_short("run(std::function<void ()>, " STRING ", " STRING ", void (*)())", "run(...)");
	assert_short("<alloc::vec::Vec<T,A> as core::iter::IntoIterator<" STRING ">>::into_iter",
		     "<alloc::vec::Vec<...> as core::iter::IntoIterator<...>>::into_iter");
}

/* These are part of the name. */
static void test_brackets_that_are_none(void **state)
{
	assert_short("bool std::operator< <char>(" STRING " const&, " STRING " const&)",
		     "bool std::operator< <...>(...)");
	assert_short("std::ostream& std::operator<< <" STRING ", " STRING " >(" STRING ")",
		     "std::ostream& std::operator<< <...>(...)");
	assert_short("(anonymous namespace)::task::operator()(" STRING " const&, " STRING ") const",
		     "(anonymous namespace)::task::operator()(...) const");
	assert_short("pointer<" STRING ", " STRING " >::operator->() const",
		     "pointer<...>::operator->() const");
}

static void test_too_long_all_the_same(void **state)
{
	/* What tells one from the other stands at the end. */
	assert_short(NAMESPACE "a_class_template<" STRING ">::a_function(int)",
		     "...:another_namespace_with_a_longer_name::a_class_template<...>::a_"
		     "function(...)");
	/* Nobody knows where this one ends. */
	assert_short(
		NAMESPACE "a_class_template<int::a_function",
		"a_namespace_with_a_long_name::another_namespace_with_a_longer_name::a_class_t...");
	assert_short(
		NAMESPACE "a_class_template>int::a_function",
		"a_namespace_with_a_long_name::another_namespace_with_a_longer_name::a_class_t...");
}

/* A character of several bytes is there, or is not: this one would lie on either side of the cut.
 */
static void test_characters_stay_whole(void **state)
{
	char name[100], expected[SHORT_NAME_SIZE];

	memset(name, 'a', sizeof(name) - 1);
	memset(expected, 'a', sizeof(expected) - 1);
	name[sizeof(name) - 1] = '\0';
	/* The first 76 characters, since the brackets do not match. */
	memcpy(name + 76, "\u00e9<", strlen("\u00e9<"));
	strcpy(expected + 76, "...");
	assert_short(name, expected);
	/* The last 76 characters. */
	memset(name + 76, 'a', 3);
	memcpy(name + sizeof(name) - 1 - 78, "\u00e9", strlen("\u00e9"));
	memset(expected, 'a', sizeof(expected) - 1);
	memcpy(expected, "...", 3);
	expected[3 + 76] = '\0';
	assert_short(name, expected);
}

static void test_scripts_lose_their_folders(void **state)
{
	assert_short(
		"JS:~busyWork /home/somebody/with/a/service/that/lies/in/a/deep/folder/of/some/"
		"slow.js:1:18",
		"JS:~busyWork slow.js:1:18");
	assert_short("JS:*handle file:///home/somebody/with/a/service/that/lies/in/a/deep/folder/"
		     "slow.mjs:12:1",
		     "JS:*handle file:slow.mjs:12:1");
	assert_short("py::handle_request:/home/somebody/with/a/service/that/lies/in/a/deep/folder/"
		     "app.py",
		     "py::handle_request:app.py");
	/* No file. */
	assert_short("some::very_long_namespace_of_somebody::operator/(some::very_long_type_name, "
		     "some::other_type)",
		     "some::very_long_namespace_of_somebody::operator/(...)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_fits_stays),
		cmocka_unit_test(test_brackets_are_left_out),
		cmocka_unit_test(test_brackets_that_are_none),
		cmocka_unit_test(test_too_long_all_the_same),
		cmocka_unit_test(test_characters_stay_whole),
		cmocka_unit_test(test_scripts_lose_their_folders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
