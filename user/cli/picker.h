/* SPDX-License-Identifier: MIT */
/*
 * Lets the user pick one of many lines at a terminal: with fzf or, without it, by typing a number
 * or words that the line contains.
 */
#ifndef MTBPF_CLI_PICKER_H
#define MTBPF_CLI_PICKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* True if stdin and stderr are terminals, so that the user can be asked. */
bool picker__is_possible(void);

/*
 * Asks for one of n lines; `what` ("process") is what they are. Returns its index, or -errno:
 * -ECANCELED nothing was picked; -ENOMEM.
 */
int picker__pick(const char *what, const char *const *lines, size_t n);

/*
 * Like picker__pick(), without fzf: shows numbered lines, as many as fit on the terminal `out`, and
 * reads a number or words from `in`. After words, shows only the lines that contain them all, and
 * asks again. An empty answer picks the line if only one is left. -ECANCELED at the end of `in`.
 */
int picker__pick_typed(const char *what, const char *const *lines, size_t n, FILE *in, FILE *out);

#endif
