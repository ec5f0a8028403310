// SPDX-License-Identifier: MIT
#include "target/elf/elf_go.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The table's first word gives its version (cmd/internal/objabi, debug/gosym: go12magic...). */
enum go_version {
	GO_1_2 = 0xfffffffb,
	GO_1_16 = 0xfffffffa,
	GO_1_18 = 0xfffffff0,
	GO_1_20 = 0xfffffff1,
};

/* The magic number, two zeros, the size of an instruction's unit and of a pointer. */
#define HEADER_SIZE 8
#define POINTER	    8

/* Offsets count from the table's start. Each is checked where it is used. */
struct go_table {
	const uint8_t *data; /* of the file, or a copy of our own */
	size_t size;
	bool is_copy;
	bool is_relative; /* functions' addresses are 32 bits, from text_start on */
	bool has_units;	  /* files are numbered by compilation unit */
	uint64_t n_funcs;
	uint64_t text_start;
	uint64_t names, units, files, pcs; /* the tables in it */
	uint64_t funcs;			   /* pairs of an address and where its struct is */
	uint64_t structs; /* the places of structs in `funcs` are relative to this */
};

/* A function's struct, as far as it is used (runtime/runtime2.go: _func). */
struct go_func {
	uint64_t vaddr, end;
	uint32_t name, file, line, unit;
};

static bool read_u32(const struct go_table *go, uint64_t at, uint32_t *value)
{
	if (at > go->size || sizeof(*value) > go->size - at)
		return false;
	memcpy(value, go->data + at, sizeof(*value));
	return true;
}

static bool read_u64(const struct go_table *go, uint64_t at, uint64_t *value)
{
	if (at > go->size || sizeof(*value) > go->size - at)
		return false;
	memcpy(value, go->data + at, sizeof(*value));
	return true;
}

/* The longest string that is read: the name of a generic function contains those of its types. */
#define STRING_MAX 65536

/* NULL if it does not end inside the table, or is empty. */
static const char *read_string(const struct go_table *go, uint64_t at)
{
	size_t left = at < go->size ? go->size - at : 0;

	if (!left || !go->data[at] ||
	    !memchr(go->data + at, '\0', left < STRING_MAX ? left : STRING_MAX))
		return NULL;
	return (const char *)go->data + at;
}

/* Word number n of the pairs of an address and a struct's offset. */
static bool read_word(const struct go_table *go, uint64_t n, uint64_t *value)
{
	uint32_t word;

	if (!go->is_relative)
		return read_u64(go, go->funcs + n * POINTER, value);
	if (!read_u32(go, go->funcs + n * sizeof(word), &word))
		return false;
	*value = word;
	return true;
}

/*
 * Reads the address of pair `index`; that of pair n_funcs is the end of the last function's code.
 */
static bool read_entry(const struct go_table *go, uint64_t index, uint64_t *vaddr)
{
	if (!read_word(go, 2 * index, vaddr))
		return false;
	*vaddr += go->is_relative ? go->text_start : 0;
	return true;
}

static bool read_func(const struct go_table *go, uint64_t index, struct go_func *func)
{
	/* Its first field is its address. Name, arguments, deferreturn, pcsp, pcfile, pcln follow.
	 */
	uint64_t at, first = go->is_relative ? sizeof(uint32_t) : POINTER;

	*func = (struct go_func){0};
	if (!read_entry(go, index, &func->vaddr) || !read_entry(go, index + 1, &func->end) ||
	    func->end <= func->vaddr || !read_word(go, 2 * index + 1, &at) || at > go->size)
		return false;
	at += go->structs + first;
	/* And npcdata, then the unit. */
	return read_u32(go, at, &func->name) && read_u32(go, at + 16, &func->file) &&
	       read_u32(go, at + 20, &func->line) &&
	       (!go->has_units || read_u32(go, at + 28, &func->unit));
}

/* A table of values, each for the addresses up to where the next one begins (runtime: pcvalue()).
 */
struct pc_values {
	const uint8_t *at, *end;
	uint64_t from, to; /* `value` holds for addresses in [from, to) */
	uint32_t value;
	bool has_begun;
};

static struct pc_values begin_values(const struct go_table *go, uint64_t offset, uint64_t vaddr)
{
	uint64_t at = go->pcs + offset;

	if (!offset || at > go->size)
		at = go->size;
	return (struct pc_values){
		.at = go->data + at, .end = go->data + go->size, .to = vaddr, .value = UINT32_MAX};
}

