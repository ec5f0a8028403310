// SPDX-License-Identifier: MIT
#include "target/elf/elf_image.h"

#include <elf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "target/elf/elf_go.h"
#include "target/elf/elf_internal.h"
#include "util/names.h"
#include "util/page.h"

/* The kernel maps whole pages of the file; so the bytes around the segment can run as well. */
static void round_to_pages(struct elf_segment *segment, uint64_t file_size)
{
	uint64_t lead = segment->offset % PAGE, tail;

	if (segment->vaddr % PAGE == lead) {
		segment->vaddr -= lead;
		segment->offset -= lead;
		segment->size += lead;
	}
	tail = -(segment->vaddr + segment->size) % PAGE;
	if (tail > file_size - segment->offset - segment->size)
		tail = file_size - segment->offset - segment->size;
	if (segment->vaddr + segment->size <= UINT64_MAX - tail)
		segment->size += tail;
}

/* Sorts by vaddr. If two overlap, the later one is cut to begin where the earlier ends. */
static size_t make_disjoint(struct elf_segment *v, size_t n)
{
	uint64_t end = 0;
	size_t out = 0;

	SORT_BY(v, n, vaddr);
	for (size_t i = 0; i < n; i++) {
		struct elf_segment s = v[i];
		uint64_t skip = s.vaddr < end ? end - s.vaddr : 0;

		if (skip >= s.size)
			continue;
		s.vaddr += skip;
		s.offset += skip;
		s.size -= skip;
		end = s.vaddr + s.size;
		v[out++] = s;
	}
	return out;
}

/* 0, -ENOEXEC (no code), -EIO or -ENOMEM. */
static int load_segments(struct elf_image *image)
{
	size_t n;

	if (elf_getphdrnum(image->elf, &n))
		return -EIO;
	image->segments = calloc(n + 1, sizeof(*image->segments));
	if (!image->segments)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr phdr;
		struct elf_segment *segment = &image->segments[image->n_segments];

		if (!gelf_getphdr(image->elf, (int)i, &phdr))
			return -EIO;
		if (phdr.p_type != PT_LOAD || !(phdr.p_flags & PF_X) || !phdr.p_filesz)
			continue;
		if (!elf_file__has(phdr.p_offset, phdr.p_filesz, image->size) ||
		    phdr.p_vaddr > UINT64_MAX - phdr.p_filesz)
			return -EIO;
		*segment = (struct elf_segment){phdr.p_vaddr, phdr.p_offset, phdr.p_filesz};
		round_to_pages(segment, image->size);
		image->n_segments++;
	}
	image->n_segments = make_disjoint(image->segments, image->n_segments);
	return image->n_segments ? 0 : -ENOEXEC;
}

static int load_sections(struct elf_image *image)
{
	elf_extent_vec *sections = &image->sections;
	Elf_Scn *scn = NULL;
	size_t out = 0;

	while ((scn = elf_nextscn(image->elf, scn))) {
		GElf_Shdr shdr;

		if (!gelf_getshdr(scn, &shdr) || !(shdr.sh_flags & SHF_EXECINSTR) ||
		    !shdr.sh_size || shdr.sh_addr > UINT64_MAX - shdr.sh_size)
			continue;
		if (VEC_ADD(sections,
			    (struct elf_extent){shdr.sh_addr, shdr.sh_addr + shdr.sh_size}))
			return -ENOMEM;
	}
	VEC_SORT_BY(sections, start);
	for (size_t i = 0; i < sections->n; i++)
		if (!out || sections->v[i].start >= sections->v[out - 1].end)
			sections->v[out++] = sections->v[i];
	sections->n = out;
	return 0;
}

/* Takes over nothing; 0, -ENOEXEC, -EIO or -ENOMEM. */
static int parse(struct elf_image *image, bool is_core)
{
	int err =
		elf_image__check_header(image->data, image->size, is_core ? ELF_CORE : ELF_PROGRAM);

	if (err)
		return err;
	elf_version(EV_CURRENT);
	/* libelf only reads here; its prototype is older than const. */
	image->elf = elf_memory((char *)image->data, image->size);
	if (!image->elf)
		return -EIO;
	image->entry = elf64_getehdr(image->elf) ? elf64_getehdr(image->elf)->e_entry : 0;
	err = load_segments(image);
	if (!err)
		err = load_sections(image);
	if (err)
		return err;
	image->main = elf_image__find_main(image);
	elf_build_id__read(image->elf, image->build_id);
	image->go = go_table__open(image);
	return 0;
}

static struct elf_image *new_image(const char *name)
{
	struct elf_image *image = calloc(1, sizeof(*image));
	const char *slash;

