// SPDX-License-Identifier: MIT
#include "target/elf/elf_image.h"

#include <elf.h>
#include <elfutils/libdwelf.h>
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

int elf_image__check_header(const uint8_t *data, size_t size, enum elf_use use)
{
	Elf64_Ehdr ehdr;
	bool fits;

	if (size < SELFMAG || memcmp(data, ELFMAG, SELFMAG))
		return -ENOEXEC;
	if (size < sizeof(ehdr))
		return -EIO;
	memcpy(&ehdr, data, sizeof(ehdr));
	fits = ehdr.e_type == ET_EXEC || ehdr.e_type == ET_DYN;
	if (use == ELF_CORE)
		fits = ehdr.e_type == ET_CORE;
	else if (use == ELF_SEPARATE && ehdr.e_type == ET_REL) /* a file of dwz */
		fits = true;
	if (ehdr.e_ident[EI_CLASS] != ELFCLASS64 || ehdr.e_ident[EI_DATA] != ELFDATA2LSB ||
	    ehdr.e_machine != EM_X86_64 || !fits)
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

uint64_t elf_image__vaddr_of_offset(const struct elf_image *image, uint64_t offset)
{
	/* The last segment that begins at or before offset is the likely one. */
	size_t n = PARTITION_POINT(image->segments, image->n_segments, e, e->offset <= offset);
	const struct elf_segment *likely = n ? &image->segments[n - 1] : &image->segments[0];

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

Elf_Scn *elf_file__section(Elf *elf, uint32_t type, const char *name)
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
	Elf_Scn *scn = image->elf ? elf_file__section(image->elf, 0, name) : NULL;

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

bool elf_image__has_exception_tables(const struct elf_image *image)
{
	GElf_Shdr shdr;

	return elf_image__section(image, ".gcc_except_table", &shdr) != NULL;
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
		struct elf_segment s;
		uint64_t lead, tail, left;

		if (!gelf_getphdr(image->elf, (int)i, &phdr))
			return -EIO;
		if (phdr.p_type != PT_LOAD || !(phdr.p_flags & PF_X) || !phdr.p_filesz)
			continue;
		if (!elf_file__has(phdr.p_offset, phdr.p_filesz, image->size) ||
		    phdr.p_vaddr > UINT64_MAX - phdr.p_filesz)
			return -EIO;
		s = (struct elf_segment){phdr.p_vaddr, phdr.p_offset, phdr.p_filesz};
		/* The kernel maps whole pages; so the bytes around the segment can run as well. */
		lead = s.offset % PAGE;
		if (s.vaddr % PAGE == lead) {
			s.vaddr -= lead;
			s.offset -= lead;
			s.size += lead;
		}
		left = image->size - s.offset - s.size;
		tail = -(s.vaddr + s.size) % PAGE;
		if (tail > left)
			tail = left;
		if (s.vaddr + s.size <= UINT64_MAX - tail)
			s.size += tail;
		image->segments[image->n_segments++] = s;
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

/*
 * Reads the headers of the image's data. The caller frees the image also after an error: -ENOEXEC,
 * -EIO or -ENOMEM.
 */
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

struct elf_image *elf_image__raw(const void *bytes, size_t len, const char *name,
				 const char *function)
{
	struct elf_image *image = copy_bytes(bytes, len, name);
	char *kept;

	if (!image)
		return NULL;
	if (!len)
		return finish(image, -ENOEXEC);
	kept = elf_image__keep(image, function, strlen(function));
	image->segments = calloc(1, sizeof(*image->segments));
	if (!kept || !image->segments || !function_entry__add(&image->symbols, image, 0, len, kept))
		return finish(image, -ENOMEM);
	image->segments[0].size = len;
	image->n_segments = 1;
	image->has_symbols = true;
	return finish(image, 0);
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
