/* SPDX-License-Identifier: MIT */
/* A second judge: how many calls of the programs' functions `perf script` finds in a recording. */
#ifndef MTBPF_SELFTEST_PERF_JUDGE_H
#define MTBPF_SELFTEST_PERF_JUDGE_H

#include "pipeline/pipeline.h"

struct perf_calls {
	unsigned int perfs;  /* calls that perf finds */
	unsigned int ours;   /* calls in the trace */
	unsigned int errors; /* that perf reports */
};

/* 0; -ENOENT: perf is not installed, or reads no Intel PT; another -errno. */
int perf_judge__count(const struct decoded *decoded, const char *recording,
		      struct perf_calls *calls);

#endif
