/* SPDX-License-Identifier: MIT */
/* The report: which functions made the slow iteration slow. */
#ifndef MTBPF_VIEW_REPORT_H
#define MTBPF_VIEW_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "stack/call_tree.h"

struct report_input {
	const struct call_tree *trees; /* the report keeps using them and their functions */
	size_t n_trees;
	const struct hit_mark *hit; /* the trigger; iterations are of its function */
	pid_t tid;	    /* with a request's key: the thread to report on; 0: that of the hit */
	bool sampled;	    /* made of samples: calls between them are neither seen nor counted */
	size_t ring_bytes;  /* size of the ring of stacks if it was full; otherwise 0 */
	bool is_of_several; /* there are other hits: the report says which one this is */
};

struct report;

/*
 * Compares the iteration that triggered with the ordinary ones in the same lookback, on the same
 * thread: self time and calls per function, largest excess first. An iteration goes from one entry
 * of the trigger's function to the next (delay), or is one call of it (duration). Time off the CPU
 * or in the kernel is counted by the function that it was spent in. A request with a key (-key) is
 * not compared: the report has what the thread did in its time, for any request. NULL with errno:
 * ENODATA if the lookback does not have the whole iteration, or the hit's function is not known;
 * ENOMEM.
 */
struct report *report__new(const struct report_input *input);
void report__free(struct report *r);

/* Prints the report with at most `top` functions. */
void report__print(FILE *out, const struct report *r, size_t top);
/*
 * Prints the whole report as an object on one line, with these places of threads, or NULL. 0 or
 * -ENOMEM.
 */
struct thread_places;
int report__print_json(FILE *out, const struct report *r, const struct thread_places *threads);

/*
 * Prints how the slow iteration of b differs from that of a: largest difference of self time first,
 * in either direction. Both are of the same function, or of two versions of it. 0 or -ENOMEM.
 */
int report__print_difference(FILE *out, const struct report *a, const struct report *b, size_t top);

#endif
