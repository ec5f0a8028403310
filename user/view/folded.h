/* SPDX-License-Identifier: MIT */
/* Stacks and their times as "folded" lines, the input of flame graphs and speedscope. */
#ifndef MTBPF_VIEW_FOLDED_H
#define MTBPF_VIEW_FOLDED_H

#include <stdio.h>

#include "stack/call_tree.h"

/*
 * Prints one line per stack, "service;main;f;g 1234": the thread's name, the functions, and the
 * nanoseconds in the last one without its callees. 0 or -ENOMEM.
 */
int folded__print(FILE *out, const struct call_tree *trees, size_t n_trees);

/* Prints a name, with ':' for the format's separators. */
void folded__print_name(FILE *out, const char *name);

#endif
