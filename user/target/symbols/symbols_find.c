// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/picker.h"
#include "target/elf/elf_lines.h"
#include "target/symbols/hints.h"
#include "target/symbols/symbols.h"
#include "target/symbols/query.h"
#include "util/cleanup.h"
#include "util/log.h"

static bool find_in(const struct module *module, uint64_t vaddr, struct symbol_match *match)
{
	const struct function *function = elf_image__function_at(module->image, vaddr);

	if (!function || vaddr < function->vaddr)
		return false;
	*match = (struct symbol_match){
		.module = module, .function = function, .offset = vaddr - function->vaddr};
	return true;
}

/* The code of a source line: "line:svc.c:123". */

/*
 * Adds, for each function, the first statement of the line. The line may be inlined into several
 * functions.
 */
static int search_line(match_vec *found, const struct symbols *symbols, const struct query *query,
		       enum tier tier, struct line_found *line)
{
	int err = 0;

	for (size_t i = 0; i < symbols->n && !err; i++) {
		const struct module *module = &symbols->modules[i];
		const struct function *last = NULL;

		if (!query__covers(query, tier, module))
			continue;
		line->vaddrs.n = 0;
		err = elf_image__find_line(module->image, query->name, query->line, line);
		for (size_t k = 0; k < line->vaddrs.n && !err; k++) {
			struct symbol_match match;

			/* Skips the function's cold part: the line does not begin there. */
			if (!find_in(module, line->vaddrs.v[k], &match) || match.function == last ||
			    match.offset >= match.function->size)
				continue;
			last = match.function;
			err = VEC_ADD(found, match);
		}
	}
	return err;
}

/*
 * Finds the code of query->line, in each function that has some. 0, or -ENOENT after a line and a
 * hint. The caller frees *found.
 */
