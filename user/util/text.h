/* SPDX-License-Identifier: MIT */
/* Makes texts by printing them, and tests how a text ends. */
#ifndef MTBPF_UTIL_TEXT_H
#define MTBPF_UTIL_TEXT_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The text that the statements print to the FILE named `out`, which the caller frees. NULL: out of
 * memory.
 */
#define TEXT_OF(out, ...)                                                                          \
	({                                                                                         \
		char *text_ = NULL;                                                                \
		size_t size_;                                                                      \
		FILE *out = open_memstream(&text_, &size_);                                        \
                                                                                                   \
		if (out) {                                                                         \
			__VA_ARGS__;                                                               \
			if (fclose(out)) {                                                         \
				free(text_);                                                       \
				text_ = NULL;                                                      \
			}                                                                          \
		}                                                                                  \
		text_;                                                                             \
	})

/* Also true if the text equals `end`. */
static inline bool text__ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n >= k && !strcmp(text + n - k, end);
}

#endif
