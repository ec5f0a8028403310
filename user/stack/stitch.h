/* SPDX-License-Identifier: MIT */
/*
 * Finds frames that ran on both sides of a gap. A segment ends with frames that have not returned,
 * and shows, by its returns, which frames had been running when it began. If frames before a gap
 * and after it agree, in their functions and return addresses, they are the same activations: the
 * segments form a run, with one stack. The stack that was copied at a trigger is treated in the
 * same way, and may know callers that no branch has shown.
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
	uint8_t slack; /* it may return up to this many bytes after return_ip as well */
};

struct held_stack {
	const struct held *v;
	size_t n;
};

typedef VEC(struct held) held_vec;

static inline struct held_stack held_vec__all(const held_vec *vec)
{
	return (struct held_stack){vec->v, vec->n};
}

/* True for functions that run once, below everything: two frames are the same activation. */
bool held__is_outermost(const struct held *held);

/* The match of two stacks: b[k] is a[k + offset], for as many frames as agree. */
struct fit {
	int64_t offset;
	size_t first;	  /* index of the lowest frame of b that has a counterpart in a */
	size_t n_agreed;  /* how many frames agree, from b[first] on */
	size_t n_changed; /* above those: frames of a that have ended, and of b that have begun */
	size_t distance;  /* how many frames the tops of a and b are apart */
	bool is_certain;  /* several frames agree, or one that runs once, or an unwind shows it */
};

/* The boundary between a segment and the one before it. */
enum boundary {
	BOUNDARY_GAP,
	BOUNDARY_LONG,	  /* a gap between snapshots, or outside of -start/-stop or -filter */
	BOUNDARY_WAIT,	  /* this stack only waited while others ran, and goes on from there */
	BOUNDARY_SETTLED, /* a gap, and no more evidence will come: the most likely match is taken
			   */
	BOUNDARY_UNWIND,  /* no gap: an unwind went below all that the segment before showed */
};

/*
 * The weight of the evidence: a frame that agrees counts as much for a match as one that must have
 * ended or begun in the gap counts against it. In a recursion frames agree at many depths.
 */
static inline int64_t fit__weight(const struct fit *fit)
{
	return (int64_t)fit->n_agreed - (int64_t)fit->n_changed;
}

/* True if b may continue a. *best is then the best match. */
bool held_stack__fits(struct held_stack a, struct held_stack b, enum boundary boundary,
		      struct fit *best);

/*
 * The callers of frames that ended without a return. Programs reach an exception's runtime by the
 * same path each time. So the frames between a function and the runtime can be inferred even if a
 * gap hides their calls, and the exception their returns.
 */
struct call_edge {
	const struct function *caller, *callee;
	uint64_t return_ip; /* of the callee, into the caller */
	bool is_passed;	    /* an exception has passed the caller, and landed further out */
};

/* Zero-initialised is empty. */
struct call_edges {
	VEC(struct call_edge) all;
	struct hash_index index; /* finds an edge by its callee, and by callee and caller */
};

void call_edges__fini(struct call_edges *edges);

/*
 * Adds an edge, or sets is_passed of the known one. Ignores edges without a caller or callee, and
 * those beyond a limit. 0 or -ENOMEM.
 */
int call_edges__learn(struct call_edges *edges, const struct call_edge *edge);

/* The most frames that can be inferred from their number alone. */
#define BETWEEN_MAX 32

/*
 * An exception has passed n frames between one of `from` and one of `to`, the outermost first.
 * Fills them in from all known paths; a frame gets no function if the paths differ in it.
 * has_landed: it landed in `from`; otherwise it passed that as well. False: no path is known.
 */
bool call_edges__pass(const struct call_edges *edges, const struct function *from, bool has_landed,
		      const struct function *to, struct held between[BETWEEN_MAX], size_t n);

/* The place of a segment, relative to those before it. */
struct placement {
	uint32_t run;
	bool joins;	   /* its run has segments before it */
	uint32_t n_joined; /* number of its first frames that ran before it */
	/* Depth of the segment's first frame, relative to that of its run's first segment. */
	int64_t base;
};

#define RUN_NONE UINT32_MAX

/* Segments that continue one stack. Segments of other runs may be between them. */
struct run {
	held_vec below; /* callers that only later segments showed; the outermost is last */
	uint32_t outer; /* the run on whose frames this run is, or RUN_NONE */
	/* Depth of its outermost frame, relative to that of the first segment of `outer`. */
	int64_t base;
	/* The frames that its first segment began with, and that segment's placement. */
	held_vec begun;
	uint32_t placement;
	/* The function of its outermost frame when its last segment ended; NULL: no frame was left.
	 */
	const struct function *lowest;
};

