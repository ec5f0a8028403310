/* SPDX-License-Identifier: MIT */
/*
 * The code of a recording's mappings: files on this machine, and the recording's own images. Any
 * number of threads may use it at once.
 */
#ifndef MTBPF_DECODE_IMAGES_H
#define MTBPF_DECODE_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/recording/recording.h"
#include "target/code_map.h"

struct images;

/* The first member of a struct that a caller derives from images and stores with them. */
struct images_kept {
	struct images_kept *next;
	pid_t pid;
	void (*free)(struct images_kept *kept);
};

/* The recording must outlive it. NULL: out of memory. */
struct images *images__new(const struct recording *rec);
void images__free(struct images *images);
const struct recording *images__recording(const struct images *images);

/* Stores `kept`; it is freed with the images, unless images__take() removes it first. */
void images__keep(struct images *images, struct images_kept *kept);
/*
 * Removes and returns a stored struct of process `pid` for which fits(kept, how) is true. NULL:
 * none.
 */
struct images_kept *images__take(struct images *images, pid_t pid,
				 bool (*fits)(const struct images_kept *kept, int how), int how);

struct named_image;
/*
 * For a recording without mappings: `code` has the names of all addresses, also the kernel's. All
 * processes share it, and the images own it from now on.
 */
void images__set_code(struct images *images, struct named_image *code);

/* True if addresses of the kernel have names. */
bool images__has_kernel(const struct images *images);

/*
 * Adds to `map` the kernel, if it was traced, and what process `pid` mapped from *next up to
 * time_ns, and advances *next: an index into the recording's maps. Start with 0 and an empty map. A
 * file that cannot be opened is left out, with one warning per file. 0 or -ENOMEM.
 */
int images__apply(struct images *images, pid_t pid, uint64_t time_ns, size_t *next,
		  struct code_map *map);

/* True if images__apply() would change the map, or move *next past another process's mappings. */
bool images__is_due(const struct images *images, uint64_t time_ns, size_t next,
		    const struct code_map *map);

/* Opens the debug info of files whose code has run, so that looking up source lines is faster. */
void images__prepare_source(struct images *images);

/*
 * Warns once that packets and the code of this image disagree, and whether the file has changed;
 * not if a file is missing, which may be the cause.
 */
void images__mismatch(struct images *images, const struct elf_image *image);

#endif
