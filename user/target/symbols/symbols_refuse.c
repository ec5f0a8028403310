// SPDX-License-Identifier: MIT
#include "target/symbols/symbols_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/symbols/deb_package.h"
#include "target/symbols/scripts.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/nearest.h"

#define MAX_LISTED 5

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
		if (query__covers(suggestion->query, tier, &symbols->modules[i]))
			offer_module(suggestion, &symbols->modules[i]);
	if (suggestion->qualified)
		return suggestion->qualified;
	return nearest__result(&suggestion->nearest);
}

static bool has_functions(const struct symbols *symbols, const struct query *query, enum tier tier)
{
	for (size_t i = 0; i < symbols->n; i++)
		if (query__covers(query, tier, &symbols->modules[i]) &&
		    elf_image__function_count(symbols->modules[i].image))
			return true;
	return false;
}

/* A file that does not run yet: nobody knows which libraries it will have. */
static void hint_at_attach(void)
{
	log__hint("if it is a library's, start the program first, then 'mtbpf attach'");
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
		hint_at_attach();
}

/* Who has the symbols that were stripped from the file. */
static void hint_at_debug_symbols(const struct symbols *symbols, const struct module *module)
{
	const char *id = elf_image__build_id(module->image), *urls = getenv("DEBUGINFOD_URLS");
	char package[DEB_PACKAGE_SIZE], root[32] = "";

	if (symbols->pid)
		snprintf(root, sizeof(root), "/proc/%d/root", (int)symbols->pid);
	log__hint("%s is stripped, and its debug symbols are not installed (%s%s)",
		  module__name(module), *id ? "build id " : "it lacks a build ID", id);
	if (!deb_package__owning(root, module->mapping.path, package))
		log__hint("it belongs to the package %s: install %s-dbgsym (or -dbg), if that is "
			  "published",
			  package, package);
	else
		log__hint("install them (-dbgsym, -dbg, -debuginfo), or a file that is not "
			  "stripped");
	if (*id && urls && *urls)
		log__hint("'debuginfod-find debuginfo %s' fetches them, if its server has them",
			  id);
}

void symbols__hint_missing(const struct symbols *symbols)
{
	if (symbols__hint_scripts(symbols))
		return;
	for (size_t i = 0; i < symbols->n; i++)
		if (symbols->modules[i].is_executable &&
		    elf_image__lacks_symbols(symbols->modules[i].image))
			hint_at_debug_symbols(symbols, &symbols->modules[i]);
}

static int refuse_missing(const struct symbols *symbols, const struct query *query)
{
	struct suggestion suggestion = {.query = query, .nearest.word = query->name};
	const char *best;

	log__error("no function '%s' in %s", query->text, symbols->label);
	if (query->module_len) {
		best = suggest(&suggestion, symbols, TIER_NAMED);
	} else {
		best = suggest(&suggestion, symbols, TIER_EXECUTABLE);
		if (!best)
			best = suggest(&suggestion, symbols, TIER_LIBRARIES);
	}
	if (!best && !query->module_len && !has_functions(symbols, query, TIER_EXECUTABLE))
		log__hint("only functions of its libraries have names; use addr:0x401234 for an "
			  "instruction of the program");
	else
		hint_at(symbols, best);
	if (!query->module_len)
		symbols__hint_missing(symbols);
	free(suggestion.owned);
	free(suggestion.qualified);
	return -ENOENT;
}

static int refuse_nameless(const struct symbols *symbols)
{
	log__error("%s is stripped: its functions cannot be named", symbols->label);
	if (!symbols->pid)
		hint_at_attach();
	symbols__hint_missing(symbols);
	return -ENODATA;
}

static int refuse_module(const struct symbols *symbols, const struct query *query)
{
	_cleanup_free_ char *word = strndup(query->module, query->module_len);
	struct nearest nearest = {.word = word ? word : ""};
	const char *best;

	log__error("no module '%.*s' in %s", (int)query->module_len, query->module, symbols->label);
	for (size_t i = 0; i < symbols->n; i++)
		nearest__offer(&nearest, module__name(&symbols->modules[i]));
	best = nearest__result(&nearest);
	if (best)
		log__hint("did you mean '%s:%s'?", best, query->name);
	else
		log__hint("module names are those of /proc/PID/maps without folders");
	return -ENOENT;
}

/* addr: takes the program's own addresses as they are linked, and any as they are now. */
static uint64_t address_of(const struct symbol_match *match)
{
	uint64_t vaddr = match->function->vaddr + match->offset;

	return match->module->is_executable ? vaddr : vaddr + match->module->bias;
}

static int refuse_line_of_many(const struct symbols *symbols, const struct query *query,
			       const match_vec *found)
{
	log__error("'%s' is in %zu functions of %s", query->text, found->n, symbols->label);
	log__hint("the compiler put it into several; name one by its address:");
	for (size_t i = 0; i < found->n && i < MAX_LISTED; i++)
		log__hint("  addr:0x%" PRIx64 " in %s", address_of(&found->v[i]),
			  found->v[i].function->name);
	if (found->n > MAX_LISTED)
		log__hint("  and %zu more", found->n - MAX_LISTED);
	return -ENOTUNIQ;
}

static int refuse_to_ask(const struct symbols *symbols, const match_vec *found)
{
	log__error("'?' lets you pick one of %zu functions of %s, but this is not a terminal",
		   found->n, symbols->label);
	if (symbols->pid)
		log__hint("'mtbpf list -pid %d' shows them", (int)symbols->pid);
	else
		log__hint("'nm -C %s' shows them", symbols->label);
	return -ENOTUNIQ;
}

int symbols__refuse_ambiguous(const struct symbols *symbols, const struct query *query,
			      const match_vec *found)
{
	const struct symbol_match *first = &found->v[0];

	if (query->line)
		return refuse_line_of_many(symbols, query, found);
	if (query__asks(query))
		return refuse_to_ask(symbols, found);
	log__error("'%s' names %zu functions in %s", query->text, found->n, symbols->label);
	log__hint("name one as '%s:0x%" PRIx64 "', or by its full name if that is unique:",
		  module__name(first->module), first->function->vaddr);
	for (size_t i = 0; i < found->n && i < MAX_LISTED; i++)
		log__hint("  0x%" PRIx64 " %s %s", found->v[i].function->vaddr,
			  found->v[i].function->name, module__name(found->v[i].module));
	if (found->n > MAX_LISTED)
		log__hint("  and %zu more", found->n - MAX_LISTED);
	symbols__hint_scripts(symbols);
	return -ENOTUNIQ;
}

static bool has_module(const struct symbols *symbols, const struct query *query)
{
	for (size_t i = 0; i < symbols->n; i++)
		if (query__covers(query, TIER_NAMED, &symbols->modules[i]))
			return true;
	return false;
}

int symbols__refuse_unknown(const struct symbols *symbols, const struct query *query)
{
	if (!has_functions(symbols, query, TIER_EXECUTABLE) &&
	    !has_functions(symbols, query, TIER_LIBRARIES))
		return refuse_nameless(symbols);
	if (query->module_len && !has_module(symbols, query))
		return refuse_module(symbols, query);
	return refuse_missing(symbols, query);
}