static bool read_varint(struct pc_values *values, uint32_t *value)
{
	*value = 0;
	for (unsigned int shift = 0; shift < 35 && values->at < values->end; shift += 7) {
		uint8_t byte = *values->at++;

		*value |= (uint32_t)((uint64_t)(byte & 0x7f) << shift);
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* Steps to the next value. False at the end. */
static bool next_value(struct pc_values *values)
{
	uint32_t change, distance;

	if (!read_varint(values, &change) || (!change && values->has_begun) ||
	    !read_varint(values, &distance) || !distance)
		return false;
	values->has_begun = true;
	values->value += change & 1 ? ~(change >> 1) : change >> 1;
	values->from = values->to;
	values->to += distance;
	return true;
}

/* The name of a function's file, by the number that the compilation unit gives it. */
static const char *file_name(const struct go_table *go, const struct go_func *func, uint32_t number)
{
	uint64_t at = go->has_units ? go->units + 4 * ((uint64_t)func->unit + number)
				    : go->files + 4 * (uint64_t)number;
	uint32_t offset;

	if (number == UINT32_MAX || !read_u32(go, at, &offset) || offset == UINT32_MAX)
		return NULL;
	return read_string(go, (go->has_units ? go->files : 0) + offset);
}

/* The value at an address. False where the table ends before. */
static bool find_value(struct pc_values *values, uint64_t vaddr)
{
	while (values->to <= vaddr || !values->has_begun)
		if (!next_value(values))
			return false;
	return true;
}

/* The last function that begins at or before vaddr. */
static bool find_func(const struct go_table *go, uint64_t vaddr, struct go_func *func)
{
	uint64_t lo = 0, hi = go->n_funcs;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2, at;

		if (!read_entry(go, mid, &at))
			return false;
		if (at <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && read_func(go, lo - 1, func) && vaddr >= func->vaddr && vaddr < func->end;
}

static bool make_place(const struct go_table *go, const struct go_func *func, uint32_t file,
		       uint32_t line, struct source_place *place)
{
	/* Line 0 is code that belongs to none. */
	if (!line || line > INT32_MAX)
		return false;
	*place = (struct source_place){file_name(go, func, file), line};
	return place->file != NULL;
}

bool go_table__source_at(const struct go_table *go, uint64_t vaddr, struct source_place *place)
{
	struct pc_values files, lines;
	struct go_func func;

	if (!find_func(go, vaddr, &func))
		return false;
	files = begin_values(go, func.file, func.vaddr);
	lines = begin_values(go, func.line, func.vaddr);
	return find_value(&files, vaddr) && find_value(&lines, vaddr) &&
	       make_place(go, &func, files.value, lines.value, place);
}

int go_table__each_line(const struct go_table *go,
			int (*fn)(void *ctx, uint64_t vaddr, const struct source_place *place),
			void *ctx)
{
	int result = 0;

	for (uint64_t i = 0; i < go->n_funcs && !result; i++) {
		struct pc_values files, lines;
		struct source_place place;
		struct go_func func;

		if (!read_func(go, i, &func))
			continue;
		files = begin_values(go, func.file, func.vaddr);
		lines = begin_values(go, func.line, func.vaddr);
		while (!result && next_value(&lines) && lines.from < func.end) {
			if (find_value(&files, lines.from) &&
			    make_place(go, &func, files.value, lines.value, &place))
				result = fn(ctx, lines.from, &place);
		}
	}
	return result;
}

int go_table__add_functions(const struct go_table *go, struct elf_image *image)
{
	for (uint64_t i = 0; i < go->n_funcs; i++) {
		struct go_func func;
		const char *name;

		if (!read_func(go, i, &func) || !elf_image__segment(image, func.vaddr))
			continue;
		name = read_string(go, go->names + func.name);
		if (name && !function_entry__add(&image->symbols, image, func.vaddr,
						 func.end - func.vaddr, name))
			return -ENOMEM;
	}
	return 0;
}

/* debug/gosym: (*LineTable).parsePclnTab() */
static bool read_header(struct go_table *go)
{
	uint64_t field[8];
	uint32_t magic, files;

	if (!read_u32(go, 0, &magic))
		return false;
	for (int i = 0; i < 8; i++)
		if (!read_u64(go, HEADER_SIZE + (uint64_t)i * POINTER, &field[i]))
			return false;
	go->n_funcs = field[0];
	go->has_units = magic != GO_1_2;
	go->is_relative = magic == GO_1_18 || magic == GO_1_20;
	if (go->has_units) {
		const uint64_t *table = go->is_relative ? &field[3] : &field[2];

		go->text_start = field[2];
		go->names = table[0];
		go->units = table[1];
		go->files = table[2];
		go->pcs = table[3];
		go->funcs = go->structs = table[4];
	} else {
		go->funcs = HEADER_SIZE + POINTER;
	}
	/* A pair takes 8 bytes or 16. */
	if (!go->n_funcs || go->n_funcs > go->size / 8 || go->names > go->size ||
	    go->units > go->size || go->files > go->size || go->pcs > go->size ||
	    go->funcs > go->size)
		return false;
	if (go->has_units)
		return true;
	if (!read_u32(go, go->funcs + (2 * go->n_funcs + 1) * POINTER, &files))
		return false;
	go->files = files;
	return true;
}

/*
 * Finds the table: in its own section, or, in position-independent code linked by another linker
 * than Go's, somewhere in .data.rel.ro. Sets *vaddr.
 */
static const Elf_Data *find_table(const struct elf_image *image, size_t *at, uint64_t *vaddr)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab", ".data.rel.ro"};
	static const uint8_t header[] = {0xff, 0xff, 0xff, 0, 0, 1, POINTER};
	GElf_Shdr shdr;

	/* Every program linked by Go 1.13 or later has .go.buildinfo. */
	if (!elf_image__section(image, ".gopclntab", &shdr) &&
	    !elf_image__section(image, ".go.buildinfo", &shdr))
		return NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		Elf_Scn *scn = elf_image__section(image, names[i], &shdr);
		const Elf_Data *data = scn ? elf_section__data(scn, HEADER_SIZE) : NULL;
		size_t last = !data ? 0 : i < 2 ? HEADER_SIZE : data->d_size;

		for (*at = 0; *at + HEADER_SIZE <= last; *at += POINTER) {
			const uint8_t *bytes = (const uint8_t *)data->d_buf + *at;

			*vaddr = shdr.sh_addr + *at;
			if (memchr("\xfb\xfa\xf0\xf1", bytes[0], 4) &&
			    !memcmp(bytes + 1, header, sizeof(header)))
				return data;
		}
	}
	return NULL;
}

/* Makes go->data a copy that may be changed. */
static bool make_copy(struct go_table *go)
{
	uint8_t *copy = go->is_copy ? NULL : malloc(go->size);

	if (copy) {
		go->data = memcpy(copy, go->data, go->size);
		go->is_copy = true;
	}
	return go->is_copy;
}

/*
 * Stores the addends of relocations where the loader stores them with the bias added: the file need
 * not contain them there. False: out of memory.
 */
static bool relocate_all(struct go_table *go, const struct elf_image *image, uint64_t vaddr)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while ((scn = elf_nextscn(image->elf, scn))) {
		const Elf_Data *data;
		const Elf64_Rela *rela, *end;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_RELA)
			continue;
		data = elf_section__data(scn, sizeof(*rela));
		if (!data || data->d_type != ELF_T_RELA)
			continue;
		rela = data->d_buf;
		end = rela + data->d_size / sizeof(*rela);
		for (; rela < end; rela++) {
			uint64_t at = rela->r_offset - vaddr;

			if (ELF64_R_TYPE(rela->r_info) != R_X86_64_RELATIVE ||
			    rela->r_offset < vaddr || at > go->size ||
			    go->size - at < sizeof(rela->r_addend))
				continue;
			if (!make_copy(go))
				return false;
			memcpy((uint8_t *)go->data + at, &rela->r_addend, sizeof(rela->r_addend));
		}
	}
	return true;
}

