// SPDX-License-Identifier: MIT
#include "target/elf/elf_internal.h"

#include <string.h>

const struct elf_segment *elf_image__segment(const struct elf_image *image, uint64_t vaddr)
{
	size_t n = PARTITION_POINT(image->segments, image->n_segments, e, e->vaddr <= vaddr);

	if (!n || vaddr - image->segments[n - 1].vaddr >= image->segments[n - 1].size)
		return NULL;
	return &image->segments[n - 1];
}

/* Of files, a handful; of a process's memory, thousands, which ascend by offset as well. */
#define MANY_SEGMENTS 16

/* The last that begins at or before offset. */
static const struct elf_segment *segment_at_offset(const struct elf_image *image, uint64_t offset)
{
	size_t n = PARTITION_POINT(image->segments, image->n_segments, e, e->offset <= offset);

	return n ? &image->segments[n - 1] : &image->segments[0];
}

uint64_t elf_image__vaddr_of_offset(const struct elf_image *image, uint64_t offset)
{
	const struct elf_segment *likely = segment_at_offset(image, offset);

	if (image->n_segments >= MANY_SEGMENTS && offset - likely->offset < likely->size)
		return likely->vaddr + (offset - likely->offset);
	for (size_t i = 0; i < image->n_segments; i++) {
		const struct elf_segment *segment = &image->segments[i];

		if (offset - segment->offset < segment->size)
			return segment->vaddr + (offset - segment->offset);
	}
	return UINT64_MAX;
}

uint64_t elf_image__offset_of_vaddr(const struct elf_image *image, uint64_t vaddr)
{
	const struct elf_segment *segment = elf_image__segment(image, vaddr);

	return segment ? segment->offset + (vaddr - segment->vaddr) : UINT64_MAX;
}

bool elf_image__has_code(const struct elf_image *image)
{
	return image->size != 0;
}

const uint8_t *elf_image__bytes(const struct elf_image *image, uint64_t offset, size_t *len)
{
	if (offset >= image->size) {
		*len = 0;
		return NULL;
	}
	*len = image->size - offset;
	return image->data + offset;
}

const uint8_t *elf_image__loaded_bytes(const struct elf_image *image, uint64_t vaddr, size_t *len)
{
	uint64_t offset = elf_image__offset_of_vaddr(image, vaddr);
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;

	if (offset != UINT64_MAX)
		return elf_image__bytes(image, offset, len);
	if (!image->elf || elf_image__check_header(image->data, image->size, ELF_PROGRAM))
		return NULL;
	memcpy(&ehdr, image->data, sizeof(ehdr));
	for (size_t i = 0; i < ehdr.e_phnum; i++) {
		memcpy(&phdr, image->data + ehdr.e_phoff + i * sizeof(phdr), sizeof(phdr));
		offset = vaddr - phdr.p_vaddr;
		if (phdr.p_type == PT_LOAD && offset < phdr.p_filesz &&
		    offset <= UINT64_MAX - phdr.p_offset)
			return elf_image__bytes(image, phdr.p_offset + offset, len);
	}
	return NULL;
}

/* The first executable section that ends behind vaddr, or NULL. */
static const struct elf_extent *section_from(const struct elf_image *image, uint64_t vaddr)
{
	size_t n = VEC_PARTITION_POINT(&image->sections, e, e->end <= vaddr);

	return n < image->sections.n ? &image->sections.v[n] : NULL;
}

bool elf_image__in_section(const struct elf_image *image, uint64_t vaddr)
{
	const struct elf_extent *section = section_from(image, vaddr);

	return section && section->start <= vaddr;
}

uint64_t elf_image__section_end(const struct elf_image *image, uint64_t vaddr)
{
	const struct elf_segment *segment = elf_image__segment(image, vaddr);
	const struct elf_extent *section = section_from(image, vaddr);
	uint64_t end = segment ? segment->vaddr + segment->size : vaddr;
	uint64_t border = end;

	if (section)
		border = section->start <= vaddr ? section->end : section->start;
	return border < end ? border : end;
}

Elf_Scn *elf_image__section(const struct elf_image *image, const char *name, GElf_Shdr *shdr)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (!image->elf || elf_getshdrstrndx(image->elf, &names))
		return NULL;
	while ((scn = elf_nextscn(image->elf, scn))) {
		const char *its;

		if (!gelf_getshdr(scn, shdr))
			continue;
		its = elf_strptr(image->elf, names, shdr->sh_name);
		if (its && !strcmp(its, name))
			return scn;
	}
	return NULL;
}

const Elf_Data *elf_section__data(Elf_Scn *scn, size_t need)
{
	const Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;

	return data && data->d_buf && data->d_size >= need ? data : NULL;
}

const char *elf_section__string(const Elf_Data *strings, size_t offset)
{
	const char *base = strings->d_buf;

	if (offset >= strings->d_size || !memchr(base + offset, '\0', strings->d_size - offset))
		return NULL;
	return base + offset;
}
