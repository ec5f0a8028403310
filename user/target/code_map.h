/* SPDX-License-Identifier: MIT */
/*
 * The code at each address of one process, over time: shared by decode, stack and trace. Mappings
 * are added in time order; a later one covers what it overlaps.
 */
#ifndef MTBPF_TARGET_CODE_MAP_H
#define MTBPF_TARGET_CODE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/elf/elf_image.h"

struct code_map;

struct code_map *code_map__new(void);
/* Frees the map, not the images it was given. */
void code_map__free(struct code_map *map);

/*
 * [start, start+len) shows the image's file bytes from pgoff on. The image must outlive the map.
 * 0 or -ENOMEM, -EINVAL (empty, or wraps around).
 */
int code_map__add(struct code_map *map, uint64_t start, uint64_t len, uint64_t pgoff,
		  struct elf_image *image);

/*
 * The len bytes (copied, CODE_PATCH_MAX at most) at start were executed instead of those in the
 * file: code_map__read() returns them until code is added there. Names stay the file's. 0, -ENOMEM,
 * -EINVAL.
 */
#define CODE_PATCH_MAX 16
int code_map__patch(struct code_map *map, uint64_t start, const uint8_t *bytes, size_t len);

/* Counts how often code replaced other code, patches included. */
unsigned int code_map__replaced(const struct code_map *map);

/* True if nothing has been added yet. */
bool code_map__is_empty(const struct code_map *map);

/* True if another file than this one may import a function of this name, or look it up. */
bool code_map__others_name(const struct code_map *map, const struct elf_image *image,
			   const char *text);

/* A place in the code. */
struct code_place {
	const struct function *function; /* never NULL */
	struct elf_image *image;
	uint64_t vaddr; /* of the address asked for, in the image */
	uint64_t entry; /* run-time address of the function's first byte */
};

/*
 * Returns false if nothing is mapped at ip, or the image lacks code there. Any number of threads
 * may look up places while the map is not changed.
 */
bool code_map__find(struct code_map *map, uint64_t ip, struct code_place *place);

/*
 * Copies code bytes at ip, contiguous across adjacent mappings. Returns the count: short at the end
 * of the mapped code, 0 if nothing is mapped.
 */
size_t code_map__read(struct code_map *map, uint64_t ip, uint8_t *buf, size_t len);

/* Contiguous code, at an address and in memory. */
struct code_piece {
	uint64_t start;
	size_t len;
	const uint8_t *bytes;
};

/*
 * The code around ip that is contiguous in memory, of one mapping, valid until code is added. False
 * if nothing is mapped at ip, or if the map has any patches.
 */
bool code_map__piece(struct code_map *map, uint64_t ip, struct code_piece *piece);

#endif
