// SPDX-License-Identifier: MIT
#include "target/symbols/symbols.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "target/elf/debug_file.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/vec.h"

/* The vdso is small; more than this is not one. */
#define VDSO_MAX (1u << 20)

static struct elf_image *open_vdso(pid_t pid, const struct mapping *mapping)
{
	_cleanup_free_ void *bytes = NULL;
	size_t len = mapping->end - mapping->start;
	ssize_t n;

	if (len > VDSO_MAX) {
		errno = ENOEXEC;
		return NULL;
	}
	bytes = malloc(len);
	if (!bytes)
		return NULL;
	n = process__read_memory(pid, mapping->start, bytes, len);
	if (n < 0) {
		errno = (int)-n;
		return NULL;
	}
	return elf_image__from_bytes(bytes, (size_t)n, mapping->path);
}

/* The image of a mapping's file, or NULL with errno. */
static struct elf_image *open_image(pid_t pid, const struct mapping *mapping)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	struct elf_image *image;
	char root[32];

	if (!strcmp(mapping->path, "[vdso]"))
		return open_vdso(pid, mapping);
	fd = process__open_mapping(pid, mapping);
	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	path = strndup(mapping->path, mapping_path__length(mapping->path));
	image = path ? elf_image__open(fd, path) : NULL;
	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	if (image)
		debug_file__use(image, path, root);
	return image;
}

static bool is_known(const struct symbols *symbols, const struct mapping *mapping)
{
	return FIND_IN(symbols->modules, symbols->n, m,
		       m->mapping.ino == mapping->ino && m->mapping.maj == mapping->maj &&
			       m->mapping.min == mapping->min &&
			       !strcmp(m->mapping.path, mapping->path));
}

/* Adds the module of an executable mapping, if it is one. The array has room. */
static void add_module(struct symbols *symbols, const struct process *process,
		       const struct mapping *mapping)
{
	struct elf_image *image = open_image(process->pid, mapping);
	uint64_t vaddr;

	if (!image) {
		log__debug("%s is left out: %s", mapping->path, strerror(errno));
		return;
	}
	vaddr = elf_image__vaddr_of_offset(image, mapping->pgoff);
	if (vaddr == UINT64_MAX) {
		log__debug("%s is left out: no code at offset 0x%llx", mapping->path,
			   (unsigned long long)mapping->pgoff);
		elf_image__free(image);
		return;
	}
	symbols->modules[symbols->n++] = (struct module){
		.mapping = *mapping,
		.image = image,
		.bias = mapping->start - vaddr,
		.is_executable = !strcmp(mapping->path, process->exe),
	};
}

int symbols__open(struct symbols *symbols, const struct process *process)
{
	*symbols = (struct symbols){.pid = process->pid};
	if (asprintf(&symbols->label, "process %d (%s)", (int)process->pid, process->comm) < 0) {
		symbols->label = NULL;
		return -ENOMEM;
	}
	symbols->modules = calloc(process->maps.n + 1, sizeof(*symbols->modules));
	if (!symbols->modules) {
		symbols__close(symbols);
		return -ENOMEM;
	}
	VEC_EACH(&process->maps, mapping)
		if ((mapping->prot & PROT_EXEC) &&
		    (mapping->path[0] == '/' || !strcmp(mapping->path, "[vdso]")) &&
		    !is_known(symbols, mapping))
			add_module(symbols, process, mapping);
	return 0;
}

static int refuse_file(const char *path, int fd, int err)
{
	char magic[2] = "";

	if (err == ENOEXEC && pread(fd, magic, 2, 0) == 2 && !memcmp(magic, "#!", 2)) {
		log__error("%s is a script, not a program", path);
		log__hint("run its interpreter, with the script as argument");
	} else if (err == ENOEXEC) {
		log__error("%s is not a 64-bit x86 program", path);
		log__hint("'file %s' shows what kind of file it is", path);
	} else if (err == EIO) {
		log__error("%s is damaged: its ELF headers point beyond its end", path);
		log__hint("'readelf -lS %s' shows them", path);
	} else {
		log__error("cannot open %s: %s", path, strerror(err));
		log__hint("name a readable program file");
	}
	return -err;
}

int symbols__open_file(struct symbols *symbols, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_image *image;

	*symbols = (struct symbols){0};
	if (fd < 0)
		return refuse_file(path, fd, errno);
	image = elf_image__open(fd, path);
	if (!image)
		return refuse_file(path, fd, errno);
	debug_file__use(image, path, NULL);
	symbols->modules = calloc(1, sizeof(*symbols->modules));
	symbols->label = strdup(path);
	symbols->path = strdup(path);
	if (!symbols->modules || !symbols->label || !symbols->path) {
		elf_image__free(image);
		symbols__close(symbols);
		return refuse_file(path, fd, ENOMEM);
	}
	symbols->n = 1;
	symbols->modules[0] = (struct module){
		.mapping.path = symbols->path, .image = image, .is_executable = true};
	return 0;
}

void symbols__close(struct symbols *symbols)
{
	for (size_t i = 0; i < symbols->n; i++)
		elf_image__free(symbols->modules[i].image);
	free(symbols->modules);
	free(symbols->label);
	free(symbols->path);
	*symbols = (struct symbols){0};
}

int symbols__each_of_name(const struct symbols *symbols, const char *raw_name,
			  int (*fn)(void *ctx, const struct symbol_match *match), void *ctx)
{
	int result = 0;

	for (size_t i = 0; i < symbols->n; i++) {
		struct elf_image *image = symbols->modules[i].image;
		size_t n = elf_image__function_count(image);

		for (size_t j = 0; !result && j < n; j++) {
			struct symbol_match match = {.module = &symbols->modules[i]};

			if (strcmp(elf_image__raw_name(image, j), raw_name))
				continue;
			match.function = elf_image__function(image, j);
			result = fn(ctx, &match);
		}
	}
	return result;
}

static int is_there(void *ctx, const struct symbol_match *match)
{
	return 1;
}

bool symbols__have(const struct symbols *symbols, const char *raw_name)
{
	return symbols__each_of_name(symbols, raw_name, is_there, NULL);
}

int symbols__each(const struct symbols *symbols, const char *glob,
		  int (*fn)(void *ctx, const struct symbol_match *match), void *ctx)
{
	int result = 0;

	for (size_t i = 0; !result && i < symbols->n; i++) {
		struct elf_image *image = symbols->modules[i].image;
		size_t n = elf_image__function_count(image);
		uint64_t last = UINT64_MAX;

		for (size_t j = 0; j < n && !result; j++) {
			struct symbol_match match = {.module = &symbols->modules[i]};
			const char *raw_name = elf_image__raw_name(image, j);

			match.function = elf_image__function(image, j);
			if (fnmatch(glob, raw_name, 0) && (match.function->name == raw_name ||
							   fnmatch(glob, match.function->name, 0)))
				continue;
			if (match.function->vaddr == last)
				continue;
			last = match.function->vaddr;
			result = fn(ctx, &match);
		}
	}
	return result;
}

const char *module__name(const struct module *module)
{
	const char *name = elf_image__name(module->image), *slash = strrchr(name, '/');

	return slash && slash[1] ? slash + 1 : name;
}
