// SPDX-License-Identifier: MIT
/*
 * "main+0x12 (/usr/bin/service)": tools/perf/util/evsel_fprintf.c. Names may hold spaces,
 * parentheses and more, and so may paths.
 */
#include "perf/perf_line.h"

#include <string.h>

static const char arrow[] = " =>";
static const char unknown[] = "[unknown]";
static const char nameless_scope[] = "(anonymous namespace)";

static bool begins(const char *text, size_t len, const char *with)
{
	size_t n = strlen(with);

	return len >= n && !memcmp(text, with, n);
}

static bool is_end(const char *text, size_t at, size_t len)
{
	return at == len || text[at] == ' ' || text[at] == '\t';
}

static size_t skip_spaces(const char *text, size_t at, size_t len)
{
	while (at < len && text[at] == ' ')
		at++;
	return at;
}

static size_t count_hex(const char *text, size_t len, uint64_t *value)
{
	static const char digits[] = "0123456789abcdef";
	size_t n = 0;

	*value = 0;
	for (; n < len && n < 16; n++) {
		const char *digit = text[n] ? strchr(digits, text[n]) : NULL;

		if (!digit)
			break;
		*value = *value << 4 | (uint64_t)(digit - digits);
	}
	return n;
}

/* "+0x12" at the end of a name; where it begins, or len. Behind it: *end. */
static size_t find_offset(const char *text, size_t len, uint64_t *offset, size_t *end)
{
	size_t at = 0;

	while (at < len) {
		const char *plus = memchr(text + at, '+', len - at);
		size_t digits;

		if (!plus)
			return len;
		at = (size_t)(plus - text);
		if (begins(plus, len - at, "+0x")) {
			digits = count_hex(plus + 3, len - at - 3, offset);
			*end = at + 3 + digits;
			if (digits && is_end(text, *end, len))
				return at;
		}
		at++;
	}
	return len;
}

/* Behind the parenthesis that closes the one at text[0]; 0 where none does. */
static size_t skip_parentheses(const char *text, size_t len)
{
	size_t depth = 0;

	for (size_t i = 0; i < len; i++) {
		depth += text[i] == '(';
		depth -= text[i] == ')';
		if (!depth)
			return i + 1;
	}
	return 0;
}

/* Without offsets, a name ends where the last parentheses begin: those of the module. */
static size_t find_module(const char *text, size_t len)
{
	for (size_t at = len; at-- > 1;)
		if (text[at] == '(' && text[at - 1] == ' ')
			return at - 1;
	return len;
}

static void set_symbol(struct named_place *place, const char *text, size_t len)
{
	while (len && text[len - 1] == ' ')
		len--;
	place->symbol = text;
	place->symbol_len = len;
}

/* The name, with its offset. Where it ends. */
static size_t take_symbol(struct named_place *place, const char *text, size_t at, size_t len)
{
	size_t end = len, plus;

	if (begins(text + at, len - at, unknown) && is_end(text, at + strlen(unknown), len))
		return at + strlen(unknown);
	if (at < len && text[at] == '(' && !begins(text + at, len - at, nameless_scope))
		return at;
	plus = at + find_offset(text + at, len - at, &place->offset, &end);
	if (plus < len) {
		place->has_offset = true;
		set_symbol(place, text + at, plus - at);
		return at + end;
	}
	end = at + find_module(text + at, len - at);
	set_symbol(place, text + at, end - at);
	return end;
}

/* "(libc.so.6)", or with -F dsoff "(libc.so.6+0x12)". Where it ends. */
static size_t take_module(struct named_place *place, const char *text, size_t at, size_t len)
{
	static const char inlined[] = "(inlined)";
	size_t start = skip_spaces(text, at, len), n, plus, end;
	uint64_t offset;

	if (begins(text + start, len - start, inlined)) {
		at = start + strlen(inlined);
		start = skip_spaces(text, at, len);
	}
	if (start == len || text[start] != '(')
		return at;
	n = skip_parentheses(text + start, len - start);
	if (!n)
		return at;
	place->module = text + start + 1;
	place->module_len = n - 2;
	plus = find_offset(place->module, place->module_len, &offset, &end);
	if (plus && plus < place->module_len && end == place->module_len)
		place->module_len = plus;
	return start + n;
}

/* The arrow in front of an address; OCaml's operators have others in their names. NULL: none. */
static const char *find_arrow(const char *text, size_t len)
{
	const char *at = text, *end = text + len;

	while ((at = memmem(at, (size_t)(end - at), arrow, strlen(arrow)))) {
		size_t skip = strlen(arrow), n;
		uint64_t unused;

		skip = skip_spaces(at, skip, (size_t)(end - at));
		n = count_hex(at + skip, (size_t)(end - at) - skip, &unused);
		if (skip > strlen(arrow) && n && is_end(at, skip + n, (size_t)(end - at)))
			return at;
		at++;
	}
	return NULL;
}

size_t perf_place__parse(struct named_place *place, const char *text, size_t len)
{
	const char *next = find_arrow(text, len);
	const char *tab = memchr(text, '\t', len);
	size_t at;

	if (next)
		len = (size_t)(next - text);
	if (tab && (size_t)(tab - text) < len)
		len = (size_t)(tab - text);
	*place = (struct named_place){.ip = place->ip};
	at = skip_spaces(text, 0, len);
	at = take_symbol(place, text, at, len);
	return take_module(place, text, at, len);
}
