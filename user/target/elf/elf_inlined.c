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

/*
 * DW_TAG_inlined_subroutine (DWARF 5, 3.3.8.2). The first query about a unit indexes its functions,
 * and the first about a function lists its inlined calls: only code that ran is read.
 */

/* Bytes of entries that are read of one image, a second's worth. Real code needs a small part. */
#define BUDGET ((uint64_t)1 << 29)
/* The cost of reading and keeping an inlined call, or a range, in bytes of the budget. */
#define NODE_COST  128
#define RANGE_COST 128
/* Blocks and inlined functions in each other; a few dozen are many. */
#define MAX_DEPTH 256
/* Bytes of the longest name that is put together. */
#define LONGEST 4096
/* From an instance to its origin, to its declaration; more is damage. */
#define MAX_ORIGINS 16

/* A namespace, a class, or a function with others in it. */
struct scope {
	const struct scope *outer;
	const char *name;
	struct scope *next; /* the next of the unit's scopes */
};

/* A function in a scope. */
struct scoped {
	const char *die; /* Dwarf_Die.addr: offsets are of one file, and there may be several */
	const struct scope *scope;
	const char *text; /* NULL until it is asked for */
};

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
	const char *die; /* Dwarf_Die.addr */
	bool has_scopes; /* `scopes` and `functions` have been read */
	struct scope *scopes;
	VEC(struct scoped) functions; /* ascending by die */
	bool has_bodies;	      /* `bodies` and `ranges` have been read */
	VEC(struct inline_body) bodies;
	VEC(struct body_range) ranges; /* ascending by start */
};

struct inline_function {
	struct function_entry entry; /* the first member: function__source() casts to it */
	struct source_place place;
};

#define CHUNK 256

struct inlined_chunk {
	struct inlined_chunk *next;
	size_t n;
	struct inlined v[CHUNK];
};

struct inline_tables {
	struct elf_image *image;
	void *units;	 /* a tsearch() tree of struct inline_unit */
	void *functions; /* a tsearch() tree of struct inline_function */
	struct inlined_chunk *calls;
	uint64_t budget; /* bytes of entries that may still be walked over */
};

enum die_step {
	DIE_SKIP,    /* its children do not matter */
	DIE_DESCEND, /* visit its children; enter() has set *scope for them */
};

struct die_walk {
	/* Called for each entry. Returns enum die_step, or -errno to end the walk. */
	int (*enter)(struct die_walk *walk, Dwarf_Die *die, const void **scope);
	struct inline_tables *tables;
	struct inline_unit *unit; /* whose functions are read */
	struct inline_body *body; /* whose inlined calls are read */
};

/* Spends part of the budget. False if too little is left. */
static bool spend(struct inline_tables *tables, uint64_t bytes)
{
	if (tables->budget < bytes)
		return false;
	tables->budget -= bytes;
	return true;
}

/* 0; -EIO: damaged; -E2BIG: too deep, or the budget is spent; or what enter() returned. */
static int walk_children(struct die_walk *walk, Dwarf_Die *die, const void *scope,
			 unsigned int depth)
{
	Dwarf_Die child, next;
	int end = dwarf_child(die, &child);

	if (!end && depth == MAX_DEPTH)
		return -E2BIG;
	while (!end) {
		Dwarf_Off before = dwarf_dieoffset(&child);
		const void *inner = scope;
		int step = walk->enter(walk, &child, &inner);

		if (step == DIE_DESCEND)
			step = walk_children(walk, &child, inner, depth + 1);
		if (step < 0)
			return step;
		end = dwarf_siblingof(&child, &next);
		if (end)
			break;
		/* dwarf_siblingof() skips some entries, but only forward. */
		if (dwarf_dieoffset(&next) <= before)
			return -EIO;
		if (!spend(walk->tables, dwarf_dieoffset(&next) - before))
			return -E2BIG;
		child = next;
	}
	return end > 0 ? 0 : -EIO;
}

static void free_unit(void *node)
{
	struct inline_unit *unit = node;

	while (unit->scopes) {
		struct scope *next = unit->scopes->next;

		free(unit->scopes);
		unit->scopes = next;
	}
	VEC_FINI(&unit->functions);
	VEC_FINI_EACH(&unit->bodies, e, VEC_FINI(&e->ranges));
	VEC_FINI(&unit->ranges);
	free(unit);
}

void inline_tables__free(struct inline_tables *tables)
{
	if (!tables)
		return;
	tdestroy(tables->units, free_unit);
	tdestroy(tables->functions, free);
	while (tables->calls) {
		struct inlined_chunk *next = tables->calls->next;

		free(tables->calls);
		tables->calls = next;
	}
	free(tables);
}

ORDER(compare_units, struct inline_unit, COMPARE(x->die, y->die))

/* The unit of that entry, empty at first. NULL: out of memory. */
static struct inline_unit *find_unit(struct inline_tables *tables, Dwarf_Die *die)
{
	struct inline_unit key = {.die = die->addr}, **found, *unit;

