// SPDX-License-Identifier: MIT
#include "target/elf/elf_file.h"

#include <elf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "target/elf/elf_internal.h"

static bool is_of(const Elf64_Ehdr *ehdr, enum elf_use use)
{
	switch (use) {
	case ELF_CORE:
		return ehdr->e_type == ET_CORE;
	case ELF_SEPARATE:
		if (ehdr->e_type == ET_REL) /* dwz's */
			return true;
		break;
	case ELF_PROGRAM:
		break;
	}
	return ehdr->e_type == ET_EXEC || ehdr->e_type == ET_DYN;
}

int elf_image__check_header(const uint8_t *data, size_t size, enum elf_use use)
{
	Elf64_Ehdr ehdr;

	if (size < SELFMAG || memcmp(data, ELFMAG, SELFMAG))
		return -ENOEXEC;
	if (size < sizeof(ehdr))
		return -EIO;
	memcpy(&ehdr, data, sizeof(ehdr));
	if (ehdr.e_ident[EI_CLASS] != ELFCLASS64 || ehdr.e_ident[EI_DATA] != ELFDATA2LSB ||
	    ehdr.e_machine != EM_X86_64 || !is_of(&ehdr, use))
		return -ENOEXEC;
	/* PN_XNUM is an escape for 65535 segments or more, which programs never have. */
	if (ehdr.e_phentsize != sizeof(Elf64_Phdr) || ehdr.e_phnum == PN_XNUM ||
	    !elf_file__has(ehdr.e_phoff, (uint64_t)ehdr.e_phnum * sizeof(Elf64_Phdr), size))
		return -EIO;
	if (ehdr.e_shoff && (ehdr.e_shentsize != sizeof(Elf64_Shdr) ||
			     !elf_file__has(ehdr.e_shoff, ehdr.e_shnum * sizeof(Elf64_Shdr), size)))
		return -EIO;
	return 0;
}

int elf_file__map(int fd, void **data, size_t *size)
{
	struct stat st;
	void *mapped;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -ENOEXEC;
	*size = (size_t)st.st_size;
	mapped = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	*data = mapped;
	return 0;
}

const struct elf_segment *elf_image__segment(const struct elf_image *image, uint64_t vaddr)
{
	size_t n = PARTITION_POINT(image->segments, image->n_segments, e, e->vaddr <= vaddr);

	if (!n || vaddr - image->segments[n - 1].vaddr >= image->segments[n - 1].size)
		return NULL;
	return &image->segments[n - 1];
}

/*
 * Images of files have a handful of segments; those of a process's memory have thousands, which
 * also ascend by offset.
 */
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

/* The first executable section that ends after vaddr, or NULL. */
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

/* The first section of this type, or with this name (NULL: by type), that has contents. */
static Elf_Scn *find_section(Elf *elf, uint32_t type, const char *name)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *its;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS)
			continue;
		its = name ? elf_strptr(elf, names, shdr.sh_name) : NULL;
		if (name ? its && !strcmp(its, name) : shdr.sh_type == type)
			return scn;
	}
	return NULL;
}

