/* SPDX-License-Identifier: MIT */
/* Between the readers of names. */
#ifndef MTBPF_TARGET_CONTAINER_NAMES_INTERNAL_H
#define MTBPF_TARGET_CONTAINER_NAMES_INTERNAL_H

#include "target/container/container_names.h"

/* Copies both. 0 or -ENOMEM. */
int container_names__add(struct container_names *names, const char *name, const char *id);

/*
 * Calls take() for each entry of the folder, until it returns non-zero: returns that, or 0, also
 * where there is no such folder.
 */
int container_names__each_entry(struct container_names *names, const char *path,
				int (*take)(struct container_names *names, const char *path,
					    const char *entry));

#endif
