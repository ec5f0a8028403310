// SPDX-License-Identifier: MIT
#include "target/symbols/query.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/log.h"

/*
 * The last identifier outside of any brackets. Demangling a hundred thousand names is slow: names
 * that lack the identifier need not be demangled. An operator's name may lack every identifier, so
 * that all names are demangled.
 */
static void find_needle(struct query *query)
{
	/* Words that mangled names abbreviate: Itanium C++ ABI, 5.1.5 and 5.1.10. */
	static const char *const abbreviated[] = {
		"const",	"volatile",	 "std",		  "string",
		"basic_string", "allocator",	 "istream",	  "ostream",
		"iostream",	"basic_istream", "basic_ostream", "basic_iostream"};
	const size_t n = sizeof(abbreviated) / sizeof(abbreviated[0]);
	int depth = 0;

	if (strstr(query->name, "operator"))
		return;
	for (const char *p = query->name; *p;) {
		size_t len = 0, i = 0;

		while (isalnum((unsigned char)p[len]) || p[len] == '_' ||
		       (unsigned char)p[len] >= 0x80)
			len++;
		while (i < n && (strlen(abbreviated[i]) != len || memcmp(abbreviated[i], p, len)))
			i++;
		if (len && !depth && i == n) {
			query->needle = p;
			query->needle_len = len;
		}
		p += len;
		if (*p && strchr("<([{", *p))
			depth++;
		else if (*p && strchr(">)]}", *p))
			depth--;
		p += *p && !len;
	}
}

/* Reads a whole number that ends at `end`, hexadecimal after 0x. */
static bool parse_number(const char *text, const char *end, uint64_t *number)
{
	char *stop;

	if (!isdigit((unsigned char)*text))
		return false;
	*number = strtoull(text, &stop, strncmp(text, "0x", 2) ? 10 : 16);
	return stop == end;
}

static int parse_address(struct query *query, const char *text)
{
	const char *digits = text + strspn(text, "0x");
	size_t good = (size_t)(digits - text) + strspn(digits, "0123456789abcdefABCDEF");

	/* UINT64_MAX means "not given", also for addresses out of range. */
	query->address = strtoull(text, NULL, 16);
	if (*text && !text[good] && query->address != UINT64_MAX)
		return 0;
	if (text[good])
		log__error("bad trigger: '%c' is not a hexadecimal digit", text[good]);
	else if (*text)
		log__error("bad trigger: the address is too large");
	else
		log__error("bad trigger: the address is missing after addr:");
	log__caret(query->text, (size_t)(text - query->text) + good);
	log__hint("an address is hexadecimal: addr:0x401234, as 'mtbpf list' or objdump prints it");
	return -EINVAL;
}

/* "file.c:123": the last colon parts them. */
static int parse_line(struct query *query, const char *text)
{
	const char *colon = strrchr(text, ':'), *digits = colon ? colon + 1 : text + strlen(text);
	const char *end = digits + strspn(digits, "0123456789");
	unsigned long line = strtoul(digits, NULL, 10);
	const char *fault = colon == text ? text : end;

	if (colon && colon != text && digits != end && !*end && line && line <= INT_MAX) {
		query->line = (unsigned int)line;
		query->name = strndup(text, (size_t)(colon - text));
		return query->name ? 0 : -ENOMEM;
	}
	if (digits != end && !*end)
		fault = colon == text ? text : digits;
	log__error("bad trigger: the file or the line number is missing");
	log__caret(query->text, (size_t)(fault - query->text));
	log__hint("the form is line:FILE:NUMBER, as in line:server.c:123");
	return -EINVAL;
}

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

int query__parse(struct query *query, const char *text)
{
	const char *name, *colon, *plus, *end = text + strlen(text);

	*query = (struct query){.text = text, .vaddr = UINT64_MAX, .address = UINT64_MAX};
	if (starts_with(text, "addr:"))
		return parse_address(query, text + strlen("addr:"));
	if (line__is_selector(text))
		return parse_line(query, text + strlen(LINE_PREFIX));
	name = text + (starts_with(text, "symbol:") ? strlen("symbol:") : 0);
	/* "libfoo.so:name". The colons of "ns::name" are not meant, nor those within "foo(a:b)". */
	colon = strchr(name, ':');
	if (colon && colon != name && colon[1] && colon[1] != ':' &&
	    strcspn(name, " (<") > (size_t)(colon - name)) {
		query->module = name;
		query->module_len = (size_t)(colon - name);
		name = colon + 1;
	}
	/* "name+0x10", but not "operator+". */
	plus = strrchr(name, '+');
	if (plus && plus != name && parse_number(plus + 1, end, &query->offset))
		end = plus;
	query->name = strndup(name, (size_t)(end - name));
	if (!query->name)
		return -ENOMEM;
	if (starts_with(query->name, "0x") &&
	    !parse_number(query->name, query->name + strlen(query->name), &query->vaddr))
		query->vaddr = UINT64_MAX;
	find_needle(query);
	return 0;
}

void query__fini(struct query *query)
{
	free(query->name);
}

bool query__asks(const struct query *query)
{
	return !strcmp(query->name, "?");
}

/* "libc", "libc.so" and "libc.so.6" name libc.so.6. */
bool query__names(const struct query *query, const char *name)
{
	size_t len = query->module_len;

	return !strncmp(name, query->module, len) && (name[len] == '\0' || name[len] == '.');
}

bool query__covers(const struct query *query, enum tier tier, const struct module *module)
{
	if (tier == TIER_NAMED)
		return query__names(query, module__name(module));
	return module->is_executable == (tier == TIER_EXECUTABLE);
}