	found = tfind(&key, &tables->units, compare_units);
	if (found)
		return *found;
	unit = malloc(sizeof(*unit));
	if (!unit)
		return NULL;
	*unit = key;
	if (tsearch(unit, &tables->units, compare_units))
		return unit;
	free(unit);
	return NULL;
}

static struct scoped *find_function(struct inline_unit *unit, const char *die)
{
	size_t n = VEC_PARTITION_POINT(&unit->functions, e, e->die < die);

	if (n == unit->functions.n || unit->functions.v[n].die != die)
		return NULL;
	return &unit->functions.v[n];
}

/* Replaces the entry by its declaration. */
static void go_to_declaration(Dwarf_Die *die)
{
	for (int i = 0; i < MAX_ORIGINS; i++) {
		Dwarf_Attribute attr;
		Dwarf_Die origin;

		if (!dwarf_attr(die, DW_AT_abstract_origin, &attr) &&
		    !dwarf_attr(die, DW_AT_specification, &attr))
			return;
		if (!dwarf_formref_die(&attr, &origin))
			return;
		*die = origin;
	}
}

/* Lists functions that are in scopes. */
static int enter_scope(struct die_walk *walk, Dwarf_Die *die, const void **scope)
{
	const char *name = dwarf_diename(die);
	Dwarf_Die declaration = *die;
	struct scope *inner;

	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
		name = name ? name : "(anonymous namespace)";
		break;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		name = name ? name : "(anonymous class)";
		break;
	case DW_TAG_subprogram:
		/* A function outside of all scopes may have been declared before, in a scope. */
		if (!*scope) {
			const struct scoped *declared;

			go_to_declaration(&declaration);
			declared = find_function(walk->unit, declaration.addr);
			*scope = declared ? declared->scope : NULL;
		}
		if (*scope && VEC_ADD(&walk->unit->functions,
				      (struct scoped){.die = die->addr, .scope = *scope}))
			return -ENOMEM;
		if (!name)
			return DIE_SKIP;
		break;
	case DW_TAG_lexical_block:
		return DIE_DESCEND;
	default:
		return DIE_SKIP;
	}
	inner = malloc(sizeof(*inner));
	if (!inner)
		return -ENOMEM;
	*inner = (struct scope){.outer = *scope, .name = name, .next = walk->unit->scopes};
	walk->unit->scopes = inner;
	*scope = inner;
	return DIE_DESCEND;
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

/*
 * "ns::Foo::name" for the function of this entry, or of its origin; valid as long as the image.
 * Returns `name` itself if the entry is not nested or the language is another.
 */
static const char *qualify(struct inline_tables *tables, Dwarf_Die *die, const char *name)
{
	struct die_walk walk = {.enter = enter_scope, .tables = tables};
	Dwarf_Die declaration = *die, unit_die;
	struct scoped *function;

	go_to_declaration(&declaration);
	if (!dwarf_diecu(&declaration, &unit_die, NULL, NULL))
		return name;
	switch (dwarf_srclang(&unit_die)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case LANG_CPP17:
	case LANG_CPP20:
	case LANG_CPP23:
		break;
	default:
		return name;
	}
	walk.unit = find_unit(tables, &unit_die);
	if (!walk.unit)
		return name;
	if (!walk.unit->has_scopes)
		walk_children(&walk, &unit_die, NULL, 0);
	walk.unit->has_scopes = true;
	function = find_function(walk.unit, declaration.addr);
	if (!function)
		return name;
	if (!function->text)
		function->text = join(tables->image, function->scope, name);
	return function->text;
}

