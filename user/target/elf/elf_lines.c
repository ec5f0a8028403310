// SPDX-License-Identifier: MIT
#include "target/elf/elf_lines.h"

#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "target/elf/elf_go.h"
#include "target/elf/elf_internal.h"

/*
 * An address finds its unit in an index of all units' ranges, made once (.debug_aranges would do,
 * but clang leaves it out). What is in a unit is read when it is first asked for.
 */

static int index_units(struct elf_debug *debug)
{
	Dwarf_Addr base, start, end;
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	int err = 0;

	while (!err && !dwarf_get_units(debug->dwarf, cu, &cu, NULL, NULL, &die, NULL)) {
		int tag = dwarf_tag(&die);
		ptrdiff_t offset = 0;

		if (tag != DW_TAG_compile_unit && tag != DW_TAG_skeleton_unit)
			continue;
		while (!err && (offset = dwarf_ranges(&die, offset, &base, &start, &end)) > 0)
			if (start < end)
				err = VEC_ADD(
					&debug->units,
					(struct unit_range){start, end, dwarf_dieoffset(&die)});
	}
	VEC_SORT_BY(&debug->units, start);
	return err;
}

static void free_debug(struct elf_debug *debug)
{
	inline_tables__free(debug->inlines);
	VEC_FINI(&debug->units);
	dwarf_end(debug->dwarf);
	dwarf_end(debug->alt);
	elf_end(debug->elf);
	free(debug->headers);
	free(debug);
}

/*
 * Hides compressed sections that are not needed: libdw would decompress them when it begins, which
 * delays the first trace of a function of libc. libdw ignores sections without bytes (elfutils:
 * libdw/dwarf_begin_elf.c, check_section()). True if sections of locations were hidden.
 */
static bool hide_unused(Elf *elf, bool needs_locations)
{
	bool hides_locations = false;
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		bool is_unused, has_locations;
		const char *name;
		GElf_Shdr shdr;

		if (!gelf_getshdr(scn, &shdr) || !(shdr.sh_flags & SHF_COMPRESSED))
			continue;
		name = elf_strptr(elf, names, shdr.sh_name) ?: "";
		is_unused = !strcmp(name, ".debug_aranges") || !strcmp(name, ".debug_macro");
		has_locations = !strcmp(name, ".debug_loclists") || !strcmp(name, ".debug_loc");
		if (!is_unused && (needs_locations || !has_locations))
			continue;
		hides_locations |= has_locations;
		shdr.sh_type = SHT_NOBITS;
		gelf_update_shdr(scn, &shdr);
	}
	return hides_locations;
}

/* Returns the section headers among a file's bytes; NULL if they are not there. */
static void *section_headers(const void *bytes, size_t size, size_t *len)
{
	Elf64_Ehdr header;

	if (size < sizeof(header))
		return NULL;
	memcpy(&header, bytes, sizeof(header));
	*len = (size_t)header.e_shnum * sizeof(Elf64_Shdr);
	if (!*len || header.e_shentsize != sizeof(Elf64_Shdr) ||
	    !elf_file__has(header.e_shoff, *len, size))
		return NULL;
	return (char *)bytes + header.e_shoff;
}

static struct elf_debug *open_debug(const struct elf_image *image, bool needs_locations)
{
	struct elf_debug *debug = calloc(1, sizeof(*debug));
	const void *bytes, *headers;
	size_t size, len;
	Elf *alt;

	if (!debug)
		return NULL;
	bytes = elf_image__debug_bytes(image, &size);
	/* libelf changes the headers in place, which a second reading needs as they were. */
	headers = section_headers(bytes, size, &len);
	debug->headers = headers ? malloc(len) : NULL;
	if (debug->headers)
		memcpy(debug->headers, headers, len);
	debug->elf = elf_memory((char *)bytes, size);
	if (!debug->elf || !hide_unused(debug->elf, needs_locations || !debug->headers)) {
		free(debug->headers);
		debug->headers = NULL;
	}
	if (debug->elf)
		debug->dwarf = dwarf_begin_elf(debug->elf, DWARF_C_READ, NULL);
	alt = debug->dwarf ? elf_image__alt_elf(image) : NULL;
	debug->alt = alt ? dwarf_begin_elf(alt, DWARF_C_READ, NULL) : NULL;
	if (debug->alt)
		dwarf_setalt(debug->dwarf, debug->alt);
	if (!debug->dwarf || index_units(debug)) {
		free_debug(debug);
		return NULL;
	}
	return debug;
}

struct elf_debug *elf_image__debug(struct elf_image *image)
{
	if (!image->has_debug) {
		image->debug = image->elf ? open_debug(image, false) : NULL;
		image->has_debug = true;
	}
	return image->debug;
}

struct elf_debug *elf_image__debug_with_locations(struct elf_image *image)
{
	const void *bytes;
	size_t size, len;
	void *headers;

	if (!image->has_debug) {
		image->debug = image->elf ? open_debug(image, true) : NULL;
		image->has_debug = true;
	}
	if (!image->debug || !image->debug->headers || image->located)
		return image->located ? image->located : image->debug;
	/* Callers still use the first handle, and libdw has read its sections: this opens another.
	 */
	bytes = elf_image__debug_bytes(image, &size);
	headers = section_headers(bytes, size, &len);
	if (headers)
		memcpy(headers, image->debug->headers, len);
	image->located = headers ? open_debug(image, true) : NULL;
	return image->located;
}

void elf_image__free_debug(struct elf_image *image)
{
	if (image->debug)
		free_debug(image->debug);
	if (image->located)
		free_debug(image->located);
	image->debug = image->located = NULL;
}

