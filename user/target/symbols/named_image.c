// SPDX-License-Identifier: MIT
#include "target/symbols/named_image.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/elf_internal.h"
#include "target/symbols/live_image.h"
#include "util/names.h"
#include "util/vec.h"

struct named_function {
	struct function_entry entry; /* the first member, as of every function */
	uint32_t number;	     /* index + 1 among the image's */
	size_t symbol_len;	     /* 0: unnamed; raw_name is made up */
	bool has_start;		     /* else vaddr is made up, or the lowest seen */
	bool is_called;
	struct named_function
		*other_half; /* the function that this is the unlikely half of; or NULL */
	bool is_left;	     /* a branch left it; kept for unnamed functions */
	uint64_t end; /* of _init and _fini: code from here on belongs to others; 0: unknown */
};

/* The start of a function, within its page. */
struct named_start {
	uint64_t at;
	struct named_function *function;
};

struct named_page {
	uint64_t page;
	VEC(struct named_start) starts; /* ascending */
};

struct named_image {
	struct elf_image *image;
	struct code_map *map;
	uint64_t seed; /* random, so that an attacker cannot choose colliding names */

	VEC(struct named_spot) spots;
	struct hash_index by_ip; /* of spots; the numbers in all these indexes are an index + 1 */
	VEC(const char *) modules;
	struct hash_index by_module_name;
	VEC(struct named_function *) functions;
	struct hash_index by_start; /* of functions: name, module and start */
	struct hash_index by_name;  /* of functions: the first with a name and module */
	VEC(struct named_page) pages;
	struct hash_index by_page;
};

/* Starts of functions, by page: they arrive in any order and are looked up constantly. */

#define PAGE_BITS 12
/* The longest distance from a start at which an address still counts as part of that function. */
#define LONGEST_PAGES 16

static struct named_page *find_page(const struct named_image *image, uint64_t page)
{
	uint32_t number = HASH_FIND(&image->by_page, hash__mix(image->seed, page), i,
				    image->pages.v[i - 1].page == page);

	return number ? &image->pages.v[number - 1] : NULL;
}

/* The number of starts at or before `at`. */
static size_t count_to(const struct named_page *page, uint64_t at)
{
	return VEC_PARTITION_POINT(&page->starts, e, e->at <= at);
}

/* 0 or -ENOMEM. */
static int add_start(struct named_image *image, uint64_t at, struct named_function *function)
{
	struct named_page *page = find_page(image, at >> PAGE_BITS);
	size_t n;

	if (!page) {
		uint64_t hash = hash__mix(image->seed, at >> PAGE_BITS);

		page = image->pages.n < UINT32_MAX ? VEC_PUSH(&image->pages) : NULL;
		if (!page)
			return -ENOMEM;
		*page = (struct named_page){.page = at >> PAGE_BITS};
		if (hash_index__add(&image->by_page, hash, (uint32_t)image->pages.n))
			return -ENOMEM;
	}
	n = count_to(page, at);
	if (n && page->starts.v[n - 1].at == at) {
		/* The code was replaced, or has two names: the newer one is what is there. */
		page->starts.v[n - 1].function = function;
		return 0;
	}
	return VEC_INSERT(&page->starts, n, (struct named_start){at, function});
}

/* Functions by their names, modules and starts. */

/* Longer names are cut: no reader wants them, and what is shown ends before. */
#define LONGEST_NAME 8192
/* The start of a function whose first instruction has not been seen: branches never go there. */
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

/* The module's name, interned: the last part of a path. NULL: out of memory. */
static const char *module_of(struct named_image *image, const char *path, size_t len)
{
	char clean[LONGEST_NAME + 1];
	uint64_t hash;
	const char **slot;
	uint32_t number;

	cut_path(&path, &len);
	memcpy(clean, path, len);
	clean[len] = '\0';
	label__clean_in_place(clean);
	path = clean;
	hash = hash__bytes(image->seed, path, len);
	number = HASH_FIND(&image->by_module_name, hash, i, !strcmp(image->modules.v[i - 1], path));
	if (number)
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
	uint32_t number = HASH_FIND(&image->by_name, hash_name(image, name, len, module), i,
				    has_name(image->functions.v[i - 1], name, len, module));

	return number ? image->functions.v[number - 1] : NULL;
}

