// SPDX-License-Identifier: MIT
#include "util/names.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/cleanup.h"

static bool is_tail(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

/* Unicode 15.0, table 3-7. A NUL is not a tail. */
static size_t utf8__length(const unsigned char *s)
{
	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f;
	if (s[0] < 0xc2 || s[0] > 0xf4 || !is_tail(s[1]))
		return 0;
	if (s[0] < 0xe0)
		return s[0] == 0xc2 && s[1] < 0xa0 ? 0 : 2;
	if (!is_tail(s[2]))
		return 0;
	if (s[0] < 0xf0) {
		bool overlong = s[0] == 0xe0 && s[1] < 0xa0;
		bool surrogate = s[0] == 0xed && s[1] >= 0xa0;

		return overlong || surrogate ? 0 : 3;
	}
	if (!is_tail(s[3]) || (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))
		return 0;
	return 4;
}

static size_t clean_prefix_len(const unsigned char *s, size_t len)
{
	size_t at = 0, step;

	while (at < len && (step = utf8__length(s + at)))
		at += step;
	return at;
}

bool label__is_clean(const char *text)
{
	size_t at = clean_prefix_len((const unsigned char *)text, LABEL_MAX + 1);

	return at <= LABEL_MAX && !text[at];
}

void label__clean_in_place(char *text)
{
	unsigned char *s = (unsigned char *)text;

	while (*s) {
		size_t step = utf8__length(s);

		if (!step)
			*s = '?';
		s += step ? step : 1;
	}
}

/* Copies whole sequences while they end within max. */
static size_t copy_clean(char *out, const unsigned char *s, size_t max)
{
	size_t at = 0;

	while (s[at]) {
		size_t step = utf8__length(s + at);

		if (at + (step ? step : 1) > max)
			break;
		if (step)
			memcpy(out + at, s + at, step);
		else
			out[at] = '?';
		at += step ? step : 1;
	}
	return at;
}

const char *label__clean(char buf[static LABEL_SIZE], const char *text, size_t *len)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n = strnlen(text, LABEL_MAX + 1);
	bool cut = n > LABEL_MAX;

	if (!cut && clean_prefix_len(s, n) == n) {
		*len = n;
		return text;
	}
	n = copy_clean(buf, s, cut ? LABEL_MAX - strlen("...") : LABEL_MAX);
	if (cut) {
		memcpy(buf + n, "...", strlen("..."));
		n += strlen("...");
	}
	buf[n] = '\0';
	*len = n;
	return buf;
}

void shell__print_word(FILE *out, const char *word)
{
	/* Characters that need no quoting. */
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_./:=@%+,-";

	if (*word && !word[strspn(word, plain)]) {
		fputs(word, out);
		return;
	}
	fputc('\'', out);
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", out);
		else
			fputc(*word, out);
	}
	fputc('\'', out);
}

#define DOTS "..."
/* Most levels of nested brackets that are kept. */
#define LEVELS_MAX 2

/* Length of brackets that belong to the name itself (operators and the like); 0: none here. */
static size_t plain_len(const char *at)
{
	static const char anonymous[] = "(anonymous namespace)", operator[] = "operator";
	size_t n = sizeof(operator) - 1;

	if (!strncmp(at, anonymous, sizeof(anonymous) - 1))
		return sizeof(anonymous) - 1;
	if (at[0] == '-' && at[1] == '>')
		return 2;
	if (strncmp(at, operator, n))
		return 0;
	/* In "operator<< <char>" the template's brackets come after a space. */
	return n + (strncmp(at + n, "()", 2) ? strspn(at + n, "<>=") : 2);
}

/*
 * Copies the name to out without the text in more than `levels` brackets. Brackets at the start are
 * Rust's, "<T as Trait>::f", and do not count. False if brackets do not match.
 */
