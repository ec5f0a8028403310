// SPDX-License-Identifier: MIT
#include "util/printed.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "util/names.h"

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

static size_t put_escaped(char *out, unsigned char byte)
{
	static const char named[] = "\n\r\t\"\\", letters[] = "nrt\"\\";
	const char *found = byte ? strchr(named, byte) : NULL;

	if (!found)
		return (size_t)sprintf(out, "\\x%02x", byte);
	return (size_t)sprintf(out, "\\%c", letters[found - named]);
}

static void format_text(char *out, const struct mt_printed *printed)
{
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
		for (size_t end = i + (len ? len : 1); i < end; i++)
			out += put_escaped(out, text[i]);
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
