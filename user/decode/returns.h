/* SPDX-License-Identifier: MIT */
/*
 * The CPU's stack of calls whose return may be compressed (SDM "Indirect Transfer Compression for
 * Returns"), as far as the walk knows it.
 */
#ifndef MTBPF_DECODE_RETURNS_H
#define MTBPF_DECODE_RETURNS_H

#include <stddef.h>
#include <stdint.h>

#include "decode/blocks.h"

#define RETURN_DEPTH 64

struct returns {
	/* A ring of the entries from floor to top, at most RETURN_DEPTH. */
	unsigned int floor, top;
	unsigned int stale; /* entries from here to floor are from before a gap, and may be wrong */
	struct block_site *sites[RETURN_DEPTH];
	uint64_t ips[RETURN_DEPTH]; /* their return addresses */
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

/* NULL: the stack is empty. */
static inline struct block_site *returns__pop(struct returns *r)
{
	if (r->top == r->floor)
		return NULL;
	return r->sites[--r->top % RETURN_DEPTH];
}

/* A return used an entry from before the gap: removes the newest of these, if there is one. */
static inline void returns__pop_stale(struct returns *r)
{
	if (r->stale == r->floor)
		return;
	r->floor--;
	r->top = r->floor;
}

#endif