static bool leave_out(char *out, const char *name, size_t levels)
{
	size_t depth = 0, begun = *name == '<';

	while (*name) {
		size_t n = plain_len(name);
		bool opens = !n && strchr("<(", *name), closes = !n && strchr(">)", *name);

		if (closes && !depth--)
			return false;
		if (!depth && closes)
			begun = 0;
		if (!n)
			n = 1;
		if (depth <= levels + begun)
			out = mempcpy(out, name, n);
		name += n;
		if (opens && depth++ == levels + begun && !strchr(">)", *name))
			out = mempcpy(out, DOTS, strlen(DOTS));
	}
	*out = '\0';
	return !depth;
}

static const char *keep_end(char buf[static SHORT_NAME_SIZE], const char *name)
{
	const char *end = name + strlen(name) - (SHORT_NAME_MAX - strlen(DOTS));

	while (is_tail((unsigned char)*end))
		end++;
	strcpy(stpcpy(buf, DOTS), end);
	return buf;
}

const char *short_name(char buf[static SHORT_NAME_SIZE], const char *name)
{

	_cleanup_free_ char *text = NULL;
	const char *path;
	size_t n = SHORT_NAME_MAX - strlen(DOTS);

	if (strlen(name) <= SHORT_NAME_MAX)
		return name;
	/* "<T>" becomes "<...>". */
	text = malloc(strlen(DOTS) * strlen(name) + 1);
	/*
	 * A script's function, "JS:~run file:///home/me/app.js:1:2" or "py::run:/home/me/app.py",
	 * loses the folders of its file.
	 */
	path = strchr(name, '/');
	while (path && (path == name || (path[-1] != ' ' && path[-1] != ':')))
		path = strchr(path + 1, '/');
	if (text && path) {
		strcpy(mempcpy(text, name, (size_t)(path - name)), strrchr(path, '/') + 1);
		return strlen(text) <= SHORT_NAME_MAX ? strcpy(buf, text) : keep_end(buf, text);
	}
	for (size_t levels = LEVELS_MAX; text; levels--) {
		if (!leave_out(text, name, levels))
			break;
		if (strlen(text) <= SHORT_NAME_MAX)
			return strcpy(buf, text);
		if (!levels)
			return keep_end(buf, text);
	}
	/* The brackets do not match. */
	while (n && is_tail((unsigned char)name[n]))
		n--;
	strcpy(mempcpy(buf, name, n), DOTS);
	return buf;
}

/* Rows live on the stack. Longer words (mangled templates) are only compared as prefixes. */
#define MAX_LEN 255

#define FAR_AWAY UINT16_MAX

static unsigned int min(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

struct rows {
	uint16_t before[MAX_LEN + 1]; /* two letters of `a` ago */
	uint16_t last[MAX_LEN + 1];
	uint16_t now[MAX_LEN + 1];
};

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* The cheapest way to turn a[0..i] into b[0..j]: i, j >= 1. */
static unsigned int cell(const struct rows *rows, const char *a, size_t i, const char *b, size_t j)
{
	unsigned int cost = rows->last[j - 1] + !same(a[i - 1], b[j - 1]);

	cost = min(cost, min(rows->last[j], rows->now[j - 1]) + 1u);
	if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
		cost = min(cost, rows->before[j - 2] + 1u);
	return cost;
}

/*
 * Damerau-Levenshtein with adjacent transpositions ("optimal string alignment"): FAR_AWAY if above
 * `limit`. Stops at a row that is above it everywhere: symbol tables are large.
 */
static unsigned int edits(const char *a, size_t na, const char *b, size_t nb, unsigned int limit)
{
	struct rows rows;

	if (na > MAX_LEN || nb > MAX_LEN || (na > nb ? na - nb : nb - na) > limit)
		return FAR_AWAY;
	for (size_t j = 0; j <= nb; j++)
		rows.last[j] = (uint16_t)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned int least = (unsigned int)i;

		rows.now[0] = (uint16_t)i;
		for (size_t j = 1; j <= nb; j++) {
			rows.now[j] = (uint16_t)cell(&rows, a, i, b, j);
			least = min(least, rows.now[j]);
		}
		if (least > limit)
			return FAR_AWAY;
		memcpy(rows.before, rows.last, (nb + 1) * sizeof(*rows.last));
		memcpy(rows.last, rows.now, (nb + 1) * sizeof(*rows.last));
	}
	return rows.last[nb] <= limit ? rows.last[nb] : FAR_AWAY;
}

