/* SPDX-License-Identifier: MIT */
/* Stacks that may be one at two moments: how one lies on the other. */
#ifndef MTBPF_STACK_STITCH_FIT_H
#define MTBPF_STACK_STITCH_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/elf/elf_image.h"
#include "util/vec.h"

/* One frame of a stack, seen at an edge of a segment or at a trigger. Stacks start at the root. */
struct held {
	const struct function *function;
	uint64_t return_ip; /* into the frame before it; 0: not known */
	uint64_t entry_ip;
	uint8_t slack; /* as of a frame: it may return so many bytes behind return_ip as well */
};

struct held_stack {
	const struct held *v;
	size_t n;
};

typedef VEC(struct held) held_vec;

/* Runs once, below everything: two of them are the same activation. */
bool held__is_outermost(const struct held *held);

/* How one stack lies on another: b[k] is a[k + offset], for as many frames as agree. */
struct fit {
	int64_t offset;
	size_t first;	  /* the lowest of b that has one in a */
	size_t n_agreed;  /* from there on */
	size_t n_changed; /* above those: of a they have ended, of b they have begun */
	size_t distance;  /* between the tops */
	bool is_certain;  /* by a return, or since it runs once: not by a function alone */
};

/* What lies between a segment and the one before it. */
enum seam {
	SEAM_GAP,
	SEAM_LONG,    /* much may have happened meanwhile */
	SEAM_WAIT,    /* another stack has run, and has gone to where this one waited */
	SEAM_SETTLED, /* a gap, of which nothing more will show: what is likeliest is taken */
	SEAM_LEAP,    /* nothing: the one before was left for a frame below all that it showed */
};

/*
 * How much speaks for it: one frame that agrees as much as one that must have ended, or begun, in
 * the gap speaks against it. In a recursion frames agree at many depths.
 */
static inline int64_t fit__weight(const struct fit *fit)
{
	return (int64_t)fit->n_agreed - (int64_t)fit->n_changed;
}

/* With that offset, by which they overlap; is_certain is not told. */
struct fit held_stack__lay(struct held_stack a, struct held_stack b, int64_t offset);

/* Whether b may be what goes on of a, and how, as well as can be told. */
bool held_stack__fits(struct held_stack a, struct held_stack b, enum seam seam, struct fit *best);

/*
 * The same where it is known that of `a` all but the lowest have ended by now: b lies in it. Those
 * above b have ended before it has run, and not behind that, unless more agrees further up.
 */
bool held_stack__fits_lowest(struct held_stack a, struct held_stack b, enum seam seam,
			     struct fit *best);

#endif
