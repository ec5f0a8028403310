/* SPDX-License-Identifier: MIT */
/* The answer in the terminal: which functions made the slow iteration slow. */
#ifndef MTBPF_VIEW_REPORT_H
#define MTBPF_VIEW_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "stack/call_tree.h"

struct report_input {
	const struct call_tree *trees; /* the report goes on to use them, and their functions */
	size_t n_trees;
	const struct hit_mark *hit; /* the trigger; its function is what iterations are made of */
	bool sampled;		    /* calls between samples were not seen: none are counted */
	size_t ring_bytes;	    /* what kept the stacks was full with so much; 0: it was not */
	bool is_of_several; /* other hits stand beside it: the report says which one it is of */
};

struct report;

/*
 * Compares the iteration that triggered with the ordinary ones in the same lookback, on the thread
 * that triggered: self time and calls a function, largest excess first. An iteration goes from one
 * entry of the trigger's function to the next (delay), or is one call of it (duration).
 * Time off the CPU, or in the kernel, is told by the function that it was spent in.
 * NULL with errno: ENODATA where the lookback does not hold the whole iteration; ENOMEM.
 */
struct report *report__new(const struct report_input *input);
void report__free(struct report *r);

/* The ten lines: `top` functions at most. */
void report__print(FILE *out, const struct report *r, size_t top);
/*
 * All that it found: an object, on one line; with where the threads were, or NULL. 0 or -ENOMEM.
 */
struct thread_places;
int report__print_json(FILE *out, const struct report *r, const struct thread_places *threads);

/*
 * What the slow iteration of b did that the one of a did not: the largest difference of self time
 * first, either way. Both are of the same function, or of two versions of it. 0 or -ENOMEM.
 */
int report__print_difference(FILE *out, const struct report *a, const struct report *b, size_t top);

#endif
