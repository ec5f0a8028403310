/* SPDX-License-Identifier: MIT */
/* Lets the user pick one of many lines, at a terminal: with fzf, or, where it is
 * missing, by a number, or words that narrow the lines down.
 */
#ifndef MTBPF_CLI_PICKER_H
#define MTBPF_CLI_PICKER_H

#include <stdbool.h>
#include <stddef.h>

/* Whether there is somebody to ask: stdin and stderr are terminals. */
bool picker__is_possible(void);

/*
 * Asks for one of n lines; `what` ("process") is what they are. Returns its index, or -errno:
 * -ECANCELED nothing was picked; -ENOMEM.
 */
int picker__pick(const char *what, const char *const *lines, size_t n);

#endif
