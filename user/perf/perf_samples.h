/* SPDX-License-Identifier: MIT */
/*
 * Makes a recording of the samples that `perf script` prints: stacks (`perf record -g`), or one
 * place each, and context switches. The recording's code has the names that the text has.
 */
#ifndef MTBPF_PERF_PERF_SAMPLES_H
#define MTBPF_PERF_PERF_SAMPLES_H

#include "capture/recording/recording.h"
#include "perf/perf_line.h"
#include "target/symbols/named_image.h"

struct perf_samples;

/* without_inlined: frames that perf marks as inlined are left out. NULL: out of memory. */
struct perf_samples *perf_samples__new(bool without_inlined);
void perf_samples__free(struct perf_samples *samples);

/* Takes the line of a sample or a switch. Returns 1 if the line was used, 0 if not, or -ENOMEM. */
int perf_samples__take(struct perf_samples *samples, enum perf_line_kind kind,
		       const struct perf_line *line, struct perf_span text);

struct perf_samples_totals {
	uint64_t samples, ins, outs; /* samples; switches onto a CPU, and off a CPU */
	uint64_t without;	     /* events that have neither a stack nor a place */
	uint64_t left_out;	     /* lines of threads beyond the maximum */
	bool has_pids;		     /* false: each thread counts as its own process */
};

const struct perf_samples_totals *perf_samples__totals(const struct perf_samples *samples);

/*
 * Call this at the end of the text. Moves what was read to rec, which must be empty, and the code
 * to *image, which the caller then owns. Addresses in the recording are made up, as *image has
 * them, since perf prints file offsets. 0 or -ENOMEM.
 */
int perf_samples__finish(struct perf_samples *samples, struct recording *rec,
			 struct named_image **image);

#endif
