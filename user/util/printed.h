/* SPDX-License-Identifier: MIT */
/* Makes text of what -print has read at a hit. The target's strings may have any bytes. */
#ifndef MTBPF_UTIL_PRINTED_H
#define MTBPF_UTIL_PRINTED_H

#include "mtbpf_shared.h"

/* Each byte of a string may become \xNN; in quotes, and followed by dots. */
#define PRINTED_SIZE (4 * MT_TEXT_MAX + 8)

/*
 * Returns buf: a number, "unknown", or a string in double quotes, followed by "..." if it is
 * longer. It is well-formed UTF-8; control characters, those that change the direction of text,
 * ill-formed bytes, quotes and backslashes are escaped as in C: \n, \", \x1b.
 */
const char *printed__format(char buf[static PRINTED_SIZE], const struct mt_printed *printed);

#endif
