// SPDX-License-Identifier: MIT
#include "target/symbols/live_image.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/kernel.h"
#include "target/elf/elf_internal.h"
#include "target/process.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/units.h"
#include "util/vec.h"

struct line {
	struct perf_map_entry entry;
	size_t number;
};
typedef VEC(struct line) line_vec;

/*
 * Opens the map if it belongs to the process's user or to root, since anybody may write to /tmp.
 * Otherwise -1.
 */
static int open_trusted(const char *path, pid_t pid)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat map, process;
	char folder[32];

	snprintf(folder, sizeof(folder), "/proc/%d", (int)pid);
	if (fd < 0 || (!fstat(fd, &map) && S_ISREG(map.st_mode) &&
		       (!map.st_uid || (!stat(folder, &process) && process.st_uid == map.st_uid))))
		return fd;
	close(fd);
	return -1;
}

/* Looks in the process's own root, under its own pid there, then in ours. */
static int open_map(pid_t pid, char *path, size_t size)
{
	struct task_status status;
	pid_t inside = pid;
	int fd;

	if (!task_status__read(&status, pid) && status.pid_inside)
		inside = status.pid_inside;
	snprintf(path, size, "/proc/%d/root/tmp/perf-%d.map", (int)pid, (int)inside);
	fd = open_trusted(path, pid);
	if (fd >= 0)
		return fd;
	snprintf(path, size, "/tmp/perf-%d.map", (int)pid);
	return open_trusted(path, pid);
}

bool perf_map__exists(pid_t pid)
{
	char path[64];
	_cleanup_close_ int fd = open_map(pid, path, sizeof(path));

	return fd >= 0;
}

char *perf_map__read(pid_t pid, size_t most)
{
	char path[64], *text;
	_cleanup_close_ int fd = open_map(pid, path, sizeof(path));
	size_t len;
	int err;

	if (fd < 0)
		return NULL;
	err = fs__read_fd(fd, most, &text, &len);
	if (err == -EFBIG)
		log__warn("%s exceeds %s and is not read: JIT code is shown without function names",
			  path, BYTES(most));
	return err ? NULL : text;
}

/* Reads hexadecimal digits, with or without 0x, and steps past the blanks after them. */
static bool take_hex(const char **p, uint64_t *value)
{
	char *end;

	if (!isxdigit((unsigned char)**p))
		return false;
	errno = 0;
	*value = strtoull(*p, &end, 16);
	if (errno || *end != ' ')
		return false;
	*p = end + strspn(end, " ");
	return true;
}

static bool parse_line(const char *p, const char *end, struct perf_map_entry *entry)
{
	if (!take_hex(&p, &entry->start) || !take_hex(&p, &entry->size) || p >= end)
		return false;
	entry->name = p;
	entry->name_len = (size_t)(end - p);
	return entry->size && entry->start + entry->size > entry->start;
}

ORDER(compare_lines, struct line,
      COMPARE(x->entry.start, y->entry.start) ?: COMPARE(x->number, y->number))

int perf_map__parse(const char *text, struct perf_map_entry **entries, size_t *n)
{
	line_vec lines = {0};
	size_t out = 0;
	int err = 0;

	while (*text && !err) {
		const char *end = strchrnul(text, '\n');
		struct line line = {.number = lines.n};

		if (parse_line(text, end, &line.entry))
			err = VEC_ADD(&lines, line);
		text = *end ? end + 1 : end;
	}
	VEC_SORT(&lines, compare_lines);
	/* An older line is dropped if a newer one has taken one of its addresses. */
	VEC_EACH(&lines, line) {
		struct line *last = out ? &lines.v[out - 1] : NULL;

		while (out && line->number > last->number &&
		       last->entry.start + last->entry.size > line->entry.start)
			last = --out ? last - 1 : NULL;
		if (!out || last->entry.start + last->entry.size <= line->entry.start)
			lines.v[out++] = *line;
	}
	*n = out;
	*entries = err ? NULL : malloc((out + 1) * sizeof(**entries));
	for (size_t i = 0; *entries && i < out; i++)
		(*entries)[i] = lines.v[i].entry;
	VEC_FINI(&lines);
	return *entries ? 0 : -ENOMEM;
}

/*
 * Makes segments of the pieces, and copies their bytes; *total: how many. If two pieces overlap,
 * the second begins after the first. Adjacent ones, of two mappings, become one segment: functions
 * may reach over the border. Returns the number of segments.
 */
static size_t join(struct jit_piece *pieces, size_t n, struct elf_segment *segments, uint8_t *bytes,
		   size_t *total)
{
	size_t out = 0, at = 0;
	uint64_t end = 0;

	SORT_BY(pieces, n, start);
	for (size_t i = 0; i < n; i++) {
		struct jit_piece piece = pieces[i];
		uint64_t skip = piece.start < end ? end - piece.start : 0;

		if (skip >= piece.size)
			continue;
		piece.start += skip;
		piece.bytes += skip;
		piece.size -= skip;
		if (out && end == piece.start)
			segments[out - 1].size += piece.size;
		else
			segments[out++] = (struct elf_segment){piece.start, at, piece.size};
		memcpy(bytes + at, piece.bytes, piece.size);
		at += piece.size;
		end = piece.start + piece.size;
	}
	*total = at;
	return out;
}

