/* SPDX-License-Identifier: MIT */
/* Times and depths, which every output of a call tree treats alike. */
#ifndef MTBPF_TRACE_TIMELINE_H
#define MTBPF_TRACE_TIMELINE_H

#include <stdint.h>

/*
 * Perfetto's importer has this many levels (slice_tracker.cc: kMaxDepth). It drops deeper begins
 * without a message, and their ends then close the wrong slices.
 */
#define TIMELINE_MAX_DEPTH 512

/* Relative to base_ns, within 0..INT64_MAX, since importers read times as signed numbers. */
static inline uint64_t timeline__relative(uint64_t base_ns, uint64_t time_ns)
{
	uint64_t relative = time_ns > base_ns ? time_ns - base_ns : 0;

	return relative < INT64_MAX ? relative : INT64_MAX;
}

#endif
