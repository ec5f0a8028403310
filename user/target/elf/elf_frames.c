// SPDX-License-Identifier: MIT
/*
 * .eh_frame describes every function that an exception may pass, also in a stripped file: its
 * FDEs say where functions lie. LSB Core 5.0, 10.6 "Exception Frames" and 10.5 "DWARF Extensions".
 */
#include "target/elf/elf_internal.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/unwind/landing_pads.h"

struct frame_section {
	const unsigned char *e_ident;
	Elf_Data *data;
	uint64_t addr;
	Dwarf_Off cie;	  /* the one that these are of */
	uint8_t encoding; /* of the addresses in its FDEs */
	uint8_t lsda;	  /* of the address of the call sites' table; DW_EH_PE_omit */
	bool is_sized;	  /* its FDEs say how long what they augment is */
};

/* One letter of the augmentation string. False where what follows it cannot be told. */
static bool read_letter(struct frame_section *section, char letter, struct eh_bytes *augmentation)
{
	uint8_t encoding;
	uint64_t personality;

	if (letter == 'S' || letter == 'B')
		return true;
	if (augmentation->at == augmentation->end)
		return false;
	encoding = *augmentation->at++;
	if (letter == 'R')
		section->encoding = encoding;
	else if (letter == 'L')
		section->lsda = encoding;
	else if (letter == 'P')
		return eh_bytes__pointer(augmentation, encoding & 0x0f, &personality);
	return letter == 'R' || letter == 'L';
}

/* False where 'R', how addresses are encoded, cannot be told. */
static bool read_augmentation(struct frame_section *section, const Dwarf_CIE *cie)
{
	struct eh_bytes data = {.at = cie->augmentation_data};
	const char *letter = cie->augmentation;
	bool has_encoding;

	section->encoding = DW_EH_PE_absptr;
	section->lsda = DW_EH_PE_omit;
	section->is_sized = *letter == 'z';
	if (!section->is_sized || !data.at)
		return *letter == '\0' || (section->is_sized && letter[1] == '\0');
	data.end = data.at + cie->augmentation_data_size;
	has_encoding = !strchr(letter, 'R');
	while (*++letter && read_letter(section, *letter, &data))
		has_encoding |= *letter == 'R';
	return has_encoding;
}

static bool use_cie(struct frame_section *section, Dwarf_Off offset)
{
	Dwarf_CFI_Entry entry;
	Dwarf_Off next;

	if (offset == section->cie)
		return true;
	if (offset >= section->data->d_size ||
	    dwarf_next_cfi(section->e_ident, section->data, true, offset, &next, &entry) ||
	    !dwarf_cfi_cie_p(&entry))
		return false;
	section->cie = (Dwarf_Off)-1;
	if (!read_augmentation(section, &entry.cie))
		return false;
	section->cie = offset;
	return true;
}

/* What augments an FDE is the address of its LSDA, or nothing. 0: none. */
static uint64_t read_lsda(const struct frame_section *section, struct eh_bytes *bytes)
{
	uint64_t len, lsda;

	if (!section->is_sized || section->lsda == DW_EH_PE_omit ||
	    !eh_bytes__uleb128(bytes, &len) || len > (uint64_t)(bytes->end - bytes->at))
		return 0;
	bytes->end = bytes->at + len;
	return eh_bytes__pointer(bytes, section->lsda, &lsda) ? lsda : 0;
}

/* False where the FDE is damaged, or in an encoding that is not used for code. */
static bool read_fde(struct frame_section *section, const Dwarf_FDE *fde, struct elf_frame *out)
{
	const uint8_t *base = section->data->d_buf;
	struct eh_bytes bytes = {fde->start, fde->end,
				 section->addr + (uint64_t)(fde->start - base)};
	uint64_t len;

	if (fde->end < fde->start || !use_cie(section, fde->CIE_pointer) ||
	    !eh_bytes__pointer(&bytes, section->encoding, &out->start))
		return false;
	/* The length has the format, but neither sign nor base. */
	if (!eh_bytes__pointer(&bytes, section->encoding & 0x07, &len))
		return false;
	out->end = out->start + len;
	out->lsda = read_lsda(section, &bytes);
	return out->end > out->start;
}

static int compare_frames(const void *a, const void *b)
{
	const struct elf_frame *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int read_frames(struct frame_section *section, elf_frame_vec *frames)
{
	Dwarf_Off offset = 0;

	for (;;) {
		Dwarf_Off next = offset;
		Dwarf_CFI_Entry entry;
		struct elf_frame frame, *slot;
		int result = dwarf_next_cfi(section->e_ident, section->data, true, offset, &next,
					    &entry);

		/* On some errors libdw knows where the next entry begins. */
		if (result > 0 || next == (Dwarf_Off)-1 || next <= offset)
			return 0;
		offset = next;
		if (result || dwarf_cfi_cie_p(&entry) || !read_fde(section, &entry.fde, &frame))
			continue;
		slot = VEC_PUSH(frames);
		if (!slot)
			return -ENOMEM;
		*slot = frame;
	}
}

const struct elf_frame *elf_frames__find(const elf_frame_vec *frames, uint64_t vaddr)
{
	size_t n = VEC_PARTITION_POINT(frames, e, e->start <= vaddr);

	return n && vaddr < frames->v[n - 1].end ? &frames->v[n - 1] : NULL;
}

/* False where the image has none, or it is damaged. */
static bool open_section(struct elf_image *image, struct frame_section *section)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = elf_image__section(image, ".eh_frame", &shdr);

	if (!scn || !elf_section__data(scn, 1))
		return false;
	*section = (struct frame_section){
		.e_ident = (const unsigned char *)elf_getident(image->elf, NULL),
		.data = elf_getdata(scn, NULL),
		.addr = shdr.sh_addr,
		.cie = (Dwarf_Off)-1,
	};
	return section->e_ident != NULL;
}

int elf_image__load_frames(struct elf_image *image, elf_frame_vec *frames)
{
	struct frame_section section;
	int err;

	if (!open_section(image, &section))
		return 0;
	err = read_frames(&section, frames);
	VEC_SORT(frames, compare_frames);
	return err;
}
