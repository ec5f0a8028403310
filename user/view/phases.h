/* SPDX-License-Identifier: MIT */
/* A command's last lines: how long it took, and what to type next. */
#ifndef MTBPF_VIEW_PHASES_H
#define MTBPF_VIEW_PHASES_H

#include <stddef.h>
#include <stdint.h>

#define PHASES_MAX 8

/* A command's phases and their times. Zero-initialise. */
struct phases {
	uint64_t began_ns; /* start of the current phase */
	size_t n;
	struct {
		const char *name; /* "decoding" */
		uint64_t ns;
	} v[PHASES_MAX];
};

void phases__begin(struct phases *phases);
/*
 * Ends the current phase, names it, and begins the next one. `name` is not copied. Phases beyond
 * PHASES_MAX are dropped.
 */
void phases__end(struct phases *phases, const char *name);
/* "took 12.9 s: capturing 12.3 s, decoding 512 ms, writing the trace 83.0 ms" */
void phases__say(const struct phases *phases);

/* Prints "next: sudo build/mtbpf view 'a b.fxt.gz'", quoted for the shell. */
void next_step__say(const char *command, const char *file);

/*
 * Returns the message that stop__begin() (util/signals.h) prints if a signal ends the decoding:
 * that the output is missing and, if `recording` is not NULL, the command that makes it. The caller
 * frees the message; NULL: no memory.
 */
char *stopped__format(const char *recording, const char *output);

#endif
