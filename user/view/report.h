/* SPDX-License-Identifier: MIT */
/* The answer in the terminal: which functions made the slow iteration slow. */
#ifndef MTBPF_VIEW_REPORT_H
#define MTBPF_VIEW_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "stack/call_tree.h"

struct report_input {
	const struct call_tree *trees;
	size_t n_trees;
	const struct hit_mark *hit; /* the trigger; its function is what iterations are made of */
	uint64_t threshold_ns;	    /* 0: none */
	size_t top;		    /* rows */
	bool sampled;		    /* calls between samples were not seen: none are counted */
};

/*
 * Compares the iteration that triggered with the ordinary ones in the same lookback, on the thread
 * that triggered: self time and calls a function, largest excess first. An iteration goes from one
 * entry of the trigger's function to the next (delay), or is one call of it (duration).
 * Time off the CPU, or in the kernel, is told by the function that it was spent in.
 * 0; -ENODATA where the lookback does not hold the whole iteration; -ENOMEM. Prints nothing then.
 */
int report__print(FILE *out, const struct report_input *input);

#endif