ORDER(compare_functions, struct inline_function,
      strcmp(x->entry.function.raw_name, y->entry.function.raw_name)
	      ?: strcmp(x->place.file ?: "", y->place.file ?: "")
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

static const struct function *intern(struct inline_tables *tables, Dwarf_Die *die,
				     const char *raw_name)
{
	struct inline_function key = {.place = get_place(die, dwarf_attr_integrate, DW_AT_decl_file,
							 DW_AT_decl_line)},
			       **found, *new;

	function_entry__set_name(&key.entry, raw_name);
	found = tfind(&key, &tables->functions, compare_functions);
	if (found)
		return &(*found)->entry.function;
	new = malloc(sizeof(*new));
	if (!new)
		return NULL;
	*new = key;
	new->entry.source = &new->place;
	new->entry.function.image = tables->image;
	new->entry.function.module = tables->image->module;
	new->entry.function.kind = FUNCTION_INLINED;
	if (tsearch(new, &tables->functions, compare_functions))
		return &new->entry.function;
	free(new);
	return NULL;
}

/*
 * Adds the call of a DW_TAG_inlined_subroutine inside `outer`, if not NULL. If its name cannot be
 * found (it may be in another file), *inlined is `outer`. 0 or -ENOMEM.
 */
static int add_inlined(struct inline_tables *tables, Dwarf_Die *die, const struct inlined *outer,
		       const struct inlined **inlined)
{
	struct inlined_chunk *chunk = tables->calls;
	const struct function *function;
	const char *raw_name, *name;
	struct inlined *call;

	/* The name that the function's symbol would have. NULL: none. */
	raw_name = get_string(die, DW_AT_linkage_name);
	if (!raw_name)
		raw_name = get_string(die, DW_AT_MIPS_linkage_name);
	name = raw_name ? NULL : get_string(die, DW_AT_name);
	if (name)
		raw_name = qualify(tables, die, name);
	*inlined = outer;
	if (!raw_name)
		return 0;
	function = intern(tables, die, raw_name);
	if (function && (!chunk || chunk->n == CHUNK)) {
		chunk = calloc(1, sizeof(*chunk));
		if (chunk) {
			chunk->next = tables->calls;
			tables->calls = chunk;
		}
	}
	if (!function || !chunk)
		return -ENOMEM;
	call = &chunk->v[chunk->n++];
	*call = (struct inlined){
		.function = function,
		.outer = outer,
		.call = get_place(die, dwarf_attr, DW_AT_call_file, DW_AT_call_line),
		.depth = outer ? outer->depth + 1 : 0};
	*inlined = call;
	return 0;
}

/*
 * Lists functions with code. They are children of the unit or of namespaces (in Rust, modules);
 * classes only declare theirs.
 */
static int enter_unit(struct die_walk *walk, Dwarf_Die *die, const void **scope)
{
	struct inline_unit *unit = walk->unit;
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;
	size_t n = unit->ranges.n;
	int tag = dwarf_tag(die);

	if (tag == DW_TAG_namespace || tag == DW_TAG_module)
		return DIE_DESCEND;
	if (tag != DW_TAG_subprogram)
		return DIE_SKIP;
	while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
		if (!spend(walk->tables, RANGE_COST))
			return -E2BIG;
		if (start < end &&
		    VEC_ADD(&unit->ranges, (struct body_range){start, end, unit->bodies.n}))
			return -ENOMEM;
	}
	if (n < unit->ranges.n && VEC_ADD(&unit->bodies, (struct inline_body){.die = *die}))
		return -ENOMEM;
	return DIE_SKIP;
}

/* Lists inlined calls; *scope is the call around the entry. */
static int enter_body(struct die_walk *walk, Dwarf_Die *die, const void **scope)
{
	const struct inlined *inlined, *outer = *scope;
	int tag = dwarf_tag(die), err;
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;

	if (tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block)
		return DIE_DESCEND;
	if (tag != DW_TAG_inlined_subroutine)
		return DIE_SKIP;
	if (!spend(walk->tables, NODE_COST))
		return -E2BIG;
	err = add_inlined(walk->tables, die, outer, &inlined);
	if (err)
		return err;
	*scope = inlined;
	if (inlined == outer)
		return DIE_DESCEND;
	while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
		if (!spend(walk->tables, RANGE_COST))
			return -E2BIG;
		if (start < end &&
		    VEC_ADD(&walk->body->ranges, (struct inline_range){start, end, inlined}))
			return -ENOMEM;
	}
	return DIE_DESCEND;
}

static const struct inlined *look_up(struct elf_image *image, uint64_t vaddr)
{
	struct elf_debug *debug = elf_image__debug(image);
	const struct inlined *found = NULL;
	struct die_walk walk = {0};
	struct inline_unit *unit;
	struct inline_body *body;
	Dwarf_Die die;
	size_t n;

	if (!debug || !elf_debug__unit_at(debug, vaddr, &die))
		return NULL;
	elf_debug__go_to_split(&die);
	if (!debug->inlines) {
		debug->inlines = malloc(sizeof(*debug->inlines));
		if (!debug->inlines)
			return NULL;
		*debug->inlines = (struct inline_tables){.image = image, .budget = BUDGET};
	}
	unit = find_unit(debug->inlines, &die);
	if (!unit)
		return NULL;
	walk = (struct die_walk){.enter = enter_unit, .tables = debug->inlines, .unit = unit};
	if (!unit->has_bodies) {
		unit->has_bodies = true;
		if (walk_children(&walk, &die, NULL, 0))
			unit->ranges.n = 0;
		VEC_SORT_BY(&unit->ranges, start);
	}
	/* The function whose code begins nearest before vaddr. */
	n = VEC_PARTITION_POINT(&unit->ranges, e, e->start <= vaddr);
	if (!n || vaddr >= unit->ranges.v[n - 1].end)
		return NULL;
	body = &unit->bodies.v[unit->ranges.v[n - 1].body];
	if (!body->is_read) {
		body->is_read = true;
		walk.enter = enter_body;
		walk.body = body;
		if (walk_children(&walk, &body->die, NULL, 0))
			body->ranges.n = 0;
	}
	/*
	 * Inner ranges follow the outer ones. A part of an inner range that is outside of the outer
	 * one is ignored.
	 */
	VEC_EACH(&body->ranges, range)
		if (vaddr - range->start < range->end - range->start &&
		    range->inlined->outer == found)
			found = range->inlined;
	return found;
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
