/* SPDX-License-Identifier: MIT */
/* Sums up what threads waited for and who kept them off their CPUs. */
#ifndef MTBPF_VIEW_BLAME_H
#define MTBPF_VIEW_BLAME_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "stack/call_tree.h"

/* Different names that are kept; more would have little time each. */
#define BLAME_MAX 8
/* Names that are shown: at most BLAME_SHOWN, each with at least 1/BLAME_SHARE of the first's time.
 */
#define BLAME_SHOWN 3
#define BLAME_SHARE 3

/* Zero-initialise. */
struct blame {
	struct waited {
		const struct waits_for *for_; /* the first of those with the same text */
		uint64_t ns;
	} waits[BLAME_MAX];
	struct blamed {
		const struct done_by *by; /* the first with this name */
		uint64_t ns;
	} names[BLAME_MAX];
	uint64_t ns; /* total time off the CPU */
	bool woken;  /* true: they woke it; false: they ran instead of it */
};

/* Adds a call's wait and causes: short waits for the same program add up. */
void blame__add(struct blame *blame, const struct call_tree *tree, const struct call *call);
/* What it waited for the longest; NULL if that is known for less than a third of the time. */
const struct waits_for *blame__wait(const struct blame *blame);
/* Who had the most of it; NULL: nobody had a third of the time. */
const struct done_by *blame__most(const struct blame *blame);
/*
 * Prints ": read of pipe:[812] (fd 5)", or ": chan receive and select": the longest wait and those
 * that took nearly as long. Prints nothing if blame__wait() is NULL, or has the name of the
 * function `inside`.
 */
void blame__print_wait(FILE *out, const struct blame *blame, const struct function *inside);
/*
 * Prints ", by hog (12), cc1 (13)": the largest and those with nearly as much. Prints nothing if no
 * name is known, or none has a third of the time.
 */
void blame__print(FILE *out, const struct blame *blame);

#endif