Elf_Scn *elf_image__section(const struct elf_image *image, const char *name, GElf_Shdr *shdr)
{
	Elf_Scn *scn = image->elf ? find_section(image->elf, 0, name) : NULL;

	return scn && gelf_getshdr(scn, shdr) ? scn : NULL;
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

void elf_build_id__read(Elf *elf, char id[static ELF_BUILD_ID_SIZE])
{
	const void *bytes = NULL;
	ssize_t n = dwelf_elf_gnu_build_id(elf, &bytes);

	id[0] = '\0';
	for (ssize_t i = 0; i < n && 2 * n < ELF_BUILD_ID_SIZE; i++)
		sprintf(id + 2 * i, "%02x", ((const uint8_t *)bytes)[i]);
}

/* debug/buildinfo/buildinfo.go: since Go 1.18 the version's length and text follow the header. */
#define INFO_MAGIC    "\xff Go buildinf:"
#define INFO_FLAGS    15
#define INFO_HAS_TEXT 2
#define INFO_LENGTH   32
#define LAST_WITHOUT  17

unsigned int elf_image__go_minor(const struct elf_image *image)
{
	const uint8_t *info = NULL;
	unsigned int minor = 0;
	char text[16] = "";
	GElf_Shdr shdr;
	size_t len;

	if (image->elf && elf_image__section(image, ".go.buildinfo", &shdr))
		info = elf_image__bytes(image, shdr.sh_offset, &len);
	if (!info || len < INFO_LENGTH + sizeof(text) ||
	    memcmp(info, INFO_MAGIC, sizeof(INFO_MAGIC) - 1))
		return 0;
	if (!(info[INFO_FLAGS] & INFO_HAS_TEXT))
		return LAST_WITHOUT;
	memcpy(text, info + INFO_LENGTH + 1,
	       info[INFO_LENGTH] < sizeof(text) ? info[INFO_LENGTH] : sizeof(text) - 1);
	return sscanf(text, "go1.%3u", &minor) == 1 ? minor : 0;
}

/* ---- debug files: they have the stripped sections, with the same addresses */

struct elf_separate {
	void *data;
	size_t size;
	Elf *elf;
};

static void close_file(struct elf_separate *file)
{
	elf_end(file->elf);
	if (file->data)
		munmap(file->data, file->size);
	*file = (struct elf_separate){0};
}

/* 0, -ENOEXEC, -EIO or -errno of the system. */
static int open_file(struct elf_separate *file, int fd)
{
	int err;

	*file = (struct elf_separate){0};
	err = elf_file__map(fd, &file->data, &file->size);
	if (err)
		return err;
	err = elf_image__check_header(file->data, file->size, ELF_SEPARATE);
	elf_version(EV_CURRENT);
	file->elf = err ? NULL : elf_memory(file->data, file->size);
	if (file->elf)
		return 0;
	close_file(file);
	return err ? err : -EIO;
}

bool elf_debug_file__has_build_id(int fd, const char *build_id)
{
	char id[ELF_BUILD_ID_SIZE];
	struct elf_separate file;

	if (open_file(&file, fd))
		return false;
	elf_build_id__read(file.elf, id);
	close_file(&file);
	return !strcmp(id, build_id);
}

static bool has_section(Elf *elf, uint32_t type, const char *name)
{
	return find_section(elf, type, name);
}

static bool has_lines(Elf *elf)
{
	return has_section(elf, 0, ".debug_line") || has_section(elf, 0, ".zdebug_line");
}

bool elf_image__is_stripped(const struct elf_image *image)
{
	return image->elf && (!has_section(image->elf, SHT_SYMTAB, NULL) || !has_lines(image->elf));
}

bool elf_image__has_exception_tables(const struct elf_image *image)
{
	GElf_Shdr shdr;

	return elf_image__section(image, ".gcc_except_table", &shdr) != NULL;
}

bool elf_image__has_symtab(const struct elf_image *image)
{
	return has_section(image->elf, SHT_SYMTAB, NULL) ||
	       (image->separate && has_section(image->separate->elf, SHT_SYMTAB, NULL));
}

bool elf_image__lacks_symbols(const struct elf_image *image)
{
	return image->elf && !image->go && !elf_image__has_symtab(image);
}

const char *elf_image__debug_link(const struct elf_image *image, uint32_t *crc)
{
	GElf_Word link_crc;
	const char *name = image->elf ? dwelf_elf_gnu_debuglink(image->elf, &link_crc) : NULL;

	if (!name || !*name)
		return NULL;
	*crc = link_crc;
	return name;
}

static bool is_separate(const struct elf_image *image)
{
	return image->separate && !has_lines(image->elf);
}

/* A name, NUL, the build id. */
const char *elf_image__alt_link(const struct elf_image *image, char *build_id, size_t size)
{
	Elf *elf = is_separate(image) ? image->separate->elf : image->elf;
	Elf_Scn *scn = elf ? find_section(elf, 0, ".gnu_debugaltlink") : NULL;
	const Elf_Data *data = scn ? elf_section__data(scn, 2) : NULL;
	const char *name = data ? elf_section__string(data, 0) : NULL;
	size_t at;

	if (!name || !*name)
		return NULL;
	at = strlen(name) + 1;
	if (2 * (data->d_size - at) >= size)
		return NULL;
	for (build_id[0] = '\0'; at < data->d_size; at++, build_id += 2)
		sprintf(build_id, "%02x", ((const uint8_t *)data->d_buf)[at]);
	return name;
}

/* Fails if the file's contents have been looked for already. */
static int set_file(struct elf_image *image, struct elf_separate **place, bool is_late, int fd)
{
	struct elf_separate *file = malloc(sizeof(*file));
	int err;

	if (!file)
		return -ENOMEM;
	err = open_file(file, fd);
	pthread_mutex_lock(&image->lock);
	if (!err && (*place || is_late || image->has_debug))
		err = -EBUSY;
	if (!err)
		*place = file;
	pthread_mutex_unlock(&image->lock);
	if (!err)
		return 0;
	close_file(file);
	free(file);
	return err;
}

int elf_image__set_debug_file(struct elf_image *image, int fd)
{
	return set_file(image, &image->separate, image->has_symbols, fd);
}

int elf_image__set_alt_file(struct elf_image *image, int fd)
{
	return set_file(image, &image->alt, false, fd);
}

static void free_file(struct elf_separate *file)
{
	if (!file)
		return;
	close_file(file);
	free(file);
}

void elf_image__free_separate(struct elf_image *image)
{
	free_file(image->separate);
	free_file(image->alt);
}

Elf *elf_image__symbols_elf(const struct elf_image *image)
{
	if (!image->separate || !image->elf || has_section(image->elf, SHT_SYMTAB, NULL))
		return NULL;
	return image->separate->elf;
}

const void *elf_image__debug_bytes(const struct elf_image *image, size_t *size)
{
	bool is_there = is_separate(image);

	*size = is_there ? image->separate->size : image->size;
	return is_there ? image->separate->data : image->data;
}

Elf *elf_image__alt_elf(const struct elf_image *image)
{
	return image->alt ? image->alt->elf : NULL;
}
