/* SPDX-License-Identifier: MIT */
/* An ELF file of functions that do nothing, with .eh_frame and .gcc_except_table as one wants. */
#ifndef MTBPF_TESTS_EH_IMAGE_H
#define MTBPF_TESTS_EH_IMAGE_H

#include <dwarf.h>
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/elf_image.h"

#define EH_SITES 4

/* All but start is relative to the function; a pad of 0 is none. */
struct eh_function {
	const char *name; /* NULL: it has no symbol */
	uint64_t start, size;
	struct {
		uint64_t start, len, pad;
	} sites[EH_SITES]; /* those with a length; none: it has no table */
};

/* How it is written down; all zeroes are what GCC does. */
struct eh_style {
	uint8_t lsda;		/* 0: pcrel sdata4 */
	uint8_t sites;		/* 0: uleb128 */
	uint64_t pads_from;	/* LPStart; 0: omitted */
	bool is_without_length; /* the augmentation does not begin with 'z' */
	const char *comment;	/* what its .comment says */
	bool is_rodata;		/* which is its .rodata */
};

/* The file lies at vaddr 0, as it is: offsets are addresses. */
enum {
	EH_FRAME = 0x8000,
	EH_TABLE = 0x9000,
	EH_SYMBOLS = 0xa000,
	EH_STRINGS = 0xb000,
	EH_COMMENT = 0xbe00,
	EH_HEADERS = 0xc000,
	EH_SIZE = 0xd000,
};

struct eh_writer {
	uint8_t *file;
	uint64_t at;
};

static inline void eh_put(struct eh_writer *w, uint64_t value, unsigned int size)
{
	memcpy(w->file + w->at, &value, size);
	w->at += size;
}

static inline void eh_put_uleb(struct eh_writer *w, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		eh_put(w, (value & 0x7f) | 0x80, 1);
	eh_put(w, value, 1);
}

/* As DW_EH_PE_ says; enough of it for what tests use. */
static inline void eh_put_encoded(struct eh_writer *w, uint64_t value, uint8_t encoding)
{
	if ((encoding & 0x70) == DW_EH_PE_pcrel)
		value -= w->at;
	switch (encoding & 0x07) {
	case DW_EH_PE_uleb128:
		eh_put_uleb(w, value);
		break;
	case DW_EH_PE_udata2:
		eh_put(w, value, 2);
		break;
	case DW_EH_PE_udata4:
		eh_put(w, value, 4);
		break;
	default:
		eh_put(w, value, 8);
		break;
	}
}

/* The length of an entry, or of a part of one, once it is known. */
static inline void eh_settle(struct eh_writer *w, uint64_t from, unsigned int size)
{
	uint64_t len = w->at - from - size;

	memcpy(w->file + from, &len, size);
}

/* Two bytes for each length, so that it can be filled in later. */
static inline uint64_t eh_put_table(struct eh_writer *w, const struct eh_function *f,
				    const struct eh_style *style)
{
	uint8_t encoding = style->sites ? style->sites : DW_EH_PE_uleb128;
	uint64_t start = w->at, len_at, len;

	eh_put(w, style->pads_from ? DW_EH_PE_absptr : DW_EH_PE_omit, 1);
	if (style->pads_from)
		eh_put(w, style->pads_from, 8);
	eh_put(w, DW_EH_PE_omit, 1);
	eh_put(w, encoding, 1);
	len_at = w->at;
	w->at += 2;
	for (unsigned int i = 0; i < EH_SITES && f->sites[i].len; i++) {
		eh_put_encoded(w, f->sites[i].start, encoding);
		eh_put_encoded(w, f->sites[i].len, encoding);
		eh_put_encoded(w, f->sites[i].pad, encoding);
		eh_put_uleb(w, 0);
	}
	len = w->at - len_at - 2;
	w->file[len_at] = (uint8_t)((len & 0x7f) | 0x80);
	w->file[len_at + 1] = (uint8_t)(len >> 7);
	return start;
}

static inline void eh_put_cie(struct eh_writer *w, const struct eh_style *style, uint8_t lsda)
{
	const char *augmentation = style->is_without_length ? "" : "zPLR";
	uint64_t start = w->at;

	w->at += 4;
	eh_put(w, 0, 4);
	eh_put(w, 1, 1);
	memcpy(w->file + w->at, augmentation, strlen(augmentation) + 1);
	w->at += strlen(augmentation) + 1;
	eh_put_uleb(w, 1);
	eh_put(w, 0x78, 1); /* -8 */
	eh_put(w, 16, 1);
	if (!style->is_without_length) {
		eh_put_uleb(w, 7);
		eh_put(w, DW_EH_PE_udata4, 1);
		eh_put(w, 0x1234, 4);
		eh_put(w, lsda, 1);
		eh_put(w, DW_EH_PE_pcrel | DW_EH_PE_sdata4, 1);
	}
	w->at = (w->at + 7) / 8 * 8 + 4;
	eh_settle(w, start, 4);
}

