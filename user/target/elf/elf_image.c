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

/* The GNU build id, which tells builds of a program apart. */

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

/* A separate file with the sections that were stripped; they have the same addresses. */

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

/* Its program headers may refer to missing bytes, but the section of notes is present. */
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

static bool is_inside(uint64_t offset, uint64_t len, uint64_t size)
{
	return offset <= size && len <= size - offset;
}

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
	    !is_inside(ehdr.e_phoff, (uint64_t)ehdr.e_phnum * sizeof(Elf64_Phdr), size))
		return -EIO;
	if (ehdr.e_shoff && (ehdr.e_shentsize != sizeof(Elf64_Shdr) ||
			     !is_inside(ehdr.e_shoff, ehdr.e_shnum * sizeof(Elf64_Shdr), size)))
		return -EIO;
	return 0;
}

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
		if (!is_inside(phdr.p_offset, phdr.p_filesz, image->size) ||
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
		struct elf_extent *slot;
		GElf_Shdr shdr;

		if (!gelf_getshdr(scn, &shdr) || !(shdr.sh_flags & SHF_EXECINSTR) ||
		    !shdr.sh_size || shdr.sh_addr > UINT64_MAX - shdr.sh_size)
			continue;
		slot = VEC_PUSH(sections);
		if (!slot)
			return -ENOMEM;
		*slot = (struct elf_extent){shdr.sh_addr, shdr.sh_addr + shdr.sh_size};
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
	elf_image__load_build_id(image);
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

void *elf_file__map(int fd, size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
}

static struct elf_image *open_image(int fd, const char *name, bool is_core)
{
	struct elf_image *image;
	struct stat st;
	void *data;

	if (fstat(fd, &st))
		return NULL;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0) {
		errno = ENOEXEC;
		return NULL;
	}
	image = new_image(name);
	if (!image)
		return NULL;
	data = elf_file__map(fd, (size_t)st.st_size);
	if (data == MAP_FAILED)
		return finish(image, -errno);
	image->data = data;
	image->size = (size_t)st.st_size;
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
	struct function_entry *entry;
	char *kept;

	if (!image->size)
		return -ENOEXEC;
	kept = elf_image__keep(image, name, strlen(name));
	entry = VEC_PUSH(&image->symbols);
	image->segments = calloc(1, sizeof(*image->segments));
	if (!kept || !entry || !image->segments)
		return -ENOMEM;
	image->segments[0].size = image->size;
	image->n_segments = 1;
	*entry = (struct function_entry){
		.function = {.image = image, .module = image->module, .size = image->size}};
	function_entry__set_name(entry, kept);
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
	for (size_t i = 0; i < image->places.n; i++)
		free(image->places.v[i]);
	VEC_FINI(&image->places);
	ocaml_table__free(image->ocaml);
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
