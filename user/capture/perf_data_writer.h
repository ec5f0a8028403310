/* SPDX-License-Identifier: MIT */
/* Between the files that write perf.data. */
#ifndef MTBPF_CAPTURE_PERF_DATA_WRITER_H
#define MTBPF_CAPTURE_PERF_DATA_WRITER_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "capture/perf_data.h"
#include "util/vec.h"

/* No PMU of this number need exist: perf only matches it with AUXTRACE_INFO's. */
#define PMU_TYPE_INTEL_PT 8

enum event_index { EVENT_PT, EVENT_SIDEBAND, EVENT_HIT, EVENT_COUNT };

/* Ids are any numbers that differ. */
extern const uint64_t perf_event_ids[EVENT_COUNT];

struct perf_writer {
	FILE *out;
	const struct recording *rec;
	bool by_cpu;		   /* what is of a CPU says of which */
	VEC(uint64_t) aux_offsets; /* file offsets of the AUXTRACE records */
};

static inline void put(struct perf_writer *w, const void *data, size_t len)
{
	fwrite(data, 1, len, w->out);
}

static inline void put_u32(struct perf_writer *w, uint32_t value)
{
	put(w, &value, sizeof(value));
}

static inline void put_u64(struct perf_writer *w, uint64_t value)
{
	put(w, &value, sizeof(value));
}

static inline void put_zeroes(struct perf_writer *w, size_t n)
{
	static const char zeroes[64];

	put(w, zeroes, n);
}

static inline size_t padding(size_t len, size_t to)
{
	return (to - len % to) % to;
}

static inline void put_header(struct perf_writer *w, uint32_t type, uint16_t misc, size_t body)
{
	struct perf_event_header header = {
		.type = type,
		.misc = misc,
		.size = (uint16_t)(sizeof(header) + body),
	};

	put(w, &header, sizeof(header));
}

/* A hit: a sample, which carries struct mt_hit and, where there is one, the copy of the stack. */
void perf_writer__put_hit(struct perf_writer *w, const struct mt_hit *hit);
/* What its event samples. */
void perf_writer__describe_hits(const struct perf_writer *w, struct perf_event_attr *attr);

/* All records: the data section. */
void perf_writer__put_records(struct perf_writer *w);

#endif
