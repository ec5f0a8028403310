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
	/* Of a file with this name that is not it. */
	char other_id[64];
	uint64_t other_ino;
	bool is_other; /* that is the image, in want of a better one */
	bool mismatch_said;
};

struct images {
	const struct recording *rec;
	pthread_mutex_t lock; /* of what follows */
	VEC(struct opened) files;
	struct elf_image *kernel; /* one for all processes; NULL: not traced, or not read yet */
	bool kernel_failed;	  /* and that was said */
	struct space *idle;	  /* space__put() */
};

#endif
