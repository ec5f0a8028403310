/* SPDX-License-Identifier: MIT */
/*
 * How calls end without a return: by exceptions, longjmp() and the like. Who began it, by the
 * names of runtimes, and in which frame it lands, by what lies there.
 */
#ifndef MTBPF_STACK_UNWINDING_H
#define MTBPF_STACK_UNWINDING_H

#include <stdbool.h>

#include "stack/frames.h"
#include "stack/functions.h"

struct branch;
struct stack;

struct unwinder {
	enum left_by left_by;
	/* It goes on with what an earlier one began, and a clean-up interrupted. */
	bool resumes;
};

/* What a function does as its readable name says (function.name); NULL where it is no unwinder. */
const struct unwinder *unwinder__find(const char *name);

/* What ends frames without a return: which of them began it, and by what. */
struct departure {
	struct frame *frame; /* the outermost unwinder that ends; NULL: there is none */
	enum left_by left_by;
	bool resumes;		/* it goes on with what an earlier one began */
	struct frame *resuming; /* the innermost one that throws, if it does that */
};

/* Of the frames above `stop`, or of all of them where it is NULL, by the names of unwinders. */
struct departure departure__find(const struct frames *frames, const struct frame *stop);
/* What runs is an unwinder, or a part of one that has no name. */
bool departure__is_near(const struct frames *frames);
/* That frame is gone to: what left those above it is this, unless an unwinder is seen to have. */
struct departure unwinding__departure_to(const struct stack *s, struct frame *frame,
					 enum left_by left_by);

/*
 * Where the branch lands, in which frame, and what has left those above it. A frame that is NULL
 * is below all that is known. False: not in such a place.
 */
/* At a landing pad: the innermost frame whose pending call has that pad. */
bool unwinding__find_pad(const struct stack *s, const struct branch *b, struct frame **frame,
			 struct departure *by);
/* At a handler of OCaml's exceptions. */
bool unwinding__find_handler(const struct stack *s, const struct branch *b, struct frame **frame,
			     struct departure *by);
/* Behind a setjmp(): the innermost frame that called it there. */
bool unwinding__find_setjmp(const struct stack *s, const struct branch *b, struct frame **frame,
			    struct departure *by);
/* One of these frames called it there. */
bool unwinding__has_setjmp(const struct frames *frames, uint64_t ip);
/*
 * The outermost of the frames on top that are longjmp()'s, or NULL if there are none. *own is a
 * setjmp() that the function below that frame has called, or NULL.
 */
struct frame *unwinding__find_longjmp(const struct frames *frames, const struct landing **own);

/* Of the frames from before a gap: the innermost whose pending call has that pad. */
struct waiting unwinding__find_waiting(struct stack *s, const struct branch *b,
				       const struct departure *by, bool is_lowest,
				       uint32_t distance);

/* `b` calls a setjmp() of that role: its frame may be come back to. */
void unwinding__note_setjmp(struct stack *s, const struct branch *b, enum function_role role);
/* The running frame asks for the unwind table's entry of the next frame. */
void unwinding__note_step(struct stack *s);
/*
 * The frame that the running one has unwound to lies so far below all that the segment has shown;
 * 0: not known. Good at the moment when it goes there.
 */
uint32_t unwinding__count_below(const struct stack *s);

#endif