static int name_functions(struct elf_image *image, const char *perf_map)
{
	_cleanup_free_ struct perf_map_entry *entries = NULL;
	size_t n = 0;
	int err = perf_map__parse(perf_map ? perf_map : "", &entries, &n);

	for (size_t i = 0; i < n && !err; i++) {
		const struct perf_map_entry *e = &entries[i];
		const char *name;

		if (!elf_image__segment(image, e->start))
			continue;
		name = elf_image__keep(image, e->name, e->name_len);
		if (!name || !function_entry__add(&image->symbols, image, e->start, e->size, name))
			err = -ENOMEM;
	}
	if (!err)
		elf_image__settle_symbols(image);
	return err;
}

struct elf_image *jit_image__new(const struct jit_piece *pieces, size_t n, const char *perf_map)
{
	_cleanup_free_ struct jit_piece *sorted = calloc(n + 1, sizeof(*sorted));
	_cleanup_free_ struct elf_segment *segments = calloc(n + 1, sizeof(*segments));
	_cleanup_free_ uint8_t *bytes = NULL;
	struct elf_image *image;
	size_t total = 0, n_segments;
	int err;

	for (size_t i = 0; i < n; i++)
		total += pieces[i].size;
	bytes = malloc(total + 1);
	if (!sorted || !segments || !bytes)
		return NULL;
	if (n)
		memcpy(sorted, pieces, n * sizeof(*sorted));
	n_segments = join(sorted, n, segments, bytes, &total);
	errno = ENOENT;
	image = n_segments
			? elf_image__from_segments(bytes, total, segments, n_segments, JIT_MODULE)
			: NULL;
	err = image ? name_functions(image, perf_map) : 0;
	if (!err)
		return image;
	elf_image__free(image);
	errno = -err;
	return NULL;
}

int jit_image__map(struct elf_image *jit, uint64_t start, uint64_t len, struct code_map *map)
{
	int err = 0;

	for (size_t i = 0; i < jit->n_segments && err != -ENOMEM; i++) {
		const struct elf_segment *segment = &jit->segments[i];
		uint64_t from = segment->vaddr > start ? segment->vaddr : start;
		uint64_t to = segment->vaddr + segment->size;

		if (to > start + len)
			to = start + len;
		if (from < to)
			err = code_map__add(map, from, to - from,
					    segment->offset + (from - segment->vaddr), jit);
	}
	return err == -ENOMEM ? err : 0;
}

/* Makes an image's functions of the kernel's symbols. */
struct symbol_reader {
	struct elf_image *image;
	const char *module;    /* name of the last symbol's module, kept in the image; NULL: none */
	const char *module_at; /* in the text: a module's symbols are adjacent */
	size_t module_len;
	uint32_t unit;
};

/* "name\t[module]" becomes the function's name; its raw name is without the module. */
static int name_function(struct symbol_reader *r, struct function_entry *entry,
			 const struct kallsym *sym)
{
	struct function *f = &entry->function;
	char *name = (char *)sym->name; /* in our copy of the text */

	if (!sym->module) {
		f->module = KERNEL_MODULE;
		name[sym->name_len] = '\0';
		function_entry__set_name(entry, name);
		return 0;
	}
	if (!r->module || r->module_len != sym->module_len ||
	    memcmp(r->module_at, sym->module, sym->module_len)) {
		r->module = elf_image__keep(r->image, sym->module, sym->module_len);
		r->module_at = sym->module;
		r->module_len = sym->module_len;
		r->unit++;
	}
	f->module = r->module;
	f->raw_name = elf_image__keep(r->image, name, sym->name_len);
	name[sym->name_len] = ' ';
	name[sym->module + sym->module_len + 1 - name] = '\0';
	f->name = name;
	entry->unit = r->unit;
	return f->module && f->raw_name ? 0 : -ENOMEM;
}

/* Aliases: as of an ELF file, the one with the fewest underscores speaks for the address. */
static uint8_t rank(const struct kallsym *sym)
{
	size_t underscores = strspn(sym->name, "_");

	return (uint8_t)((underscores < 7 ? underscores : 7) << 1 |
			 (sym->type == 't' || sym->type == 'w'));
}

struct elf_image *kernel_image__open(int kcore, const char *kallsyms)
{
	struct elf_image *image = elf_image__open_core(kcore, KERNEL_MODULE);
	struct symbol_reader reader = {.image = image};
	const char *text = image ? elf_image__keep(image, kallsyms, strlen(kallsyms)) : NULL;
	struct kallsym sym;
	int err = text ? 0 : -ENOMEM;

	if (!image)
		return NULL;
	/* The parser is one line ahead of where name_function() changes the text. */
	while (!err && kallsyms__next(&text, &sym)) {
		struct function_entry entry = {.function = {.image = image, .vaddr = sym.address},
					       .rank = rank(&sym)};

		if (!kallsym__is_code(&sym) || !elf_image__segment(image, sym.address))
			continue;
		err = name_function(&reader, &entry, &sym);
		if (!err)
			err = VEC_ADD(&image->symbols, entry);
	}
	if (!err) {
		elf_image__settle_symbols(image);
		return image;
	}
	elf_image__free(image);
	errno = -err;
	return NULL;
}

int kernel_image__map(struct elf_image *kernel, struct code_map *map)
{
	return jit_image__map(kernel, 0, UINT64_MAX, map);
}