	if (!image)
		return NULL;
	pthread_mutex_init(&image->lock, NULL);
	pthread_mutex_init(&image->source_lock, NULL);
	image->name = strdup(name);
	if (!image->name) {
		elf_image__free(image);
		errno = ENOMEM;
		return NULL;
	}
	label__clean_in_place(image->name);
	slash = strrchr(image->name, '/');
	image->module = slash && slash[1] ? slash + 1 : image->name;
	return image;
}

/* The image, or NULL with errno and the image freed. */
static struct elf_image *finish(struct elf_image *image, int err)
{
	struct function *fallback = &image->fallback.function;

	if (err) {
		elf_image__free(image);
		errno = -err;
		return NULL;
	}
	*fallback = (struct function){
		.image = image,
		.name = image->module,
		.raw_name = image->module,
		.module = image->module,
		.vaddr = image->segments[0].vaddr,
		.size = image->segments[0].size,
		.kind = FUNCTION_UNKNOWN,
	};
	return image;
}

static struct elf_image *open_image(int fd, const char *name, bool is_core)
{
	struct elf_image *image = new_image(name);
	void *data;
	int err;

	if (!image)
		return NULL;
	err = elf_file__map(fd, &data, &image->size);
	if (err)
		return finish(image, err);
	image->data = data;
	image->is_mapped = true;
	return finish(image, parse(image, is_core));
}

struct elf_image *elf_image__open(int fd, const char *name)
{
	return open_image(fd, name, false);
}

struct elf_image *elf_image__open_core(int fd, const char *name)
{
	return open_image(fd, name, true);
}

/* An image of a copy of the bytes, not parsed yet. */
static struct elf_image *copy_bytes(const void *bytes, size_t len, const char *name)
{
	struct elf_image *image = new_image(name);
	uint8_t *copy;

	if (!image)
		return NULL;
	copy = malloc(len ? len : 1);
	if (!copy)
		return finish(image, -ENOMEM);
	memcpy(copy, bytes, len);
	image->data = copy;
	image->size = len;
	return image;
}

struct elf_image *elf_image__from_bytes(const void *bytes, size_t len, const char *name)
{
	struct elf_image *image = copy_bytes(bytes, len, name);

	return image ? finish(image, parse(image, false)) : NULL;
}

/* The one segment and the one function of code without an ELF file. 0, -ENOEXEC or -ENOMEM. */
static int describe_raw(struct elf_image *image, const char *name)
{
	char *kept;

	if (!image->size)
		return -ENOEXEC;
	kept = elf_image__keep(image, name, strlen(name));
	image->segments = calloc(1, sizeof(*image->segments));
	if (!kept || !image->segments ||
	    !function_entry__add(&image->symbols, image, 0, image->size, kept))
		return -ENOMEM;
	image->segments[0].size = image->size;
	image->n_segments = 1;
	image->has_symbols = true;
	return 0;
}

struct elf_image *elf_image__raw(const void *bytes, size_t len, const char *name,
				 const char *function)
{
	struct elf_image *image = copy_bytes(bytes, len, name);

	return image ? finish(image, describe_raw(image, function)) : NULL;
}

struct elf_image *elf_image__from_segments(const void *bytes, size_t len,
					   const struct elf_segment *segments, size_t n,
					   const char *name)
{
	struct elf_image *image = n ? copy_bytes(bytes, len, name) : NULL;

	if (!image)
		return NULL;
	image->segments = calloc(n, sizeof(*segments));
	if (!image->segments)
		return finish(image, -ENOMEM);
	memcpy(image->segments, segments, n * sizeof(*segments));
	image->n_segments = n;
	return finish(image, 0);
}

void elf_image__free(struct elf_image *image)
{
	if (!image)
		return;
	elf_image__free_debug(image);
	elf_image__free_separate(image);
	go_table__free(image->go);
	VEC_FINI_EACH(&image->places, e, free(*e));
	function_table__free(image->known);
	function_table__free(image->full);
	landing_table__free(image->pads);
	dwarf_cfi_end(image->cfi);
	VEC_FINI(&image->symbols);
	VEC_FINI(&image->stubs);
	VEC_FINI(&image->unknown);
	VEC_FINI(&image->sections);
	VEC_FINI(&image->called);
	elf_image__free_strings(image);
	free(image->segments);
	elf_end(image->elf);
	if (image->is_mapped)
		munmap((void *)image->data, image->size);
	else
		free((void *)image->data);
	pthread_mutex_destroy(&image->lock);
	pthread_mutex_destroy(&image->source_lock);
	free(image->name);
	free(image);
}

const char *elf_image__name(const struct elf_image *image)
{
	return image->name;
}

const char *elf_image__build_id(const struct elf_image *image)
{
	return image->build_id;
}

const char *elf_image__library_version(void)
{
	return dwfl_version(NULL);
}
