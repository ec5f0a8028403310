// SPDX-License-Identifier: MIT
/*
 * .eh_frame describes every function that an exception may pass, also in a stripped file: its
 * FDEs say where functions lie. LSB Core 5.0, 10.6 "Exception Frames" and 10.5 "DWARF Extensions".
 */
#include "target/elf_internal.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct frame_section {
	const unsigned char *e_ident;
	Elf_Data *data;
	uint64_t addr;
	Dwarf_Off cie;	  /* the one that `encoding` is of */
	uint8_t encoding; /* of the addresses in its FDEs */
};

/* Bytes of an encoded pointer, 0 where it is of no fixed size. */
static size_t encoded_size(uint8_t encoding)
{
	switch (encoding & 0x07) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
		return 8;
	case DW_EH_PE_udata4:
		return 4;
	case DW_EH_PE_udata2:
		return 2;
	default:
		return 0;
	}
}

/* The number without its base: sign-extended where the encoding says so. */
static uint64_t read_encoded(const uint8_t *at, uint8_t encoding)
{
	size_t size = encoded_size(encoding);
	uint64_t value = 0;

	memcpy(&value, at, size);
	if ((encoding & DW_EH_PE_signed) && size == 4)
		return (uint64_t)(int64_t)(int32_t)value;
	if ((encoding & DW_EH_PE_signed) && size == 2)
		return (uint64_t)(int64_t)(int16_t)value;
	return value;
}

/* The 'R' of the augmentation string. False where it cannot be told. */
static bool find_encoding(const Dwarf_CIE *cie, uint8_t *encoding)
{
	const uint8_t *p = cie->augmentation_data, *end = p + cie->augmentation_data_size;
	const char *letter = cie->augmentation;

	*encoding = DW_EH_PE_absptr;
	if (*letter != 'z')
		return *letter == '\0';
	while (*++letter && p && p < end) {
		if (*letter == 'R') {
			*encoding = *p;
			return true;
		}
		if (*letter == 'L') {
			p++;
		} else if (*letter == 'P') {
			size_t size = encoded_size(*p);

			if (!size || size >= (size_t)(end - p))
				return false;
			p += 1 + size;
		} else if (*letter != 'S' && *letter != 'B') {
			return false;
		}
	}
	return *letter == '\0';
}

static bool use_cie(struct frame_section *section, Dwarf_Off offset)
{
	Dwarf_CFI_Entry entry;
	Dwarf_Off next;

	if (offset == section->cie)
		return true;
	if (offset >= section->data->d_size ||
	    dwarf_next_cfi(section->e_ident, section->data, true, offset, &next, &entry) ||
	    !dwarf_cfi_cie_p(&entry) || !find_encoding(&entry.cie, &section->encoding))
		return false;
	section->cie = offset;
	return true;
}

/* False where the FDE is damaged, or in an encoding that is not used for code. */
static bool read_fde(struct frame_section *section, const Dwarf_FDE *fde, struct elf_extent *out)
{
	const uint8_t *base = section->data->d_buf;
	size_t size;
	uint64_t len;

	if (!use_cie(section, fde->CIE_pointer))
		return false;
	size = encoded_size(section->encoding);
	if (!size || fde->end < fde->start || (size_t)(fde->end - fde->start) < 2 * size)
		return false;
	out->start = read_encoded(fde->start, section->encoding);
	if ((section->encoding & 0x70) == DW_EH_PE_pcrel)
		out->start += section->addr + (uint64_t)(fde->start - base);
	else if (section->encoding & 0x70)
		return false;
	/* The length has the format, but neither sign nor base. */
	len = read_encoded(fde->start + size, section->encoding & 0x07);
	out->end = out->start + len;
	return !(section->encoding & DW_EH_PE_indirect) && out->end > out->start;
}

static int compare_frames(const void *a, const void *b)
{
	const struct elf_extent *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int read_frames(struct frame_section *section, elf_extent_vec *frames)
{
	Dwarf_Off offset = 0;

	for (;;) {
		Dwarf_Off next = offset;
		Dwarf_CFI_Entry entry;
		struct elf_extent extent, *slot;
		int result = dwarf_next_cfi(section->e_ident, section->data, true, offset, &next,
					    &entry);

		/* On some errors libdw knows where the next entry begins. */
		if (result > 0 || next == (Dwarf_Off)-1 || next <= offset)
			return 0;
		offset = next;
		if (result || dwarf_cfi_cie_p(&entry) || !read_fde(section, &entry.fde, &extent))
			continue;
		slot = VEC_PUSH(frames);
		if (!slot)
			return -ENOMEM;
		*slot = extent;
	}
}

int elf_image__load_frames(struct elf_image *image, elf_extent_vec *frames)
{
	struct frame_section section = {.cie = (Dwarf_Off)-1};
	GElf_Shdr shdr;
	Elf_Scn *scn = elf_image__section(image, ".eh_frame", &shdr);
	int err;

	if (!scn || !elf_section__data(scn, 1))
		return 0;
	section.data = elf_getdata(scn, NULL);
	section.e_ident = (const unsigned char *)elf_getident(image->elf, NULL);
	section.addr = shdr.sh_addr;
	err = section.e_ident ? read_frames(&section, frames) : 0;
	if (frames->n)
		qsort(frames->v, frames->n, sizeof(*frames->v), compare_frames);
	return err;
}
