/* SPDX-License-Identifier: MIT */
/*
 * The trigger's probes in the kernel: on system calls, functions, tracepoints, signals and the OOM
 * killer. System calls and functions are probed by fentry and fexit if the kernel allows it.
 * Otherwise system calls are probed by the tracepoints that all of them share, and functions by
 * kprobes.
 */
#ifndef MTBPF_TRIGGER_KERNEL_PROBES_H
#define MTBPF_TRIGGER_KERNEL_PROBES_H

#include <stdbool.h>
#include <stdint.h>

#include "trigger/trigger_internal.h"

struct kernel_probes;

/*
 * Selects the programs that config.kernel_probes need, before they are loaded. 0, or -errno:
 * -EOPNOTSUPP after a message and a hint if this machine does not support a probe.
 */
int kernel_probes__select(struct trigger_bpf *skel, const struct trigger_config *config,
			  enum trigger_latch latch);
/* True if one of config's kernel probes needs task_at of bpf/task.bpf.h. */
bool kernel_probes__need_tasks(const struct trigger_config *config);

/*
 * Sets all probes, the ends of calls first. NULL with errno after a message and a hint. The
 * skeleton must live until kernel_probes__free().
 */
struct kernel_probes *kernel_probes__attach(const struct trigger_bpf *skel,
					    const struct kernel_probe *all, size_t n);
/* The program for a breakpoint with this role: enum mt_role. */
const struct bpf_program *kernel_probes__breakpoint(const struct trigger_bpf *skel, uint32_t roles);
/* Removes the probes, the ends of calls last. NULL is fine. */
void kernel_probes__free(struct kernel_probes *set);

/*
 * Counts the times that the kernel did not run a copy of a program for fentry or fexit because that
 * copy was already running on the CPU. trigger__stats() counts the skeleton's programs itself.
 */
uint64_t kernel_probes__missed(const struct kernel_probes *set);

#endif
