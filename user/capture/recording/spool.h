/* SPDX-License-Identifier: MIT */
/* A stream of Intel PT that grows on disk while it is recorded, in a file that has no name. */
#ifndef MTBPF_CAPTURE_RECORDING_SPOOL_H
#define MTBPF_CAPTURE_RECORDING_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "capture/recording/recording.h"

struct spool {
	int fd; /* -1: none */
	uint64_t size;
	int err; /* the disk took no more */
};

#define SPOOL_NONE                                                                                 \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* In this folder's file system. 0 or -errno; prints nothing. */
int spool__open(struct spool *spool, const char *dir);
void spool__close(struct spool *spool);

/* Appends. Where the disk takes no more, a line says so, once, and nothing is appended any more. */
void spool__write(struct spool *spool, const void *bytes, size_t n);
/*
 * Ends it: aux has its bytes, mapped, and goes into rec, which owns them from now on; rec's drops
 * have what the disk did not take. 0 or -errno.
 */
int spool__finish(struct spool *spool, struct rec_aux *aux, struct recording *rec);

#endif
