// SPDX-License-Identifier: MIT
/*
 * Lines from .debug_line. An address finds its unit in an index of all units' ranges, made once
 * (.debug_aranges would do, but clang leaves it out); libdw then keeps the lines of each unit.
 */
#include "target/elf_internal.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct unit_range {
	uint64_t start, end;
	Dwarf_Off die;
};

struct elf_debug {
	Elf *elf; /* of its own: libdw changes what compressed sections read as */
	Dwarf *dwarf;
	VEC(struct unit_range) units; /* ascending by start */
	VEC(struct source_place *) places;
};

/* What function_entry.source points to where there is no line. */
static const struct source_place no_place;

static int add_unit(struct elf_debug *debug, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;

	while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
		struct unit_range *range;

		if (start >= end)
			continue;
		range = VEC_PUSH(&debug->units);
		if (!range)
			return -ENOMEM;
		*range = (struct unit_range){start, end, dwarf_dieoffset(die)};
	}
	return 0;
}

static int compare_units(const void *a, const void *b)
{
	const struct unit_range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int index_units(struct elf_debug *debug)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	int err = 0;

	while (!err && !dwarf_get_units(debug->dwarf, cu, &cu, NULL, NULL, &die, NULL))
		if (dwarf_tag(&die) == DW_TAG_compile_unit)
			err = add_unit(debug, &die);
	if (debug->units.n)
		qsort(debug->units.v, debug->units.n, sizeof(*debug->units.v), compare_units);
	return err;
}

static void free_debug(struct elf_debug *debug)
{
	for (size_t i = 0; i < debug->places.n; i++)
		free(debug->places.v[i]);
	VEC_FINI(&debug->places);
	VEC_FINI(&debug->units);
	dwarf_end(debug->dwarf);
	elf_end(debug->elf);
	free(debug);
}

static struct elf_debug *open_debug(const struct elf_image *image)
{
	struct elf_debug *debug = calloc(1, sizeof(*debug));
	const void *bytes;
	size_t size;

	if (!debug)
		return NULL;
	bytes = elf_image__debug_bytes(image, &size);
	debug->elf = elf_memory((char *)bytes, size);
	if (debug->elf)
		debug->dwarf = dwarf_begin_elf(debug->elf, DWARF_C_READ, NULL);
	if (!debug->dwarf || index_units(debug)) {
		free_debug(debug);
		return NULL;
	}
	return debug;
}

void elf_image__free_debug(struct elf_image *image)
{
	if (image->debug)
		free_debug(image->debug);
	image->debug = NULL;
}

/* The unit whose code is nearest before vaddr and covers it; NULL where none does. */
static const struct unit_range *find_unit(const struct elf_debug *debug, uint64_t vaddr)
{
	size_t lo = 0, hi = debug->units.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (debug->units.v[mid].start <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && vaddr < debug->units.v[lo - 1].end ? &debug->units.v[lo - 1] : NULL;
}

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

/* False where no line is known. */
static bool look_up(struct elf_debug *debug, uint64_t vaddr, struct source_place *place)
{
	const struct unit_range *unit = find_unit(debug, vaddr);
	Dwarf_Die die;
	Dwarf_Line *line;
	int number;

	if (!unit || !dwarf_offdie(debug->dwarf, unit->die, &die))
		return false;
	line = first_line(&die, vaddr);
	if (!line || dwarf_lineno(line, &number) || number <= 0)
		return false;
	place->file = dwarf_linesrc(line, NULL, NULL);
	place->line = (unsigned int)number;
	return place->file != NULL;
}

/* The place as it is kept for the next who asks. */
static const struct source_place *keep_place(struct elf_debug *debug, struct source_place place)
{
	struct source_place *kept = malloc(sizeof(*kept));
	struct source_place **slot = kept ? VEC_PUSH(&debug->places) : NULL;

	if (!slot) {
		free(kept);
		return &no_place;
	}
	*kept = place;
	*slot = kept;
	return kept;
}

static void prepare(struct elf_image *image)
{
	if (image->has_debug)
		return;
	image->debug = image->elf ? open_debug(image) : NULL;
	image->has_debug = true;
}

bool elf_image__is_used(const struct elf_image *image)
{
	return __atomic_load_n(&image->known, __ATOMIC_ACQUIRE);
}

void elf_image__prepare_source(struct elf_image *image)
{
	pthread_mutex_lock(&image->source_lock);
	prepare(image);
	pthread_mutex_unlock(&image->source_lock);
}

static const struct source_place *find_place(struct elf_image *image, uint64_t vaddr)
{
	struct source_place place;

	prepare(image);
	if (!image->debug || !look_up(image->debug, vaddr, &place))
		return &no_place;
	return keep_place(image->debug, place);
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
