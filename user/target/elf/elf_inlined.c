// SPDX-License-Identifier: MIT
#include "target/elf/elf_inlined.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <search.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/elf_internal.h"
#include "util/vec.h"

enum die_step {
	DIE_SKIP,    /* its children do not matter */
	DIE_DESCEND, /* visit its children; enter() has set *scope for them */
};

struct die_walk {
	/* Called for each entry. Returns enum die_step, or -errno to end the walk. */
	int (*enter)(struct die_walk *walk, Dwarf_Die *die, const void **scope);
	void *ctx;
	uint64_t *budget; /* bytes of entries that may still be walked over */
};

struct inline_scopes {
	struct elf_image *image;
	uint64_t *budget; /* as in die_walk.h */
	void *units;	  /* a tsearch() tree */
};

struct inlined_chunk;

struct inline_names {
	struct elf_image *image;
	void *functions; /* a tsearch() tree */
	struct inlined_chunk *calls;
	struct inline_scopes scopes;
};

/* Blocks and inlined functions in each other; a few dozen are many. */
#define MAX_DEPTH 256

/* Spends part of the budget. False if too little is left. */
static bool die_walk__spend(struct die_walk *walk, uint64_t bytes)
{
	if (*walk->budget < bytes)
		return false;
	*walk->budget -= bytes;
	return true;
}

/* 0: *die is the next one; 1: it was the last. What dwarf_siblingof() skips goes forward as well.
 */
static int go_on(struct die_walk *walk, Dwarf_Die *die)
{
	Dwarf_Off before = dwarf_dieoffset(die);
	Dwarf_Die next;
	int end = dwarf_siblingof(die, &next);

	if (end)
		return end > 0 ? 1 : -EIO;
	if (dwarf_dieoffset(&next) <= before)
		return -EIO;
	if (!die_walk__spend(walk, dwarf_dieoffset(&next) - before))
		return -E2BIG;
	*die = next;
	return 0;
}

static int walk_children(struct die_walk *walk, Dwarf_Die *die, const void *scope,
			 unsigned int depth)
{
	Dwarf_Die child;
	int end = dwarf_child(die, &child);

	if (end)
		return end > 0 ? 0 : -EIO;
	if (depth == MAX_DEPTH)
		return -E2BIG;
	while (!end) {
		const void *inner = scope;
		int step = walk->enter(walk, &child, &inner);

		if (step < 0)
			return step;
		if (step == DIE_DESCEND)
			end = walk_children(walk, &child, inner, depth + 1);
		if (!end)
			end = go_on(walk, &child);
	}
	return end > 0 ? 0 : end;
}

/* 0; -EIO: damaged; -E2BIG: too deep, or the budget is spent; or what enter() returned. */
static int die_walk__children(struct die_walk *walk, Dwarf_Die *die, const void *scope)
{
	return walk_children(walk, die, scope, 0);
}

/* Bytes of the longest name that is put together. */
#define LONGEST 4096
/* From an instance to its origin, to its declaration; more is damage. */
#define MAX_ORIGINS 16

struct scope {
	const struct scope *outer;
	const char *name;
	struct scope *next; /* of the unit's */
};

/* A function in a scope. */
struct scoped {
	const char *die; /* Dwarf_Die.addr: offsets are of one file, and there may be several */
	const struct scope *scope;
	const char *text; /* NULL until it is asked for */
};

struct scope_unit {
	const char *die;
	struct scope *scopes;
	VEC(struct scoped) functions; /* ascending by die */
};

static void free_unit(void *node)
{
	struct scope_unit *unit = node;

	while (unit->scopes) {
		struct scope *next = unit->scopes->next;

		free(unit->scopes);
		unit->scopes = next;
	}
	VEC_FINI(&unit->functions);
	free(unit);
}

ORDER(compare_units, struct scope_unit, COMPARE(x->die, y->die))

static int enter_scope(struct scope_unit *unit, const char *name, const void **scope)
{
	struct scope *inner = malloc(sizeof(*inner));

	if (!inner)
		return -ENOMEM;
	*inner = (struct scope){.outer = *scope, .name = name, .next = unit->scopes};
	unit->scopes = inner;
	*scope = inner;
	return DIE_DESCEND;
}

