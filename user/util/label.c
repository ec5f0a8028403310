// SPDX-License-Identifier: MIT
#include "util/label.h"

#include <string.h>

static bool is_tail(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

/*
 * Length of the well-formed UTF-8 sequence at s, 0 where there is none: Unicode 15.0, table 3-7.
 * Never looks behind a NUL, which is no tail. C1 controls (U+0080..9f) count as ill-formed here:
 * terminals obey them.
 */
static size_t sequence_len(const unsigned char *s)
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

bool label__is_clean(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t at = 0, step;

	while (at <= LABEL_MAX && (step = sequence_len(s + at)))
		at += step;
	return at <= LABEL_MAX && !s[at];
}

void label__clean_in_place(char *text)
{
	unsigned char *s = (unsigned char *)text;

	while (*s) {
		size_t step = sequence_len(s);

		if (!step)
			*s = '?';
		s += step ? step : 1;
	}
}

static size_t clean_prefix_len(const unsigned char *s, size_t len)
{
	size_t at = 0, step;

	while (at < len && (step = sequence_len(s + at)))
		at += step;
	return at;
}

/* Copies whole sequences while they end within max. */
static size_t copy_clean(char *out, const unsigned char *s, size_t max)
{
	size_t at = 0;

	while (s[at]) {
		size_t step = sequence_len(s + at);

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
