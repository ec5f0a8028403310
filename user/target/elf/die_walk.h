/* SPDX-License-Identifier: MIT */
/* Over the entries (DIEs) of a unit, outer before inner; it ends, whatever the file says. */
#ifndef MTBPF_TARGET_ELF_DIE_WALK_H
#define MTBPF_TARGET_ELF_DIE_WALK_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

enum die_step {
	DIE_SKIP,    /* what is in it does not matter */
	DIE_DESCEND, /* it does: with *scope for its children, as this wants it */
};

struct die_walk {
	/* What to do with an entry: enum die_step, or -errno, which ends the walk. */
	int (*enter)(struct die_walk *walk, Dwarf_Die *die, const void **scope);
	void *ctx;
	uint64_t *budget; /* bytes of entries that may still be walked over */
};

/* Takes so much from what is left. False where there is not as much. */
bool die_walk__spend(struct die_walk *walk, uint64_t bytes);
/* 0; -EIO: damaged; -E2BIG: too deep, or the budget is spent; or what enter() returned. */
int die_walk__children(struct die_walk *walk, Dwarf_Die *die, const void *scope);

#endif
