/* SPDX-License-Identifier: MIT */
/* What ends frames without a return: which of them began it, and by what. */
#ifndef MTBPF_STACK_DEPARTURE_H
#define MTBPF_STACK_DEPARTURE_H

#include <stdbool.h>

#include "stack/frames/frames.h"

struct departure {
	struct frame *frame; /* the outermost unwinder that ends; NULL: there is none */
	enum left_by left_by;
	bool resumes;		/* it goes on with what an earlier one began */
	struct frame *resuming; /* the innermost one that throws, if it does that */
};

/* Of the frames above `stop`, or of all of them where it is NULL, by the names of unwinders. */
struct departure departure__find(const struct frames *frames, const struct frame *stop);
/* The same, of an exception that has come to a landing pad: even where no name tells. */
struct departure departure__of_exception(const struct frames *frames, const struct frame *stop,
					 struct elf_image *pad_image);
/* What runs is an unwinder, or a part of one that has no name. */
bool departure__is_near(const struct frames *frames);

#endif
