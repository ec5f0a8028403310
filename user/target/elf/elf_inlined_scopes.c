// SPDX-License-Identifier: MIT
#include "target/elf/elf_inlined_scopes.h"

#include <dwarf.h>
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/die_walk.h"

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

void inline_scopes__fini(struct inline_scopes *scopes)
{
	tdestroy(scopes->units, free_unit);
}

static int compare_units(const void *a, const void *b)
{
	const struct scope_unit *x = a, *y = b;

	return (x->die > y->die) - (x->die < y->die);
}

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

/* The entry becomes that of its declaration, which lies where the function was declared. */
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
	struct scoped *function;

	if (!*scope)
		*scope = declared_in(unit, die);
	function = *scope ? VEC_PUSH(&unit->functions) : NULL;
	if (*scope && !function)
		return -ENOMEM;
	if (function)
		*function = (struct scoped){.die = die->addr, .scope = *scope};
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

/* In front of what stands at `at` in the text. The new place, or NULL where it has no room. */
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

const char *inline_scopes__qualify(struct inline_scopes *scopes, Dwarf_Die *die, const char *name)
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
