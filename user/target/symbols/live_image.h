/* SPDX-License-Identifier: MIT */
/*
 * Images of code that is not in an ELF file: JIT code, with the names of /tmp/perf-PID.map ("START
 * SIZE NAME" per line, in hex), and the kernel.
 */
#ifndef MTBPF_TARGET_SYMBOLS_LIVE_IMAGE_H
#define MTBPF_TARGET_SYMBOLS_LIVE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/code_map.h"
#include "target/elf/elf_image.h"

struct perf_map_entry {
	uint64_t start, size; /* never 0, no wrap-around */
	const char *name;     /* points into the text; name_len characters */
	size_t name_len;
};

/*
 * The text of the process's map, from its own mount and pid namespace, otherwise from ours. Accepts
 * only a regular file owned by the process's user or root. NULL: not found, or, after a line on
 * stderr, larger than `most` bytes. Freed by the caller.
 */
char *perf_map__read(pid_t pid, size_t most);

/* True if perf_map__read() would accept a map. */
bool perf_map__exists(pid_t pid);

/*
 * Parses the text into ascending, disjoint entries. If two overlap, the later line wins: its code
 * replaced the other's. Invalid lines are left out. *entries is freed by the caller. 0 or -ENOMEM.
 */
int perf_map__parse(const char *text, struct perf_map_entry **entries, size_t *n);

/* An image of JIT code, copied from the memory of the process, with the functions of a perf map. */

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

/* The kernel as an image: code from a copy of /proc/kcore, functions from /proc/kallsyms. */

#define KERNEL_MODULE "[kernel]"

/*
 * From a descriptor (not kept; the file is mapped) and kallsyms' text (copied). A function of the
 * kernel itself has KERNEL_MODULE as its module; one of a module is called "name [module]". A
 * function ends where the next begins. NULL with errno: ENOEXEC no kcore; EIO damaged; ENOMEM.
 * Prints nothing. elf_image__free() frees it.
 */
struct elf_image *kernel_image__open(int kcore, const char *kallsyms);

/* Adds all of it to the map, at the addresses of the time of the copy. 0 or -ENOMEM. */
int kernel_image__map(struct elf_image *kernel, struct code_map *map);

#endif