static struct scoped *find_function(struct scope_unit *unit, const char *die)
{
	size_t n = VEC_PARTITION_POINT(&unit->functions, e, e->die < die);

	if (n == unit->functions.n || unit->functions.v[n].die != die)
		return NULL;
	return &unit->functions.v[n];
}

/* Replaces the entry by its declaration. */
static void go_to_declaration(Dwarf_Die *die)
{
	static const unsigned int ways[] = {DW_AT_abstract_origin, DW_AT_specification};

	for (int i = 0; i < MAX_ORIGINS; i++) {
		Dwarf_Attribute attr;
		Dwarf_Die origin;

		if (!dwarf_attr(die, ways[0], &attr) && !dwarf_attr(die, ways[1], &attr))
			return;
		if (!dwarf_formref_die(&attr, &origin))
			return;
		*die = origin;
	}
}

/* A definition outside of all scopes may have its declaration in one, before it. */
static const struct scope *declared_in(struct scope_unit *unit, Dwarf_Die *die)
{
	Dwarf_Die declaration = *die;
	const struct scoped *function;

	go_to_declaration(&declaration);
	function = find_function(unit, declaration.addr);
	return function ? function->scope : NULL;
}

static int enter_function(struct scope_unit *unit, Dwarf_Die *die, const void **scope)
{
	const char *name = dwarf_diename(die);

	if (!*scope)
		*scope = declared_in(unit, die);
	if (*scope && VEC_ADD(&unit->functions, (struct scoped){.die = die->addr, .scope = *scope}))
		return -ENOMEM;
	return name ? enter_scope(unit, name, scope) : DIE_SKIP;
}

static int enter(struct die_walk *walk, Dwarf_Die *die, const void **scope)
{
	const char *name;

	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
		name = dwarf_diename(die);
		return enter_scope(walk->ctx, name ? name : "(anonymous namespace)", scope);
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		name = dwarf_diename(die);
		return enter_scope(walk->ctx, name ? name : "(anonymous class)", scope);
	case DW_TAG_subprogram:
		return enter_function(walk->ctx, die, scope);
	case DW_TAG_lexical_block:
		return DIE_DESCEND;
	default:
		return DIE_SKIP;
	}
}

static struct scope_unit *find_unit(struct inline_scopes *scopes, Dwarf_Die *die)
{
	struct scope_unit key = {.die = die->addr}, **found, *unit;
	struct die_walk walk = {.enter = enter, .budget = scopes->budget};

	found = tfind(&key, &scopes->units, compare_units);
	if (found)
		return *found;
	unit = malloc(sizeof(*unit));
	if (!unit)
		return NULL;
	*unit = key;
	if (!tsearch(unit, &scopes->units, compare_units)) {
		free(unit);
		return NULL;
	}
	walk.ctx = unit;
	die_walk__children(&walk, die, NULL);
	return unit;
}

/* Copies `part` to just before `at`, in the buffer that begins at `text`. Returns where it starts,
 * or NULL if it does not fit. */
static char *put_before(char *at, const char *text, const char *part)
{
	size_t len = strlen(part);

	if ((size_t)(at - text) < len)
		return NULL;
	return memcpy(at - len, part, len);
}

static const char *join(struct elf_image *image, const struct scope *scope, const char *name)
{
	char text[LONGEST], *end = text + sizeof(text), *at = put_before(end, text, name);
	const char *kept;

	for (; scope && at; scope = scope->outer) {
		at = put_before(at, text, "::");
		at = at ? put_before(at, text, scope->name) : NULL;
	}
	kept = at ? elf_image__keep(image, at, (size_t)(end - at)) : NULL;
	return kept ? kept : name;
}

static bool is_cxx(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
		return true;
	default:
		return false;
	}
}

/*
 * "ns::Foo::name" for the function of this entry, or of its origin; valid as long as the image.
 * Returns `name` itself if the entry is not nested or the language is another.
 */
static const char *inline_scopes__qualify(struct inline_scopes *scopes, Dwarf_Die *die,
					  const char *name)
{
	Dwarf_Die declaration = *die, unit_die;
	struct scope_unit *unit;
	struct scoped *function;

	go_to_declaration(&declaration);
	if (!dwarf_diecu(&declaration, &unit_die, NULL, NULL) || !is_cxx(&unit_die))
		return name;
	unit = find_unit(scopes, &unit_die);
	function = unit ? find_function(unit, declaration.addr) : NULL;
	if (!function)
		return name;
	if (!function->text)
		function->text = join(scopes->image, function->scope, name);
	return function->text;
}