void nearest__offer(struct nearest *nearest, const char *candidate)
{
	size_t word_len = strlen(nearest->word), third = word_len / 3 < 5 ? word_len / 3 : 5;
	size_t len = strlen(candidate), shorter = word_len < len ? word_len : len;
	/* A third of the letters may be wrong, but never so many that any word would do. */
	unsigned int limit = word_len == 2 ? 1 : (unsigned int)third;
	unsigned int distance = edits(nearest->word, word_len, candidate, len, limit);

	/*
	 * A word cut short, or with something added, is as good as the furthest typing mistake: a
	 * nearer spelling wins over it. Two letters may be shared by chance.
	 */
	if (distance == FAR_AWAY && shorter >= 3 && shorter * 2 >= word_len &&
	    !strncasecmp(nearest->word, candidate, shorter))
		distance = limit;
	if (distance == FAR_AWAY)
		return;
	/*
	 * If two candidates are equally near, the shorter wins: the plainest of all names with this
	 * prefix.
	 */
	if (!nearest->best || distance < nearest->distance ||
	    (distance == nearest->distance && len < strlen(nearest->best))) {
		nearest->best = candidate;
		nearest->distance = distance;
	}
}

const char *nearest__result(const struct nearest *nearest)
{
	return nearest->best;
}

/*
 * Characters that a terminal or a browser does not show as themselves, and that can make a text
 * look like another one: marks and isolates of direction, separators of lines, zero-width ones.
 */
static bool is_unseen(const unsigned char *s, size_t len)
{
	uint32_t c = 0;

	if (len == 2)
		c = (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu);
	else if (len == 3)
		c = (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
	return c == 0x61c || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x2069) || c == 0xfeff;
}

static void format_text(char *out, const struct mt_printed *printed)
{
	static const char named[] = "\n\r\t\"\\", letters[] = "nrt\"\\";
	size_t n = printed->length < MT_TEXT_MAX ? printed->length : MT_TEXT_MAX;
	/* Zeroes after the end: no character of several bytes goes on there. */
	unsigned char text[MT_TEXT_MAX + 4] = {0};

	memcpy(text, printed->text, n);
	*out++ = '"';
	for (size_t i = 0; i < n;) {
		size_t len = utf8__length(text + i);

		if (len && !is_unseen(text + i, len) && text[i] != '"' && text[i] != '\\') {
			memcpy(out, text + i, len);
			out += len;
			i += len;
			continue;
		}
		for (size_t end = i + (len ? len : 1); i < end; i++) {
			const char *found = text[i] ? strchr(named, text[i]) : NULL;

			out += found ? sprintf(out, "\\%c", letters[found - named])
				     : sprintf(out, "\\x%02x", text[i]);
		}
	}
	strcpy(out, printed->is_cut ? "\"..." : "\"");
}

const char *printed__format(char buf[static PRINTED_SIZE], const struct mt_printed *printed)
{
	switch (printed->kind) {
	case MT_PRINT_NUMBER:
		if (printed->is_signed)
			snprintf(buf, PRINTED_SIZE, "%" PRId64, (int64_t)printed->number);
		else
			snprintf(buf, PRINTED_SIZE, "%" PRIu64, (uint64_t)printed->number);
		return buf;
	case MT_PRINT_STRING:
	case MT_PRINT_BYTES:
		format_text(buf, printed);
		return buf;
	}
	return strcpy(buf, "unknown");
}
