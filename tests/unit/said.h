/* SPDX-License-Identifier: MIT */
/*
 * Compares what the code under test said with the texts of tests/messages. The build makes a macro
 * of each: TEXT_no_pid is the text named no-pid, a format for printf ("%.*s" is "%s" here).
 */
#ifndef MTBPF_TESTS_SAID_H
#define MTBPF_TESTS_SAID_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "gen/messages.h"

/* True if a line of `said` begins with `mark` and contains this text. */
static inline bool said__has(const char *said, const char *mark, const char *text)
{
	for (const char *line = said, *end; *line; line = end + (*end == '\n')) {
		const char *found = strstr(line, text);

		end = line + strcspn(line, "\n");
		if (!strncmp(line, mark, strlen(mark)) && found && found + strlen(text) <= end)
			return true;
	}
	return false;
}

__attribute__((format(printf, 3, 4))) static inline void
said__expect(const char *said, const char *mark, const char *format, ...)
{
	char text[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!said__has(said, mark, text))
		fail_msg("no line \"%s... %s\" in: %s", mark, text, said);
}

#define ASSERT_ERROR(said, ...)	  said__expect(said, "mtbpf: ", __VA_ARGS__)
#define ASSERT_HINT(said, ...)	  said__expect(said, "hint: ", __VA_ARGS__)
#define ASSERT_WARNING(said, ...) said__expect(said, "warning: ", __VA_ARGS__)

/* One error and, after it, one hint, and nothing else. */
#define ASSERT_COMPLAINT(said)                                                                     \
	do {                                                                                       \
		const char *said_hint = strstr(said, "\nhint: ");                                  \
		assert_int_equal(strncmp(said, "mtbpf: ", 7), 0);                                  \
		assert_non_null(said_hint);                                                        \
		assert_ptr_equal(strchr(said, '\n'), said_hint);                                   \
		assert_string_equal(strchr(said_hint + 1, '\n'), "\n");                            \
	} while (0)

#endif
