/* SPDX-License-Identifier: MIT */
/* Stacks and their time in the "folded" lines that flame graphs and speedscope are made of. */
#ifndef MTBPF_VIEW_FOLDED_H
#define MTBPF_VIEW_FOLDED_H

#include <stdio.h>

#include "stack/call_tree.h"

/*
 * "service;main;f;g 1234": a line a stack of functions that ran, the thread's name before it, and
 * behind it the nanoseconds in its last one, the calls of it not counted. 0 or -ENOMEM.
 */
int folded__print(FILE *out, const struct call_tree *trees, size_t n_trees);

#endif
