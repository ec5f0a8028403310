/* SPDX-License-Identifier: MIT */
/*
 * An ELF file of sections that the input gives, each as a byte that says which, two of its length,
 * and what it holds. Each lies where it always does, at vaddr == offset, so that one can point into
 * another.
 */
#ifndef MTBPF_TESTS_FUZZ_ELF_PIECES_H
#define MTBPF_TESTS_FUZZ_ELF_PIECES_H

#include "fuzz.h"

#include <elf.h>

#include "target/elf/elf_image.h"

#define PIECES_TEXT	 0x1000
#define PIECES_TEXT_SIZE 0x3000
#define PIECES_FIRST	 0x4000 /* of the others */
#define PIECE_SIZE	 0x1000

struct piece_kind {
	const char *name;
	uint32_t type, entry; /* sh_type, sh_entsize */
	uint32_t link;	      /* of which kind its strings, or symbols, are */
};

enum {
	PIECE_STRTAB = 2,
	PIECE_DYNSYM = 3,
	PIECE_DYNSTR = 4,
	PIECE_EH_FRAME = 7,
	PIECE_EXCEPT_TABLE = 8,
	PIECE_GO = 26,
};

static const struct piece_kind piece_kinds[] = {
	{".text", SHT_PROGBITS, 0, 0},
	{".symtab", SHT_SYMTAB, sizeof(Elf64_Sym), PIECE_STRTAB},
	{".strtab", SHT_STRTAB, 0, 0},
	{".dynsym", SHT_DYNSYM, sizeof(Elf64_Sym), PIECE_DYNSTR},
	{".dynstr", SHT_STRTAB, 0, 0},
	{".rela.plt", SHT_RELA, sizeof(Elf64_Rela), PIECE_DYNSYM},
	{".plt", SHT_PROGBITS, 0, 0},
	{".eh_frame", SHT_PROGBITS, 0, 0},
	{".gcc_except_table", SHT_PROGBITS, 0, 0},
	{".note.ocaml_eh", SHT_NOTE, 0, 0},
	{".note.stapsdt", SHT_NOTE, 0, 0},
	{".stapsdt.base", SHT_PROGBITS, 0, 0},
	{".note.gnu.build-id", SHT_NOTE, 0, 0},
	{".gnu_debuglink", SHT_PROGBITS, 0, 0},
	{".gnu_debugaltlink", SHT_PROGBITS, 0, 0},
	{".comment", SHT_PROGBITS, 0, 0},
	{".rodata", SHT_PROGBITS, 0, 0},
	{".debug_info", SHT_PROGBITS, 0, 0},
	{".debug_abbrev", SHT_PROGBITS, 0, 0},
	{".debug_line", SHT_PROGBITS, 0, 0},
	{".debug_str", SHT_PROGBITS, 0, 0},
	{".debug_line_str", SHT_PROGBITS, 0, 0},
	{".debug_ranges", SHT_PROGBITS, 0, 0},
	{".debug_rnglists", SHT_PROGBITS, 0, 0},
	{".debug_addr", SHT_PROGBITS, 0, 0},
	{".debug_aranges", SHT_PROGBITS, 0, 0},
	{".gopclntab", SHT_PROGBITS, 0, 0},
	{".rela.dyn", SHT_RELA, sizeof(Elf64_Rela), 0},
};
#define PIECE_KINDS  (sizeof(piece_kinds) / sizeof(piece_kinds[0]))
#define PIECES_NAMES (PIECES_FIRST + (PIECE_KINDS - 1) * PIECE_SIZE)
#define PIECES_HEADS (PIECES_NAMES + PIECE_SIZE)
#define PIECES_SIZE  (PIECES_HEADS + PIECE_SIZE)

static inline size_t piece__at(size_t kind)
{
	return kind ? PIECES_FIRST + (kind - 1) * PIECE_SIZE : PIECES_TEXT;
}

static inline size_t piece__max(size_t kind)
{
	return kind ? PIECE_SIZE : PIECES_TEXT_SIZE;
}

/* The headers of section `kind`, and its name; the null section is the first. */
static inline void pieces__put_section(uint8_t *file, size_t kind, size_t size)
{
	const struct piece_kind *is = &piece_kinds[kind];
	char *name = (char *)file + PIECES_NAMES + 32 * (kind + 1);
	Elf64_Shdr *shdr = (Elf64_Shdr *)(file + PIECES_HEADS) + kind + 1;

	strcpy(name, is->name);
	*shdr = (Elf64_Shdr){
		.sh_name = (Elf64_Word)(32 * (kind + 1)),
		.sh_type = size ? is->type : SHT_NULL,
		.sh_flags = SHF_ALLOC | (!kind || !strcmp(name, ".plt") ? SHF_EXECINSTR : 0),
		.sh_addr = piece__at(kind),
		.sh_offset = piece__at(kind),
		.sh_size = size,
		.sh_link = is->link ? is->link + 1 : 0,
		.sh_entsize = is->entry,
		.sh_addralign = 1,
	};
}

static inline void pieces__put_headers(uint8_t *file)
{
	Elf64_Ehdr *ehdr = (Elf64_Ehdr *)file;

	*ehdr = (Elf64_Ehdr){
		.e_ident = ELFMAG "\2\1\1",
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(*ehdr),
		.e_phoff = sizeof(*ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shoff = PIECES_HEADS,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = PIECE_KINDS + 2,
		.e_shstrndx = PIECE_KINDS + 1,
	};
	*(Elf64_Phdr *)(ehdr + 1) = (Elf64_Phdr){.p_type = PT_LOAD,
						 .p_flags = PF_R | PF_X,
						 .p_filesz = PIECES_NAMES,
						 .p_memsz = PIECES_NAMES};
	((Elf64_Shdr *)(file + PIECES_HEADS))[PIECE_KINDS + 1] =
		(Elf64_Shdr){.sh_type = SHT_STRTAB,
			     .sh_offset = PIECES_NAMES,
			     .sh_size = PIECE_SIZE,
			     .sh_addralign = 1};
}

/* NULL where the image cannot be opened. What is left of the input is not used. */
static inline struct elf_image *elf_pieces__open(const uint8_t *data, size_t size)
{
	uint8_t *file = calloc(1, PIECES_SIZE);
	struct elf_image *image;

	CHECK(file);
	pieces__put_headers(file);
	memset(file + PIECES_TEXT, 0x90, PIECES_TEXT_SIZE);
	pieces__put_section(file, 0, PIECES_TEXT_SIZE);
	while (size >= 3) {
		const uint8_t *head = fuzz__take(&data, &size, 3);
		size_t kind = head[0] % PIECE_KINDS, n = head[1] | (size_t)head[2] << 8;

		n = n < piece__max(kind) ? n : piece__max(kind);
		n = n < size ? n : size;
		memcpy(file + piece__at(kind), fuzz__take(&data, &size, n), n);
		pieces__put_section(file, kind, kind ? n : PIECES_TEXT_SIZE);
	}
	image = elf_image__from_bytes(file, PIECES_SIZE, "pieces");
	free(file);
	return image;
}

#endif
