/* SPDX-License-Identifier: MIT */
/* The names of kept recordings: NAME-2026-11-21T10:00:00.123Z.mtbpf, in UTC. */
#ifndef MTBPF_KEEP_STAMP_H
#define MTBPF_KEEP_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Milliseconds since 1970. */
uint64_t stamp__now_ms(void);

/* 0, or -ENAMETOOLONG; of the process's name, what is no letter, digit or '-', '.' becomes '_'. */
int stamp__name(char *buf, size_t size, const char *process, uint64_t unix_ms);

/* Whether a file's name is such a one, and of when. */
bool stamp__parse(const char *file, uint64_t *unix_ms);

#endif
