// SPDX-License-Identifier: MIT
/*
 * What ocamlopt calls its functions (asmcomp/compilenv.ml: make_symbol; asmcomp/emitaux.ml:
 * emit_symbol): "caml", the unit, "__" or (since 5.1) ".", the function, "_" and a number that
 * tells it from others of its name. What is no letter, digit or "_" is "$" and two hex digits.
 * Units of a library are "Library__Unit".
 */
#include "target/elf/elf_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool ocaml_name__is_mangled(const char *raw_name)
{
	return !strncmp(raw_name, "caml", 4) && isupper((unsigned char)raw_name[4]);
}

/* The length without "_12". */
static size_t without_number(const char *text, size_t len)
{
	size_t n = len;

	while (n && isdigit((unsigned char)text[n - 1]))
		n--;
	return n > 1 && n < len && text[n - 1] == '_' ? n - 1 : len;
}

/* flambda: "_1_2_code" is how a closure's code is told from the closure. */
static size_t without_stamp(const char *text, size_t len)
{
	static const char code[] = "_code";
	size_t c = sizeof(code) - 1, n;

	if (len > c && !memcmp(text + len - c, code, c)) {
		n = without_number(text, len - c);
		if (n < len - c)
			return without_number(text, n);
	}
	return without_number(text, len);
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* The character that "$40" stands for; 0 where that is none to be read. */
static char unescape(const char *text, size_t len)
{
	int high, low, c;

	if (len < 3 || text[0] != '$')
		return 0;
	high = hex_digit(text[1]);
	low = hex_digit(text[2]);
	c = high < 0 || low < 0 ? 0 : high << 4 | low;
	return c > ' ' && c < 0x7f ? (char)c : 0;
}

char *ocaml_name__demangle(const char *raw_name)
{
	const char *text = raw_name + 4, *dot = strchr(text, '.');
	size_t len = without_stamp(text, strlen(text)), out = 0;
	char *name = malloc(len + 1), c;

	if (!name)
		return NULL;
	for (size_t i = 0; i < len;) {
		/* Behind a ".", "__" is part of the function's own name. */
		bool may_separate = out && (!dot || text + i < dot);

		if (may_separate && i + 2 < len && text[i] == '_' && text[i + 1] == '_') {
			name[out++] = '.';
			i += 2;
		} else if ((c = unescape(text + i, len - i))) {
			name[out++] = c;
			i += 3;
		} else {
			name[out++] = text[i++];
		}
	}
	name[out] = '\0';
	return name;
}
