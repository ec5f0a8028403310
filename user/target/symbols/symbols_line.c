// SPDX-License-Identifier: MIT
/* The code of a source line: "line:svc.c:123". */
#include "target/symbols/symbols_internal.h"

#include <errno.h>
#include <string.h>

#include "target/elf/elf_lines.h"
#include "util/log.h"

/* Of each function the first statement of the line, which may be inlined into several. */
static int add_functions(match_vec *found, const struct module *module,
			 const struct line_found *line)
{
	const struct function *last = NULL;

	for (size_t i = 0; i < line->vaddrs.n; i++) {
		uint64_t vaddr = line->vaddrs.v[i];
		const struct function *function = elf_image__function_at(module->image, vaddr);
		struct symbol_match *match;

		/* The cold part of a function lies elsewhere: it is not where the line begins. */
		if (!function || function == last || vaddr < function->vaddr ||
		    vaddr - function->vaddr >= function->size)
			continue;
		last = function;
		match = VEC_PUSH(found);
		if (!match)
			return -ENOMEM;
		*match = (struct symbol_match){
			.module = module, .function = function, .offset = vaddr - function->vaddr};
	}
	return 0;
}

static int search_tier(match_vec *found, const struct symbols *symbols, const struct query *query,
		       enum tier tier, struct line_found *all)
{
	int err = 0;

	for (size_t i = 0; i < symbols->n && !err; i++) {
		const struct module *module = &symbols->modules[i];

		if (!query__covers(query, tier, module))
			continue;
		all->vaddrs.n = 0;
		err = elf_image__find_line(module->image, query->name, query->line, all);
		if (!err)
			err = add_functions(found, module, all);
	}
	return err;
}

static int refuse_file(const struct symbols *symbols, const struct query *query)
{
	log__error("no code of the file '%s' in the line tables of %s", query->name,
		   symbols->label);
	log__hint("line tables need -g; use the file name as the compiler saw it");
	return -ENOENT;
}

static int refuse_line(const struct symbols *symbols, const struct query *query,
		       const struct line_found *all)
{
	unsigned int near = all->next ? all->next : all->previous;

	if (!all->has_file)
		return refuse_file(symbols, query);
	log__error("line %u of %s did not produce code of its own in %s", query->line, query->name,
		   symbols->label);
	if (near)
		log__hint("did you mean line:%s:%u, the nearest line with code?", query->name,
			  near);
	else
		log__hint("only rarely executed (cold) parts contain some of it");
	return -ENOENT;
}

int symbols__find_line(const struct symbols *symbols, const struct query *query, match_vec *found)
{
	struct line_found all = {0};
	int err = search_tier(found, symbols, query, TIER_EXECUTABLE, &all);

	if (!err && !found->n)
		err = search_tier(found, symbols, query, TIER_LIBRARIES, &all);
	if (!err && !found->n)
		err = refuse_line(symbols, query, &all);
	VEC_FINI(&all.vaddrs);
	return err;
}

bool line__is_selector(const char *text)
{
	return !strncmp(text, LINE_PREFIX, strlen(LINE_PREFIX));
}

int symbols__each_of_line(const struct symbols *symbols, const char *text,
			  int (*fn)(void *ctx, const struct symbol_match *match), void *ctx)
{
	match_vec found = {0};
	struct query query;
	int err = query__parse(&query, text);

	if (!err)
		err = symbols__find_line(symbols, &query, &found);
	for (size_t i = 0; i < found.n && !err; i++)
		err = fn(ctx, &found.v[i]);
	VEC_FINI(&found);
	query__fini(&query);
	return err;
}
