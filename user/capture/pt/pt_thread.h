/* SPDX-License-Identifier: MIT */
/* One thread under Intel PT: its events, their buffers, and how a hit freezes it. */
#ifndef MTBPF_CAPTURE_PT_PT_THREAD_H
#define MTBPF_CAPTURE_PT_PT_THREAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/pt/perf_ring.h"
#include "capture/uprobe_event.h"

/* Best first. */
enum pt_freeze {
	PT_FREEZE_PAUSE,   /* aux_pause on the gated uprobe event: inside the probe's handler */
	PT_FREEZE_REFRESH, /* the gated event leads the group and is limited to one: irq_work */
	PT_FREEZE_DISABLE, /* user space, woken by the BPF ring buffer */
};

const char *pt_freeze__name(enum pt_freeze freeze);

struct pt_thread_config {
	uint32_t pmu_type;
	uint64_t pt_config;
	size_t aux_size;
	enum pt_freeze freeze;
	bool kernel;			 /* the kernel's code as well */
	bool from_exec;			 /* record from the process's execve on, not before */
	const struct uprobe_spec *probe; /* NULL: nothing triggers */
	uint32_t tracepoint;		 /* see uprobe_group; 0 for a probe of its own */
};

struct pt_thread {
	pid_t tid;
	int pt;	      /* the intel_pt event */
	int probe;    /* the gated uprobe event in its group; -1: none */
	int sideband; /* a dummy event of its own: it outlives the freeze */
	struct perf_ring ring, sideband_ring;
	bool ended;
};

/*
 * Opens all events of a thread, disabled, and maps their buffers. 0, or -errno: -ESRCH the thread
 * is gone; -EINVAL, -EOPNOTSUPP for PT_FREEZE_PAUSE: not on this kernel; -EBUSY Intel PT is in use;
 * -EPERM locked memory. Prints nothing.
 */
int pt_thread__open(struct pt_thread *thread, pid_t tid, const struct pt_thread_config *config);
void pt_thread__close(struct pt_thread *thread);

/* What its buffers count against the limits of locked memory: with an AUX area of this size. */
size_t pt_thread__locked_size(size_t aux_size);

/* Begins to record. 0 or -errno. */
int pt_thread__enable(struct pt_thread *thread, const struct pt_thread_config *config);
/* Ends recording; the AUX head is final then. */
void pt_thread__disable(struct pt_thread *thread);

/*
 * How long the thread was on a CPU while it was to be recorded, and how long of that it was: less
 * where the PMU was taken (the kernel's multiplexing). 0 or -EIO.
 */
int pt_thread__times(const struct pt_thread *thread, uint64_t *enabled_ns, uint64_t *running_ns);

#endif