/* A run that the next segment may continue. */
struct stitched {
	uint32_t run;
	held_vec stack; /* the frames that were open when its last segment ended */
	/* Depth of stack.v[0], relative to the first frame of the run's first segment. */
	int64_t base;
	uint32_t owner;	  /* the run that gets callers found below stack.v[0] */
	bool is_old;	  /* a long gap (BOUNDARY_LONG) has followed */
	uint64_t left_ip; /* where its top frame continues when its callee returns; 0: not known */
};

/* The address at which frame `at` goes on when its callee returns; 0: not known. */
static inline uint64_t stitched__left_at(const struct stitched *end, size_t at)
{
	return at + 1 < end->stack.n ? end->stack.v[at + 1].return_ip : end->left_ip;
}

#define STITCHED_MAX 8

struct stitcher {
	VEC(struct placement) placements; /* one per segment, in order */
	VEC(struct run) runs;
	struct stitched ends[STITCHED_MAX]; /* the latest is last */
	size_t n_ends;
	VEC(uint32_t)
	loose; /* indexes, in order, of runs that began without an outer run; some have one by now
		*/
	struct unwinding {
		bool is_followed;
		/* Indices of the segment, and of its run, in which the unwinding was seen first. */
		uint32_t placement, run;
		uint64_t pad;	 /* the last landing pad that it has reached; 0: none */
	} unwinding;		 /* one under way at the last gap: stitch.c */
	held_vec view;		 /* the result of look(), until its next call */
	held_vec shown;		 /* memory of lie_on() */
	bool failed;		 /* out of memory: what it says is not complete */
	struct call_edges edges; /* of frames that did not return */
};

/* A frame that waits to go on: in stitcher.ends[end].stack. */
struct waiting {
	uint32_t end, at;
};
#define WAITING_NONE ((struct waiting){UINT32_MAX, 0})

/* The frames with which a segment began, as far as it has shown them, and those at its end. */
struct beginning {
	struct held_stack frames, end;
	enum boundary boundary;
	/*
	 * After an unwind: the frame in which it landed, whose index in `frames` is n_roots: the
	 * frames before it are its callers.
	 */
	struct waiting catcher;
	size_t n_roots;
	/* Frames from the lowest that the segment before showed down to `catcher`; 0: not known. */
	uint32_t distance;
	/* The outermost frame is an unwinder's: frames do not tell one exception from another. */
	bool is_unwinding;
};

void stitcher__fini(struct stitcher *stitcher);

/* The frames from before a gap that are below a segment with this beginning. */
struct held_stack stitcher__below(const struct stitcher *stitcher, const struct beginning *begin);

/*
 * The innermost waiting frame for which `takes`, given its function and the return address of its
 * callee, is true; or WAITING_NONE.
 */
struct waiting stitcher__find(const struct stitcher *stitcher,
			      bool (*takes)(void *ctx, const struct function *function,
					    uint64_t return_ip),
			      void *ctx);

/*
 * The waiting frame at that distance below all that the last segment showed; WAITING_NONE if the
 * segment does not continue a run that waits.
 */
struct waiting stitcher__reach(const struct stitcher *stitcher, size_t distance);

/*
 * stitch.c: where the unwinding since the last gap landed last, if that was in this end; 0: it was
 * not. If several frames may have taken it, the one that did is a guess.
 */
uint64_t stitcher__last_pad(const struct stitcher *stitcher, uint32_t end);
/* Corrects the guess: since the gap, that unwinding has landed n frames further down. */
void stitcher__sink(struct stitcher *stitcher, uint32_t end, size_t n);

/* Adds the next segment. */
void stitcher__add(struct stitcher *stitcher, const struct beginning *begin);
/*
 * After the last segment: puts the last run, which no return has placed, where it fits, or leaves
 * it apart. The one before becomes the last. False: there is none.
 */
bool stitcher__settle(struct stitcher *stitcher);
/* Calls stitcher__settle() until no run is left. */
void stitcher__finish(struct stitcher *stitcher);
/*
 * The outermost frame that is known of the stack of stitcher->ends[end], as that frame was first
 * seen. NULL: that stack lacks frames, or there is no such end.
 */
const struct held *stitcher__lowest(const struct stitcher *stitcher, size_t end);
/* Adds the stack that stitcher->ends[end] turns out to be on. */
void stitcher__anchor(struct stitcher *stitcher, size_t end, struct held_stack taken);

#endif
