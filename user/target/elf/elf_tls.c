// SPDX-License-Identifier: MIT
/*
 * A file's thread-local variables: where they are in its TLS block, and where the dynamic linker
 * notes which block that is. U. Drepper, "ELF Handling for Thread-Local Storage", 3.4.6 (x86-64,
 * variant II); for descriptors A. Oliva, "Thread-Local Storage Descriptors for IA32 and AMD64".
 */
#include "target/elf/elf_image.h"

#include "target/elf/elf_internal.h"

#include <elf.h>
#include <string.h>

static bool is_named(const Elf_Data *strings, size_t at, const char *name)
{
	const char *its = elf_section__string(strings, at);

	return its && !strcmp(its, name);
}

/* Looks in the symbol tables of the file, or of its debug file. */
static bool find_variable(Elf *elf, const char *name, uint64_t *value)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while (elf && (scn = elf_nextscn(elf, scn))) {
		const Elf_Data *symbols, *strings;

		if (!gelf_getshdr(scn, &shdr) ||
		    (shdr.sh_type != SHT_SYMTAB && shdr.sh_type != SHT_DYNSYM))
			continue;
		symbols = elf_section__data(scn, sizeof(Elf64_Sym));
		strings = elf_section__data(elf_getscn(elf, shdr.sh_link), 1);
		for (size_t i = 0; symbols && strings && i < symbols->d_size / sizeof(Elf64_Sym);
		     i++) {
			const Elf64_Sym *sym = &((const Elf64_Sym *)symbols->d_buf)[i];

			if (ELF64_ST_TYPE(sym->st_info) != STT_TLS || sym->st_shndx == SHN_UNDEF ||
			    !is_named(strings, sym->st_name, name))
				continue;
			*value = sym->st_value;
			return true;
		}
	}
	return false;
}

bool elf_image__find_tls(struct elf_image *image, const char *name, struct elf_tls *found)
{
	bool is_found = false;
	GElf_Phdr tls = {0};
	uint64_t padding;
	size_t n;

	/*
	 * Most files lack thread-local variables, which their program headers tell without any
	 * symbol.
	 */
	if (!image->elf || elf_getphdrnum(image->elf, &n))
		return false;
	for (size_t i = 0; i < n && !is_found; i++)
		is_found = gelf_getphdr(image->elf, (int)i, &tls) && tls.p_type == PT_TLS;
	if (!is_found)
		return false;
	pthread_mutex_lock(&image->lock);
	is_found = find_variable(image->elf, name, &found->offset) ||
		   find_variable(elf_image__symbols_elf(image), name, &found->offset);
	pthread_mutex_unlock(&image->lock);
	/* The program's TLS block ends right below the thread pointer, except for padding. */
	padding = (0 - tls.p_vaddr - tls.p_memsz) & ((tls.p_align ? tls.p_align : 1) - 1);
	if (is_found)
		found->in_program = (int64_t)(found->offset - tls.p_memsz - padding);
	return is_found;
}

/*
 * Finds the TLS relocation of the variable in one SHT_RELA section. Its place, which the dynamic
 * linker fills in, is found->note_vaddr.
 */
static bool find_note(Elf *elf, Elf_Scn *scn, const GElf_Shdr *shdr, const char *name,
		      struct elf_tls *found)
{
	const Elf_Data *relas = elf_section__data(scn, sizeof(Elf64_Rela));
	Elf_Scn *of_symbols = elf_getscn(elf, shdr->sh_link);
	const Elf_Data *symbols = elf_section__data(of_symbols, sizeof(Elf64_Sym)), *strings;
	GElf_Shdr its;

	if (!relas || !symbols || !gelf_getshdr(of_symbols, &its))
		return false;
	strings = elf_section__data(elf_getscn(elf, its.sh_link), 1);
	for (size_t i = 0; strings && i < relas->d_size / sizeof(Elf64_Rela); i++) {
		const Elf64_Rela *rela = &((const Elf64_Rela *)relas->d_buf)[i];
		const Elf64_Sym *sym = symbols->d_buf;
		uint64_t type = ELF64_R_TYPE(rela->r_info);
		size_t symbol = ELF64_R_SYM(rela->r_info);
		bool is_its;

		found->note = type == R_X86_64_TPOFF64	  ? ELF_TLS_DISTANCE
			      : type == R_X86_64_DTPMOD64 ? ELF_TLS_MODULE
			      : type == R_X86_64_TLSDESC  ? ELF_TLS_DESCRIPTOR
							  : ELF_TLS_NONE;
		/* A variable that is not exported lacks a symbol: then the addend is its offset. */
		if (!symbol)
			is_its = type == R_X86_64_DTPMOD64 ||
				 (uint64_t)rela->r_addend == found->offset;
		else
			is_its = symbol < symbols->d_size / sizeof(*sym) &&
				 is_named(strings, sym[symbol].st_name, name);
		if (found->note == ELF_TLS_NONE || !is_its)
			continue;
		found->note_vaddr = rela->r_offset;
		found->is_own = symbol == 0;
		return true;
	}
	return false;
}

bool elf_image__find_tls_note(struct elf_image *image, const char *name, struct elf_tls *found)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	bool is_found = false;

	pthread_mutex_lock(&image->lock);
	while (!is_found && (scn = elf_nextscn(image->elf, scn)))
		is_found = gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_RELA &&
			   shdr.sh_flags & SHF_ALLOC &&
			   find_note(image->elf, scn, &shdr, name, found);
	pthread_mutex_unlock(&image->lock);
	return is_found;
}
