// SPDX-License-Identifier: MIT
/*
 * Turns a shared library into what a static program can be linked with: Debian has no static
 * libipt, Zydis and cJSON.
 *
 *   embed NAME LIBRARY.so OUT.s OUT.ld
 *
 * The code of a shared library depends on the distances between its segments, and not on where they
 * are loaded. OUT.s has one section per segment, with the library's bytes and its dynamic
 * relocations as data that the linker relocates, and defines the symbols that the library exports.
 * OUT.ld is a linker script
 * (-T) that keeps the distances. Nothing runs a library's constructors: a library that has some is
 * refused, and so is one with thread-local data.
 */
#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SEGMENTS_MAX 16

struct relocation {
	uint64_t at;
	const char *symbol; /* NULL: the library's own base */
	bool weak;
	int64_t addend;
};

struct library {
	const char *name, *path;
	const uint8_t *bytes;
	size_t size;
	const Elf64_Phdr *segments[SEGMENTS_MAX]; /* PT_LOAD, ascending by p_vaddr */
	size_t n_segments;
	const Elf64_Dyn *dynamic;
	const Elf64_Sym *symbols;
	size_t n_symbols;
	const char *strings;
	struct relocation *relocations;
	size_t n_relocations;
};

static void refuse(const struct library *library, const char *why)
{
	errx(1, "%s: %s", library->path, why);
}

/* The bytes at an offset of the file. */
static const void *file_bytes(const struct library *library, uint64_t offset, uint64_t size)
{
	if (offset > library->size || size > library->size - offset)
		refuse(library, "the file is truncated");
	return library->bytes + offset;
}

/* The index of the segment that covers the address. */
static size_t segment_at(const struct library *library, uint64_t vaddr)
{
	for (size_t i = 0; i < library->n_segments; i++) {
		const Elf64_Phdr *segment = library->segments[i];

		if (vaddr >= segment->p_vaddr && vaddr - segment->p_vaddr < segment->p_memsz)
			return i;
	}
	refuse(library, "an address lies outside of all segments");
	return 0;
}

static const void *loaded_bytes(const struct library *library, uint64_t vaddr, uint64_t size)
{
	const Elf64_Phdr *segment = library->segments[segment_at(library, vaddr)];

	if (size > segment->p_filesz || vaddr - segment->p_vaddr > segment->p_filesz - size)
		refuse(library, "a table lies outside of its segment");
	return file_bytes(library, segment->p_offset + (vaddr - segment->p_vaddr), size);
}

/* A value of the dynamic section; 0 if it has none. */
static uint64_t dynamic_value(const struct library *library, int64_t tag)
{
	for (const Elf64_Dyn *entry = library->dynamic; entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == tag)
			return entry->d_un.d_val;
	return 0;
}

static void read_segments(struct library *library)
{
	const Elf64_Ehdr *header = file_bytes(library, 0, sizeof(*header));
	const Elf64_Phdr *headers;

	if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_type != ET_DYN ||
	    header->e_machine != EM_X86_64)
		refuse(library, "not a shared library for x86-64");
	headers = file_bytes(library, header->e_phoff, header->e_phnum * sizeof(*headers));
	for (size_t i = 0; i < header->e_phnum; i++) {
		if (headers[i].p_type == PT_TLS)
			refuse(library, "it has thread-local data");
		if (headers[i].p_type == PT_DYNAMIC)
			library->dynamic =
				file_bytes(library, headers[i].p_offset, headers[i].p_filesz);
		if (headers[i].p_type != PT_LOAD)
			continue;
		if (library->n_segments == SEGMENTS_MAX)
			refuse(library, "it has too many segments");
		library->segments[library->n_segments++] = &headers[i];
	}
	if (!library->n_segments || library->segments[0]->p_vaddr || !library->dynamic)
		refuse(library, "it has no dynamic section, or does not begin at 0");
}

/* The section header table knows how many symbols there are; a stripped library keeps it. */
static void read_symbols(struct library *library)
{
	const Elf64_Ehdr *header = file_bytes(library, 0, sizeof(*header));
	const Elf64_Shdr *sections =
		file_bytes(library, header->e_shoff, header->e_shnum * sizeof(*sections));

	for (size_t i = 0; i < header->e_shnum; i++) {
		if (sections[i].sh_type != SHT_DYNSYM || sections[i].sh_link >= header->e_shnum)
			continue;
		library->n_symbols = sections[i].sh_size / sizeof(*library->symbols);
		library->symbols = file_bytes(library, sections[i].sh_offset, sections[i].sh_size);
		library->strings = file_bytes(library, sections[sections[i].sh_link].sh_offset, 0);
		return;
	}
	refuse(library, "it has no table of symbols");
}

