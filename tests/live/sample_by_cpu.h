/* SPDX-License-Identifier: MIT */
/* Opens samples of one process with one clock per CPU, for tests of the recorder's counters. */
#ifndef MTBPF_SAMPLE_BY_CPU_H
#define MTBPF_SAMPLE_BY_CPU_H

#include "capture/sample/sample_source.h"
#include "trigger/recorder.h"

#define LOG_SIZE (64u << 10)

/* Starts sampling at `rate` Hz, with logs of LOG_SIZE as the recorder must have them, too. */
static struct source *start_samples(const struct recorder *recorder, pid_t pid, unsigned int rate)
{
	struct source *source = source_sample.open(
		&(struct source_config){.pid = pid,
					.snapshot_size = 1 << 20,
					.max_memory = 256 << 20,
					.sample_rate = rate,
					.sample_gate = recorder__gate(recorder),
					.sample_switch_gate = recorder__switch_gate(recorder),
					.sample_by_cpu = true,
					.sample_log = LOG_SIZE,
					.is_silent = true,
					.freeze_fd = -1});

	assert_non_null(source);
	assert_int_equal(source_sample.start(source), 0);
	return source;
}

#endif
