/* SPDX-License-Identifier: MIT */
/*
 * Which of the frames that run is shown by a branch that was decoded: it was called by one, has
 * called, has returned, or was returned to. Of one that a gap hides altogether, as it was called in
 * there and left by an exception, or in the next gap, nobody can know.
 */
#ifndef MTBPF_TESTS_STACKS_SHOWN_H
#define MTBPF_TESTS_STACKS_SHOWN_H

#include <stdbool.h>
#include <stddef.h>

#include "truth_read.h"

struct shown {
	bool *is_decoded;    /* of each event */
	bool *is_shown;	     /* of the frame that each call has begun */
	VEC(size_t *) began; /* of each stack's depths: the call, counted from 1 */
	size_t next;	     /* event */
};

void shown__init(struct shown *shown, const struct truth_log *log);
void shown__fini(struct shown *shown);

/* To be told of all that were, before the next. */
void shown__decoded(struct shown *shown, size_t event);
/* Looks at all events. After that they are replayed. */
void shown__look(struct shown *shown, const struct truth_log *log);

/* Behind the event: whether the frame at a depth of its stack is shown. Events go up only. */
void shown__go_to(struct shown *shown, const struct truth_log *log, size_t event);
bool shown__is(const struct shown *shown, const struct truth_log *log, size_t event, long depth);

#endif
