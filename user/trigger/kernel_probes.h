/* SPDX-License-Identifier: MIT */
/*
 * Probes of the trigger in the kernel: on system calls, functions, tracepoints, signals and the OOM
 * killer. A table has what each kind needs. System calls and functions are probed by fentry and
 * fexit if the kernel lets them; otherwise system calls by the tracepoints of all of them, and
 * functions by kprobes.
 */
#ifndef MTBPF_TRIGGER_KERNEL_PROBES_H
#define MTBPF_TRIGGER_KERNEL_PROBES_H

#include <stdbool.h>
#include <stdint.h>

#include "trigger/trigger_internal.h"

struct kernel_probes;

/*
 * Before the programs are loaded: selects those that config.kernel_probes need. 0, or -errno:
 * -EOPNOTSUPP after a message and a hint if something is not possible on this machine.
 */
int kernel_probes__select(struct trigger_bpf *skel, const struct trigger_config *config,
			  enum trigger_latch latch);
/* True if one of them needs task_at of bpf/task.bpf.h. */
bool kernel_probes__need_tasks(const struct trigger_config *config);

/*
 * Sets all of them, the ends of calls first. NULL with errno after a message and a hint. The
 * skeleton must live until kernel_probes__free().
 */
struct kernel_probes *kernel_probes__attach(const struct trigger_bpf *skel,
					    const struct kernel_probe *all, size_t n);
/* Removes them, the ends last. NULL is fine. */
void kernel_probes__free(struct kernel_probes *set);

/*
 * How often the kernel did not run one of the copies of programs that fentry and fexit use, because
 * it was already running on that CPU. trigger__stats() counts the skeleton's programs itself.
 */
uint64_t kernel_probes__missed(const struct kernel_probes *set);

#endif
