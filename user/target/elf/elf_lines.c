// SPDX-License-Identifier: MIT
#include "target/elf/elf_lines.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/elf_debug.h"
#include "target/elf/elf_go.h"

struct line_search {
	const char *file;
	unsigned int line;
	struct line_found *found;
	/* The last name that was compared: rows of one file follow each other, and share it. */
	const char *compared;
	bool is_file;
};

/* Whether the path ends with the wanted one, in whole parts. */
static bool is_wanted(const char *path, const char *file)
{
	size_t len = strlen(path), wanted = strlen(file);

	return wanted <= len && !strcmp(path + len - wanted, file) &&
	       (wanted == len || path[len - wanted - 1] == '/');
}

static int add_vaddr(struct line_found *found, uint64_t vaddr)
{
	uint64_t *slot = VEC_PUSH(&found->vaddrs);

	if (!slot)
		return -ENOMEM;
	*slot = vaddr;
	return 0;
}

static void note_other(struct line_found *found, unsigned int wanted, unsigned int line)
{
	if (line > wanted && (!found->next || line < found->next))
		found->next = line;
	if (line < wanted && line > found->previous)
		found->previous = line;
}

static bool is_of_file(struct line_search *s, const char *path)
{
	if (path != s->compared) {
		s->compared = path;
		s->is_file = path && is_wanted(path, s->file);
	}
	return s->is_file;
}

static int take_row(struct line_search *s, uint64_t vaddr, unsigned int line)
{
	s->found->has_file = true;
	if (line == s->line)
		return add_vaddr(s->found, vaddr);
	note_other(s->found, s->line, line);
	return 0;
}

static int look_at_row(struct line_search *s, Dwarf_Line *row)
{
	bool is_statement, is_end;
	Dwarf_Addr vaddr;
	int line;

	/* Line 0 is code that belongs to none. */
	if (!is_of_file(s, dwarf_linesrc(row, NULL, NULL)) ||
	    dwarf_linebeginstatement(row, &is_statement) || !is_statement ||
	    dwarf_lineendsequence(row, &is_end) || is_end || dwarf_lineno(row, &line) ||
	    line <= 0 || dwarf_lineaddr(row, &vaddr))
		return 0;
	return take_row(s, vaddr, (unsigned int)line);
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
	for (size_t i = 0; i < n && !err; i++)
		err = look_at_row(s, dwarf_onesrcline(rows, i));
	return err;
}

static int look_at_units(struct line_search *s, Dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	int err = 0;

	while (!err && !dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &die, NULL)) {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_compile_unit || tag == DW_TAG_skeleton_unit)
			err = look_at_unit(s, &die);
	}
	return err;
}

static int compare_vaddrs(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void sort(struct line_found *found)
{
	size_t out = 0;

	if (!found->vaddrs.n)
		return;
	VEC_SORT(&found->vaddrs, compare_vaddrs);
	for (size_t i = 0; i < found->vaddrs.n; i++)
		if (!out || found->vaddrs.v[out - 1] != found->vaddrs.v[i])
			found->vaddrs.v[out++] = found->vaddrs.v[i];
	found->vaddrs.n = out;
}

int elf_image__find_line(struct elf_image *image, const char *file, unsigned int line,
			 struct line_found *found)
{
	struct line_search search = {.file = file, .line = line, .found = found};
	struct elf_debug *debug;
	int err;

	pthread_mutex_lock(&image->source_lock);
	debug = elf_image__debug(image);
	err = debug ? look_at_units(&search, debug->dwarf) : 0;
	pthread_mutex_unlock(&image->source_lock);
	if (!err && !debug && image->go)
		err = go_table__each_line(image->go, look_at_go_line, &search);
	sort(found);
	return err;
}
