/* SPDX-License-Identifier: MIT */
/* The names of kept recordings: NAME-2026-11-21T10:00:00.123Z.mtbpf, in UTC. */
#ifndef MTBPF_KEEP_STAMP_H
#define MTBPF_KEEP_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Milliseconds since 1970. */
uint64_t stamp__now_ms(void);

/* Formats a name; other characters of `process` than letters, digits, '-' and '.' become '_'. 0 or
 * -ENAMETOOLONG. */
int stamp__name(char *buf, size_t size, const char *process, uint64_t unix_ms);

/* True if the file has such a name; sets its time. */
bool stamp__parse(const char *file, uint64_t *unix_ms);

#endif
