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

/*
 * Finds the code at query->address, of the executable as it is linked, or of the process as it
 * runs. 0, or -ENOENT after a line and a hint.
 */
static int symbols__find_address(const struct symbols *symbols, const struct query *query,
				 struct symbol_match *match)
{
	uint64_t address = query->address;

	for (size_t i = 0; i < symbols->n; i++)
		if (symbols->modules[i].is_executable &&
		    find_in(&symbols->modules[i], address, match))
			return 0;
	for (size_t i = 0; i < symbols->n; i++)
		if (find_in(&symbols->modules[i], address - symbols->modules[i].bias, match))
			return 0;
	log__error("no code of %s at %#" PRIx64, symbols->label, address);
	log__hint("addr: takes an address in the program's file, or in the running process");
	return -ENOENT;
}

/* The code of a source line: "line:svc.c:123". */

/* For each function the first statement of the line, which may be inlined into several. */
static int add_functions(match_vec *found, const struct module *module,
			 const struct line_found *line)
{
	const struct function *last = NULL;

	for (size_t i = 0; i < line->vaddrs.n; i++) {
		uint64_t vaddr = line->vaddrs.v[i];
		const struct function *function = elf_image__function_at(module->image, vaddr);

		/* Skip a function's cold part: the line does not begin there. */
		if (!function || function == last || vaddr < function->vaddr ||
		    vaddr - function->vaddr >= function->size)
			continue;
		last = function;
		if (VEC_ADD(found, (struct symbol_match){.module = module,
							 .function = function,
							 .offset = vaddr - function->vaddr}))
			return -ENOMEM;
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

/*
 * Finds the code of query->line, in each function that has some. 0, or -ENOENT after a line and a
 * hint. The caller frees *found.
 */
static int symbols__find_line(const struct symbols *symbols, const struct query *query,
			      match_vec *found)
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

/* If several functions match, the user picks one at the terminal. */

/* Above this number of functions, looking up files and lines takes too long. */
#define SOURCES_MAX 20000

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "name+0x12  module  0x1234  file.c:12" */
static char *line_of(const struct symbol_match *match, bool with_source)
{
	char offset[32] = "", number[16] = "", *line;
	struct source_place place = {0};

	if (match->offset)
		snprintf(offset, sizeof(offset), "+0x%" PRIx64, match->offset);
	if (with_source && function__source(match->function, &place))
		snprintf(number, sizeof(number), ":%u", place.line);
	if (asprintf(&line, "%s%s  %s  0x%" PRIx64 "%s%s%s", match->function->name, offset,
		     module__name(match->module), match->function->vaddr + match->offset,
		     *number ? "  " : "", *number ? base_name(place.file) : "", number) < 0)
		return NULL;
	return line;
}

/* Tells the selector, so that it can be typed next time. */
static void say_picked(const struct symbol_match *match)
{
	char offset[32] = "";

	if (match->offset)
		snprintf(offset, sizeof(offset), "+0x%" PRIx64, match->offset);
	log__info("picked %s: -symbol '%s:0x%" PRIx64 "%s'", match->function->name,
		  module__name(match->module), match->function->vaddr, offset);
}

static int pick(const match_vec *found, char **lines, struct symbol_match *match)
{
	int picked;

	for (size_t i = 0; i < found->n; i++) {
		lines[i] = line_of(&found->v[i], found->n <= SOURCES_MAX);
		if (!lines[i])
			return -ENOMEM;
	}
	picked = picker__pick("function", (const char *const *)lines, found->n);
	if (picked < 0)
		return picked;
	*match = found->v[picked];
	say_picked(match);
	return 0;
}

/* True if there is a terminal to ask which of several is meant. */
static bool symbols__can_pick(void)
{
	return log__level() != LOG_SILENT && picker__is_possible();
}

/* Asks. 0, -ENOMEM, or -EINVAL after a line and a hint: none. */
static int symbols__pick(const match_vec *found, struct symbol_match *match)
{
	char **lines = calloc(found->n, sizeof(*lines));
	int err = lines ? pick(found, lines, match) : -ENOMEM;

	for (size_t i = 0; lines && i < found->n; i++)
		free(lines[i]);
	free(lines);
	if (err == -ECANCELED) {
		err = -EINVAL;
		log__error("no function was picked");
		log__hint("name one with -symbol NAME; 'mtbpf list' shows them");
	}
	return err;
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

typedef bool (*match_fn)(const struct query *query, struct elf_image *image, size_t index);

static int add_match(match_vec *found, const struct module *module, const struct function *function)
{
	return VEC_ADD(found, (struct symbol_match){.module = module, .function = function});
}

/* Adds the functions of one module that match; of several at one address, the first. */
static int search_module(match_vec *found, const struct module *module, const struct query *query,
			 match_fn matches)
{
	size_t n = elf_image__function_count(module->image);
	uint64_t last = UINT64_MAX;

	for (size_t i = 0; i < n; i++) {
		const struct function *function;
		int err;

		if (!matches(query, module->image, i))
			continue;
		function = elf_image__function(module->image, i);
		if (function->vaddr == last)
			continue;
		last = function->vaddr;
		err = add_match(found, module, function);
		if (err)
			return err;
	}
	return 0;
}

/* The function that begins at query->vaddr in each module of the tier, named or not. */
static int search_address(match_vec *found, const struct symbols *symbols,
			  const struct query *query, enum tier tier)
{
	int err = 0;

	for (size_t i = 0; !err && i < symbols->n; i++) {
		const struct module *module = &symbols->modules[i];
		const struct function *function;

		if (!query__covers(query, tier, module))
			continue;
		function = elf_image__function_at(module->image, query->vaddr);
		if (function && function->vaddr == query->vaddr)
			err = add_match(found, module, function);
	}
	return err;
}

static int find_search_tier(match_vec *found, const struct symbols *symbols,
			    const struct query *query, enum tier tier)
{
	static const match_fn ways[] = {matches_exactly, matches_demangled, matches_clone};
	const size_t n = sizeof(ways) / sizeof(ways[0]);
	int err = 0;

	if (query->vaddr != UINT64_MAX)
		return search_address(found, symbols, query, tier);
	for (size_t way = 0; !err && !found->n && way < n; way++)
		for (size_t i = 0; !err && i < symbols->n; i++)
			if (query__covers(query, tier, &symbols->modules[i]))
				err = search_module(found, &symbols->modules[i], query, ways[way]);
	return err;
}

/* If both "exp" and "exp@GLIBC_2.2.5" match, the first is meant. */
static void drop_old_versions(match_vec *found)
{
	size_t out = 0;

	for (size_t i = 0; i < found->n; i++)
		out += !found->v[i].function->is_old_version;
	if (!out)
		return;
	out = 0;
	for (size_t i = 0; i < found->n; i++)
		if (!found->v[i].function->is_old_version)
			found->v[out++] = found->v[i];
	found->n = out;
}

static int refuse_offset(const struct query *query, const struct function *function)
{
	log__error("%s is %" PRIu64 " bytes long: '%s' is beyond its end", function->name,
		   function->size, query->text);
	log__hint("'objdump -d --disassemble=%s' shows its instructions", function->raw_name);
	return -EINVAL;
}

/* True if the name may be a glob: it is one unless this is exactly the name of a function. */
static bool is_glob(const struct query *query)
{
	return strpbrk(query->name, "*?[");
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

static int search_globs(match_vec *found, const struct symbols *symbols, const struct query *query,
			enum tier tier)
{
	int err = 0;

	for (size_t i = 0; !err && i < symbols->n; i++)
		if (query__covers(query, tier, &symbols->modules[i]))
			err = search_module(found, &symbols->modules[i], query, matches_glob);
	return err;
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
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i] && (!strcmp(names[i], query->name) ||
				 (is_glob(query) && !fnmatch(query->name, names[i], 0))))
			return true;
	return false;
}

bool function__is_meant(const struct function *function, const char *name)
{
	struct query query;
	bool is_meant = false;

	if (function->kind == FUNCTION_SYMBOL && !query__parse(&query, name)) {
		is_meant = (!query.module_len || query__names(&query, function->module)) &&
			   means(&query, function);
		query__fini(&query);
	}
	return is_meant;
}

/* The executable hides libraries, unless one of them is named. */
static int search(match_vec *found, const struct symbols *symbols, const struct query *query,
		  int (*search_in)(match_vec *found, const struct symbols *symbols,
				   const struct query *query, enum tier tier))
{
	int err;

	if (query->module_len)
		return search_in(found, symbols, query, TIER_NAMED);
	err = search_in(found, symbols, query, TIER_EXECUTABLE);
	return err || found->n ? err : search_in(found, symbols, query, TIER_LIBRARIES);
}

/* All there are: of the module, or else of the executable and then of the libraries. */
static int list_functions(const struct symbols *symbols, const struct query *query,
			  match_vec *found)
{
	struct query all = *query;
	char any[] = "*";
	int err;

	all.name = any;
	if (query->module_len)
		return search_globs(found, symbols, &all, TIER_NAMED);
	err = search_globs(found, symbols, &all, TIER_EXECUTABLE);
	return err ? err : search_globs(found, symbols, &all, TIER_LIBRARIES);
}

static int find_functions(const struct symbols *symbols, const struct query *query,
			  match_vec *found)
{
	int err;

	if (query__asks(query)) {
		err = list_functions(symbols, query, found);
	} else {
		err = search(found, symbols, query, find_search_tier);
		if (!err && !found->n && is_glob(query))
			err = search(found, symbols, query, search_globs);
	}
	drop_old_versions(found);
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
	int err = 0;

	/* By a glob something else than what it found may have been meant. */
	if (found->n == 1 && is_glob(query)) {
		log__info("'%s' is %s of %s", query->text, found->v[0].function->name,
			  module__name(found->v[0].module));
		symbols__hint_scripts(symbols);
	}
	if (found->n == 1)
		*match = found->v[0];
	else
		err = symbols__can_pick() ? symbols__pick(found, match)
					  : symbols__refuse_ambiguous(symbols, query, found);
	if (err)
		return err;
	return match->offset >= match->function->size ? refuse_offset(query, match->function) : 0;
}

static int find_any(const struct symbols *symbols, const struct query *query,
		    struct symbol_match *match)
{
	match_vec found = {0};
	int err = query->line ? symbols__find_line(symbols, query, &found)
			      : find_functions(symbols, query, &found);

	if (!err)
		err = take_one(symbols, query, &found, match);
	VEC_FINI(&found);
	return err;
}

static int take_all(const match_vec *found, int (*fn)(void *ctx, const struct symbol_match *match),
		    void *ctx)
{
	int err = 0;

	for (size_t i = 0; i < found->n && !err; i++)
		err = fn(ctx, &found->v[i]);
	return err;
}

int symbols__each_meant(const struct symbols *symbols, const char *name,
			int (*fn)(void *ctx, const struct symbol_match *match), void *ctx)
{
	struct symbol_match match;
	match_vec found = {0};
	struct query query;
	int err = query__parse(&query, name);
	bool may_be_several = !err && query.address == UINT64_MAX && !query.line &&
			      !query__asks(&query) && is_glob(&query);

	if (!err && may_be_several)
		err = find_functions(symbols, &query, &found);
	else if (!err)
		err = symbols__find(symbols, name, &match);
	if (!err)
		err = may_be_several ? take_all(&found, fn, ctx) : fn(ctx, &match);
	VEC_FINI(&found);
	query__fini(&query);
	return err;
}

int symbols__find(const struct symbols *symbols, const char *name, struct symbol_match *match)
{
	struct query query;
	int err = query__parse(&query, name);

	if (!err && query.address != UINT64_MAX)
		err = symbols__find_address(symbols, &query, match);
	else if (!err)
		err = find_any(symbols, &query, match);
	query__fini(&query);
	return err;
}
