/* SPDX-License-Identifier: MIT */
/* The reader of a perf.data file, and the samples in it; perf_data_read.c reads the rest. */
#ifndef MTBPF_CAPTURE_RECORDING_PERF_DATA_SAMPLES_H
#define MTBPF_CAPTURE_RECORDING_PERF_DATA_SAMPLES_H

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <string.h>

#include "capture/recording/perf_data.h"
#include "util/vec.h"

/* One event of the file: how its records are laid out. */
struct perf_reader_event {
	uint32_t type;
	uint64_t config, sample_type, regs_user;
	uint64_t own;	    /* of BPF output: enum perf_own_data */
	uint64_t period_ns; /* of an event that samples by a clock or at a rate; otherwise 0 */
	uint64_t period;    /* attr.sample_period; 0: at a rate (attr.freq) */
	uint64_t id;
	bool exclude_user;
};

/* A stream of PT bytes, which may continue in a later record. */
struct perf_reader_stream {
	pid_t tid;
	int cpu;
	size_t aux;   /* index in the recording's aux */
	uint64_t end; /* offset of the end in the stream */
};

/* A context switch. The file has them in the order of buffers, not of time. */
struct perf_reader_switch {
	struct rec_switch sw;
	size_t order; /* position in the file */
};

struct perf_reader {
	struct recording *rec;
	const uint8_t *data;
	size_t size;
	const char *why;
	VEC(struct perf_reader_event) events;
	VEC(struct perf_reader_stream) streams;
	VEC(struct perf_reader_switch) switches;
	bool have_info; /* Intel PT's AUXTRACE_INFO has been read */
	bool by_cpu;	/* one buffer per CPU; switches tell which thread ran */
};

/* The bytes of a record that are still to be read. */
struct cursor {
	const uint8_t *at, *end;
	bool failed;
};

/*
 * Copies the next n bytes to out. If there are fewer, fills out with zeroes and marks the cursor as
 * failed.
 */
static inline void cursor__take(struct cursor *c, void *out, size_t n)
{
	if ((size_t)(c->end - c->at) < n) {
		c->failed = true;
		memset(out, 0, n);
		return;
	}
	memcpy(out, c->at, n);
	c->at += n;
}

static inline uint32_t take_u32(struct cursor *c)
{
	uint32_t value;

	cursor__take(c, &value, sizeof(value));
	return value;
}

static inline uint64_t take_u64(struct cursor *c)
{
	uint64_t value;

	cursor__take(c, &value, sizeof(value));
	return value;
}

/* Returns the next n bytes as a cursor of their own, and skips them. */
static inline struct cursor take_part(struct cursor *c, uint64_t n)
{
	struct cursor part = {.at = c->at, .end = c->at};

	if (n > (uint64_t)(c->end - c->at)) {
		c->failed = part.failed = true;
		return part;
	}
	c->at += n;
	part.end = c->at;
	return part;
}

/* Sets the reason, and returns -EINVAL. */
static inline int damaged(struct perf_reader *r, const char *why)
{
	r->why = why;
	return -EINVAL;
}

/*
 * The event of a record, by the id at its end, or at the start of a sample. If the id is unknown,
 * the first event.
 */
const struct perf_reader_event *perf_reader__find_event(const struct perf_reader *r, uint64_t id);

/*
 * Adds a PERF_RECORD_SAMPLE to the recording: mtbpf's own raw data (a hit, an entry, a wake-up), or
 * a stack if the event has call chains. Ignores others. 0 or -errno, with r->why.
 */
int perf_reader__sample(struct perf_reader *r, const struct perf_event_header *header,
			struct cursor *c);

#endif
