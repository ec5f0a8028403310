/* SPDX-License-Identifier: MIT */
/* What is said where a snapshot holds nothing. */
#ifndef MTBPF_SESSION_NOTHING_H
#define MTBPF_SESSION_NOTHING_H

#include <stddef.h>
#include <sys/types.h>

#include "capture/recording/recording.h"

#define NOTHING_TEXT_SIZE 160

/* "nothing was recorded: ...", of that process, or, 0, of several. The text. */
char *nothing__format(char text[static NOTHING_TEXT_SIZE], const struct recording *rec, pid_t pid);

/* The same as an error, with a hint. -ENOMSG. */
int nothing__refuse(const struct recording *rec, pid_t pid);

#endif