static const char *name_of(const struct library *library, const Elf64_Sym *symbol)
{
	return library->strings + symbol->st_name;
}

static void add_relocation(struct library *library, struct relocation relocation)
{
	library->relocations = reallocarray(library->relocations, library->n_relocations + 1,
					    sizeof(*library->relocations));
	if (!library->relocations)
		err(1, "out of memory");
	library->relocations[library->n_relocations++] = relocation;
}

static void read_rela(struct library *library, uint64_t vaddr, uint64_t size)
{
	const Elf64_Rela *rela = size ? loaded_bytes(library, vaddr, size) : NULL;

	for (size_t i = 0; i < size / sizeof(*rela); i++) {
		struct relocation relocation = {.at = rela[i].r_offset};
		const Elf64_Sym *symbol = &library->symbols[ELF64_R_SYM(rela[i].r_info)];

		switch (ELF64_R_TYPE(rela[i].r_info)) {
		case R_X86_64_64:
			relocation.addend = rela[i].r_addend;
			/* fall through */
		case R_X86_64_GLOB_DAT:
		case R_X86_64_JUMP_SLOT:
			relocation.symbol = name_of(library, symbol);
			relocation.weak = symbol->st_shndx == SHN_UNDEF &&
					  ELF64_ST_BIND(symbol->st_info) == STB_WEAK;
			break;
		case R_X86_64_RELATIVE:
			relocation.addend = rela[i].r_addend;
			break;
		default:
			refuse(library, "it has a relocation of a type that is not supported");
		}
		add_relocation(library, relocation);
	}
}

static void add_packed(struct library *library, uint64_t at)
{
	int64_t addend;

	memcpy(&addend, loaded_bytes(library, at, sizeof(addend)), sizeof(addend));
	add_relocation(library, (struct relocation){.at = at, .addend = addend});
}

/* DT_RELR of the generic ABI: an even entry is an address, an odd one the 63 words that follow it.
 */
static void read_relr(struct library *library)
{
	uint64_t size = dynamic_value(library, DT_RELRSZ), next = 0;
	const uint64_t *relr =
		size ? loaded_bytes(library, dynamic_value(library, DT_RELR), size) : NULL;

	for (size_t i = 0; i < size / sizeof(*relr); i++) {
		if (!(relr[i] & 1)) {
			add_packed(library, relr[i]);
			next = relr[i] + 8;
			continue;
		}
		for (unsigned int bit = 1; bit < 64; bit++)
			if (relr[i] >> bit & 1)
				add_packed(library, next + (bit - 1) * 8);
		next += 63 * 8;
	}
}

static int by_address(const void *a, const void *b)
{
	const struct relocation *left = a, *right = b;

	return left->at < right->at ? -1 : left->at > right->at;
}

static void read_relocations(struct library *library)
{
	read_rela(library, dynamic_value(library, DT_RELA), dynamic_value(library, DT_RELASZ));
	read_rela(library, dynamic_value(library, DT_JMPREL), dynamic_value(library, DT_PLTRELSZ));
	read_relr(library);
	qsort(library->relocations, library->n_relocations, sizeof(*library->relocations),
	      by_address);
	/* The compiler's own frame_dummy() is one, and does nothing here. */
	if (dynamic_value(library, DT_INIT_ARRAYSZ) > 8)
		refuse(library, "it has constructors");
}

