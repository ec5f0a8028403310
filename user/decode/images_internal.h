/* SPDX-License-Identifier: MIT */
/* Between images and the address spaces that are made of them. */
#ifndef MTBPF_DECODE_IMAGES_INTERNAL_H
#define MTBPF_DECODE_IMAGES_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>

#include "decode/images.h"
#include "util/vec.h"

/* A file, opened once for all of its mappings. */
struct opened {
	const char *path, *build_id; /* the recording's */
	uint64_t ino;
	struct elf_image *image; /* NULL: could not be opened, and that was said */
	int error;		 /* why not */
	/* Of a file with this name that is not it. */
	char other_id[64];
	uint64_t other_ino;
	bool is_other; /* that is the image, in want of a better one */
	bool mismatch_said;
	bool is_prepared; /* images__prepare_source() */
};

/* The memory of a process as far as it was copied. */
struct jit {
	pid_t pid;
	struct elf_image *image; /* NULL: nothing was */
};

struct images {
	const struct recording *rec;
	pthread_mutex_t lock; /* of what follows */
	VEC(struct opened) files;
	bool is_missing_some; /* of these files, which was said */
	VEC(struct jit) jits;
	struct elf_image *kernel; /* one for all processes; NULL: not traced, or not read yet */
	bool kernel_failed;	  /* and that was said */
	struct space *idle;	  /* space__put() */
	struct named_image *code; /* instead of all these; or NULL */
};

/*
 * images_file.c: the file of a mapping: as the recording has it, else where it can be found on this
 * machine. NULL: nowhere (what was there instead is in *file), or out of memory (errno).
 */
struct elf_image *opened__open(struct opened *file, const struct recording *rec,
			       const struct rec_map *map);
/* Why not, and what to do. */
void opened__say_missing(const struct opened *file, const struct rec_map *map);
/* images_jit.c: NULL with errno: ENOENT, ENOMEM. */
struct elf_image *jit__open(const struct recording *rec, pid_t pid);

#endif
