/* SPDX-License-Identifier: MIT */
/*
 * Recognises calls that end without a return, by exceptions, longjmp() and the like. The names of
 * runtimes tell which frame began it, and the code at the target tells in which frame it lands.
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
	/* It continues an unwinding that another one began, after a clean-up: _Unwind_Resume(). */
	bool resumes;
};

/* The unwinder with this readable name (function.name); NULL: not an unwinder. */
const struct unwinder *unwinder__find(const char *name);
/* True if the function throws: all exceptions go through it. */
bool unwinder__throws(const struct function *function);

/* The reason why frames end without a return. */
struct departure {
	struct frame *frame; /* the outermost unwinder that ends; NULL: none */
	enum left_by left_by;
	bool resumes;		/* `frame` continues an unwinding that another one began */
	struct frame *resuming; /* the innermost unwinder, if it continues an unwinding */
};

/* Searches the frames above `stop` (NULL: all frames) for the names of unwinders. */
struct departure departure__find(const struct frames *frames, const struct frame *stop);
/* True if the innermost frame whose function has a name is an unwinder's. */
bool departure__is_near(const struct frames *frames);
/*
 * The departure of the frames above `frame`, which control has come to: `left_by`, unless an
 * unwinder is among them.
 */
struct departure unwinding__departure_to(const struct stack *s, struct frame *frame,
					 enum left_by left_by);

/*
 * unwinding__find_pad() and unwinding__find_setjmp() find the frame in which the branch lands, and
 * what ended those above it. *frame NULL: it is below all that is known. They return false if the
 * target is not such a place.
 */
/*
 * At a landing pad, or a handler of OCaml's exceptions: the innermost frame whose pending call, or
 * raise, has that pad.
 */
bool unwinding__find_pad(const struct stack *s, const struct branch *b, struct frame **frame,
			 struct departure *by);
/* After a call of setjmp(): the innermost frame that made it. */
bool unwinding__find_setjmp(const struct stack *s, const struct branch *b, struct frame **frame,
			    struct departure *by);
/* True if one of these frames called setjmp() just before ip. */
bool unwinding__has_setjmp(const struct frames *frames, uint64_t ip);
/*
 * If longjmp() runs, called by a function that has called setjmp(): that setjmp(), and the
 * outermost frame of longjmp(). Otherwise NULL.
 */
const struct landing *unwinding__find_longjmp(const struct frames *frames, struct frame **longjmp);

/* The innermost of the frames from before a gap whose pending call has that pad. */
struct waiting unwinding__find_waiting(struct stack *s, const struct branch *b,
				       const struct departure *by, uint32_t distance);

/* `b` calls a setjmp() of that role: a longjmp() may land in its frame. */
void unwinding__note_setjmp(struct stack *s, const struct branch *b, enum function_role role);
/* Control goes to ip: if that is after a setjmp(), that one has been used. */
void unwinding__note_landing(struct stack *s, uint64_t ip);
/* The running frame asks for the unwind table's entry of the next frame. */
void unwinding__note_step(struct stack *s);
/*
 * The number of frames that the target of the running unwinding is below all that the segment has
 * shown; 0: not known. Valid only when the branch goes there.
 */
uint32_t unwinding__count_below(const struct stack *s);

#endif
