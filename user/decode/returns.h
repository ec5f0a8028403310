/* SPDX-License-Identifier: MIT */
/*
 * Calls whose return may be compressed (SDM "Indirect Transfer Compression for Returns"): what the
 * CPU keeps of them, as far as the walk knows it.
 */
#ifndef MTBPF_DECODE_RETURNS_H
#define MTBPF_DECODE_RETURNS_H

#include <stddef.h>
#include <stdint.h>

#include "decode/blocks.h"

#define RETURN_DEPTH 64

struct returns {
	/* A ring: from floor to top, RETURN_DEPTH at most. */
	unsigned int floor, top;
	unsigned int stale; /* from here to the floor: of before a gap, and in doubt */
	struct block_site *sites[RETURN_DEPTH];
	uint64_t ips[RETURN_DEPTH]; /* theirs */
};

static inline void returns__push(struct returns *r, struct block_site *site)
{
	unsigned int at = r->top++ % RETURN_DEPTH;

	r->sites[at] = site;
	r->ips[at] = site->ret_ip;
	if (r->top - r->floor > RETURN_DEPTH)
		r->floor++;
	if (__builtin_expect(r->top - r->stale > RETURN_DEPTH, 0))
		r->stale++;
}

/* NULL where none is left. */
static inline struct block_site *returns__pop(struct returns *r)
{
	if (r->top == r->floor)
		return NULL;
	return r->sites[--r->top % RETURN_DEPTH];
}

/* A return has taken a call of before the gap, as far as one is known. */
static inline void returns__pop_stale(struct returns *r)
{
	if (r->stale == r->floor)
		return;
	r->floor--;
	r->top = r->floor;
}

#endif
