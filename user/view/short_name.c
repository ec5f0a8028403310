// SPDX-License-Identifier: MIT
#include "view/short_name.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

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

/* True for a continuation byte of UTF-8. */
static bool is_tail(char byte)
{
	return (byte & 0xc0) == 0x80;
}

static const char *keep_end(char buf[static SHORT_NAME_SIZE], const char *name)
{
	const char *end = name + strlen(name) - (SHORT_NAME_MAX - strlen(DOTS));

	while (is_tail(*end))
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
	while (n && is_tail(name[n]))
		n--;
	strcpy(mempcpy(buf, name, n), DOTS);
	return buf;
}
