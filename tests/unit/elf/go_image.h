/* SPDX-License-Identifier: MIT */
/* Go's table of functions and lines (.gopclntab) in each of its formats, and an ELF file around it.
 */
#ifndef MTBPF_TESTS_GO_IMAGE_H
#define MTBPF_TESTS_GO_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The file lies at vaddr 0, as it is: offsets are addresses. */
enum {
	GO_TEXT = 0x1000,
	GO_TEXT_SIZE = 0x100,
	GO_HANDLE = 0x1040, /* main.handle, up to main.main */
	GO_MAIN = 0x10c0,
	GO_TABLE = 0x4000,
	GO_TABLE_SIZE = 0x220,
	GO_RELA = 0x5000,
	GO_NAMES = 0x6000,
	GO_HEADERS = 0x7000,
	GO_SIZE = 0x8000,
};

struct go_style {
	uint32_t magic;
	const char *section;   /* that has the table */
	bool is_relocated;     /* what the loader adds the bias to is 0 in the file */
	bool is_without_start; /* nor does a relocation say it */
	uint64_t before;       /* so many bytes precede it in its section */
};

static inline void go_put(uint8_t *table, uint64_t at, uint64_t value, unsigned int size)
{
	memcpy(table + at, &value, size);
}

/* The file and the lines of main.handle: 10 of handler.go, 5 of other.go, 12 of handler.go. */
static inline void go_put_values(uint8_t *table, uint64_t at, bool is_old)
{
	/* From -1, zigzag: up to 0, or 1, for 0x10 bytes; 1 more; 1 less for 0x60 bytes. */
	const uint8_t files[] = {is_old ? 4 : 2, 0x10, 2, 0x10, 1, 0x60, 0};
	static const uint8_t lines[] = {22, 0x10, 9, 0x10, 14, 0x60, 0};

	memcpy(table + at + 1, files, sizeof(files));
	memcpy(table + at + 0x10, lines, sizeof(lines));
}

/* The table alone. */
static inline void go_image__table(uint8_t table[static GO_TABLE_SIZE],
				   const struct go_style *style)
{
	static const char *const names[] = {"_rt0_amd64_linux", "main.handle", "main.main"};
	static const uint64_t starts[] = {GO_TEXT, GO_HANDLE, GO_MAIN, GO_TEXT + GO_TEXT_SIZE};
	enum { NAMES = 0x60, UNITS = 0xa0, FILES = 0xc0, PCS = 0x100, FUNCS = 0x140 };
	bool is_old = style->magic == 0xfffffffb;
	bool is_relative = style->magic == 0xfffffff0 || style->magic == 0xfffffff1;
	uint64_t funcs = is_old ? 16 : FUNCS, width = is_relative ? 4 : 8;
	uint64_t offsets[] = {3, 2, GO_TEXT, NAMES, UNITS, FILES, PCS, FUNCS};

	memset(table, 0, GO_TABLE_SIZE);
	go_put(table, 0, style->magic, 4);
	go_put(table, 6, 1, 1);
	go_put(table, 7, 8, 1);
	if (is_old) {
		go_put(table, 8, 3, 8);
		go_put(table, funcs + 7 * 8, UNITS, 4);
	} else {
		/* textStart is of the newer ones. */
		if (!is_relative)
			memmove(&offsets[2], &offsets[3], 5 * sizeof(offsets[0]));
		memcpy(table + 8, offsets, (is_relative ? 8 : 7) * sizeof(offsets[0]));
		if (is_relative && (style->is_relocated || style->is_without_start))
			go_put(table, 8 + 2 * 8, 0, 8);
	}
	for (size_t i = 0, at = NAMES; i < 3; at += strlen(names[i]) + 1, i++) {
		uint64_t own = FUNCS + 0x40 + i * 0x30, base = is_old ? 0 : NAMES;

		memcpy(table + at, names[i], strlen(names[i]));
		go_put(table, funcs + (2 * i + 1) * width, own - (is_old ? 0 : FUNCS), width);
		go_put(table, own + width, at - base, 4);
		if (i == 1) {
			go_put(table, own + width + 16, is_old ? PCS + 1 : 1, 4);
			go_put(table, own + width + 20, is_old ? PCS + 0x10 : 0x10, 4);
			go_put(table, own + width + 28, 1, 4);
		}
	}
	for (size_t i = 0; i < 4; i++) {
		uint64_t value = is_relative ? starts[i] - GO_TEXT : starts[i];

		if (is_relative || !style->is_relocated)
			go_put(table, funcs + 2 * i * width, value, width);
	}
	memcpy(table + FILES, "/src/handler.go\0/src/other.go", 30);
	go_put(table, UNITS, is_old ? 3 : UINT32_MAX, 4);
	go_put(table, UNITS + 4, is_old ? FILES : 0, 4);
	go_put(table, UNITS + 8, is_old ? FILES + 16 : 16, 4);
	go_put_values(table, PCS, is_old);
}

