/* SPDX-License-Identifier: MIT */
/* Between the files that read perf.data: what is known of the file, and a record's bytes. */
#ifndef MTBPF_CAPTURE_RECORDING_PERF_DATA_INTERNAL_H
#define MTBPF_CAPTURE_RECORDING_PERF_DATA_INTERNAL_H

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "capture/recording/perf_data.h"
#include "util/vec.h"

/* One event of the file: how its records are laid out. */
struct perf_reader_event {
	uint32_t type;
	uint64_t config, sample_type, regs_user;
	uint64_t own;	    /* of BPF output: enum perf_own_data */
	uint64_t period_ns; /* of an event that samples by a clock; else 0 */
	uint64_t period;    /* attr.sample_period */
	uint64_t id;
	bool exclude_user;
};

/* PT bytes so far, whose stream may go on in a later record. */
struct perf_reader_stream {
	pid_t tid;
	int cpu;
	size_t aux;   /* of the recording's */
	uint64_t end; /* the offset in the stream behind them */
};

/* They come in the order of buffers, not of time. */
struct perf_reader_switch {
	struct rec_switch sw;
	size_t order; /* in the file */
};

struct perf_reader {
	struct recording *rec;
	const uint8_t *data;
	size_t size;
	const char *why;
	VEC(struct perf_reader_event) events;
	VEC(struct perf_reader_stream) streams;
	VEC(struct perf_reader_switch) switches;
	bool have_info; /* Intel PT's AUXTRACE_INFO was there */
	bool by_cpu;	/* its buffers are of CPUs, and switches tell who ran there */
};

/* A record's bytes still to be read. */
struct cursor {
	const uint8_t *at, *end;
	bool failed;
};

static inline void take(struct cursor *c, void *out, size_t n)
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

	take(c, &value, sizeof(value));
	return value;
}

static inline uint64_t take_u64(struct cursor *c)
{
	uint64_t value;

	take(c, &value, sizeof(value));
	return value;
}

/* A NUL-terminated string inside the record; NULL where there is none. */
static inline const char *take_string(struct cursor *c)
{
	const uint8_t *nul = memchr(c->at, 0, (size_t)(c->end - c->at));
	const char *text = (const char *)c->at;

	if (!nul) {
		c->failed = true;
		return NULL;
	}
	c->at = nul + 1;
	return text;
}

static inline int damaged(struct perf_reader *r, const char *why)
{
	r->why = why;
	return -EINVAL;
}

/* What the kernel put at a record's end: whose it is, when and where. Zeroes where it did not. */
struct sample_id {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu;
	bool has_cpu;
};

/* PERF_SAMPLE_REGS_USER and PERF_SAMPLE_STACK_USER, whose bytes stay the record's. */
void perf_reader__take_user(const struct perf_reader_event *event, struct cursor *c,
			    struct rec_user *user);

/* Those of the kernel. 0 or -errno, with r->why; of other types: nothing. */
int perf_reader__kernel_record(struct perf_reader *r, const struct perf_event_header *header,
			       struct cursor *c);
/* A sample of this event: a hit, if it is one of our own. 0 or -errno, with r->why. */
int perf_reader__sample(struct perf_reader *r, const struct perf_reader_event *event,
			struct cursor *c);
/* Orders what came in the order of buffers. 0 or -ENOMEM. */
int perf_reader__finish_switches(struct perf_reader *r);

/* What a sample is of, by the id that it begins with. */
const struct perf_reader_event *perf_reader__find_event(const struct perf_reader *r, uint64_t id);
/* A stack, of an event that has call chains; others are nothing. 0 or -errno, with r->why. */
int perf_reader__stack(struct perf_reader *r, const struct perf_event_header *header,
		       struct cursor *c);
/* Raw data of ours but hits: enum perf_own_data. 0 or -errno, with r->why. */
int perf_reader__own(struct perf_reader *r, struct cursor *c, uint64_t own);
/* What the scheduler did with a thread. 0 or -ENOMEM. */
int perf_reader__sched(struct perf_reader *r, const struct perf_event_header *header,
		       const struct sample_id *id);

/* Those of Intel PT. 0 or -errno, with r->why. */
int perf_reader__auxtrace_info(struct perf_reader *r, struct cursor *c);
/* The PT bytes follow the record, of which `left` are there; *size is set to how many. */
int perf_reader__auxtrace(struct perf_reader *r, struct cursor *c, const uint8_t *data,
			  uint64_t left, uint64_t *size);

#endif
