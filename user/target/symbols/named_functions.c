// SPDX-License-Identifier: MIT
/* Functions by their names, modules and starts. */
#include "target/symbols/named_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/symbols/kernel_image.h"
#include "util/label.h"

/* Longer names are cut: no reader wants them, and what is shown ends before. */
#define LONGEST_NAME 8192
/* Of a function whose start has not been seen: no branch goes there. */
#define NOWHERE UINT64_MAX

static size_t cut_name(const char *name, size_t len)
{
	return len ? strnlen(name, len < LONGEST_NAME ? len : LONGEST_NAME) : 0;
}

/* "/usr/lib/libc.so.6" is libc.so.6, "[vdso]" itself. */
static void cut_path(const char **path, size_t *len)
{
	static const char deleted[] = " (deleted)";
	static const char kernel[] = "[kernel.kallsyms]"; /* as perf calls it */
	const char *slash;

	if (*len > strlen(deleted) &&
	    !memcmp(*path + *len - strlen(deleted), deleted, strlen(deleted)))
		*len -= strlen(deleted);
	slash = *len ? memrchr(*path, '/', *len) : NULL;
	if (slash && slash + 1 < *path + *len) {
		*len -= (size_t)(slash + 1 - *path);
		*path = slash + 1;
	}
	*len = cut_name(*path, *len);
	if (*len == strlen(kernel) && !memcmp(*path, kernel, *len)) {
		*path = KERNEL_MODULE;
		*len = strlen(*path);
	}
	if (!*len) {
		*path = "[unknown]";
		*len = strlen(*path);
	}
}

const char *named_image__module(struct named_image *image, const char *path, size_t len)
{
	char clean[LONGEST_NAME + 1];
	uint64_t hash;
	const char **slot;
	size_t at = 0;
	uint32_t number;

	cut_path(&path, &len);
	memcpy(clean, path, len);
	clean[len] = '\0';
	label__clean_in_place(clean);
	path = clean;
	hash = hash__bytes(image->seed, path, len);
	while ((number = hash_index__next(&image->by_module_name, hash, &at)))
		if (!strncmp(image->modules.v[number - 1], path, len) &&
		    !image->modules.v[number - 1][len])
			return image->modules.v[number - 1];
	slot = image->modules.n < UINT32_MAX ? VEC_PUSH(&image->modules) : NULL;
	if (!slot)
		return NULL;
	*slot = elf_image__keep(image->image, path, len);
	if (!*slot || hash_index__add(&image->by_module_name, hash, (uint32_t)image->modules.n)) {
		image->modules.n--;
		return NULL;
	}
	return *slot;
}

/* "name@plt": a stub, whose frame becomes that of the function it jumps to. */
static bool is_stub(const char *name, size_t len)
{
	static const char suffix[] = "@plt";
	size_t n = strlen(suffix);

	return (len >= n && !memcmp(name + len - n, suffix, n)) ||
	       (len == 5 && !memcmp(name, "[plt]", 5));
}

static struct named_function *add_function(struct named_image *image, const char *name, size_t len,
					   const char *module, uint64_t start)
{
	struct named_function **slot =
		image->functions.n < UINT32_MAX ? VEC_PUSH(&image->functions) : NULL;
	struct named_function *added = slot ? calloc(1, sizeof(*added)) : NULL;
	const char *kept = added ? elf_image__keep(image->image, name, len) : NULL;

	if (!kept) {
		free(added);
		image->functions.n -= slot != NULL;
		return NULL;
	}
	*slot = added;
	added->entry.function = (struct function){
		.image = image->image, .module = module, .vaddr = start, .size = 1};
	function_entry__set_name(&added->entry, kept);
	added->number = (uint32_t)image->functions.n;
	return added;
}

static bool has_name(const struct named_function *function, const char *name, size_t len,
		     const char *module)
{
	return function->entry.function.module == module && function->symbol_len == len &&
	       !memcmp(function->entry.function.raw_name, name, len);
}

static uint64_t hash_name(const struct named_image *image, const char *name, size_t len,
			  const char *module)
{
	return hash__bytes(hash__mix(image->seed, (uintptr_t)module), name, len);
}

static struct named_function *find_name(const struct named_image *image, const char *name,
					size_t len, const char *module)
{
	uint64_t hash = hash_name(image, name, len, module);
	size_t at = 0;
	uint32_t number;

	while ((number = hash_index__next(&image->by_name, hash, &at)))
		if (has_name(image->functions.v[number - 1], name, len, module))
			return image->functions.v[number - 1];
	return NULL;
}

static struct named_function *find_start(const struct named_image *image, const char *name,
					 size_t len, const char *module, uint64_t start)
{
	uint64_t hash = hash__mix(hash_name(image, name, len, module), start);
	size_t at = 0;
	uint32_t number;

	while ((number = hash_index__next(&image->by_start, hash, &at))) {
		struct named_function *function = image->functions.v[number - 1];

		if (function->entry.function.vaddr == start &&
		    has_name(function, name, len, module))
			return function;
	}
	return NULL;
}

/* By its start, where that is known, it will be found from now on. */
static struct named_function *settle(struct named_image *image, struct named_function *function)
{
	const struct function *f = &function->entry.function;
	uint64_t hash = hash_name(image, f->raw_name, function->symbol_len, f->module);

