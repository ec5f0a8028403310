/* SPDX-License-Identifier: MIT */
/* Shared by the shelf's files. */
#ifndef MTBPF_KEEP_SHELF_INTERNAL_H
#define MTBPF_KEEP_SHELF_INTERNAL_H

#include "keep/shelf.h"

/* Prefixes of recordings that are being written or removed. */
#define SHELF_WRITING  ".writing-"
#define SHELF_REMOVING ".removing-"

/* Joins the parts; the caller has checked their lengths. */
void shelf__path(const struct shelf *shelf, char path[static PATH_MAX], const char *prefix,
		 const char *name);

/* Removes incomplete recordings without a writer, and rests of removed ones. 0 or -errno. */
int shelf__sweep(const struct shelf *shelf);

/* Removes the oldest to make room for one more of that size. 0, -EFBIG, or another -errno. */
int shelf__make_room(const struct shelf *shelf, uint64_t bytes);

#endif
