/* SPDX-License-Identifier: MIT */
/* The finished trees of a thread against its log. */
#ifndef MTBPF_TESTS_STACKS_VERDICT_H
#define MTBPF_TESTS_STACKS_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "mistakes.h"
#include "tree_walk.h"
#include "truth_read.h"

/* Each branch has a time of its own, so that the tree tells what ran behind each. */
#define STEP 10

/* A call or a return that was decoded. */
struct seen {
	uint64_t time_ns, to;
	uint64_t step; /* time in the tree */
	uint32_t segment;
	bool is_call;
	const struct function *from; /* of a call */
	/* A handler's first call: what it interrupted, as jumps had left it. */
	const struct function *interrupted;
	/* Of the first of a segment: how many there are, and which event of the log it is. */
	size_t n, event;
	bool is_placed;
};

typedef VEC(struct seen) seen_vec;

struct counts {
	uint64_t calls, right, gaps;
	uint64_t soon, soon_right, later, later_right;
	uint64_t known, known_right; /* as soon, of the frames that a branch shows */
	uint64_t without_callers;    /* not right, but what is shown of them is */
	bool is_end_wrong;
};

/* Adds what is right of them; the walks are walked. */
void judge_thread(struct counts *counts, struct mistakes *mistakes, pid_t tid, seen_vec *seen,
		  struct truth_log *truth, walk_vec *walks);

#endif
