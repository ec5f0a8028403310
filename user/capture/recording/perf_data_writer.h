/* SPDX-License-Identifier: MIT */
/* Between the files that write perf.data. */
#ifndef MTBPF_CAPTURE_RECORDING_PERF_DATA_WRITER_H
#define MTBPF_CAPTURE_RECORDING_PERF_DATA_WRITER_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "capture/recording/perf_data.h"
#include "util/vec.h"

/* No PMU of this number need exist: perf only matches it with AUXTRACE_INFO's. */
#define PMU_TYPE_INTEL_PT 8

enum event_index {
	EVENT_PT,
	EVENT_SIDEBAND,
	EVENT_HIT,
	EVENT_ENTRY,	/* of a source that samples, as the next ones */
	EVENT_BY,	/* who woke, and who replaced, a thread */
	EVENT_CLOCK,	/* stacks by the clock; and switches, as records */
	EVENT_SWITCHES, /* stacks at switches */
	EVENT_MINOR_FAULTS,
	EVENT_MAJOR_FAULTS,
	EVENT_COUNT,
};

/* Ids are any numbers that differ. */
extern const uint64_t perf_event_ids[EVENT_COUNT];

struct perf_writer {
	FILE *out;
	const struct recording *rec;
	bool by_cpu;		   /* what is of a CPU says of which */
	bool sampled;		   /* there is no PT in it */
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

/* Who has it, when, and where; of which of our events. */
struct sample_id_fields {
	pid_t pid, tid;
	uint64_t time_ns;
	int cpu;
	enum event_index event;
};

/* What follows every record but samples, and its size: TID, TIME, CPU, IDENTIFIER. */
void perf_writer__put_sample_id(struct perf_writer *w, const struct sample_id_fields *id);
size_t perf_writer__sample_id_size(const struct perf_writer *w);

/* Samples, switches and entries of a source that samples. */
void perf_writer__put_samples(struct perf_writer *w);
/* A hit: a sample, which carries struct mt_hit and, where there is one, the copy of the stack. */
void perf_writer__put_hit(struct perf_writer *w, const struct mt_hit *hit);
/* Registers and a copy of the stack at a sample's end, their size, and the event that has them. */
void perf_writer__put_user(struct perf_writer *w, const struct rec_user *user);
size_t perf_writer__user_size(const struct rec_user *user);
void perf_writer__describe_user(struct perf_event_attr *attr, uint32_t stack_size);
/* What its event samples. */
void perf_writer__describe_hits(const struct perf_writer *w, struct perf_event_attr *attr);

/* All records: the data section. */
void perf_writer__put_records(struct perf_writer *w);

#endif
