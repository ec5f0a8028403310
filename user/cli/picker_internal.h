/* SPDX-License-Identifier: MIT */
#ifndef MTBPF_CLI_PICKER_INTERNAL_H
#define MTBPF_CLI_PICKER_INTERNAL_H

#include <stddef.h>
#include <stdio.h>

/*
 * Without fzf: shows lines with their numbers, as many as the terminal that `out` is has room for,
 * and asks for a number, or for words: then only lines that have them all are left, and it asks
 * again. An empty answer takes the only line that is left, or has them all again. Its index, or
 * -ECANCELED where there is no answer.
 */
int picker__pick_typed(const char *what, const char *const *lines, size_t n, FILE *in, FILE *out);

#endif
