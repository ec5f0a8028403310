// SPDX-License-Identifier: MIT
#include "util/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "stderr_capture.h"
#include "util/names.h"

static void test_levels(void **state)
{
	struct stderr_capture capture;

	stderr_capture__begin(&capture);
	log__set_level(LOG_QUIET);
	log__info("nothing");
	log__error("an %s", "error");
	log__set_level(LOG_SILENT);
	log__error("nothing");
	log__set_level(LOG_NORMAL);
	log__info("news");
	log__debug("nothing");
	log__hint("a hint");
	stderr_capture__end(&capture);
	assert_string_equal(capture.text, "mtbpf: an error\nnews\nhint: a hint\n");
}

/* A message is one line, and says nothing to a terminal, whoever chose the names in it. */
static void test_names_in_messages(void **state)
{
	struct stderr_capture capture;

	stderr_capture__begin(&capture);
	log__warn("file %s", "\033]0;x\007\nmtbpf: forged");
	log__caret("a\nb\033", 2);
	stderr_capture__end(&capture);
	assert_string_equal(capture.text, "warning: file ?]0;x??mtbpf: forged\n  a?b?\n    ^\n");
}

static void test_a_long_message_is_cut(void **state)
{
	char name[LABEL_MAX + 10];
	struct stderr_capture capture;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	stderr_capture__begin(&capture);
	log__info("%s", name);
	stderr_capture__end(&capture);
	assert_int_equal(strlen(capture.text), LABEL_MAX + 1);
	assert_string_equal(capture.text + LABEL_MAX - 3, "...\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_names_in_messages),
		cmocka_unit_test(test_a_long_message_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
