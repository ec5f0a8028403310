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
#include "target/symbols/symbols_internal.h"
#include "util/cleanup.h"
#include "util/log.h"

/* The vdso is small; more than this is not one. */
#define VDSO_MAX (1u << 20)

/* The path without the kernel's remark that the file has been deleted. Freed by the caller. */
static char *plain_path(const char *path)
{
	static const char remark[] = " (deleted)";
	size_t len = strlen(path), cut = sizeof(remark) - 1;

	if (len > cut && !strcmp(path + len - cut, remark))
		len -= cut;
	return strndup(path, len);
}

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
	path = plain_path(mapping->path);
	image = path ? elf_image__open(fd, path) : NULL;
	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	if (image)
		debug_file__use(image, path, root);
	return image;
}

static bool is_same_file(const struct mapping *a, const struct mapping *b)
{
	return a->ino == b->ino && a->maj == b->maj && a->min == b->min &&
	       !strcmp(a->path, b->path);
}

static bool is_known(const struct symbols *symbols, const struct mapping *mapping)
{
	for (size_t i = 0; i < symbols->n; i++)
		if (is_same_file(&symbols->modules[i].mapping, mapping))
			return true;
	return false;
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
	for (size_t i = 0; i < process->maps.n; i++) {
		const struct mapping *mapping = &process->maps.v[i];

		if ((mapping->prot & PROT_EXEC) &&
		    (mapping->path[0] == '/' || !strcmp(mapping->path, "[vdso]")) &&
		    !is_known(symbols, mapping))
			add_module(symbols, process, mapping);
	}
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
		log__hint("'file %s' says what it is", path);
	} else if (err == EIO) {
		log__error("%s is damaged: its ELF headers point outside of the file", path);
		log__hint("'readelf -lS %s' shows them", path);
	} else {
		log__error("cannot open %s: %s", path, strerror(err));
		log__hint("name a program file that can be read");
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

/* The raw name first: it is there, and the other has to be demangled. */
static bool matches_glob(struct elf_image *image, size_t index, const char *glob)
{
	const char *raw_name = elf_image__raw_name(image, index), *name;

	if (!fnmatch(glob, raw_name, 0))
		return true;
	name = elf_image__function(image, index)->name;
	return name != raw_name && !fnmatch(glob, name, 0);
}

static int each_of_module(const struct module *module, const char *glob,
			  int (*fn)(void *ctx, const struct symbol_match *match), void *ctx)
{
	size_t n = elf_image__function_count(module->image);
	uint64_t last = UINT64_MAX;

	for (size_t i = 0; i < n; i++) {
		struct symbol_match match = {.module = module};
		int result;

		if (!matches_glob(module->image, i, glob))
			continue;
		match.function = elf_image__function(module->image, i);
		if (match.function->vaddr == last)
			continue;
		last = match.function->vaddr;
		result = fn(ctx, &match);
		if (result)
			return result;
	}
	return 0;
}

int symbols__each(const struct symbols *symbols, const char *glob,
		  int (*fn)(void *ctx, const struct symbol_match *match), void *ctx)
{
	int result = 0;

	for (size_t i = 0; !result && i < symbols->n; i++)
		result = each_of_module(&symbols->modules[i], glob, fn, ctx);
	return result;
}

static bool is_identifier(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Words that mangled names abbreviate: Itanium C++ ABI, 5.1.5 and 5.1.10. */
static bool is_abbreviated(const char *word, size_t len)
{
	static const char *const words[] = {"const",	     "volatile",      "std",
					    "string",	     "basic_string",  "allocator",
					    "istream",	     "ostream",	      "iostream",
					    "basic_istream", "basic_ostream", "basic_iostream"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i]) == len && !memcmp(words[i], word, len))
			return true;
	return false;
}

/*
 * The last identifier outside of any brackets. Demangling is slow, and a hundred thousand names
 * that lack it need none. Without one that is sure to be there (operators), all are demangled.
 */
static void find_needle(struct query *query)
{
	int depth = 0;

	if (strstr(query->name, "operator"))
		return;
	for (const char *p = query->name; *p;) {
		size_t len = 0;

		while (is_identifier(p[len]))
			len++;
		if (len && !depth && !is_abbreviated(p, len)) {
			query->needle = p;
			query->needle_len = len;
		}
		p += len;
		if (*p && strchr("<([{", *p))
			depth++;
		else if (*p && strchr(">)]}", *p))
			depth--;
		p += *p && !len;
	}
}

