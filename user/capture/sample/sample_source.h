/* SPDX-License-Identifier: MIT */
/* Between the sample source's files: its state, and what it makes of it. */
#ifndef MTBPF_CAPTURE_SAMPLE_SAMPLE_SOURCE_H
#define MTBPF_CAPTURE_SAMPLE_SAMPLE_SOURCE_H

#include <stdbool.h>

#include "capture/perf/followed.h"
#include "capture/sample/sample_ring.h"
#include "capture/source.h"

struct source {
	struct source_config config;
	struct sample_ring_config ring_config;
	VEC(struct sample_ring) rings; /* a thread's each */
	struct followed followed;
	uint64_t start_ns;
	uint64_t longest_ns; /* of the periods that were sampled by */
	bool frozen;
};

/* source_ops.read */
int sample_source__read(struct source *s, struct recording *rec);

#endif
