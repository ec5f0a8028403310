/* SPDX-License-Identifier: MIT */
/* The state of the sample source. */
#ifndef MTBPF_CAPTURE_SAMPLE_SAMPLE_SOURCE_H
#define MTBPF_CAPTURE_SAMPLE_SAMPLE_SOURCE_H

#include <stdbool.h>

#include "capture/perf/followed.h"
#include "capture/sample/sample_ring.h"
#include "capture/source.h"

struct source {
	struct followed followed;
	struct source_config config;
	struct sample_ring_config ring_config;
	uint64_t start_ns;
	uint64_t rate_ns;    /* when the current period was set */
	uint64_t longest_ns; /* the longest period set for this recording */
	uint64_t look_ns;    /* when the threads' allowed CPUs were last checked */
};

static inline struct sample_ring *ring_at(const struct source *s, size_t i)
{
	return (struct sample_ring *)s->followed.rings.v[i];
}

/* True: one ring per CPU. False: one per thread. */
static inline bool sample_source__is_by_cpu(const struct source *s)
{
	return s->config.cgroup || s->config.sample_by_cpu;
}

#endif
