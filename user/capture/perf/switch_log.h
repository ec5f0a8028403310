/* SPDX-License-Identifier: MIT */
/* Who ran on each CPU, as far back as its ring of Intel PT holds. */
#ifndef MTBPF_CAPTURE_PERF_SWITCH_LOG_H
#define MTBPF_CAPTURE_PERF_SWITCH_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/recording/recording.h"

struct cpu_switches {
	int cpu;
	VEC(struct rec_switch) list; /* ascending by time */
	uint64_t last_ns;	     /* of the latest, or the start */
	/* Bytes of trace: at least so many were written, up to where in the ring, ... */
	uint64_t written, head;
	/* ... and so many at that time: once a ring more is written, nothing older is left. */
	uint64_t mark_written, mark_ns;
};

struct switch_log {
	VEC(struct cpu_switches) cpus;
	uint64_t ring_size; /* bytes of a CPU's ring, whose size is a power of two */
	uint64_t start_ns;  /* when recording began */
};

void switch_log__fini(struct switch_log *log);

/* Of one CPU they come in the order of time. Each 0 or -ENOMEM. */

/* pid and tid run, which counts where nothing else has been said of the CPU. */
int switch_log__began(struct switch_log *log, int cpu, uint64_t time_ns, pid_t pid, pid_t tid);
/* pid and tid run from now on; 0 and 0: none of those that are recorded. */
int switch_log__on(struct switch_log *log, int cpu, uint64_t time_ns, pid_t pid, pid_t tid);
/* They have run up to now: what nothing has said where the recording began meanwhile. */
int switch_log__off(struct switch_log *log, int cpu, uint64_t time_ns, pid_t pid, pid_t tid);
/* Records are missing between the CPU's last one and this: nobody is known to have run. */
int switch_log__lost(struct switch_log *log, int cpu, uint64_t time_ns);
/* The trace has got to `head` in the CPU's ring; what lies before what is there is forgotten. */
int switch_log__traced(struct switch_log *log, int cpu, uint64_t time_ns, uint64_t head);

/* True where the process is among them. */
bool switch_log__has(const struct switch_log *log, pid_t pid);
/* Adds those of all CPUs, by time. 0 or -ENOMEM. */
int switch_log__add_to(const struct switch_log *log, struct recording *rec);

#endif
