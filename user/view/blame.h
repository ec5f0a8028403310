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

/* All zeroes is good. */
struct blame {
	struct {
		const struct done_by *by; /* the first of that name */
		uint64_t ns;
	} names[BLAME_MAX];
	bool woken; /* it was woken by them; else it was they who ran */
};

/* Another call's: many short turns of one program are its doing as well. */
void blame__add(struct blame *blame, const struct call_tree *tree, const struct call *call,
		uint64_t ns);
/* ", by hog (12)": who had the most; nothing where nobody is known. */
void blame__print(FILE *out, const struct blame *blame);

#endif
