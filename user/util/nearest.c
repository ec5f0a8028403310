// SPDX-License-Identifier: MIT
#include "util/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* Rows live on the stack. Longer words (mangled templates) are only compared as prefixes. */
#define MAX_LEN 255

#define FAR_AWAY UINT16_MAX

/* A third of the letters may be wrong, but never so many that any word would do. */
static unsigned int cut_off(size_t len)
{
	if (len < 2)
		return 0;
	if (len < 3)
		return 1;
	return len / 3 < 5 ? (unsigned int)(len / 3) : 5;
}

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
 * Damerau-Levenshtein with adjacent transpositions ("optimal string alignment"): FAR_AWAY where it
 * is over `limit`. A row that is over it everywhere ends the work: symbol tables are large.
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

/* A word cut short, or with something added; but not one that shares two letters by chance. */
static bool is_prefix(const char *word, size_t word_len, const char *candidate, size_t len)
{
	size_t shorter = word_len < len ? word_len : len;

	return shorter >= 3 && shorter * 2 >= word_len && !strncasecmp(word, candidate, shorter);
}

void nearest__offer(struct nearest *nearest, const char *candidate)
{
	size_t word_len = strlen(nearest->word);
	size_t len = strlen(candidate);
	unsigned int limit = cut_off(word_len);
	unsigned int distance = edits(nearest->word, word_len, candidate, len, limit);

	/* As good as the furthest typing mistake: a nearer spelling wins over it. */
	if (distance == FAR_AWAY && is_prefix(nearest->word, word_len, candidate, len))
		distance = limit;
	if (distance == FAR_AWAY)
		return;
	/* Of two as near, the shorter: of all names with this prefix, the plainest. */
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
