// SPDX-License-Identifier: MIT
/* What was stripped from a file, in another one: its sections lie at the same addresses. */
#include "target/elf/elf_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

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
	struct stat st;
	int err;

	*file = (struct elf_separate){0};
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -ENOEXEC;
	file->data = elf_file__map(fd, (size_t)st.st_size);
	if (file->data == MAP_FAILED) {
		file->data = NULL;
		return -errno;
	}
	file->size = (size_t)st.st_size;
	err = elf_image__check_header(file->data, file->size, ELF_SEPARATE);
	elf_version(EV_CURRENT);
	file->elf = err ? NULL : elf_memory(file->data, file->size);
	if (file->elf)
		return 0;
	close_file(file);
	return err ? err : -EIO;
}

/* Its program headers may point to what is not in it: the notes' section is. */
static void read_build_id(const struct elf_separate *file, char id[static ELF_BUILD_ID_SIZE])
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	id[0] = '\0';
	while (!id[0] && (scn = elf_nextscn(file->elf, scn))) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_NOTE)
			continue;
		data = elf_getdata(scn, NULL);
		if (data && data->d_buf)
			elf_notes__build_id(data, id);
	}
}

bool elf_debug_file__has_build_id(int fd, const char *build_id)
{
	char id[ELF_BUILD_ID_SIZE];
	struct elf_separate file;

	if (open_file(&file, fd))
		return false;
	read_build_id(&file, id);
	close_file(&file);
	return !strcmp(id, build_id);
}

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

bool elf_image__has_symtab(const struct elf_image *image)
{
	return has_section(image->elf, SHT_SYMTAB, NULL) ||
	       (image->separate && has_section(image->separate->elf, SHT_SYMTAB, NULL));
}

bool elf_image__lacks_symbols(const struct elf_image *image)
{
	return image->elf && !image->go && !elf_image__has_symtab(image);
}

/* A name, NUL, padding to four bytes, the CRC. */
const char *elf_image__debug_link(const struct elf_image *image, uint32_t *crc)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = elf_image__section(image, ".gnu_debuglink", &shdr);
	const Elf_Data *data = elf_section__data(scn, 8);
	const char *name = data ? elf_section__string(data, 0) : NULL;
	size_t at;

	if (!name || !*name)
		return NULL;
	at = (strlen(name) + 4) & ~(size_t)3;
	if (at + sizeof(*crc) > data->d_size)
		return NULL;
	memcpy(crc, name + at, sizeof(*crc));
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

/* Before anybody has asked for what may be in it. */
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
