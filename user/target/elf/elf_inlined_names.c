// SPDX-License-Identifier: MIT
#include "target/elf/elf_inlined.h"

#include <dwarf.h>
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

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

void inline_names__init(struct inline_names *names, struct elf_image *image, uint64_t *budget)
{
	*names =
		(struct inline_names){.image = image, .scopes = {.image = image, .budget = budget}};
}

void inline_names__fini(struct inline_names *names)
{
	inline_scopes__fini(&names->scopes);
	tdestroy(names->functions, free);
	while (names->calls) {
		struct inlined_chunk *next = names->calls->next;

		free(names->calls);
		names->calls = next;
	}
}

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

static int compare_functions(const void *a, const void *b)
{
	const struct inline_function *x = a, *y = b;
	int order = strcmp(x->entry.function.raw_name, y->entry.function.raw_name);

	if (!order)
		order = compare_strings(x->place.file, y->place.file);
	return order ? order : (x->place.line > y->place.line) - (x->place.line < y->place.line);
}

/* Integrated, since it is where the function is; NULL where there is none. */
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
 * The attribute's file, by the table of the unit that it stands in. 0 is a file from DWARF 5 on
 * (6.2.4 there), which dwarf_decl_file() does not know.
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

static struct source_place declaration_of(Dwarf_Die *die)
{
	return get_place(die, dwarf_attr_integrate, DW_AT_decl_file, DW_AT_decl_line);
}

static struct source_place call_of(Dwarf_Die *die)
{
	return get_place(die, dwarf_attr, DW_AT_call_file, DW_AT_call_line);
}

static const struct function *intern(struct inline_names *names, Dwarf_Die *die,
				     const char *raw_name)
{
	struct inline_function key = {.place = declaration_of(die)}, **found, *new;

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

int inline_names__add(struct inline_names *names, Dwarf_Die *die, const struct inlined *outer,
		      const struct inlined **inlined)
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
	*call = (struct inlined){.function = function,
				 .outer = outer,
				 .call = call_of(die),
				 .depth = outer ? outer->depth + 1 : 0};
	*inlined = call;
	return 0;
}

void inline_names__make_readable(const struct inlined *inlined)
{
	/* The first member of an entry, which is not const. */
	function_entry__make_readable((struct function_entry *)inlined->function);
}