/* Takes the unit whose code begins nearest before vaddr. */
bool elf_debug__unit_at(const struct elf_debug *debug, uint64_t vaddr, Dwarf_Die *unit)
{
	size_t n = VEC_PARTITION_POINT(&debug->units, e, e->start <= vaddr);

	return n && vaddr < debug->units.v[n - 1].end &&
	       dwarf_offdie(debug->dwarf, debug->units.v[n - 1].die, unit);
}

static const char *get_string(Dwarf_Die *unit, unsigned int name)
{
	Dwarf_Attribute attr;

	return dwarf_formstring(dwarf_attr(unit, name, &attr));
}

void elf_debug__go_to_split(Dwarf_Die *unit)
{
	const char *dir = get_string(unit, DW_AT_comp_dir), *name;
	char path[PATH_MAX];
	Dwarf_Die split;
	struct stat st;
	uint8_t type;
	int n;

	name = get_string(unit, DW_AT_dwo_name);
	if (!name)
		name = get_string(unit, DW_AT_GNU_dwo_name);
	if (!name)
		return;
	/* libdw opens what the unit names; a fifo would keep it waiting. */
	n = name[0] == '/' ? snprintf(path, sizeof(path), "%s", name)
			   : snprintf(path, sizeof(path), "%s/%s", dir ? dir : "", name);
	if (n <= 0 || (size_t)n >= sizeof(path) || stat(path, &st) || !S_ISREG(st.st_mode))
		return;
	if (!dwarf_cu_info(unit->cu, NULL, &type, NULL, &split, NULL, NULL, NULL) &&
	    type == DW_UT_skeleton && split.addr)
		*unit = split;
}

struct line_search {
	const char *file;
	unsigned int line;
	struct line_found *found;
	/* The last name that was compared: rows of one file follow each other, and share it. */
	const char *compared;
	bool is_file;
};

/* True if the path ends with the wanted one, in whole components. */
static bool is_of_file(struct line_search *s, const char *path)
{
	if (path != s->compared) {
		size_t len = path ? strlen(path) : 0, wanted = strlen(s->file);

		s->compared = path;
		s->is_file = path && wanted <= len && !strcmp(path + len - wanted, s->file) &&
			     (wanted == len || path[len - wanted - 1] == '/');
	}
	return s->is_file;
}

static int take_row(struct line_search *s, uint64_t vaddr, unsigned int line)
{
	s->found->has_file = true;
	if (line == s->line)
		return VEC_ADD(&s->found->vaddrs, vaddr);
	if (line > s->line && (!s->found->next || line < s->found->next))
		s->found->next = line;
	if (line < s->line && line > s->found->previous)
		s->found->previous = line;
	return 0;
}

static int look_at_go_line(void *ctx, uint64_t vaddr, const struct source_place *place)
{
	struct line_search *s = ctx;

	return is_of_file(s, place->file) ? take_row(s, vaddr, place->line) : 0;
}

static int look_at_unit(struct line_search *s, Dwarf_Die *unit)
{
	Dwarf_Lines *rows;
	int err = 0;
	size_t n;

	if (dwarf_getsrclines(unit, &rows, &n))
		return 0;
	s->compared = NULL;
	s->is_file = false;
	for (size_t i = 0; i < n && !err; i++) {
		Dwarf_Line *row = dwarf_onesrcline(rows, i);
		bool is_statement, is_end;
		Dwarf_Addr vaddr;
		int line;

		/* Line 0 is code that belongs to none. */
		if (is_of_file(s, dwarf_linesrc(row, NULL, NULL)) &&
		    !dwarf_linebeginstatement(row, &is_statement) && is_statement &&
		    !dwarf_lineendsequence(row, &is_end) && !is_end && !dwarf_lineno(row, &line) &&
		    line > 0 && !dwarf_lineaddr(row, &vaddr))
			err = take_row(s, vaddr, (unsigned int)line);
	}
	return err;
}

int elf_image__find_line(struct elf_image *image, const char *file, unsigned int line,
			 struct line_found *found)
{
	struct line_search search = {.file = file, .line = line, .found = found};
	struct elf_debug *debug;
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	size_t out = 0;
	int err = 0;

	pthread_mutex_lock(&image->source_lock);
	debug = elf_image__debug(image);
	while (debug && !err && !dwarf_get_units(debug->dwarf, cu, &cu, NULL, NULL, &die, NULL)) {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_compile_unit || tag == DW_TAG_skeleton_unit)
			err = look_at_unit(&search, &die);
	}
	pthread_mutex_unlock(&image->source_lock);
	if (!err && !debug && image->go)
		err = go_table__each_line(image->go, look_at_go_line, &search);
	VEC_SORT_U64(&found->vaddrs);
	VEC_EACH(&found->vaddrs, vaddr)
		if (!out || found->vaddrs.v[out - 1] != *vaddr)
			found->vaddrs.v[out++] = *vaddr;
	found->vaddrs.n = out;
	return err;
}

/* ---- the lines of functions and of instructions. libdw caches those of a unit. */

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

/* The place of the code at vaddr, which the image keeps for later calls. */
static const struct source_place *find_place(struct elf_image *image, uint64_t vaddr)
{
	struct elf_debug *debug = elf_image__debug(image);
	struct source_place place, *kept;
	Dwarf_Die unit;

	if (!(debug && elf_debug__unit_at(debug, vaddr, &unit) &&
	      get_place(first_line(&unit, vaddr), &place)) &&
	    !(image->go && go_table__source_at(image->go, vaddr, &place)))
		return &no_place;
	kept = malloc(sizeof(*kept));
	if (!kept || VEC_ADD(&image->places, kept)) {
		free(kept);
		return &no_place;
	}
	*kept = place;
	return kept;
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
