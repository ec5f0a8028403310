/* SPDX-License-Identifier: MIT */
/* The pt source (source_pt in capture/source.h): how it freezes, and whether that works here. */
#ifndef MTBPF_CAPTURE_PT_PT_SOURCE_H
#define MTBPF_CAPTURE_PT_PT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "capture/pt/pmu.h"

/* The freeze methods, best first. */
enum pt_freeze {
	PT_FREEZE_PAUSE,   /* the probe's event pauses PT (aux_pause), in the probe's handler */
	PT_FREEZE_REFRESH, /* the probe's event leads the group; irq_work disables it after one
			      overflow */
	PT_FREEZE_DISABLE, /* by user space, which the BPF ring buffer wakes */
};

const char *pt_freeze__name(enum pt_freeze freeze);

/* The locked memory per ring, with an AUX area of this size. */
size_t pt_ring__locked_size(size_t aux_size, bool by_cpu);

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
 * events, but the trace went on (PT_FREEZE_DISABLE: is empty); -EINVAL or -EOPNOTSUPP: the kernel
 * lacks the method; or another -errno of opening the events. Prints an error only if the kernel
 * lacks uprobe events.
 */
int pt_probe__freeze(const struct pt_pmu *pmu, enum pt_freeze freeze);

#endif
