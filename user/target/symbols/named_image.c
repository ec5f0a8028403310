// SPDX-License-Identifier: MIT
#include "target/symbols/named_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/symbols/named_internal.h"

/* psABI "Procedure Linkage Table": an entry's size. Its first jump may go to its second half. */
#define STUB_SIZE 16

/*
 * Where an entry may jump: at once, behind an ENDBR64 (4 bytes) or a push of the table (6), behind
 * both an ENDBR64 and a push of a number (5), or behind a jump (6) and that.
 */
static bool is_stub_jump(uint64_t offset)
{
	return offset == 0 || offset == 4 || offset == 6 || offset == 9 || offset == 11;
}

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
	for (size_t i = 0; i < image->functions.n; i++)
		free(image->functions.v[i]);
	for (size_t i = 0; i < image->pages.n; i++)
		VEC_FINI(&image->pages.v[i].starts);
	VEC_FINI(&image->spots);
	VEC_FINI(&image->modules);
	VEC_FINI(&image->functions);
	VEC_FINI(&image->pages);
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
	uint64_t hash = hash__mix(image->seed, ip);
	size_t at = 0;
	uint32_t number;

	while ((number = hash_index__next(&image->by_ip, hash, &at)))
		if (image->spots.v[number - 1].ip == ip)
			return &image->spots.v[number - 1];
	return NULL;
}

const struct named_spot *named_image__spot(const struct named_image *image, uint64_t ip)
{
	return find_spot(image, ip);
}

static struct named_spot *add_spot(struct named_image *image, uint64_t ip)
{
	struct named_spot *spot = image->spots.n < UINT32_MAX ? VEC_PUSH(&image->spots) : NULL;

	if (!spot)
		return NULL;
	*spot = (struct named_spot){.ip = ip};
	if (!hash_index__add(&image->by_ip, hash__mix(image->seed, ip), (uint32_t)image->spots.n))
		return spot;
	image->spots.n--;
	return NULL;
}

/*
 * perf takes a symbol without a size to reach up to the next one. _init and _fini, in crti.o, have
 * none, and lie before the stubs. How long they are is shown by what goes to a stub, or leaves one.
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
	for (size_t i = 0; i < image->spots.n; i++) {
		struct named_spot *spot = &image->spots.v[i];

		if (spot->function != function || spot->ip < end)
			continue;
		spot->function = NULL;
		spot->is_followed = false;
	}
	return show(image);
}

/* Into its middle from elsewhere, or from there to elsewhere: that is no part of it. 0 or -ENOMEM.
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
	const char *module = named_image__module(image, place->module, place->module_len);
	struct named_function *function = NULL;
	struct named_spot *spot = find_spot(image, place->ip);
	bool is_other;

	if (module && place->symbol_len)
		function = named_image__function(image, place, module);
	if (!module || (place->symbol_len && !function))
		return -ENOMEM;
	if (function && function->end && place->ip >= function->end)
		function = NULL;
	is_other = spot && (spot->function != function || spot->module != module);
	if (!spot)
		spot = add_spot(image, place->ip);
	if (!spot)
		return -ENOMEM;
	spot->function = function;
	spot->module = module;
	spot->label = elf_image__keep(image->image, label, label_len);
	spot->label_len = (uint32_t)label_len;
	if (!spot->label)
		return -ENOMEM;
	/* Whoever remembers what was here before is to forget it. */
	return is_other ? show(image) : 0;
}

/* NULL: out of memory. */
static struct named_function *function_of(struct named_image *image, const struct named_spot *spot)
{
	struct named_function *before;

	if (spot->function)
		return spot->function->other_half ? spot->function->other_half : spot->function;
	before = named_image__last_start(image, spot->ip);
	if (before && !before->symbol_len && before->entry.function.module == spot->module)
		return before;
	return named_image__rest(image, spot->module);
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

/* A function begins where a branch went. 0 or -ENOMEM. */
static int enter(struct named_image *image, const struct named_spot *spot)
{
	if (begins_at(function_of(image, spot), spot->ip))
		return 0;
	if (!named_image__add_unnamed(image, spot->module, spot->ip))
		return -ENOMEM;
	return show(image);
}

/* The first branch out of a function without a name. */
static void leave(struct named_image *image, struct named_function *from, uint64_t ip,
		  enum named_branch how, const struct named_spot *to)
{
	struct named_function *function = to ? function_of(image, to) : NULL;
	uint64_t start = from->entry.function.vaddr;

	if (from->is_left || !from->has_start)
		return;
	if (function == from && how == NAMED_JUMP && ip - start < STUB_SIZE &&
	    to->ip - start < STUB_SIZE)
		return;
	from->is_left = true;
	if (function != from && how == NAMED_JUMP && is_stub_jump(ip - start) &&
	    begins_at(function, to->ip))
		from->entry.function.kind = FUNCTION_PLT;
}

/*
 * perf leaves out that a name is of the unlikely half of a function of C++. Nobody calls that, and
 * what is jumped to on a condition, or in its middle, under one's own name is one's other half.
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
