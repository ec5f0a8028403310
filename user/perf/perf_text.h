/* SPDX-License-Identifier: MIT */
/*
 * Reads the text of `perf script`, of any version, as a stream: of branches (--itrace=b) only one
 * piece is in memory at a time; of samples all stacks are.
 */
#ifndef MTBPF_PERF_PERF_TEXT_H
#define MTBPF_PERF_PERF_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "perf/perf_samples.h"
#include "perf/perf_threads.h"

struct meter;

struct perf_text_totals {
	uint64_t lines, bytes;
	uint64_t other;		/* lines that are neither branches nor of samples */
	uint64_t sampled;	/* lines of samples and switches */
	uint64_t too_long;	/* lines that were left out */
	uint64_t unknown_flags; /* branches with words that mean nothing to us, or with none */
	uint64_t not_taken;	/* branches that went nowhere */
	uint64_t left_out;	/* branches of threads too many */
};

/*
 * True if the file may be such text, judged by its beginning (which can still be read): it is not a
 * recording and contains no NUL. Always true for a pipe.
 */
bool perf_text__may_be(int fd);

/* The receivers of the parsed lines. */
struct perf_text {
	struct perf_threads *threads; /* branches */
	struct perf_samples *samples; /* samples, until the first branch */
	struct perf_text_totals totals;
};

/*
 * From fd to its end. The meter, or NULL, counts its bytes. 0; -errno of reading; -ENOMEM; or what
 * the threads' tap returned.
 */
int perf_text__read(struct perf_text *to, int fd, struct meter *meter);

/* Takes a piece: whole lines, or the rest at the end. For tests. */
int perf_text__take(struct perf_text *to, const char *text, size_t len);

#endif
