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
	struct blamed {
		const struct done_by *by; /* the first of that name */
		uint64_t ns;
	} names[BLAME_MAX];
	const struct waits_for *wait; /* what the longest of them waited for; NULL: not known */
	uint64_t wait_ns;
	uint64_t ns; /* how long they were off the CPU */
	bool woken;  /* it was woken by them; else it was they who ran */
};

/* Another call's: many short turns of one program are its doing as well. */
void blame__add(struct blame *blame, const struct call_tree *tree, const struct call *call);
/*
 * ": read of pipe:[812] (fd 5)"; nothing where it is not known, or says no more than the name of
 * the function that it was spent in does.
 */
void blame__print_wait(FILE *out, const struct blame *blame, const struct function *inside);
/*
 * ", by hog (12), cc1 (13)": who had the most, and those who had nearly as much; nothing where
 * nobody is known, or nobody had a third of the time.
 */
void blame__print(FILE *out, const struct blame *blame);

#endif
