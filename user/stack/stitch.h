/* SPDX-License-Identifier: MIT */
/*
 * What ran on both sides of a gap. A segment ends with frames that have not returned, and shows, by
 * its returns, which had been running when it began. Where the frames before a gap and those
 * behind it agree, in their functions and the addresses that they return to, they are the same
 * activations: the segments form a run, with one stack. The stack taken at a trigger is the frames
 * of its moment in the same way, and may know callers that no branch has shown.
 */
#ifndef MTBPF_STACK_STITCH_H
#define MTBPF_STACK_STITCH_H

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

/* A segment, and how it hangs together with those before it. */
struct joint {
	uint32_t run;
	bool joins;	   /* its run has segments before it */
	uint32_t n_joined; /* of the frames that it begins with: as many ran before it */
	int64_t base; /* depth of the first of them, from where the run's first segment began */
};

#define RUN_NONE UINT32_MAX

/* Segments that hang together. Others between them may hang together only with each other. */
struct run {
	held_vec below; /* callers that only later segments showed; the outermost is last */
	uint32_t outer; /* the run that went on behind it, or RUN_NONE */
	int64_t base;	/* its depth on that, at least */
};

/* A run that the next segment may go on with. */
struct stitched {
	uint32_t run;
	held_vec stack; /* at the end of its last segment */
	int64_t base;	/* depth of the first of them */
	uint32_t owner; /* the run that callers of all of them belong to */
};

#define STITCHED_MAX 4

struct stitcher {
	VEC(struct joint) joints; /* a segment each, in order */
	VEC(struct run) runs;
	struct stitched ends[STITCHED_MAX]; /* the latest is last */
	size_t n_ends;
};

void stitcher__fini(struct stitcher *stitcher);

/* How one stack lies on another: b[k] is a[k + offset], for as many frames as agree. */
struct fit {
	int64_t offset;
	size_t first;	 /* the lowest of b that has one in a */
	size_t n_agreed; /* from there on */
	size_t distance; /* between the tops */
	bool is_certain; /* by a return, or since it runs once: not by a function alone */
};

/* What lies between a segment and the one before it. */
enum seam {
	SEAM_GAP,
	SEAM_LONG, /* much may have happened meanwhile */
	SEAM_WAIT, /* another stack has run, and has gone to where this one waited */
	SEAM_LEAP, /* nothing: the one before was left for a frame below all that it showed */
};

/* Whether b may be what goes on of a, and how, as well as can be told. */
bool held_stack__fits(struct held_stack a, struct held_stack b, enum seam seam, struct fit *best);

/* Of the frames that wait to go on behind a gap: those below a segment that begins like that. */
struct held_stack stitcher__below(const struct stitcher *stitcher, struct held_stack begin,
				  enum seam seam);

/*
 * The next segment: the frames that it began with, as far as it showed them, and those that ran at
 * its end. 0 or -ENOMEM.
 */
int stitcher__add(struct stitcher *stitcher, struct held_stack begin, struct held_stack end,
		  enum seam seam);
/* The stack taken near the end of the last segment. 0 or -ENOMEM. */
int stitcher__anchor(struct stitcher *stitcher, struct held_stack taken);

#endif