#define CHUNK 256

struct inlined_chunk {
	struct inlined_chunk *next;
	size_t n;
	struct inlined v[CHUNK];
};

struct inline_function {
	struct function_entry entry; /* first: what function__source() takes it for */
	struct source_place place;
};

static struct inlined *add_call(struct inline_names *names)
{
	struct inlined_chunk *chunk = names->calls;

	if (!chunk || chunk->n == CHUNK) {
		chunk = calloc(1, sizeof(*chunk));
		if (!chunk)
			return NULL;
		chunk->next = names->calls;
		names->calls = chunk;
	}
	return &chunk->v[chunk->n++];
}

static int compare_strings(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

ORDER(compare_functions, struct inline_function,
      strcmp(x->entry.function.raw_name, y->entry.function.raw_name)
	      ?: compare_strings(x->place.file, y->place.file)
	      ?: COMPARE(x->place.line, y->place.line))

/*
 * Reads a string attribute, also from the abstract origin, where the function is. NULL if missing.
 */
static const char *get_string(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	const char *text = dwarf_formstring(dwarf_attr_integrate(die, name, &attr) ? &attr : NULL);

	return text && *text ? text : NULL;
}

/* As in the symbol table if it were there. */
static const char *raw_name_of(struct inline_names *names, Dwarf_Die *die)
{
	const char *name = get_string(die, DW_AT_linkage_name);

	if (!name)
		name = get_string(die, DW_AT_MIPS_linkage_name);
	if (name)
		return name;
	name = get_string(die, DW_AT_name);
	return name ? inline_scopes__qualify(&names->scopes, die, name) : NULL;
}

/*
 * The attribute's file, from the file table of its unit. From DWARF 5 on file 0 is valid (6.2.4
 * there), which dwarf_decl_file() does not know.
 */
static const char *file_of(Dwarf_Attribute *attr)
{
	Dwarf_Half version;
	Dwarf_Files *files;
	Dwarf_Die unit;
	Dwarf_Word n;
	size_t n_files;

	if (dwarf_formudata(attr, &n) ||
	    !dwarf_cu_die(attr->cu, &unit, &version, NULL, NULL, NULL, NULL, NULL) ||
	    dwarf_getsrcfiles(&unit, &files, &n_files) || n >= n_files || (!n && version < 5))
		return NULL;
	return dwarf_filesrc(files, n, NULL, NULL);
}

typedef Dwarf_Attribute *(*find_attr_fn)(Dwarf_Die *, unsigned int, Dwarf_Attribute *);

static struct source_place get_place(Dwarf_Die *die, find_attr_fn find, unsigned int file_name,
				     unsigned int line_name)
{
	Dwarf_Attribute file, line;
	struct source_place place;
	Dwarf_Word n;

	if (!find(die, file_name, &file) || !find(die, line_name, &line) ||
	    dwarf_formudata(&line, &n) || !n || n > UINT32_MAX)
		return (struct source_place){0};
	place = (struct source_place){file_of(&file), (unsigned int)n};
	return place.file ? place : (struct source_place){0};
}

static const struct function *intern(struct inline_names *names, Dwarf_Die *die,
				     const char *raw_name)
{
	struct inline_function key = {.place = get_place(die, dwarf_attr_integrate, DW_AT_decl_file,
							 DW_AT_decl_line)},
			       **found, *new;

	function_entry__set_name(&key.entry, raw_name);
	found = tfind(&key, &names->functions, compare_functions);
	if (found)
		return &(*found)->entry.function;
	new = malloc(sizeof(*new));
	if (!new)
		return NULL;
	*new = key;
	new->entry.source = &new->place;
	new->entry.function.image = names->image;
	new->entry.function.module = names->image->module;
	new->entry.function.kind = FUNCTION_INLINED;
	if (tsearch(new, &names->functions, compare_functions))
		return &new->entry.function;
	free(new);
	return NULL;
}

/*
 * Adds the call of a DW_TAG_inlined_subroutine inside `outer`, if not NULL. If its name cannot be
 * found (it may be in another file), *inlined is `outer`. 0 or -ENOMEM.
 */
static int inline_names__add(struct inline_names *names, Dwarf_Die *die,
			     const struct inlined *outer, const struct inlined **inlined)
{
	const char *raw_name = raw_name_of(names, die);
	const struct function *function = raw_name ? intern(names, die, raw_name) : NULL;
	struct inlined *call = function ? add_call(names) : NULL;

	if (!raw_name) {
		*inlined = outer;
		return 0;
	}
	if (!call)
		return -ENOMEM;
	*call = (struct inlined){
		.function = function,
		.outer = outer,
		.call = get_place(die, dwarf_attr, DW_AT_call_file, DW_AT_call_line),
		.depth = outer ? outer->depth + 1 : 0};
	*inlined = call;
	return 0;
}

/*
 * DW_TAG_inlined_subroutine (DWARF 5, 3.3.8.2). The first query about a unit indexes its functions,
 * and the first about a function lists its inlined calls: only code that ran is read.
 */

/* Bytes of entries that are read of one image, a second's worth. Real code needs a small part. */
#define BUDGET ((uint64_t)1 << 29)
/* The cost of reading and keeping an inlined call, or a range, in bytes of the budget. */
#define NODE_COST  128
#define RANGE_COST 128

struct inline_range {
	uint64_t start, end;
	const struct inlined *inlined;
};

/* A function that has code. */
struct inline_body {
	Dwarf_Die die;
	bool is_read;
	VEC(struct inline_range) ranges; /* outer before inner */
};

struct body_range {
	uint64_t start, end;
	size_t body;
};

struct inline_unit {
	const void *die; /* Dwarf_Die.addr: offsets are of one file, and there may be several */
	VEC(struct inline_body) bodies;
	VEC(struct body_range) ranges; /* ascending by start */
};

struct inline_tables {
	void *units; /* a tsearch() tree */
	struct inline_names names;
	uint64_t budget;
};

static struct inline_tables *new_tables(struct elf_image *image)
{
	struct inline_tables *tables = calloc(1, sizeof(*tables));

	if (!tables)
		return NULL;
	tables->budget = BUDGET;
	tables->names = (struct inline_names){
		.image = image, .scopes = {.image = image, .budget = &tables->budget}};
	return tables;
}

static void inlined_free_unit(void *node)
{
	struct inline_unit *unit = node;

	VEC_FINI_EACH(&unit->bodies, e, VEC_FINI(&e->ranges));
	VEC_FINI(&unit->ranges);
	free(unit);
}

void inline_tables__free(struct inline_tables *tables)
{
	if (!tables)
		return;
	tdestroy(tables->units, inlined_free_unit);
	tdestroy(tables->names.scopes.units, free_unit);
	tdestroy(tables->names.functions, free);
	while (tables->names.calls) {
		struct inlined_chunk *next = tables->names.calls->next;

		free(tables->names.calls);
		tables->names.calls = next;
	}
	free(tables);
}

ORDER(inlined_compare_units, struct inline_unit, COMPARE(x->die, y->die))

static int add_body(struct die_walk *walk, Dwarf_Die *die, struct inline_unit *unit)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;
	size_t n = unit->ranges.n;

	while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
		if (!die_walk__spend(walk, RANGE_COST))
			return -E2BIG;
		if (start >= end)
			continue;
		if (VEC_ADD(&unit->ranges, (struct body_range){start, end, unit->bodies.n}))
			return -ENOMEM;
	}
	if (n == unit->ranges.n)
		return 0;
	return VEC_ADD(&unit->bodies, (struct inline_body){.die = *die});
}