	if (function->has_start &&
	    hash_index__add(&image->by_start, hash__mix(hash, f->vaddr), function->number))
		return NULL;
	if (!find_name(image, f->raw_name, function->symbol_len, f->module) &&
	    hash_index__add(&image->by_name, hash, function->number))
		return NULL;
	return named_image__add_start(image, f->vaddr, function) ? NULL : function;
}

static struct named_function *add_named(struct named_image *image, const char *name, size_t len,
					const char *module, uint64_t start, bool has_start)
{
	struct named_function *added = add_function(image, name, len, module, start);

	if (!added)
		return NULL;
	added->symbol_len = len;
	added->has_start = has_start;
	if (is_stub(name, len))
		added->entry.function.kind = FUNCTION_PLT;
	return settle(image, added);
}

/* The length of "foo" in "foo.cold", "foo.cold.1" and "foo() [clone .cold]"; 0 in any other. */
static size_t hot_length(const char *name, size_t len)
{
	static const char *const marks[] = {".cold", " [clone .cold"};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		size_t n = strlen(marks[i]);
		const char *at = memmem(name, len, marks[i], n), *end = name + len;

		if (!at || at == name || at[-1] == ' ')
			continue;
		n = (size_t)(at + n - name);
		while (n < len && (name[n] == '.' || (name[n] >= '0' && name[n] <= '9')))
			n++;
		if (name + n == end || (name + n + 1 == end && *marks[i] == ' ' && name[n] == ']'))
			return (size_t)(at - name);
	}
	return 0;
}

/* Of a function's unlikely half nobody says where the other one is: it has the name. */
static struct named_function *find_hot(struct named_image *image, const struct named_place *place,
				       size_t len, const char *module)
{
	struct named_function *hot = find_name(image, place->symbol, len, module);

	return hot ? hot : add_named(image, place->symbol, len, module, NOWHERE, false);
}

/* Without offsets the lowest address seen is where it begins; nothing else tells two apart. */
static struct named_function *find_by_name(struct named_image *image,
					   const struct named_place *place, size_t len,
					   const char *module)
{
	struct named_function *found = find_name(image, place->symbol, len, module);

	if (!found)
		return add_named(image, place->symbol, len, module, place->ip, false);
	if (!found->has_start && place->ip < found->entry.function.vaddr)
		found->entry.function.vaddr = place->ip;
	return found;
}

/* A function of which only the cold half was known is the one that begins here. */
static struct named_function *adopt(struct named_image *image, const char *name, size_t len,
				    const char *module, uint64_t start)
{
	struct named_function *found = find_name(image, name, len, module);
	uint64_t hash = hash__mix(hash_name(image, name, len, module), start);

	if (!found || found->has_start)
		return NULL;
	found->entry.function.vaddr = start;
	found->has_start = true;
	if (hash_index__add(&image->by_start, hash, found->number) ||
	    named_image__add_start(image, start, found))
		return NULL;
	return found;
}

struct named_function *named_image__function(struct named_image *image,
					     const struct named_place *place, const char *module)
{
	uint64_t start = place->ip - (place->has_offset ? place->offset : 0);
	size_t len = cut_name(place->symbol, place->symbol_len);
	size_t hot_len = hot_length(place->symbol, len);
	struct named_function *found;

	if (hot_len)
		return find_hot(image, place, hot_len, module);
	if (!place->has_offset)
		return find_by_name(image, place, len, module);
	found = find_start(image, place->symbol, len, module, start);
	if (!found)
		found = adopt(image, place->symbol, len, module, start);
	return found ? found : add_named(image, place->symbol, len, module, start, true);
}

/* A name in brackets: "[libc.so.6]", "[libc.so.6 at 0x7f0012345678]"; "[vdso]" has them already. */
static struct named_function *add_nameless(struct named_image *image, const char *module,
					   const char *where, uint64_t start)
{
	char name[LONGEST_NAME + 64];
	size_t len = strlen(module);
	bool has_brackets = len > 2 && module[0] == '[' && module[len - 1] == ']';
	struct named_function *added;

	snprintf(name, sizeof(name), "[%.*s%s]", (int)(has_brackets ? len - 2 : len),
		 module + has_brackets, where);
	added = add_function(image, name, strlen(name), module, start);
	if (added)
		added->entry.function.kind = FUNCTION_UNKNOWN;
	return added;
}

struct named_function *named_image__add_unnamed(struct named_image *image, const char *module,
						uint64_t ip)
{
	char where[32];
	struct named_function *added;

	snprintf(where, sizeof(where), " at 0x%" PRIx64, ip);
	added = add_nameless(image, module, where, ip);
	if (!added || named_image__add_start(image, ip, added))
		return NULL;
	added->has_start = true;
	return added;
}

struct named_function *named_image__rest(struct named_image *image, const char *module)
{
	uint64_t hash = hash__mix(image->seed, (uintptr_t)module);
	struct named_function *rest;
	size_t at = 0;
	uint32_t number;

	while ((number = hash_index__next(&image->by_name, hash, &at))) {
		rest = image->functions.v[number - 1];
		if (rest->entry.function.module == module && !rest->symbol_len)
			return rest;
	}
	rest = add_nameless(image, module, "", NOWHERE);
	if (!rest || hash_index__add(&image->by_name, hash, rest->number))
		return NULL;
	return rest;
}
