/* SPDX-License-Identifier: MIT */
/*
 * System calls as probes of the trigger. Its programs run at the entry and the return of each
 * system call that is probed, where the kernel lets them (fentry, fexit); otherwise at the
 * tracepoints of all system calls.
 */
#ifndef MTBPF_TRIGGER_SYSCALLS_H
#define MTBPF_TRIGGER_SYSCALLS_H

#include <stdint.h>

#include "trigger/trigger_internal.h"

struct trigger_syscalls;

/*
 * Before the programs are loaded: chooses those that are needed, and tells them where the kernel
 * keeps its files. 0; -EOPNOTSUPP after a line and a hint: the kernel does not tell; or -errno.
 */
int trigger_syscalls__select(struct trigger_bpf *skel, const struct trigger_config *config,
			     enum trigger_latch latch);

/*
 * Sets all of them, the ends first. NULL with errno after a line and a hint. The skeleton lives
 * until trigger_syscalls__free().
 */
struct trigger_syscalls *trigger_syscalls__attach(const struct trigger_bpf *skel,
						  const struct trigger_syscall *all, size_t n);
/* Removes them, the begins first. NULL is fine. */
void trigger_syscalls__free(struct trigger_syscalls *syscalls);

/* Times that the kernel did not run a program of theirs, since it ran on that CPU already. */
uint64_t trigger_syscalls__missed(const struct trigger_syscalls *syscalls);

#endif
