/* SPDX-License-Identifier: MIT */
/* Whose doing it was that a thread was off its CPU. */
#ifndef MTBPF_VIEW_BLAME_H
#define MTBPF_VIEW_BLAME_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "stack/call_tree.h"

/* So many names are told apart; others come to little. */
#define BLAME_MAX 8
/* So many are shown, if they have at least this part of what the first has. */
#define BLAME_SHOWN 3
#define BLAME_SHARE 3

/* All zeroes is good. */
struct blame {
	struct waited {
		const struct waits_for *for_; /* the first of those that read the same */
		uint64_t ns;
	} waits[BLAME_MAX];
	struct blamed {
		const struct done_by *by; /* the first of that name */
		uint64_t ns;
	} names[BLAME_MAX];
	uint64_t ns; /* how long they were off the CPU */
	bool woken;  /* it was woken by them; else it was they who ran */
};

/* Another call's: many short turns of one program are its doing as well. */
void blame__add(struct blame *blame, const struct call_tree *tree, const struct call *call);
/* What it waited for the longest; NULL: not known for a third of the time. */
const struct waits_for *blame__wait(const struct blame *blame);
/* Who had the most of it; NULL: nobody had a third of the time. */
const struct done_by *blame__most(const struct blame *blame);
/*
 * ": read of pipe:[812] (fd 5)", ": chan receive and select": the longest, and those that took
 * nearly as long; nothing if blame__wait() knows none, or it is the name of the function that it
 * was spent in.
 */
void blame__print_wait(FILE *out, const struct blame *blame, const struct function *inside);
/*
 * ", by hog (12), cc1 (13)": who had the most, and those who had nearly as much; nothing where
 * nobody is known, or nobody had a third of the time.
 */
void blame__print(FILE *out, const struct blame *blame);

#endif
