/* SPDX-License-Identifier: MIT */
/* What kinds of mistakes the stacks of a segment have, and its first wrong stack: on stderr. */
#ifndef MTBPF_TESTS_STACKS_MISTAKES_H
#define MTBPF_TESTS_STACKS_MISTAKES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct function;

/* A stack, the root first. */
struct true_frames {
	const struct function **v;
	size_t n;
};

struct mistakes {
	long from;   /* the first segment that is told about; -1: none is */
	bool of_all; /* also of frames that no branch shows */
	/* Of the segment that is judged: */
	int tid;
	uint32_t segment;
	size_t n, n_wrong;
	size_t n_missing; /* stacks that lack frames, and are right but for that */
	size_t n_extra;	  /* that have frames which do not run, but for that */
};

/* As the environment variable VERBOSE says. */
void mistakes__init(struct mistakes *m);
/* A segment begins: what is known of the one before it is printed. */
void mistakes__begin(struct mistakes *m, int tid, uint32_t segment);
/* One stack, at what `where` says (of a wrong one only). */
void mistakes__add(struct mistakes *m, struct true_frames truth, struct true_frames decoded,
		   bool is_call, uint64_t to);

/* The decoder cannot know better than that, or is right. */
bool is_same_function(const struct function *truth, const struct function *decoded);

#endif
