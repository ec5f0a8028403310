// SPDX-License-Identifier: MIT
#include "target/symbols.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/log.h"
#include "util/nearest.h"
#include "util/vec.h"

#define MAX_LISTED 5

typedef VEC(struct symbol_match) match_vec;

/* What the user typed, taken apart. */
struct query {
	const char *text;   /* all of it */
	const char *module; /* "libfoo.so" of "libfoo.so:name": module_len characters of text */
	size_t module_len;  /* 0: any module */
	const char *name;
	uint64_t vaddr; /* of "0x1234"; else UINT64_MAX */
	/* An identifier that the mangled form of the name must hold too; len 0: there is none. */
	const char *needle;
	size_t needle_len;
};

enum tier {
	TIER_EXECUTABLE,
	TIER_LIBRARIES,
	TIER_NAMED, /* those that query.module names */
};

static bool is_identifier(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Words that mangled names abbreviate: Itanium C++ ABI, 5.1.5 and 5.1.10. */
static bool is_abbreviated(const char *word, size_t len)
{
	static const char *const words[] = {
		"std",	   "string",   "basic_string",	"allocator",	 "istream",
		"ostream", "iostream", "basic_istream", "basic_ostream", "basic_iostream"};

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
static void parse_query(struct query *query, const char *text)
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

static const char *module_name(const struct module *module)
{
	const char *name = elf_image__name(module->image), *slash = strrchr(name, '/');

	return slash && slash[1] ? slash + 1 : name;
}

/* "libc", "libc.so" and "libc.so.6" name libc.so.6. */
static bool is_named(const struct query *query, const struct module *module)
{
	const char *name = module_name(module);
	size_t len = query->module_len;

	return !strncmp(name, query->module, len) && (name[len] == '\0' || name[len] == '.');
}

static bool is_in_tier(const struct query *query, enum tier tier, const struct module *module)
{
	if (tier == TIER_NAMED)
		return is_named(query, module);
	return module->is_executable == (tier == TIER_EXECUTABLE);
}

static bool matches_exactly(const struct query *query, struct elf_image *image, size_t index)
{
	if (query->vaddr != UINT64_MAX)
		return elf_image__function(image, index)->vaddr == query->vaddr;
	return !strcmp(elf_image__raw_name(image, index), query->name);
}

static bool matches_demangled(const struct query *query, struct elf_image *image, size_t index)
{
	const char *raw_name = elf_image__raw_name(image, index);
	_cleanup_free_ char *short_name = NULL;

	if (raw_name[0] != '_' || (raw_name[1] != 'Z' && raw_name[1] != 'R'))
		return false;
	if (query->needle_len &&
	    !memmem(raw_name, strlen(raw_name), query->needle, query->needle_len))
		return false;
	short_name = elf_image__short_name(raw_name);
	return short_name && (!strcmp(short_name, query->name) ||
			      !strcmp(elf_image__function(image, index)->name, query->name));
}

typedef bool (*match_fn)(const struct query *query, struct elf_image *image, size_t index);

/* Adds the functions of one module that match; of several at one address, the first. */
static int search_module(match_vec *found, const struct module *module, const struct query *query,
			 match_fn matches)
{
	size_t n = elf_image__function_count(module->image);
	uint64_t last = UINT64_MAX;

	for (size_t i = 0; i < n; i++) {
		const struct function *function;
		struct symbol_match *match;

		if (!matches(query, module->image, i))
			continue;
		function = elf_image__function(module->image, i);
		if (function->vaddr == last)
			continue;
		last = function->vaddr;
		match = VEC_PUSH(found);
		if (!match)
			return -ENOMEM;
		*match = (struct symbol_match){module, function};
	}
	return 0;
}

static int search_tier(match_vec *found, const struct symbols *symbols, const struct query *query,
		       enum tier tier)
{
	static const match_fn ways[] = {matches_exactly, matches_demangled};
	int err = 0;

	for (size_t way = 0; !err && !found->n && way < 2; way++)
		for (size_t i = 0; !err && i < symbols->n; i++)
			if (is_in_tier(query, tier, &symbols->modules[i]))
				err = search_module(found, &symbols->modules[i], query, ways[way]);
	return err;
}

/* The search for a name that the user may have meant instead. */
struct suggestion {
	const struct query *query;
	struct nearest nearest;
	char *owned;	 /* what nearest.best points to, if that is not an image's */
	char *qualified; /* "ns::name" for "name" */
};

static bool ends_with_part(const char *name, const char *part)
{
	size_t len = strlen(name), part_len = strlen(part);

	return len > part_len + 2 && !strcmp(name + len - part_len, part) &&
	       !memcmp(name + len - part_len - 2, "::", 2);
}

/* Takes the name over. */
static void offer_mangled(struct suggestion *suggestion, char *name)
{
	if (!suggestion->qualified && ends_with_part(name, suggestion->query->name)) {
		suggestion->qualified = name;
		return;
	}
	nearest__offer(&suggestion->nearest, name);
	if (suggestion->nearest.best == name) {
		free(suggestion->owned);
		suggestion->owned = name;
	} else {
		free(name);
	}
}

static void offer_module(struct suggestion *suggestion, const struct module *module)
{
	size_t n = elf_image__function_count(module->image);

	for (size_t i = 0; i < n; i++) {
		const char *raw_name = elf_image__raw_name(module->image, i);
		char *short_name = elf_image__short_name(raw_name);

		if (short_name)
			offer_mangled(suggestion, short_name);
		else
			nearest__offer(&suggestion->nearest, raw_name);
	}
}

/* The best suggestion of one tier; NULL where nothing is near. */
static const char *suggest(struct suggestion *suggestion, const struct symbols *symbols,
			   enum tier tier)
{
	for (size_t i = 0; i < symbols->n; i++)
		if (is_in_tier(suggestion->query, tier, &symbols->modules[i]))
			offer_module(suggestion, &symbols->modules[i]);
	if (suggestion->qualified)
		return suggestion->qualified;
	return nearest__result(&suggestion->nearest);
}

static bool has_functions(const struct symbols *symbols, const struct query *query, enum tier tier)
{
	for (size_t i = 0; i < symbols->n; i++)
		if (is_in_tier(query, tier, &symbols->modules[i]) &&
		    elf_image__function_count(symbols->modules[i].image))
			return true;
	return false;
}

static void hint_at(const struct symbols *symbols, const char *suggestion)
{
	if (suggestion && symbols->pid)
		log__hint("did you mean '%s'? 'mtbpf list -pid %d' shows them all", suggestion,
			  (int)symbols->pid);
	else if (suggestion)
		log__hint("did you mean '%s'? 'nm -C %s' shows them all", suggestion,
			  symbols->label);
	else if (symbols->pid)
		log__hint("'mtbpf list -pid %d' shows them all", (int)symbols->pid);
	else
		log__hint("'nm -C %s' shows them all", symbols->label);
}

static int refuse_unknown(const struct symbols *symbols, const struct query *query)
{
	struct suggestion suggestion = {.query = query, .nearest.word = query->name};
	bool is_stripped = !has_functions(symbols, query, TIER_EXECUTABLE);
	const char *best;

	log__error("no function '%s' in %s", query->text, symbols->label);
	if (query->module_len) {
		best = suggest(&suggestion, symbols, TIER_NAMED);
	} else {
		best = suggest(&suggestion, symbols, TIER_EXECUTABLE);
		if (!best)
			best = suggest(&suggestion, symbols, TIER_LIBRARIES);
	}
	if (!best && !query->module_len && is_stripped)
		log__hint("its program is stripped: only functions of its libraries have names");
	else
		hint_at(symbols, best);
	free(suggestion.owned);
	free(suggestion.qualified);
	return -ENOENT;
}

static int refuse_nameless(const struct symbols *symbols)
{
	log__error("%s has no symbols: no function in it can be named", symbols->label);
	log__hint("its files are stripped; build it without -s, or install it unstripped");
	return -ENODATA;
}

static int refuse_module(const struct symbols *symbols, const struct query *query)
{
	_cleanup_free_ char *word = strndup(query->module, query->module_len);
	struct nearest nearest = {.word = word ? word : ""};
	const char *best;

	log__error("no module '%.*s' in %s", (int)query->module_len, query->module, symbols->label);
	for (size_t i = 0; i < symbols->n; i++)
		nearest__offer(&nearest, module_name(&symbols->modules[i]));
	best = nearest__result(&nearest);
	if (best)
		log__hint("did you mean '%s:%s'?", best, query->name);
	else
		log__hint("a module is a file that /proc/PID/maps shows, without its folder");
	return -ENOENT;
}

static int refuse_ambiguous(const struct symbols *symbols, const struct query *query,
			    const match_vec *found)
{
	const struct symbol_match *first = &found->v[0];

	log__error("'%s' names %zu functions in %s", query->text, found->n, symbols->label);
	log__hint("name one as '%s:0x%" PRIx64 "', or by its full name if that is unique:",
		  module_name(first->module), first->function->vaddr);
	for (size_t i = 0; i < found->n && i < MAX_LISTED; i++)
		log__hint("  0x%" PRIx64 " %s %s", found->v[i].function->vaddr,
			  found->v[i].function->name, module_name(found->v[i].module));
	if (found->n > MAX_LISTED)
		log__hint("  and %zu more", found->n - MAX_LISTED);
	return -ENOTUNIQ;
}

static bool has_module(const struct symbols *symbols, const struct query *query)
{
	for (size_t i = 0; i < symbols->n; i++)
		if (is_named(query, &symbols->modules[i]))
			return true;
	return false;
}

/* Why nothing was found. */
static int refuse(const struct symbols *symbols, const struct query *query)
{
	if (!has_functions(symbols, query, TIER_EXECUTABLE) &&
	    !has_functions(symbols, query, TIER_LIBRARIES))
		return refuse_nameless(symbols);
	if (query->module_len && !has_module(symbols, query))
		return refuse_module(symbols, query);
	return refuse_unknown(symbols, query);
}

int symbols__find(const struct symbols *symbols, const char *name, struct symbol_match *match)
{
	match_vec found = {0};
	struct query query;
	int err;

	parse_query(&query, name);
	if (query.module_len) {
		err = search_tier(&found, symbols, &query, TIER_NAMED);
	} else {
		err = search_tier(&found, symbols, &query, TIER_EXECUTABLE);
		if (!err && !found.n)
			err = search_tier(&found, symbols, &query, TIER_LIBRARIES);
	}
	if (err) {
		log__error("cannot search for '%s': %s", name, strerror(-err));
	} else if (!found.n) {
		err = refuse(symbols, &query);
	} else if (found.n > 1) {
		err = refuse_ambiguous(symbols, &query, &found);
	} else {
		*match = found.v[0];
	}
	VEC_FINI(&found);
	return err;
}
