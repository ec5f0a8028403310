// SPDX-License-Identifier: MIT
#include "target/symbols_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_identifier(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Words that mangled names abbreviate: Itanium C++ ABI, 5.1.5 and 5.1.10. */
static bool is_abbreviated(const char *word, size_t len)
{
	static const char *const words[] = {"const",	     "volatile",      "std",
					    "string",	     "basic_string",  "allocator",
					    "istream",	     "ostream",	      "iostream",
					    "basic_istream", "basic_ostream", "basic_iostream"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i]) == len && !memcmp(words[i], word, len))
			return true;
	return false;
}

/*
 * The last identifier outside of any brackets. Demangling is slow, and a hundred thousand names
 * that lack it need none. Without one that is sure to be there (operators), all are demangled.
 */
static void find_needle(struct query *query)
{
	int depth = 0;

	if (strstr(query->name, "operator"))
		return;
	for (const char *p = query->name; *p;) {
		size_t len = 0;

		while (is_identifier(p[len]))
			len++;
		if (len && !depth && !is_abbreviated(p, len)) {
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

/* Splits "libfoo.so:name". The colons of "ns::name" are not meant, nor those within "foo(a:b)". */
void query__parse(struct query *query, const char *text)
{
	const char *colon = strchr(text, ':');
	char *end;

	*query = (struct query){.text = text, .name = text, .vaddr = UINT64_MAX};
	if (colon && colon != text && colon[1] && colon[1] != ':' &&
	    strcspn(text, " (<") > (size_t)(colon - text)) {
		query->module = text;
		query->module_len = (size_t)(colon - text);
		query->name = colon + 1;
	}
	if (!strncmp(query->name, "0x", 2)) {
		uint64_t vaddr = strtoull(query->name, &end, 16);

		if (!*end)
			query->vaddr = vaddr;
	}
	find_needle(query);
}

const char *module__name(const struct module *module)
{
	const char *name = elf_image__name(module->image), *slash = strrchr(name, '/');

	return slash && slash[1] ? slash + 1 : name;
}

/* "libc", "libc.so" and "libc.so.6" name libc.so.6. */
static bool is_named(const struct query *query, const struct module *module)
{
	const char *name = module__name(module);
	size_t len = query->module_len;

	return !strncmp(name, query->module, len) && (name[len] == '\0' || name[len] == '.');
}

bool query__covers(const struct query *query, enum tier tier, const struct module *module)
{
	if (tier == TIER_NAMED)
		return is_named(query, module);
	return module->is_executable == (tier == TIER_EXECUTABLE);
}