static inline void eh_put_fde(struct eh_writer *w, const struct eh_function *f,
			      const struct eh_style *style, uint8_t lsda, uint64_t table)
{
	uint64_t start = w->at, len_at;

	w->at += 4;
	eh_put(w, w->at - EH_FRAME, 4);
	if (style->is_without_length) {
		eh_put(w, f->start, 8);
		eh_put(w, f->size, 8);
	} else {
		eh_put_encoded(w, f->start, DW_EH_PE_pcrel | DW_EH_PE_sdata4);
		eh_put(w, f->size, 4);
		len_at = w->at++;
		if (table || (lsda & 0x70) != DW_EH_PE_pcrel)
			eh_put_encoded(w, table, lsda);
		else
			eh_put_encoded(w, w->at, lsda); /* a null has no base */
		eh_settle(w, len_at, 1);
	}
	w->at = (w->at + 7) / 8 * 8 + 4;
	eh_settle(w, start, 4);
}

static inline void eh_put_section(uint8_t *file, unsigned int index, const char *name,
				  Elf64_Shdr shdr)
{
	uint64_t at = EH_STRINGS + 0x800 + 32 * index;

	strcpy((char *)file + at, name);
	shdr.sh_name = (Elf64_Word)(at - EH_STRINGS);
	shdr.sh_addralign = 1;
	memcpy(file + EH_HEADERS + index * sizeof(shdr), &shdr, sizeof(shdr));
}

static inline void eh_put_headers(uint8_t *file, size_t n_symbols, const struct eh_style *style)
{
	const uint64_t code = SHF_ALLOC | SHF_EXECINSTR;
	const char *comment = style->comment ? style->comment : "";
	Elf64_Ehdr ehdr = {.e_ident = ELFMAG,
			   .e_type = ET_DYN,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_ehsize = sizeof(ehdr),
			   .e_phoff = sizeof(ehdr),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 1,
			   .e_shoff = EH_HEADERS,
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = 7,
			   .e_shstrndx = 5};
	Elf64_Phdr phdr = {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = EH_SIZE, .p_memsz = EH_SIZE};

	ehdr.e_ident[EI_CLASS] = ELFCLASS64;
	ehdr.e_ident[EI_DATA] = ELFDATA2LSB;
	ehdr.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(file, &ehdr, sizeof(ehdr));
	memcpy(file + sizeof(ehdr), &phdr, sizeof(phdr));
	eh_put_section(file, 1, ".text",
		       (Elf64_Shdr){0, SHT_PROGBITS, code, 0x1000, 0x1000, 0x7000, 0, 0, 0, 0});
	eh_put_section(
		file, 2, ".eh_frame",
		(Elf64_Shdr){0, SHT_PROGBITS, SHF_ALLOC, EH_FRAME, EH_FRAME, 0x1000, 0, 0, 0, 0});
	eh_put_section(
		file, 3, ".gcc_except_table",
		(Elf64_Shdr){0, SHT_PROGBITS, SHF_ALLOC, EH_TABLE, EH_TABLE, 0x1000, 0, 0, 0, 0});
	eh_put_section(file, 4, ".symtab",
		       (Elf64_Shdr){0, SHT_SYMTAB, 0, 0, EH_SYMBOLS,
				    (n_symbols + 1) * sizeof(Elf64_Sym), 5, 1, 0,
				    sizeof(Elf64_Sym)});
	eh_put_section(file, 5, ".strtab",
		       (Elf64_Shdr){0, SHT_STRTAB, 0, 0, EH_STRINGS, 0xe00, 0, 0, 0, 0});
	strcpy((char *)file + EH_COMMENT, comment);
	eh_put_section(
		file, 6, style->is_rodata ? ".rodata" : ".comment",
		(Elf64_Shdr){0, SHT_PROGBITS, 0, 0, EH_COMMENT, strlen(comment) + 1, 0, 0, 0, 0});
}

static inline void eh_put_symbol(uint8_t *file, size_t i, const struct eh_function *f)
{
	Elf64_Sym sym = {.st_name = (Elf64_Word)(64 * (i + 1)),
			 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			 .st_shndx = 1,
			 .st_value = f->start,
			 .st_size = f->size};

	if (!f->name)
		return;
	memcpy(file + EH_SYMBOLS + (i + 1) * sizeof(sym), &sym, sizeof(sym));
	strcpy((char *)file + EH_STRINGS + sym.st_name, f->name);
}

/* EH_SIZE bytes, which the caller frees. */
static inline uint8_t *eh_image__bytes(const struct eh_function *functions, size_t n,
				       const struct eh_style *style)
{
	uint8_t lsda = style->lsda ? style->lsda : DW_EH_PE_pcrel | DW_EH_PE_sdata4;
	uint8_t *file = calloc(1, EH_SIZE);
	struct eh_writer frame = {file, EH_FRAME}, table = {file, EH_TABLE};

	memset(file + 0x1000, 0x90, EH_FRAME - 0x1000);
	eh_put_headers(file, n, style);
	eh_put_cie(&frame, style, lsda);
	for (size_t i = 0; i < n; i++) {
		uint64_t at =
			functions[i].sites[0].len ? eh_put_table(&table, &functions[i], style) : 0;

		eh_put_fde(&frame, &functions[i], style, lsda, at);
		eh_put_symbol(file, i, &functions[i]);
	}
	return file;
}

#endif
