/* SPDX-License-Identifier: MIT */
/* Between the files of a shelf: what is on it, and what goes. */
#ifndef MTBPF_KEEP_SHELF_INTERNAL_H
#define MTBPF_KEEP_SHELF_INTERNAL_H

#include "keep/shelf.h"

/* Before the names of those that are being written, and of those that are being removed. */
#define SHELF_WRITING  ".writing-"
#define SHELF_REMOVING ".removing-"

/* The directory's and the name's lengths have been checked. */
void shelf__path(const struct shelf *shelf, char path[static PATH_MAX], const char *prefix,
		 const char *name);

/* Removes what nobody is writing any more, or was not removed wholly. 0 or -errno. */
int shelf__sweep(const struct shelf *shelf);

/* Removes the oldest, so that one more of that size may come. 0, -EFBIG, or another -errno. */
int shelf__make_room(const struct shelf *shelf, uint64_t bytes);

#endif