static void write_segment(const struct library *library, size_t index, FILE *out)
{
	const Elf64_Phdr *segment = library->segments[index];
	const char *flags = segment->p_flags & PF_W ? "aw" : segment->p_flags & PF_X ? "ax" : "a";
	uint64_t at = segment->p_vaddr, end = at + segment->p_filesz;

	fprintf(out, "\t.section .embed.%s.%zu,\"%s\",@progbits\n", library->name, index, flags);
	fprintf(out, "\t.balign %d\n.Lsegment%zu:\n", index ? 1 : 4096, index);
	for (size_t i = 0; i < library->n_relocations; i++) {
		const struct relocation *relocation = &library->relocations[i];

		if (relocation->at < segment->p_vaddr || relocation->at >= end)
			continue;
		if (relocation->at < at)
			refuse(library, "two relocations overlap");
		if (relocation->at > at)
			fprintf(out, "\t.incbin \"%s\", %" PRIu64 ", %" PRIu64 "\n", library->path,
				segment->p_offset + (at - segment->p_vaddr), relocation->at - at);
		if (relocation->weak)
			fprintf(out, "\t.weak \"%s\"\n", relocation->symbol);
		if (relocation->symbol)
			fprintf(out, "\t.quad \"%s\" + %" PRId64 "\n", relocation->symbol,
				relocation->addend);
		else
			fprintf(out, "\t.quad .Lsegment0 + %" PRId64 "\n", relocation->addend);
		at = relocation->at + 8;
	}
	if (at < end)
		fprintf(out, "\t.incbin \"%s\", %" PRIu64 ", %" PRIu64 "\n", library->path,
			segment->p_offset + (at - segment->p_vaddr), end - at);
	if (segment->p_memsz > segment->p_filesz)
		fprintf(out, "\t.skip %" PRIu64 "\n", segment->p_memsz - segment->p_filesz);
}

static void write_symbols(const struct library *library, FILE *out)
{
	for (size_t i = 1; i < library->n_symbols; i++) {
		const Elf64_Sym *symbol = &library->symbols[i];
		unsigned int type = ELF64_ST_TYPE(symbol->st_info);
		const char *name = name_of(library, symbol);
		size_t index;

		if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS)
			continue;
		if (type == STT_GNU_IFUNC)
			refuse(library, "it has functions that are chosen by CPU (IFUNC)");
		if ((type != STT_FUNC && type != STT_OBJECT) || !strcmp(name, "_init") ||
		    !strcmp(name, "_fini"))
			continue;
		index = segment_at(library, symbol->st_value);
		fprintf(out, "\t.globl \"%s\"\n\t.type \"%s\", %s\n\t.size \"%s\", %" PRIu64 "\n",
			name, name, type == STT_FUNC ? "@function" : "@object", name,
			symbol->st_size);
		fprintf(out, "\t.set \"%s\", .Lsegment%zu + %" PRIu64 "\n", name, index,
			symbol->st_value - library->segments[index]->p_vaddr);
	}
	fprintf(out, "\t.section .note.GNU-stack,\"\",@progbits\n");
}

static void write_script(const struct library *library, FILE *out)
{
	fprintf(out, "SECTIONS\n{\n");
	for (size_t i = 0; i < library->n_segments; i++) {
		fprintf(out, "\t.embed.%s.%zu ", library->name, i);
		if (i)
			fprintf(out, "(ADDR(.embed.%s.0) + %#" PRIx64 ")", library->name,
				library->segments[i]->p_vaddr);
		else
			fprintf(out, "(ALIGN(CONSTANT(MAXPAGESIZE)))");
		fprintf(out, " : { KEEP(*(.embed.%s.%zu)) }\n", library->name, i);
	}
	fprintf(out, "}\nINSERT AFTER .bss;\n");
}

static FILE *create(const char *path)
{
	FILE *out = fopen(path, "w");

	if (!out)
		err(1, "%s", path);
	return out;
}

static void finish(FILE *out, const char *path)
{
	if (ferror(out) | fclose(out))
		errx(1, "%s: cannot write", path);
}

int main(int argc, char **argv)
{
	struct library library = {0};
	struct stat st;
	FILE *out;
	int fd;

	if (argc != 5) {
		fprintf(stderr, "usage: embed NAME LIBRARY.so OUT.s OUT.ld\n");
		return 2;
	}
	library.name = argv[1];
	library.path = argv[2];
	fd = open(library.path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		err(1, "%s", library.path);
	library.size = (size_t)st.st_size;
	library.bytes = mmap(NULL, library.size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (library.bytes == MAP_FAILED)
		err(1, "%s", library.path);
	read_segments(&library);
	read_symbols(&library);
	read_relocations(&library);

	out = create(argv[3]);
	for (size_t i = 0; i < library.n_segments; i++)
		write_segment(&library, i, out);
	write_symbols(&library, out);
	finish(out, argv[3]);
	out = create(argv[4]);
	write_script(&library, out);
	finish(out, argv[4]);
	return 0;
}