static int symbols__find_line(const struct symbols *symbols, const struct query *query,
			      match_vec *found)
{
	struct line_found all = {0};
	int err = search_line(found, symbols, query, TIER_EXECUTABLE, &all);
	unsigned int near;

	if (!err && !found->n)
		err = search_line(found, symbols, query, TIER_LIBRARIES, &all);
	VEC_FINI(&all.vaddrs);
	if (err || found->n)
		return err;
	near = all.next ? all.next : all.previous;
	if (!all.has_file) {
		log__error("no code of the file '%s' in the line tables of %s", query->name,
			   symbols->label);
		log__hint("line tables need -g; use the file name as the compiler saw it");
		return -ENOENT;
	}
	log__error("line %u of %s did not produce code of its own in %s", query->line, query->name,
		   symbols->label);
	if (near)
		log__hint("did you mean line:%s:%u, the nearest line with code?", query->name,
			  near);
	else
		log__hint("only rarely executed (cold) parts contain some of it");
	return -ENOENT;
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

/* If several functions match, the user picks one at the terminal. */

/* Above this number of functions, looking up files and lines takes too long. */
#define SOURCES_MAX 20000

/* "name+0x12  module  0x1234  file.c:12" */
static char *line_of(const struct symbol_match *match, bool with_source)
{
	char offset[32] = "", number[16] = "", *line;
	struct source_place place = {.file = ""};
	const char *slash;

	if (match->offset)
		snprintf(offset, sizeof(offset), "+0x%" PRIx64, match->offset);
	if (with_source && function__source(match->function, &place))
		snprintf(number, sizeof(number), ":%u", place.line);
	slash = *number ? strrchr(place.file, '/') : NULL;
	if (asprintf(&line, "%s%s  %s  0x%" PRIx64 "%s%s%s", match->function->name, offset,
		     module__name(match->module), match->function->vaddr + match->offset,
		     *number ? "  " : "",
		     slash     ? slash + 1
		     : *number ? place.file
			       : "",
		     number) < 0)
		return NULL;
	return line;
}

/*
 * Asks the user which function is meant. 0, -ENOMEM, or -EINVAL after a line and a hint: none was
 * picked.
 */
static int symbols__pick(const match_vec *found, struct symbol_match *match)
{
	char **lines = calloc(found->n, sizeof(*lines)), offset[32] = "";
	int err = lines ? 0 : -ENOMEM, picked = 0;

	for (size_t i = 0; i < found->n && !err; i++) {
		lines[i] = line_of(&found->v[i], found->n <= SOURCES_MAX);
		err = lines[i] ? 0 : -ENOMEM;
	}
	if (!err)
		picked = picker__pick("function", (const char *const *)lines, found->n);
	if (picked < 0)
		err = picked;
	for (size_t i = 0; lines && i < found->n; i++)
		free(lines[i]);
	free(lines);
	if (err == -ECANCELED) {
		log__error("no function was picked");
		log__hint("name one with -symbol NAME; 'mtbpf list' shows them");
		return -EINVAL;
	}
	if (err)
		return err;
	/* Tells the selector, so that it can be typed next time. */
	*match = found->v[picked];
	if (match->offset)
		snprintf(offset, sizeof(offset), "+0x%" PRIx64, match->offset);
	log__info("picked %s: -symbol '%s:0x%" PRIx64 "%s'", match->function->name,
		  module__name(match->module), match->function->vaddr, offset);
	return 0;
}

static bool matches_exactly(const struct query *query, struct elf_image *image, size_t index)
{
	return !strcmp(elf_image__raw_name(image, index), query->name);
}

static bool matches_readable(const struct query *query, struct elf_image *image, size_t index)
{
	const char *raw_name = elf_image__raw_name(image, index);
	_cleanup_free_ char *short_name = NULL;

	if (query->needle_len &&
	    !memmem(raw_name, strlen(raw_name), query->needle, query->needle_len))
		return false;
	short_name = elf_image__short_name(raw_name);
	return short_name && (!strcmp(short_name, query->name) ||
			      !strcmp(elf_image__function(image, index)->name, query->name));
}

/*
 * The suffix that a compiler gives to a clone of a function: ".isra.0". Two dots are the "::" of
 * Rust's legacy names.
 */
static const char *clone_suffix(const char *raw_name)
{
	const char *p = raw_name;

	while (*p && (*p != '.' || p[1] == '.'))
		p += *p == '.' ? 2 : 1;
	return p;
}

static bool matches_demangled(const struct query *query, struct elf_image *image, size_t index)
{
	return !*clone_suffix(elf_image__raw_name(image, index)) &&
	       matches_readable(query, image, index);
}

/*
 * The only remains of a static function are often "foo.constprop.0" or "foo.isra.0". "foo.part.0"
 * and "foo.cold" are pieces of foo, and never meant.
 */
static bool matches_clone(const struct query *query, struct elf_image *image, size_t index)
{
	const char *raw_name = elf_image__raw_name(image, index);
	const char *suffix = clone_suffix(raw_name);

	if (!*suffix || strstr(suffix, ".part") || strstr(suffix, ".cold"))
		return false;
	if (strlen(query->name) == (size_t)(suffix - raw_name) &&
	    !strncmp(query->name, raw_name, (size_t)(suffix - raw_name)))
		return true;
	return matches_readable(query, image, index);
}

static bool matches_glob(const struct query *query, struct elf_image *image, size_t index)
{
	const char *raw_name = elf_image__raw_name(image, index);
	const char *suffix = clone_suffix(raw_name);
	_cleanup_free_ char *short_name = NULL;

	if (strstr(suffix, ".part") || strstr(suffix, ".cold"))
		return false;
	if (!fnmatch(query->name, raw_name, 0))
		return true;
	short_name = elf_image__short_name(raw_name);
	return short_name && (!fnmatch(query->name, short_name, 0) ||
			      !fnmatch(query->name, elf_image__function(image, index)->name, 0));
}

typedef bool (*match_fn)(const struct query *query, struct elf_image *image, size_t index);

/* Adds the functions of one module that match; of several at one address, the first. */
static int search_module(match_vec *found, const struct module *module, const struct query *query,
			 match_fn matches)
{
	size_t n = elf_image__function_count(module->image);
	uint64_t last = UINT64_MAX;

	for (size_t i = 0; i < n; i++) {
		struct symbol_match match = {.module = module};

		if (!matches(query, module->image, i))
			continue;
		match.function = elf_image__function(module->image, i);
		if (match.function->vaddr == last)
			continue;
		last = match.function->vaddr;
		if (VEC_ADD(found, match))
			return -ENOMEM;
	}
	return 0;
}

/* The ways of matching that are tried one after the other until one finds anything. */
static const match_fn by_name[] = {matches_exactly, matches_demangled, matches_clone, NULL};
static const match_fn by_glob[] = {matches_glob, NULL};

static int search_tier(match_vec *found, const struct symbols *symbols, const struct query *query,
		       enum tier tier, const match_fn *ways)
{
	size_t before = found->n;
	int err = 0;

	/* The function that begins at query->vaddr in each module, named or not. */
	for (size_t i = 0; !err && query->vaddr != UINT64_MAX && i < symbols->n; i++) {
		struct symbol_match match;

		if (query__covers(query, tier, &symbols->modules[i]) &&
		    find_in(&symbols->modules[i], query->vaddr, &match) && !match.offset)
			err = VEC_ADD(found, match);
	}
	if (query->vaddr != UINT64_MAX)
		return err;
	for (; !err && found->n == before && *ways; ways++)
		for (size_t i = 0; !err && i < symbols->n; i++)
			if (query__covers(query, tier, &symbols->modules[i]))
				err = search_module(found, &symbols->modules[i], query, *ways);
	return err;
}

/* True if the name may be a glob: it is one unless this is exactly the name of a function. */
static bool is_glob(const struct query *query)
{
	return strpbrk(query->name, "*?[");
}

static bool means(const struct query *query, const struct function *function)
{
	const char *raw_name = function->raw_name, *suffix = clone_suffix(raw_name);
	size_t len = (size_t)(suffix - raw_name);
	_cleanup_free_ char *short_name = elf_image__short_name(raw_name);
	const char *names[] = {raw_name, function->name, short_name};

	if (strstr(suffix, ".part") || strstr(suffix, ".cold"))
		return false;
	if (len && strlen(query->name) == len && !strncmp(query->name, raw_name, len))
		return true;
	return ARRAY_FIND(names, e,
			  *e && (!strcmp(*e, query->name) ||
				 (is_glob(query) && !fnmatch(query->name, *e, 0))));
}

bool function__is_meant(const struct function *function, const char *name)
{
	struct query query;
	bool is_meant = false;

	if (function->kind == FUNCTION_SYMBOL && !query__parse(&query, name)) {
		/* The selector of an address has no name. */
		is_meant = query.name &&
			   (!query.module_len || query__names(&query, function->module)) &&
			   means(&query, function);
		query__fini(&query);
	}
	return is_meant;
}

/* A match in the executable hides those in libraries, unless the query names a module. */
static int search(match_vec *found, const struct symbols *symbols, const struct query *query,
		  const match_fn *ways)
{
	int err;

	if (query->module_len)
		return search_tier(found, symbols, query, TIER_NAMED, ways);
	err = search_tier(found, symbols, query, TIER_EXECUTABLE, ways);
	if (err || found->n)
		return err;
	return search_tier(found, symbols, query, TIER_LIBRARIES, ways);
}

static int find_functions(const struct symbols *symbols, const struct query *query,
			  match_vec *found)
{
	size_t n_current = 0;
	int err;

	if (query__asks(query)) {
		/* All functions: of the module, or of the executable and then of the libraries. */
		char any[] = "*";
		struct query all = *query;
		bool is_named = query->module_len;

		all.name = any;
		err = search_tier(found, symbols, &all, is_named ? TIER_NAMED : TIER_EXECUTABLE,
				  by_glob);
		if (!err && !is_named)
			err = search_tier(found, symbols, &all, TIER_LIBRARIES, by_glob);
	} else {
		err = search(found, symbols, query, by_name);
		if (!err && !found->n && is_glob(query))
			err = search(found, symbols, query, by_glob);
	}
	/* If both "exp" and "exp@GLIBC_2.2.5" match, the first is meant. */
	VEC_EACH(found, match)
		n_current += !match->function->is_old_version;
	if (n_current)
		VEC_DROP(found, match, match->function->is_old_version);
	if (err) {
		log__error("cannot search for '%s': %s", query->text, strerror(-err));
		log__hint("free some memory and try again");
	} else if (!found->n) {
		err = symbols__refuse_unknown(symbols, query);
	}
	for (size_t i = 0; i < found->n; i++)
		found->v[i].offset = query->offset;
	return err;
}

static int take_one(const struct symbols *symbols, const struct query *query,
		    const match_vec *found, struct symbol_match *match)
{
	const struct function *function;
	int err = 0;

	/* A glob may have found another function than the user meant. */
	if (found->n == 1 && is_glob(query)) {
		log__info("'%s' is %s of %s", query->text, found->v[0].function->name,
			  module__name(found->v[0].module));
		symbols__hint_scripts(symbols);
	}
	if (found->n == 1)
		*match = found->v[0];
	else if (log__level() != LOG_SILENT && picker__is_possible())
		err = symbols__pick(found, match);
	else
		err = symbols__refuse_ambiguous(symbols, query, found);
	if (err || match->offset < match->function->size)
		return err;
	function = match->function;
	log__error("%s is %" PRIu64 " bytes long: '%s' is beyond its end", function->name,
		   function->size, query->text);
	log__hint("'objdump -d --disassemble=%s' shows its instructions", function->raw_name);
	return -EINVAL;
}

int symbols__each_meant(const struct symbols *symbols, const char *name,
			int (*fn)(void *ctx, const struct symbol_match *match), void *ctx)
{
	struct symbol_match match;
	match_vec found = {0};
	struct query query;
	int err = query__parse(&query, name);

	if (!err && query.address == UINT64_MAX && !query.line && !query__asks(&query) &&
	    is_glob(&query)) {
		err = find_functions(symbols, &query, &found);
		for (size_t i = 0; i < found.n && !err; i++)
			err = fn(ctx, &found.v[i]);
	} else if (!err) {
		err = symbols__find(symbols, name, &match);
		if (!err)
			err = fn(ctx, &match);
	}
	VEC_FINI(&found);
	query__fini(&query);
	return err;
}

/* The code at an address of the executable as it is linked, or of the process as it runs. */
static int find_address(const struct symbols *symbols, uint64_t address, struct symbol_match *match)
{
	if (FIND_IN(symbols->modules, symbols->n, m,
		    m->is_executable && find_in(m, address, match)) ||
	    FIND_IN(symbols->modules, symbols->n, m, find_in(m, address - m->bias, match)))
		return 0;
	log__error("no code of %s at %#" PRIx64, symbols->label, address);
	log__hint("addr: takes an address in the program's file, or in the running process");
	return -ENOENT;
}

int symbols__find(const struct symbols *symbols, const char *name, struct symbol_match *match)
{
	match_vec found = {0};
	struct query query;
	int err = query__parse(&query, name);

	if (!err && query.address != UINT64_MAX) {
		err = find_address(symbols, query.address, match);
	} else if (!err) {
		err = query.line ? symbols__find_line(symbols, &query, &found)
				 : find_functions(symbols, &query, &found);
		if (!err)
			err = take_one(symbols, &query, &found, match);
	}
	VEC_FINI(&found);
	query__fini(&query);
	return err;
}