/*
 * Newer tables leave the start of the text to the runtime. Go's own linker puts it at the start of
 * .text; this is believed if the table then has _rt0_amd64_linux() or the like at the program's
 * entry point.
 */
static bool guess_text_start(struct go_table *go, const struct elf_image *image)
{
	static const char first[] = "_rt0_amd64_";
	struct go_func func;
	const char *name;
	GElf_Shdr shdr;

	if (!elf_image__section(image, ".text", &shdr))
		return false;
	go->text_start = shdr.sh_addr;
	if (!find_func(go, image->entry, &func) || func.vaddr != image->entry)
		return false;
	name = read_string(go, go->names + func.name);
	return name && !strncmp(name, first, sizeof(first) - 1);
}

/*
 * True if all functions are in the image's code, one after another. This bounds what is read of
 * them.
 */
static bool has_code(struct go_table *go, const struct elf_image *image)
{
	uint64_t first, last, next;

	if (go->is_relative && !go->text_start && !guess_text_start(go, image))
		return false;
	if (!read_entry(go, 0, &first) || !elf_image__in_section(image, first))
		return false;
	last = first;
	for (uint64_t i = 1; i <= go->n_funcs; i++, last = next)
		if (!read_entry(go, i, &next) || next < last)
			return false;
	return elf_image__in_section(image, last - 1);
}

struct go_table *go_table__open(const struct elf_image *image)
{
	struct go_table *go;
	const Elf_Data *data;
	uint64_t vaddr;
	size_t at;

	data = image->elf ? find_table(image, &at, &vaddr) : NULL;
	go = data ? calloc(1, sizeof(*go)) : NULL;
	if (!go)
		return NULL;
	go->data = (const uint8_t *)data->d_buf + at;
	go->size = data->d_size - at;
	if (relocate_all(go, image, vaddr) && read_header(go) && has_code(go, image))
		return go;
	go_table__free(go);
	return NULL;
}

void go_table__free(struct go_table *go)
{
	if (go && go->is_copy)
		free((void *)go->data);
	free(go);
}