/*
 * Functions are children of the unit or of namespaces (in Rust, modules); classes only declare
 * theirs.
 */
static int enter_unit(struct die_walk *walk, Dwarf_Die *die, const void **scope)
{
	int tag = dwarf_tag(die);

	if (tag == DW_TAG_namespace || tag == DW_TAG_module)
		return DIE_DESCEND;
	if (tag != DW_TAG_subprogram)
		return DIE_SKIP;
	return add_body(walk, die, walk->ctx);
}

static void index_unit(struct inline_tables *tables, struct inline_unit *unit, Dwarf_Die *die)
{
	struct die_walk walk = {.enter = enter_unit, .ctx = unit, .budget = &tables->budget};

	if (die_walk__children(&walk, die, NULL))
		unit->ranges.n = 0;
	VEC_SORT_BY(&unit->ranges, start);
}

static struct inline_unit *inlined_find_unit(struct inline_tables *tables, Dwarf_Die *die)
{
	struct inline_unit key = {.die = die->addr}, **found, *unit;

	found = tfind(&key, &tables->units, inlined_compare_units);
	if (found)
		return *found;
	unit = malloc(sizeof(*unit));
	if (!unit)
		return NULL;
	*unit = key;
	if (!tsearch(unit, &tables->units, inlined_compare_units)) {
		free(unit);
		return NULL;
	}
	index_unit(tables, unit, die);
	return unit;
}