static inline size_t go_put_relocations(uint8_t *file, const struct go_style *style)
{
	static const uint64_t starts[] = {GO_TEXT, GO_HANDLE, GO_MAIN, GO_TEXT + GO_TEXT_SIZE};
	bool is_relative = style->magic == 0xfffffff0 || style->magic == 0xfffffff1;
	uint64_t table = GO_TABLE + style->before;
	Elf64_Rela *rela = (Elf64_Rela *)(file + GO_RELA);
	size_t n = is_relative ? 1 : 4;

	for (size_t i = 0; i < n; i++)
		rela[i] = (Elf64_Rela){
			.r_offset = is_relative			 ? table + 8 + 2 * 8
				    : style->magic == 0xfffffffb ? table + 16 + 16 * i
								 : table + 0x140 + 16 * i,
			.r_info = R_X86_64_RELATIVE,
			.r_addend = (int64_t)starts[i],
		};
	/* And one that is none of its business. */
	rela[n] = (Elf64_Rela){0x7fffff, R_X86_64_RELATIVE, 5};
	return (n + 1) * sizeof(*rela);
}

/* Freed by the caller. */
static inline uint8_t *go_image__bytes(const struct go_style *style)
{
	static const char names[] = "\0.text\0.rela.dyn\0.go.buildinfo\0.shstrtab\0";
	uint8_t *file = calloc(1, GO_SIZE);
	Elf64_Shdr *shdr = (Elf64_Shdr *)(file + GO_HEADERS);
	size_t rela_size = style->is_relocated ? go_put_relocations(file, style) : 0;

	memset(file + GO_TEXT, 0x90, GO_TEXT_SIZE);
	memcpy(file + GO_NAMES, names, sizeof(names));
	strcpy((char *)file + GO_NAMES + 64, style->section);
	go_image__table(file + GO_TABLE + style->before, style);
	*(Elf64_Ehdr *)file = (Elf64_Ehdr){
		.e_ident = ELFMAG "\2\1\1",
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_entry = GO_TEXT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shoff = GO_HEADERS,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 6,
		.e_shstrndx = 5,
	};
	*(Elf64_Phdr *)(file + sizeof(Elf64_Ehdr)) = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = GO_SIZE, .p_memsz = GO_SIZE};
	shdr[1] = (Elf64_Shdr){
		1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, GO_TEXT, GO_TEXT, GO_TEXT_SIZE, 0, 0, 1,
		0};
	shdr[2] = (Elf64_Shdr){7,	  SHT_RELA, SHF_ALLOC, GO_RELA, GO_RELA,
			       rela_size, 0,	    0,	       8,	sizeof(Elf64_Rela)};
	shdr[3] = (Elf64_Shdr){
		17, SHT_PROGBITS, SHF_ALLOC, GO_RELA + 0x800, GO_RELA + 0x800, 32, 0, 0, 1, 0};
	shdr[4] = (Elf64_Shdr){
		64, SHT_PROGBITS, SHF_ALLOC, GO_TABLE, GO_TABLE, style->before + GO_TABLE_SIZE, 0,
		0,  32,		  0};
	shdr[5] = (Elf64_Shdr){31, SHT_STRTAB, 0, 0, GO_NAMES, 256, 0, 0, 1, 0};
	return file;
}

#endif
