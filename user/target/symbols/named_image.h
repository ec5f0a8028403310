/* SPDX-License-Identifier: MIT */
/*
 * The code of one process as another tool (perf's text) names it: without bytes and files, but with
 * a function and an offset for each address seen. Unnamed code is split at the targets of calls.
 */
#ifndef MTBPF_TARGET_SYMBOLS_NAMED_IMAGE_H
#define MTBPF_TARGET_SYMBOLS_NAMED_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/code_map.h"

struct named_image;
struct named_function;

/* The text's facts about an address. Strings need not be NUL-terminated. */
struct named_place {
	uint64_t ip;
	const char *symbol; /* mangled or not; unnamed if symbol_len is 0 */
	size_t symbol_len;
	const char *module; /* a path, "[vdso]"; or none */
	size_t module_len;
	uint64_t offset; /* of ip in the function */
	bool has_offset; /* false: the function begins at the lowest address seen */
};

/* The known facts about an address. */
struct named_spot {
	uint64_t ip;
	const char *label; /* the symbol as perf printed it when the place was last learnt: a line
			      with the same text need not be parsed again */
	uint32_t label_len;
	bool is_followed;		 /* a branch has come here, or gone from here */
	struct named_function *function; /* NULL: unnamed */
	const char *module;
};

/* NULL: out of memory. */
struct named_image *named_image__new(void);
/* Also frees its map and its functions. */
void named_image__free(struct named_image *image);

/* The map for stack__new(). Places learnt later appear in it. */
struct code_map *named_image__map(struct named_image *image);
/*
 * Adds the names to another map, which is empty. code_map__replaced() of that map does not tell of
 * names that are learnt later: caches keep the old ones. 0 or -ENOMEM.
 */
int named_image__show(struct named_image *image, struct code_map *map);

/* NULL if unknown. Invalid after anything is learnt. */
const struct named_spot *named_image__spot(const struct named_image *image, uint64_t ip);

/*
 * Learns that the place is in this function. `label` (copied) lets the caller recognise the text
 * next time. 0 or -ENOMEM.
 */
int named_image__learn(struct named_image *image, const struct named_place *place,
		       const void *label, size_t label_len);

enum named_branch { NAMED_CALL, NAMED_JUMP, NAMED_COND, NAMED_OTHER };

/*
 * Follows the branch between two learnt places (0: unknown). Needed if one of them is not followed
 * yet or is unnamed: functions begin at the targets of calls, and at the target of a jump from
 * another function if nothing else has reached it before. A function that only jumps on is a stub.
 * 0 or -ENOMEM.
 */
int named_image__follow(struct named_image *image, enum named_branch how, uint64_t from,
			uint64_t to);

#endif
