/* SPDX-License-Identifier: MIT */
/*
 * perf(1) as a second judge: `perf script` decodes the same recordings, and `perf trace` counts the
 * programs' system calls while they are recorded.
 */
#ifndef MTBPF_SELFTEST_PERF_H
#define MTBPF_SELFTEST_PERF_H

#include <limits.h>
#include <sys/types.h>

#include "pipeline/pipeline.h"

/* Calls of the programs' functions in one recording. */
struct perf_calls {
	unsigned int perfs;  /* calls that `perf script` finds */
	unsigned int ours;   /* calls in the trace */
	unsigned int errors; /* errors that perf reports */
};

/* 0; -ENOENT: perf is not installed; -EIO: it has found nothing; another -errno. */
int perf_script__count(const struct decoded *decoded, const char *recording,
		       struct perf_calls *calls);

/* A running `perf trace` of getppid() and nanosleep(). */
struct perf_trace {
	pid_t pid; /* 0: it does not run */
	char path[PATH_MAX];
};

/* Iterations that it saw from begin to end (nanosleep() ends them), and the calls of getppid(). */
struct perf_syscalls {
	unsigned int iterations, calls;
	unsigned int lost; /* number of lost events that it reports */
};

/*
 * Starts `perf trace` on a process and waits, at most ten seconds, until it has seen getppid(). Its
 * output is kept in this folder, in a file that perf_trace__end() removes. 0; -ENOENT: perf is not
 * installed; -EIO: it sees nothing; another -errno. Call perf_trace__end() in any case.
 */
int perf_trace__begin(struct perf_trace *trace, pid_t target, const char *dir);
/* Ends `perf trace`, and counts the calls that it printed. */
void perf_trace__end(struct perf_trace *trace, struct perf_syscalls *syscalls);

#endif
