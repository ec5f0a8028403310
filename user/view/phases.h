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
/* Ends the current phase and names it. Phases beyond PHASES_MAX are dropped. */
void phases__end(struct phases *phases, const char *name);
/* "took 12.9 s: capturing 12.3 s, decoding 512 ms, writing the trace 83.0 ms" */
void phases__say(const struct phases *phases);

/* Prints "next: sudo build/mtbpf view 'a b.fxt.gz'", quoted for the shell. */
void next_step__say(const char *command, const char *file);

/*
 * The message for stop__begin() (util/signals.h) in a decoding: that the output is missing, and the
 * command that still makes it, unless `recording` is NULL. The caller frees it; NULL: no memory.
 */
char *stopped__format(const char *recording, const char *output);

#endif
