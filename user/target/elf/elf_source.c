// SPDX-License-Identifier: MIT
/*
 * Lines from .debug_line: of functions, and of single instructions. libdw keeps those of a unit.
 * Without them, from the table that Go programs have.
 */
#include "target/elf/elf_internal.h"

#include <stdlib.h>

#include "target/elf/elf_go.h"

/* function_entry.source points here if the line is unknown. */
static const struct source_place no_place;

/*
 * The first row at vaddr. Optimised code often has several: the function's own line, then that of
 * the statement which the first instruction belongs to (the one dwarf_getsrc_die() gives).
 */
static Dwarf_Line *first_line(Dwarf_Die *unit, uint64_t vaddr)
{
	size_t lo = 0, n;
	Dwarf_Lines *lines;
	Dwarf_Line *line;
	Dwarf_Addr addr;
	bool ends;

	if (dwarf_getsrclines(unit, &lines, &n))
		return NULL;
	for (size_t hi = n; lo < hi;) {
		size_t mid = lo + (hi - lo) / 2;

		if (!dwarf_lineaddr(dwarf_onesrcline(lines, mid), &addr) && addr < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < n; lo++) {
		line = dwarf_onesrcline(lines, lo);
		if (dwarf_lineaddr(line, &addr) || addr != vaddr)
			break;
		if (!dwarf_lineendsequence(line, &ends) && !ends)
			return line;
	}
	return dwarf_getsrc_die(unit, vaddr);
}

/* False if the line is unknown; line 0 marks code without a line. */
static bool get_place(Dwarf_Line *line, struct source_place *place)
{
	int number;

	if (!line || dwarf_lineno(line, &number) || number <= 0)
		return false;
	place->file = dwarf_linesrc(line, NULL, NULL);
	place->line = (unsigned int)number;
	return place->file != NULL;
}

bool elf_image__source_at(struct elf_image *image, uint64_t vaddr, struct source_place *place)
{
	struct elf_debug *debug;
	bool found = false;
	Dwarf_Die unit;

	pthread_mutex_lock(&image->source_lock);
	debug = elf_image__debug(image);
	if (debug && elf_debug__unit_at(debug, vaddr, &unit))
		found = get_place(dwarf_getsrc_die(&unit, vaddr), place);
	pthread_mutex_unlock(&image->source_lock);
	return found || (image->go && go_table__source_at(image->go, vaddr, place));
}

/* The place as it is kept for the next who asks. */
static const struct source_place *keep_place(struct elf_image *image, struct source_place place)
{
	struct source_place *kept = malloc(sizeof(*kept));
	struct source_place **slot = kept ? VEC_PUSH(&image->places) : NULL;

	if (!slot) {
		free(kept);
		return &no_place;
	}
	*kept = place;
	*slot = kept;
	return kept;
}

bool elf_image__is_used(const struct elf_image *image)
{
	return __atomic_load_n(&image->known, __ATOMIC_ACQUIRE);
}

void elf_image__prepare_source(struct elf_image *image)
{
	pthread_mutex_lock(&image->source_lock);
	elf_image__debug(image);
	pthread_mutex_unlock(&image->source_lock);
}

static const struct source_place *find_place(struct elf_image *image, uint64_t vaddr)
{
	struct elf_debug *debug = elf_image__debug(image);
	struct source_place place;
	Dwarf_Die unit;

	if (debug && elf_debug__unit_at(debug, vaddr, &unit) &&
	    get_place(first_line(&unit, vaddr), &place))
		return keep_place(image, place);
	if (image->go && go_table__source_at(image->go, vaddr, &place))
		return keep_place(image, place);
	return &no_place;
}

bool function__source(const struct function *function, struct source_place *place)
{
	/* Every function of an image is the first member of an entry, none of them const. */
	struct function_entry *entry = (struct function_entry *)function;
	struct elf_image *image = function->image;
	const struct source_place *source = __atomic_load_n(&entry->source, __ATOMIC_ACQUIRE);

	if (!source) {
		pthread_mutex_lock(&image->source_lock);
		if (!entry->source)
			__atomic_store_n(&entry->source, find_place(image, function->vaddr),
					 __ATOMIC_RELEASE);
		source = entry->source;
		pthread_mutex_unlock(&image->source_lock);
	}
	*place = *source;
	return source->file != NULL;
}
