/* SPDX-License-Identifier: MIT */
/* What Intel PT lets us do, by trying it on ourselves: a few milliseconds, and nothing stays. */
#ifndef MTBPF_CAPTURE_PT_PT_PROBE_H
#define MTBPF_CAPTURE_PT_PT_PROBE_H

#include <stdbool.h>

#include "capture/pt/pmu.h"
#include "capture/pt/pt_ring.h"

/*
 * Opens an Intel PT event on this thread, of user code or of the kernel's too, and closes it. 0 or
 * -errno: -EACCES, -EPERM no right to; -EBUSY somebody records a CPU; -EOPNOTSUPP user code only.
 * Prints nothing.
 */
int pt_probe__open(const struct pt_pmu *pmu, bool kernel);

/*
 * Records this thread through a hit of a probe of our own, and looks whether the trace ended there
 * (PT_FREEZE_DISABLE: whether one comes at all). 0 it did; -ENODATA the kernel took the events, but
 * the trace went on (PT_FREEZE_DISABLE: is empty); or what opening them failed with: see
 * pt_ring__open(). Prints an error only where there are no uprobe events at all.
 */
int pt_probe__freeze(const struct pt_pmu *pmu, enum pt_freeze freeze);

#endif
