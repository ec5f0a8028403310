/* SPDX-License-Identifier: MIT */
/* A ring of Intel PT of one thread or CPU: its events, their buffers, and how a hit freezes it. */
#ifndef MTBPF_CAPTURE_PT_PT_RING_H
#define MTBPF_CAPTURE_PT_PT_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/perf/followed.h"
#include "capture/perf/perf_ring.h"
#include "capture/probe/uprobe_event.h"
#include "capture/pt/pmu.h"
#include "capture/recording/recording.h"
#include "util/vec.h"

/* The freeze methods, best first. */
enum pt_freeze {
	PT_FREEZE_PAUSE,   /* aux_pause on the gated uprobe event: inside the probe's handler */
	PT_FREEZE_REFRESH, /* the gated event leads the group and is limited to one: irq_work */
	PT_FREEZE_DISABLE, /* by user space, which the BPF ring buffer wakes */
};

const char *pt_freeze__name(enum pt_freeze freeze);

/* The descriptors and mappings of one ring with one probe. */
#define PT_RING_FDS	 3
#define PT_RING_MAPPINGS 3

struct pt_ring_config {
	uint32_t pmu_type;
	uint64_t pt_config;
	size_t aux_size;
	enum pt_freeze freeze;
	bool kernel;			  /* also trace the kernel's code */
	bool kernel_only;		  /* trace only the kernel's code */
	bool from_exec;			  /* record from the process's execve on, not before */
	bool start_paused;		  /* trace only between probes that start and stop */
	const struct uprobe_spec *probes; /* none: nothing triggers */
	size_t n_probes;
	const uint32_t *tracepoints; /* id per probe, see uprobe_group; NULL: not shared */
	const char *spool_dir;	     /* drain the ring to a file there; NULL: overwrite the ring */
	bool by_cpu;		     /* records switches; needs larger buffers */
};

struct pt_ring {
	struct followed_ring of;
	int pt;		 /* the intel_pt event */
	VEC(int) probes; /* the gated uprobe events in its group */
	struct perf_ring ring;
	struct spool spool; /* if the ring is drained */
};

/*
 * Opens all events at a place, disabled, and maps their buffers. 0, or -errno: -ESRCH: the thread
 * has ended; -EINVAL, -EOPNOTSUPP: the kernel lacks PT_FREEZE_PAUSE, or PT_FREEZE_REFRESH cannot
 * have several probes; -EBUSY: Intel PT is in use; -EPERM: locked memory; -ENODEV: the CPU is
 * offline; -ENOENT: the cgroup lacks the perf_event controller. Prints nothing.
 */
int pt_ring__open(struct pt_ring *ring, const struct event_place *place,
		  const struct pt_ring_config *config);
void pt_ring__close(struct pt_ring *ring);

/* The locked memory that the buffers need, with an AUX area of this size. */
size_t pt_ring__locked_size(size_t aux_size, bool by_cpu);

/* Begins recording. 0 or -errno. */
int pt_ring__enable(struct pt_ring *ring, const struct pt_ring_config *config);
/* Ends recording; the AUX head is final then. */
void pt_ring__disable(struct pt_ring *ring);

/*
 * Writes the new data to the ring's spool, if it has one. Call it again before a running ring is
 * full: the kernel stops a full ring, and this call resumes it.
 */
void pt_ring__drain(struct pt_ring *ring, bool runs);

/*
 * Reads how long the recorded threads were on a CPU, and how much of that was recorded: less if the
 * PMU was used otherwise (the kernel's multiplexing). 0 or -EIO.
 */
int pt_ring__times(const struct pt_ring *ring, uint64_t *enabled_ns, uint64_t *running_ns);

/*
 * The following functions try Intel PT on this process. They take milliseconds, and leave nothing
 * open.
 */

/*
 * Opens and closes an Intel PT event on this thread, for user code or also for the kernel. 0 or
 * -errno: -EACCES, -EPERM: not allowed; -EBUSY: another event records one of the CPUs; -EOPNOTSUPP:
 * the PMU records user code only. Prints nothing.
 */
int pt_probe__open(const struct pt_pmu *pmu, bool kernel);

/*
 * Records this thread during one hit of mtbpf's own probe, and checks that the trace ended there
 * (PT_FREEZE_DISABLE: that there is a trace). 0 if it did; -ENODATA: the kernel accepted the
 * events, but the trace went on (PT_FREEZE_DISABLE: is empty); or the error of pt_ring__open().
 * Prints an error only if the kernel lacks uprobe events.
 */
int pt_probe__freeze(const struct pt_pmu *pmu, enum pt_freeze freeze);

#endif
