// SPDX-License-Identifier: MIT
/*
 * A note's descriptor: the addresses of the probe, of .stapsdt.base and of the semaphore, as they
 * were when it was linked, then three strings: provider, name, arguments
 * (sourceware.org/systemtap/wiki/UserSpaceProbeImplementation).
 */
#include "target/elf/elf_usdt.h"

#include <string.h>

#include "target/elf/elf_internal.h"

#define NT_STAPSDT     3
#define SEMAPHORE_SIZE 2

struct usdt_reader {
	struct elf_image *image;
	uint64_t base; /* where .stapsdt.base is now; 0: the file has none */
};

/* The string at *at, which ends before `end`; *at moves behind it. NULL where it does not. */
static const char *take_string(const char **at, const char *end)
{
	const char *text = *at, *nul = memchr(text, '\0', (size_t)(end - text));

	if (!nul)
		return NULL;
	*at = nul + 1;
	return text;
}

/* 0 where it is in no place that a program could count in. */
static uint64_t semaphore_offset(const struct elf_image *image, uint64_t vaddr)
{
	size_t len;
	const uint8_t *bytes = vaddr ? elf_image__loaded_bytes(image, vaddr, &len) : NULL;

	if (!bytes || len < SEMAPHORE_SIZE || elf_image__segment(image, vaddr))
		return 0;
	return (uint64_t)(bytes - image->data);
}

/* False where the note makes no sense. */
static bool read_place(const struct usdt_reader *r, const char *desc, size_t size,
		       struct usdt_place *place)
{
	const char *at = desc, *end = desc + size;
	uint64_t addresses[3], moved;

	if (size < sizeof(addresses))
		return false;
	memcpy(addresses, at, sizeof(addresses));
	at += sizeof(addresses);
	place->provider = take_string(&at, end);
	place->name = place->provider ? take_string(&at, end) : NULL;
	place->args = place->name ? take_string(&at, end) : NULL;
	/* prelink(8) moves all but what is in notes. */
	moved = r->base ? r->base - addresses[1] : 0;
	place->vaddr = addresses[0] + moved;
	place->semaphore_offset =
		semaphore_offset(r->image, addresses[2] ? addresses[2] + moved : 0);
	return place->args && *place->provider && *place->name &&
	       elf_image__segment(r->image, place->vaddr) &&
	       (!addresses[2] || place->semaphore_offset);
}

static int each_note(const struct usdt_reader *r, Elf_Data *notes,
		     int (*fn)(void *ctx, const struct usdt_place *place), void *ctx)
{
	size_t offset = 0, name_offset, desc_offset;
	const char *base = notes->d_buf;
	struct usdt_place place;
	GElf_Nhdr note;
	int result = 0;

	while (!result &&
	       (offset = gelf_getnote(notes, offset, &note, &name_offset, &desc_offset))) {
		if (note.n_type != NT_STAPSDT || note.n_namesz != sizeof("stapsdt") ||
		    memcmp(base + name_offset, "stapsdt", sizeof("stapsdt")))
			continue;
		if (read_place(r, base + desc_offset, note.n_descsz, &place))
			result = fn(ctx, &place);
	}
	return result;
}

int elf_image__each_usdt(struct elf_image *image,
			 int (*fn)(void *ctx, const struct usdt_place *place), void *ctx)
{
	struct usdt_reader r = {.image = image};
	Elf_Data *notes;
	GElf_Shdr shdr;

	pthread_mutex_lock(&image->lock);
	if (elf_image__section(image, ".stapsdt.base", &shdr))
		r.base = shdr.sh_addr;
	notes = (Elf_Data *)elf_section__data(elf_image__section(image, ".note.stapsdt", &shdr), 1);
	pthread_mutex_unlock(&image->lock);
	return notes ? each_note(&r, notes, fn, ctx) : 0;
}
