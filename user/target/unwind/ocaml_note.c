// SPDX-License-Identifier: MIT
/*
 * A note for each unit: what _.stapsdt.base was when the unit's addresses were written, then three
 * lists of addresses, each ended by a 0. What the base has moved by since (prelink), they have too:
 * as for SystemTap's probes (its "UserSpaceProbeImplementation", "Prelink").
 */
#include "target/unwind/ocaml_note.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NOTE_TYPE 1
static const char owner[8] = "OCaml"; /* with what it is padded to */

struct note_header {
	uint32_t name_size, desc_size, type;
};

void ocaml_note__fini(struct ocaml_note *note)
{
	VEC_FINI(&note->handlers);
	VEC_FINI(&note->pushes);
	VEC_FINI(&note->pops);
}

/* Addresses up to the 0, or to the end of the note. */
static int read_list(const uint8_t **at, const uint8_t *end, uint64_t shift, vaddr_vec *list)
{
	uint64_t vaddr, *slot;

	while ((size_t)(end - *at) >= sizeof(vaddr)) {
		memcpy(&vaddr, *at, sizeof(vaddr));
		*at += sizeof(vaddr);
		if (!vaddr)
			return 0;
		slot = VEC_PUSH(list);
		if (!slot)
			return -ENOMEM;
		*slot = vaddr + shift;
	}
	return 0;
}

static int read_unit(const uint8_t *at, const uint8_t *end, uint64_t base, struct ocaml_note *note)
{
	uint64_t recorded;
	int err;

	if ((size_t)(end - at) < sizeof(recorded))
		return 0;
	memcpy(&recorded, at, sizeof(recorded));
	at += sizeof(recorded);
	err = read_list(&at, end, base - recorded, &note->handlers);
	if (!err)
		err = read_list(&at, end, base - recorded, &note->pushes);
	return err ? err : read_list(&at, end, base - recorded, &note->pops);
}

static uint64_t padded(uint32_t size)
{
	return ((uint64_t)size + 3) & ~3ull;
}

static int read_notes(const uint8_t *at, size_t left, uint64_t base, struct ocaml_note *note)
{
	struct note_header header;
	int err = 0;

	while (!err && left >= sizeof(header)) {
		uint64_t name, desc;

		memcpy(&header, at, sizeof(header));
		at += sizeof(header);
		left -= sizeof(header);
		name = padded(header.name_size);
		desc = padded(header.desc_size);
		if (name > left || header.desc_size > left - name)
			return 0;
		if (header.type == NOTE_TYPE && name == sizeof(owner) && !memcmp(at, owner, name))
			err = read_unit(at + name, at + name + header.desc_size, base, note);
		at += name;
		left -= name;
		/* The last one's padding may be missing. */
		if (desc > left)
			return err;
		at += desc;
		left -= desc;
	}
	return err;
}

static int compare_vaddrs(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void sort(vaddr_vec *list)
{
	VEC_SORT(list, compare_vaddrs);
}

int ocaml_note__read(struct elf_image *image, struct ocaml_note *note)
{
	GElf_Shdr shdr, base;
	Elf_Scn *scn;
	const Elf_Data *data;
	int err;

	*note = (struct ocaml_note){0};
	if (!image->elf || !elf_image__section(image, ".stapsdt.base", &base))
		return 0;
	scn = elf_image__section(image, ".note.ocaml_eh", &shdr);
	data = scn ? elf_section__data(scn, sizeof(struct note_header)) : NULL;
	if (!data)
		return 0;
	err = read_notes(data->d_buf, data->d_size, base.sh_addr, note);
	sort(&note->handlers);
	sort(&note->pushes);
	sort(&note->pops);
	return err;
}

bool vaddr_vec__has(const vaddr_vec *vaddrs, uint64_t start, uint64_t end)
{
	size_t n = VEC_PARTITION_POINT(vaddrs, e, *e < start);

	return n < vaddrs->n && vaddrs->v[n] < end;
}
