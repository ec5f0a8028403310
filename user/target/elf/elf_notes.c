// SPDX-License-Identifier: MIT
/* The GNU build id: which build of a program a file is. */
#include "target/elf/elf_internal.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

/* True where the note is the build id, which is then in id. */
static bool take_build_id(char *id, const GElf_Nhdr *note, const char *name, const uint8_t *desc)
{
	if (note->n_type != NT_GNU_BUILD_ID || note->n_namesz != sizeof("GNU") ||
	    memcmp(name, "GNU", sizeof("GNU")) || note->n_descsz > 64)
		return false;
	for (size_t i = 0; i < note->n_descsz; i++)
		sprintf(id + 2 * i, "%02x", desc[i]);
	return true;
}

bool elf_notes__build_id(Elf_Data *data, char id[static ELF_BUILD_ID_SIZE])
{
	size_t offset = 0, name_offset, desc_offset;
	const char *base = data->d_buf;
	GElf_Nhdr note;

	while ((offset = gelf_getnote(data, offset, &note, &name_offset, &desc_offset)))
		if (take_build_id(id, &note, base + name_offset,
				  (const uint8_t *)base + desc_offset))
			return true;
	return false;
}

void elf_image__load_build_id(struct elf_image *image)
{
	size_t n = 0;

	elf_getphdrnum(image->elf, &n);
	for (size_t i = 0; i < n; i++) {
		Elf_Data *data;
		GElf_Phdr phdr;

		if (!gelf_getphdr(image->elf, (int)i, &phdr) || phdr.p_type != PT_NOTE ||
		    phdr.p_offset > image->size || phdr.p_filesz > image->size - phdr.p_offset)
			continue;
		data = elf_getdata_rawchunk(image->elf, (int64_t)phdr.p_offset, phdr.p_filesz,
					    phdr.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
		if (data && data->d_buf && elf_notes__build_id(data, image->build_id))
			return;
	}
}