/* A whole number, hexadecimal behind 0x; up to `end`. */
static bool parse_number(const char *text, const char *end, uint64_t *number)
{
	char *stop;

	if (!isdigit((unsigned char)*text))
		return false;
	*number = strtoull(text, &stop, strncmp(text, "0x", 2) ? 10 : 16);
	return stop == end;
}

static int parse_address(struct query *query, const char *text)
{
	const char *digits = text + strspn(text, "0x");
	size_t good = (size_t)(digits - text) + strspn(digits, "0123456789abcdefABCDEF");

	/* UINT64_MAX means "not given", also for addresses out of range. */
	query->address = strtoull(text, NULL, 16);
	if (*text && !text[good] && query->address != UINT64_MAX)
		return 0;
	if (text[good])
		log__error("bad trigger: '%c' in an address", text[good]);
	else if (*text)
		log__error("bad trigger: no address is as large");
	else
		log__error("bad trigger: no address behind addr:");
	log__caret(query->text, (size_t)(text - query->text) + good);
	log__hint("an address is hexadecimal: addr:0x401234, as 'mtbpf list' or objdump prints it");
	return -EINVAL;
}

/* "file.c:123": the last colon parts them. */
static int parse_line(struct query *query, const char *text)
{
	const char *colon = strrchr(text, ':'), *digits = colon ? colon + 1 : text + strlen(text);
	const char *end = digits + strspn(digits, "0123456789");
	unsigned long line = strtoul(digits, NULL, 10);
	const char *fault = colon == text ? text : end;

	if (colon && colon != text && digits != end && !*end && line && line <= INT_MAX) {
		query->line = (unsigned int)line;
		query->name = strndup(text, (size_t)(colon - text));
		return query->name ? 0 : -ENOMEM;
	}
	if (digits != end && !*end)
		fault = colon == text ? text : digits;
	log__error("bad trigger: a line is that of a file");
	log__caret(query->text, (size_t)(fault - query->text));
	log__hint("line:FILE:NUMBER, as in line:server.c:123");
	return -EINVAL;
}

/* "name+0x10", but not "operator+". */
static size_t cut_offset(struct query *query, const char *name)
{
	const char *plus = strrchr(name, '+'), *end = name + strlen(name);

	if (!plus || plus == name || !parse_number(plus + 1, end, &query->offset))
		return (size_t)(end - name);
	return (size_t)(plus - name);
}

/* Splits "libfoo.so:name". The colons of "ns::name" are not meant, nor those within "foo(a:b)". */
static const char *cut_module(struct query *query, const char *text)
{
	const char *colon = strchr(text, ':');

	if (!colon || colon == text || !colon[1] || colon[1] == ':' ||
	    strcspn(text, " (<") <= (size_t)(colon - text))
		return text;
	query->module = text;
	query->module_len = (size_t)(colon - text);
	return colon + 1;
}

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

int query__parse(struct query *query, const char *text)
{
	const char *name;

	*query = (struct query){.text = text, .vaddr = UINT64_MAX, .address = UINT64_MAX};
	if (starts_with(text, "addr:"))
		return parse_address(query, text + strlen("addr:"));
	if (line__is_selector(text))
		return parse_line(query, text + strlen(LINE_PREFIX));
	name = cut_module(query, text + (starts_with(text, "symbol:") ? strlen("symbol:") : 0));
	query->name = strndup(name, cut_offset(query, name));
	if (!query->name)
		return -ENOMEM;
	if (starts_with(query->name, "0x") &&
	    !parse_number(query->name, query->name + strlen(query->name), &query->vaddr))
		query->vaddr = UINT64_MAX;
	find_needle(query);
	return 0;
}

void query__fini(struct query *query)
{
	free(query->name);
}

bool query__asks(const struct query *query)
{
	return !strcmp(query->name, "?");
}

const char *module__name(const struct module *module)
{
	const char *name = elf_image__name(module->image), *slash = strrchr(name, '/');

	return slash && slash[1] ? slash + 1 : name;
}

/* "libc", "libc.so" and "libc.so.6" name libc.so.6. */
bool query__names(const struct query *query, const char *name)
{
	size_t len = query->module_len;

	return !strncmp(name, query->module, len) && (name[len] == '\0' || name[len] == '.');
}

bool query__covers(const struct query *query, enum tier tier, const struct module *module)
{
	if (tier == TIER_NAMED)
		return query__names(query, module__name(module));
	return module->is_executable == (tier == TIER_EXECUTABLE);
}
