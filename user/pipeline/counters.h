/* SPDX-License-Identifier: MIT */
/* Counters beside the calls of a trace: CPUs' clock rates, and threads' instructions per cycle. */
#ifndef MTBPF_PIPELINE_COUNTERS_H
#define MTBPF_PIPELINE_COUNTERS_H

#include <sys/types.h>

#include "capture/recording/recording.h"
#include "decode/filter.h"
#include "decode/speed.h"
#include "trace/trace_writer.h"
#include "util/vec.h"

struct thread_speed {
	pid_t pid, tid;
	struct speed speed;
};

/* The counters; zero-initialise. */
struct counters {
	VEC(struct thread_speed) speeds; /* by thread, then by time */
};

void counters__fini(struct counters *counters);

/* 0 or -ENOMEM. */
int counters__add(struct counters *counters, pid_t pid, pid_t tid, const struct speed *speed);
/*
 * Writes the counters; none if the recording lacks the speed of its CPUs, and with a filter only
 * those of its times. 0 or -ENOMEM.
 */
int counters__write(const struct counters *counters, const struct recording *rec,
		    const struct decode_filter *filter, struct trace_writer *writer);

#endif
