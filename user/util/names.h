/* SPDX-License-Identifier: MIT */
/*
 * Names: makes those that the target controls fit to be shown, shortens those of functions, and
 * finds the known word nearest to a typed one.
 */
#ifndef MTBPF_UTIL_NAMES_H
#define MTBPF_UTIL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "mtbpf_shared.h"

/* Bytes of the longest label; enough for any readable C++ name. */
#define LABEL_MAX  4096
#define LABEL_SIZE (LABEL_MAX + 1)

/*
 * Returns text as well-formed UTF-8 without control characters. Each offending byte becomes '?';
 * longer text is cut to LABEL_MAX bytes ending in "...". Returns text itself if nothing changes,
 * otherwise buf. *len is the result's length.
 */
const char *label__clean(char buf[static LABEL_SIZE], const char *text, size_t *len);

/* True if label__clean() would change nothing. */
bool label__is_clean(const char *text);
/* Changes the text itself, however long it is: each offending byte becomes '?'. */
void label__clean_in_place(char *text);

/* Prints a word as a shell reads it back, in quotes if needed. */
void shell__print_word(FILE *out, const char *word);

/* Shortens function names to fit a line: those of C++ templates may have thousands of characters.
 */

/* The most bytes of a name that is not shortened. */
#define SHORT_NAME_MAX	80
#define SHORT_NAME_SIZE (SHORT_NAME_MAX + 1)

/*
 * Returns the name, or, in buf, a shortened one: template arguments and parameters become "<...>"
 * and "(...)", innermost first; if that is not enough, only the end of the name is kept.
 */
const char *short_name(char buf[static SHORT_NAME_SIZE], const char *name);
/* Like short_name(), in memory that lives until the end of the block. */
#define SHORT_NAME(name) short_name((char[SHORT_NAME_SIZE]){0}, name)

/* "did you mean": the known word nearest to a mistyped one. */

/* State of a search over any number of candidates; zero-initialise all but `word`. */
struct nearest {
	const char *word;
	const char *best;
	unsigned int distance; /* of best */
};

/* Offers one candidate; kept by pointer if it is nearer than those before. */
void nearest__offer(struct nearest *nearest, const char *candidate);

/* The best candidate, or NULL if none is near enough. */
const char *nearest__result(const struct nearest *nearest);

/* Makes text of what -print has read at a hit. The target's strings may have any bytes. */

/* Each byte of a string may become \xNN; in quotes, and followed by dots. */
#define PRINTED_SIZE (4 * MT_TEXT_MAX + 8)

/*
 * Returns buf: a number, "unknown", or a string in double quotes, followed by "..." if it is
 * longer. It is well-formed UTF-8; control characters, those that change the direction of text,
 * ill-formed bytes, quotes and backslashes are escaped as in C: \n, \", \x1b.
 */
const char *printed__format(char buf[static PRINTED_SIZE], const struct mt_printed *printed);

#endif
