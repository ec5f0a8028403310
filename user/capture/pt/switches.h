/* SPDX-License-Identifier: MIT */
/* Who ran on each CPU, as far back as its ring of Intel PT holds. */
#ifndef MTBPF_CAPTURE_PT_SWITCHES_H
#define MTBPF_CAPTURE_PT_SWITCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/recording.h"

struct cpu_switches {
	int cpu;
	VEC(struct rec_switch) list; /* ascending by time */
	uint64_t last_ns;	     /* of the latest, or the start */
	/* Bytes of trace: at least so many were written, up to where in the ring, ... */
	uint64_t written, head;
	/* ... and so many at that time: once a ring more is written, nothing older is left. */
	uint64_t mark_written, mark_ns;
};

struct switches {
	VEC(struct cpu_switches) cpus;
	uint64_t ring_size; /* bytes of a CPU's ring, whose size is a power of two */
	uint64_t start_ns;  /* when recording began */
};

void switches__fini(struct switches *switches);

/* Of one CPU they come in the order of time. Each 0 or -ENOMEM. */

/* pid and tid run, which counts where nothing else has been said of the CPU. */
int switches__began(struct switches *switches, int cpu, uint64_t time_ns, pid_t pid, pid_t tid);
/* pid and tid run from now on; 0 and 0: none of those that are recorded. */
int switches__on(struct switches *switches, int cpu, uint64_t time_ns, pid_t pid, pid_t tid);
/* They have run up to now: what nothing has said where the recording began meanwhile. */
int switches__off(struct switches *switches, int cpu, uint64_t time_ns, pid_t pid, pid_t tid);
/* Records are missing between the CPU's last one and this: nobody is known to have run. */
int switches__lost(struct switches *switches, int cpu, uint64_t time_ns);
/* The trace has got to `head` in the CPU's ring; what lies before what is there is forgotten. */
int switches__traced(struct switches *switches, int cpu, uint64_t time_ns, uint64_t head);

/* True where the process is among them. */
bool switches__has(const struct switches *switches, pid_t pid);
/* Adds those of all CPUs, by time. 0 or -ENOMEM. */
int switches__add_to(const struct switches *switches, struct recording *rec);

#endif
