/* SPDX-License-Identifier: MIT */
/* Between an image's addresses and its functions. */
#ifndef MTBPF_TARGET_SYMBOLS_NAMED_INTERNAL_H
#define MTBPF_TARGET_SYMBOLS_NAMED_INTERNAL_H

#include "target/elf/elf_internal.h"
#include "target/symbols/named_image.h"
#include "util/hash_index.h"
#include "util/vec.h"

struct named_function {
	struct function_entry entry; /* the first member, as of every function */
	uint32_t number;	     /* index + 1 among the image's */
	size_t symbol_len;	     /* 0: it has no name; raw_name is made up */
	bool has_start;		     /* else vaddr is made up, or the lowest seen */
	bool is_called;
	struct named_function *other_half; /* which it is the unlikely half of, or NULL */
	bool is_left;			   /* a branch went out of it, if it has no name */
	uint64_t end; /* of _init and _fini: what lies from here on is not theirs; 0: not known */
};

/* Where a function begins, in its page. */
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
	uint64_t seed; /* so that nobody can choose what collides */

	VEC(struct named_spot) spots;
	struct hash_index by_ip; /* of spots; the number is the index + 1, as of all of these */
	VEC(const char *) modules;
	struct hash_index by_module_name;
	VEC(struct named_function *) functions;
	struct hash_index by_start; /* of functions: name, module and start */
	struct hash_index by_name;  /* the first of a name and module */
	VEC(struct named_page) pages;
	struct hash_index by_page;
};

/* named_functions.c */

/* The module's name, once: of a path the last part. NULL: out of memory. */
const char *named_image__module(struct named_image *image, const char *path, size_t len);
/* The function of a place that has a symbol. NULL: out of memory. */
struct named_function *named_image__function(struct named_image *image,
					     const struct named_place *place, const char *module);
/* What has no name in a module, but for what begins somewhere known. NULL: out of memory. */
struct named_function *named_image__rest(struct named_image *image, const char *module);
/* A function without a name that begins at ip. NULL: out of memory. */
struct named_function *named_image__add_unnamed(struct named_image *image, const char *module,
						uint64_t ip);

/* named_starts.c: where functions begin. */

/* 0 or -ENOMEM. */
int named_image__add_start(struct named_image *image, uint64_t at, struct named_function *function);
/* The last one that begins at or before ip, not too far away. NULL: there is none. */
struct named_function *named_image__last_start(const struct named_image *image, uint64_t ip);

#endif
