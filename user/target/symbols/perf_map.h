/* SPDX-License-Identifier: MIT */
/* The names a process gives its JIT code: /tmp/perf-PID.map, "START SIZE NAME" a line, in hex. */
#ifndef MTBPF_TARGET_SYMBOLS_PERF_MAP_H
#define MTBPF_TARGET_SYMBOLS_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct perf_map_entry {
	uint64_t start, size; /* never 0, no wrap-around */
	const char *name;     /* points into the text; name_len characters */
	size_t name_len;
};

/*
 * The text of the process's map: as it has it in its own mount and pid namespace, else ours. Only a
 * regular file of the process's user, or root's, counts. NULL: there is none, or, after a line on
 * stderr, it has more than `most` bytes. Freed by the caller.
 */
char *perf_map__read(pid_t pid, size_t most);

/* Whether there is one, to be believed as above. */
bool perf_map__exists(pid_t pid);

/*
 * Takes the text apart: entries ascending and disjoint. Of two that overlap the later line is
 * right: its code was written where the other's had been. Lines that are none are left out.
 * *entries is freed by the caller. 0 or -ENOMEM.
 */
int perf_map__parse(const char *text, struct perf_map_entry **entries, size_t *n);

#endif
