/* SPDX-License-Identifier: MIT */
/*
 * The stacks that one thread runs on in turn: its own, and those of coroutines. A waiting one is
 * found by the address at which it will continue.
 */
#ifndef MTBPF_STACK_COROUTINES_H
#define MTBPF_STACK_COROUTINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack/frames.h"
#include "util/vec.h"

/* Coroutines beyond this number are not distinguished. */
#define COROUTINES_MAX 4096

enum coroutine_state {
	COROUTINE_OVER, /* its frames have ended: another may take its place */
	COROUTINE_RUNS,
	COROUTINE_WAITS,
	COROUTINE_PARKED, /* it is from before a gap: what it has done since is not known */
};

/* A stack of the thread: its own, or a coroutine's. */
struct coroutine {
	struct frames frames; /* unused by the thread's own */
	uint64_t waits_at;    /* where it will continue; 0: not known */
	uint64_t since;	      /* how many switches there were before it began to wait */
	uint32_t number;      /* 0: the thread's own */
	uint8_t state;	      /* enum coroutine_state */
	uint8_t slack;	      /* it may also go on up to this many bytes after waits_at */
	bool is_goroutine;
	/* OCaml's: coroutines.c. */
	bool is_fiber;
	struct coroutine *parent;    /* that waits for it; NULL for a kept one */
	struct coroutine *child;     /* that it waits for */
	struct coroutine *performed; /* the last that was kept when its handler was called */
	/*
	 * It runs after a gap, and it is not known which coroutine it is. It began at began_at;
	 * 0: it ran when the gap ended.
	 */
	bool is_loose;
	bool is_rootless; /* none was found: there may be anything below it */
	uint64_t began_at;
	unsigned int generation; /* how many there were before it, in this place and others */
	/* If it is parked: */
	held_vec pending; /* frames */
	uint64_t left_ns; /* if no frame is open: when it was last seen */
};

struct coroutines {
	struct coroutine own; /* the thread's */
	struct frames *own_frames;
	struct coroutine *running;
	VEC(struct coroutine *) others; /* by number */
	uint64_t n_switches;
	unsigned int n_begun;
	/* Go's: the scheduler's stack, and a goroutine that recovers from a panic; or NULL. */
	struct coroutine *system, *recovering;
	struct coroutine *lost_system; /* the scheduler's, if it ran when a gap began */
	size_t system_depth; /* of the scheduler's permanent frame, if its index is system_index */
	uint32_t system_index;
	held_vec system_base; /* that frame and those below it */
	/* OCaml's: the fiber that performed last, and the one that resumed the running one; or NULL
	 */
	struct coroutine *performer, *resumer;
	const struct function *switched_by; /* the last switch */
	uint64_t n_before_gap;		    /* n_switches when coroutines were last parked */
	uint64_t n_at_gap;		    /* n_switches at the last gap */
	bool is_lost;			    /* which one runs when the gap ends is not known */
	bool has_mark;
	struct frames_mark mark; /* the running one's frames at its last switch */
	size_t n_taken;
};

/* The thread's own stack is the running one. The frames must outlive it. */
void coroutines__init(struct coroutines *coroutines, struct frames *own_frames);
void coroutines__fini(struct coroutines *coroutines);

/* All of them, the thread's own first. */
static inline size_t coroutines__count(const struct coroutines *coroutines)
{
	return coroutines->others.n + 1;
}

static inline struct coroutine *coroutines__at(const struct coroutines *coroutines, size_t i)
{
	return i ? coroutines->others.v[i - 1] : (struct coroutine *)&coroutines->own;
}

static inline struct frames *coroutines__frames_of(const struct coroutines *coroutines,
						   struct coroutine *coroutine)
{
	return coroutine == &coroutines->own ? coroutines->own_frames : &coroutine->frames;
}

/* OCaml: the stack that waits for the fiber; NULL: not known. */
static inline struct coroutine *coroutines__parent_of(const struct coroutine *fiber)
{
	struct coroutine *parent = fiber->parent;

	return parent && parent->child == fiber && parent->state == COROUTINE_WAITS ? parent : NULL;
}

/* True if there is a coroutine from before a gap that has not been seen since. */
bool coroutines__has_parked(const struct coroutines *coroutines);

/* The coroutine waiting at ip that began to wait last, or first if is_first; or NULL. */
struct coroutine *coroutines__find_waiting(const struct coroutines *coroutines, uint64_t ip,
					   bool is_first);

/*
 * Adds a coroutine, which does not run yet. It may reuse the place of one that is over; a loose one
 * only if that has no calls. NULL: no memory, or too many.
 */
struct coroutine *coroutines__add(struct coroutines *coroutines, bool is_loose);

/* Returns the next one that has calls, without the thread's own; NULL: no more. */
struct coroutine *coroutines__take_next(struct coroutines *coroutines);

void coroutines__name(const struct coroutines *coroutines, const struct coroutine *coroutine,
		      char *buf, size_t size);

#endif
