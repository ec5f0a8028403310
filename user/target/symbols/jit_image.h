/* SPDX-License-Identifier: MIT */
/* Copies of a process's memory as an image: JIT code, with the functions of a perf map. */
#ifndef MTBPF_TARGET_SYMBOLS_JIT_IMAGE_H
#define MTBPF_TARGET_SYMBOLS_JIT_IMAGE_H

#include "target/code_map.h"
#include "target/elf/elf_image.h"

#define JIT_MODULE "[jit]"

struct jit_piece {
	uint64_t start;
	const uint8_t *bytes;
	size_t size;
};

/*
 * From pieces of memory, and a perf map's text (NULL: none; then nothing has a name); both are
 * copied. Its vaddrs are run-time addresses. NULL with errno: ENOENT no pieces; ENOMEM.
 */
struct elf_image *jit_image__new(const struct jit_piece *pieces, size_t n, const char *perf_map);

/* Adds what there is of [start, start+len) to the map. 0 or -ENOMEM. */
int jit_image__map(struct elf_image *jit, uint64_t start, uint64_t len, struct code_map *map);

#endif