/* Reading one function. */
struct body_reader {
	struct inline_tables *tables;
	struct inline_body *body;
};

static int add_ranges(struct die_walk *walk, Dwarf_Die *die, struct inline_body *body,
		      const struct inlined *inlined)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;

	while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
		if (!die_walk__spend(walk, RANGE_COST))
			return -E2BIG;
		if (start >= end)
			continue;
		if (VEC_ADD(&body->ranges, (struct inline_range){start, end, inlined}))
			return -ENOMEM;
	}
	return 0;
}

static int enter_body(struct die_walk *walk, Dwarf_Die *die, const void **scope)
{
	struct body_reader *reader = walk->ctx;
	const struct inlined *inlined, *outer = *scope;
	int tag = dwarf_tag(die), err;

	if (tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block)
		return DIE_DESCEND;
	if (tag != DW_TAG_inlined_subroutine)
		return DIE_SKIP;
	if (!die_walk__spend(walk, NODE_COST))
		return -E2BIG;
	err = inline_names__add(&reader->tables->names, die, outer, &inlined);
	if (err)
		return err;
	if (inlined != outer)
		err = add_ranges(walk, die, reader->body, inlined);
	*scope = inlined;
	return err ? err : DIE_DESCEND;
}

/* The function whose code begins nearest before vaddr. */
static struct inline_body *find_body(struct inline_unit *unit, uint64_t vaddr)
{
	size_t n = VEC_PARTITION_POINT(&unit->ranges, e, e->start <= vaddr);

	if (!n || vaddr >= unit->ranges.v[n - 1].end)
		return NULL;
	return &unit->bodies.v[unit->ranges.v[n - 1].body];
}

/*
 * Inner ranges follow the outer ones. The part of an inner range outside the outer one is ignored.
 */
static const struct inlined *search_body(const struct inline_body *body, uint64_t vaddr)
{
	const struct inlined *found = NULL;

	VEC_EACH(&body->ranges, range)
		if (vaddr - range->start < range->end - range->start &&
		    range->inlined->outer == found)
			found = range->inlined;
	return found;
}

static const struct inlined *look_up(struct elf_image *image, uint64_t vaddr)
{
	struct elf_debug *debug = elf_image__debug(image);
	struct inline_unit *unit;
	struct inline_body *body;
	Dwarf_Die die;

	if (!debug || !elf_debug__unit_at(debug, vaddr, &die))
		return NULL;
	elf_debug__go_to_split(&die);
	if (!debug->inlines)
		debug->inlines = new_tables(image);
	if (!debug->inlines)
		return NULL;
	unit = inlined_find_unit(debug->inlines, &die);
	body = unit ? find_body(unit, vaddr) : NULL;
	if (body && !body->is_read) {
		struct body_reader reader = {debug->inlines, body};
		struct die_walk walk = {
			.enter = enter_body, .ctx = &reader, .budget = &debug->inlines->budget};

		body->is_read = true;
		if (die_walk__children(&walk, &body->die, NULL))
			body->ranges.n = 0;
	}
	return body ? search_body(body, vaddr) : NULL;
}

const struct inlined *elf_image__inlined_at(struct elf_image *image, uint64_t vaddr)
{
	const struct inlined *found;

	pthread_mutex_lock(&image->source_lock);
	found = look_up(image, vaddr);
	/* A function is the first member of its entry, which is not const. */
	for (const struct inlined *i = found; i; i = i->outer)
		function_entry__make_readable((struct function_entry *)i->function);
	pthread_mutex_unlock(&image->source_lock);
	return found;
}