static struct named_function *find_start(const struct named_image *image, const char *name,
					 size_t len, const char *module, uint64_t start)
{
	uint64_t hash = hash__mix(hash_name(image, name, len, module), start);
	uint32_t number = HASH_FIND(&image->by_start, hash, i,
				    image->functions.v[i - 1]->entry.function.vaddr == start &&
					    has_name(image->functions.v[i - 1], name, len, module));

	return number ? image->functions.v[number - 1] : NULL;
}

/* Files the function under its name and, if that is known, its start. */
static struct named_function *add_named(struct named_image *image, const char *name, size_t len,
					const char *module, uint64_t start, bool has_start)
{
	struct named_function *added = add_function(image, name, len, module, start);
	uint64_t hash = hash_name(image, name, len, module);

	if (!added)
		return NULL;
	added->symbol_len = len;
	added->has_start = has_start;
	/* A stub: its frame becomes that of the function it jumps to. */
	if ((len >= 4 && !memcmp(name + len - 4, "@plt", 4)) ||
	    (len == 5 && !memcmp(name, "[plt]", 5)))
		added->entry.function.kind = FUNCTION_PLT;
	if (has_start && hash_index__add(&image->by_start, hash__mix(hash, start), added->number))
		return NULL;
	if (!find_name(image, name, len, module) &&
	    hash_index__add(&image->by_name, hash, added->number))
		return NULL;
	return add_start(image, start, added) ? NULL : added;
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

/* The function of a place that has a symbol. NULL: out of memory. */
static struct named_function *function_named(struct named_image *image,
					     const struct named_place *place, const char *module)
{
	const char *name = place->symbol;
	uint64_t start = place->ip - (place->has_offset ? place->offset : 0), hash;
	size_t len = cut_name(name, place->symbol_len), hot_len = hot_length(name, len);
	struct named_function *found;

	if (hot_len) {
		/* The cold half of a function is not linked to the hot half, except by its name. */
		found = find_name(image, name, hot_len, module);
		return found ? found : add_named(image, name, hot_len, module, NOWHERE, false);
	}
	found = place->has_offset ? find_start(image, name, len, module, start) : NULL;
	if (found)
		return found;
	found = find_name(image, name, len, module);
	if (!found || (place->has_offset && found->has_start))
		return add_named(image, name, len, module, start, place->has_offset);
	if (!place->has_offset) {
		/* Only names tell functions apart; the lowest address seen is the start. */
		if (!found->has_start && start < found->entry.function.vaddr)
			found->entry.function.vaddr = start;
		return found;
	}
	/* Only the function's cold half was known: the one that begins here takes its place. */
	hash = hash__mix(hash_name(image, name, len, module), start);
	found->entry.function.vaddr = start;
	found->has_start = true;
	if (hash_index__add(&image->by_start, hash, found->number) ||
	    add_start(image, start, found))
		return NULL;
	return found;
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

/* psABI "Procedure Linkage Table": an entry's size. Its first jump may go to its second half. */
#define STUB_SIZE 16

/* All addresses but the last. */
static const struct elf_segment everywhere = {.size = UINT64_MAX};

int named_image__show(struct named_image *image, struct code_map *map)
{
	return code_map__add(map, 0, everywhere.size, 0, image->image);
}

static int show(struct named_image *image)
{
	return named_image__show(image, image->map);
}

struct named_image *named_image__new(void)
{
	struct named_image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->seed = (uintptr_t)image * HASH_ODD;
	image->map = code_map__new();
	image->image = elf_image__from_segments("", 0, &everywhere, 1, "[named]");
	if (image->image) {
		image->image->named = image;
		image->image->has_symbols = true;
	}
	if (image->image && image->map && !show(image))
		return image;
	named_image__free(image);
	return NULL;
}

void named_image__free(struct named_image *image)
{
	if (!image)
		return;
	VEC_FINI_EACH(&image->functions, e, free(*e));
	VEC_FINI_EACH(&image->pages, e, VEC_FINI(&e->starts));
	VEC_FINI(&image->spots);
	VEC_FINI(&image->modules);
	hash_index__fini(&image->by_ip);
	hash_index__fini(&image->by_module_name);
	hash_index__fini(&image->by_start);
	hash_index__fini(&image->by_name);
	hash_index__fini(&image->by_page);
	code_map__free(image->map);
	elf_image__free(image->image);
	free(image);
}

struct code_map *named_image__map(struct named_image *image)
{
	return image->map;
}

static struct named_spot *find_spot(const struct named_image *image, uint64_t ip)
{
	uint32_t number = HASH_FIND(&image->by_ip, hash__mix(image->seed, ip), i,
				    image->spots.v[i - 1].ip == ip);

	return number ? &image->spots.v[number - 1] : NULL;
}

const struct named_spot *named_image__spot(const struct named_image *image, uint64_t ip)
{
	return find_spot(image, ip);
}

/*
 * perf extends symbols without a size up to the next symbol. _init and _fini of crti.o are such
 * symbols, before the stubs. Branches to or from a stub show where _init and _fini end.
 */
static bool has_no_size(const struct named_function *function)
{
	const char *name = function->entry.function.raw_name;

	return function->symbol_len == 5 && function->has_start &&
	       (!strcmp(name, "_init") || !strcmp(name, "_fini"));
}

static int end_at(struct named_image *image, struct named_function *function, uint64_t end)
{
	if (function->end && function->end <= end)
		return 0;
	function->end = end;
	VEC_EACH(&image->spots, spot) {
		if (spot->function != function || spot->ip < end)
			continue;
		spot->function = NULL;
		spot->is_followed = false;
	}
	return show(image);
}

/*
 * Finds the ends of _init and _fini (has_no_size()): each ends where a call or jump from outside
 * enters, or where a jump leaves from a PLT entry after it. 0 or -ENOMEM.
 */
static int find_end(struct named_image *image, enum named_branch how,
		    const struct named_spot *source, const struct named_spot *target)
{
	struct named_function *from = source ? source->function : NULL;
	struct named_function *to = target ? target->function : NULL;
	uint64_t start, offset;
	int err = 0;

	if (from == to || (how != NAMED_CALL && how != NAMED_JUMP))
		return 0;
	if (to && has_no_size(to)) {
		start = to->entry.function.vaddr;
		if (target->ip > start)
			err = end_at(image, to, target->ip);
	}
	if (!err && how == NAMED_JUMP && from && has_no_size(from)) {
		start = from->entry.function.vaddr;
		offset = (source->ip - start) / STUB_SIZE * STUB_SIZE;
		if (offset)
			err = end_at(image, from, start + offset);
	}
	return err;
}

int named_image__learn(struct named_image *image, const struct named_place *place,
		       const void *label, size_t label_len)
{
	const char *module = module_of(image, place->module, place->module_len);
	struct named_function *function = NULL;
	struct named_spot *spot = find_spot(image, place->ip);
	bool is_other;

	if (module && place->symbol_len)
		function = function_named(image, place, module);
	if (!module || (place->symbol_len && !function))
		return -ENOMEM;
	if (function && function->end && place->ip >= function->end)
		function = NULL;
	is_other = spot && (spot->function != function || spot->module != module);
	if (!spot) {
		uint64_t hash = hash__mix(image->seed, place->ip);

		spot = image->spots.n < UINT32_MAX ? VEC_PUSH(&image->spots) : NULL;
		if (!spot)
			return -ENOMEM;
		*spot = (struct named_spot){.ip = place->ip};
		if (hash_index__add(&image->by_ip, hash, (uint32_t)image->spots.n)) {
			image->spots.n--;
			return -ENOMEM;
		}
	}
	spot->function = function;
	spot->module = module;
	spot->label = elf_image__keep(image->image, label, label_len);
	spot->label_len = (uint32_t)label_len;
	if (!spot->label)
		return -ENOMEM;
	/* Makes caches forget the code that was here before. */
	return is_other ? show(image) : 0;
}

/*
 * The function that a place belongs to. If it lacks a symbol: the last one that begins at or before
 * it, within LONGEST_PAGES, if that lacks one too; otherwise one for the rest of the module. NULL:
 * out of memory.
 */
static struct named_function *function_of(struct named_image *image, const struct named_spot *spot)
{
	struct named_function *function = spot->function;
	uint64_t last = spot->ip >> PAGE_BITS;
	uint64_t hash = hash__mix(image->seed, (uintptr_t)spot->module);
	uint32_t number;

	if (function)
		return function->other_half ? function->other_half : function;
	for (uint64_t i = 0; !function && i < LONGEST_PAGES && i <= last; i++) {
		const struct named_page *page = find_page(image, last - i);
		size_t n = page ? count_to(page, spot->ip) : 0;

		if (n)
			function = page->starts.v[n - 1].function;
	}
	if (function && !function->symbol_len && function->entry.function.module == spot->module)
		return function;
	number = HASH_FIND(&image->by_name, hash, i,
			   image->functions.v[i - 1]->entry.function.module == spot->module &&
				   !image->functions.v[i - 1]->symbol_len);
	if (number)
		return image->functions.v[number - 1];
	function = add_nameless(image, spot->module, "", NOWHERE);
	if (!function || hash_index__add(&image->by_name, hash, function->number))
		return NULL;
	return function;
}

const struct function *named_image__function_at(struct named_image *image, uint64_t ip)
{
	const struct named_spot *spot = find_spot(image, ip);
	struct named_function *function = spot ? function_of(image, spot) : NULL;

	return function ? function_entry__named(&function->entry) : NULL;
}

static bool begins_at(const struct named_function *function, uint64_t ip)
{
	return function && function->has_start && function->entry.function.vaddr == ip;
}

/* Begins an unnamed function at a branch's target. 0 or -ENOMEM. */
static int enter(struct named_image *image, const struct named_spot *spot)
{
	struct named_function *added;
	char where[32];

	if (begins_at(function_of(image, spot), spot->ip))
		return 0;
	snprintf(where, sizeof(where), " at 0x%" PRIx64, spot->ip);
	added = add_nameless(image, spot->module, where, spot->ip);
	if (!added || add_start(image, spot->ip, added))
		return -ENOMEM;
	added->has_start = true;
	return show(image);
}

/* Takes a branch out of an unnamed function. The first one shows whether the function is a stub. */
static void leave(struct named_image *image, struct named_function *from, uint64_t ip,
		  enum named_branch how, const struct named_spot *to)
{
	/*
	 * Offsets in a PLT entry from which it may jump: 0, after an ENDBR64 (4 bytes) or a push of
	 * the table (6), after an ENDBR64 and a push of a number (9), or after a jump (6) and that
	 * push (11).
	 */
	const uint64_t jumps = 1 << 0 | 1 << 4 | 1 << 6 | 1 << 9 | 1 << 11;
	struct named_function *function = to ? function_of(image, to) : NULL;
	uint64_t start = from->entry.function.vaddr, offset = ip - start;

	if (from->is_left || !from->has_start)
		return;
	if (function == from && how == NAMED_JUMP && offset < STUB_SIZE &&
	    to->ip - start < STUB_SIZE)
		return;
	from->is_left = true;
	if (function && function != from && how == NAMED_JUMP && offset < STUB_SIZE &&
	    jumps >> offset & 1 && begins_at(function, to->ip))
		from->entry.function.kind = FUNCTION_PLT;
}

/*
 * perf drops the suffix of a C++ function's cold half. Cold halves are never called, so code with
 * the same name that a conditional jump, or a jump into the middle, leads to is the other half.
 */
static int join_halves(struct named_image *image, enum named_branch how,
		       struct named_function *from, struct named_function *to, uint64_t ip)
{
	struct named_function *half = to->is_called ? from : to;

	if (how != NAMED_COND && (how != NAMED_JUMP || begins_at(to, ip)))
		return 0;
	if (from == to || half->is_called || from->symbol_len != to->symbol_len ||
	    from->entry.function.module != to->entry.function.module ||
	    strcmp(from->entry.function.raw_name, to->entry.function.raw_name))
		return 0;
	half->other_half = half == to ? from : to;
	return show(image);
}

int named_image__follow(struct named_image *image, enum named_branch how, uint64_t from,
			uint64_t to)
{
	struct named_spot *source = find_spot(image, from), *target = find_spot(image, to);
	int err = find_end(image, how, source, target);
	struct named_function *left = source ? function_of(image, source) : NULL;
	bool is_jump = how == NAMED_JUMP || how == NAMED_COND;

	if (!err && target && !target->function &&
	    (how == NAMED_CALL ||
	     (is_jump && !target->is_followed && left && function_of(image, target) != left)))
		err = enter(image, target);
	if (left && !left->symbol_len)
		leave(image, left, from, how, target);
	if (target && target->function && how == NAMED_CALL)
		target->function->is_called = true;
	if (!err && target && target->function && left && left->symbol_len)
		err = join_halves(image, how, left, function_of(image, target), to);
	if (source)
		source->is_followed = true;
	if (target)
		target->is_followed = true;
	return err;
}
