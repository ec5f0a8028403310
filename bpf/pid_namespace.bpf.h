/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The current thread's ids in user space's pid namespace. */
#ifndef MTBPF_PID_NAMESPACE_BPF_H
#define MTBPF_PID_NAMESPACE_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

/* Device and inode of user space's /proc/self/ns/pid; 0: the initial namespace. */
const volatile __u64 pid_ns_dev, pid_ns_ino;

/* Like bpf_get_current_pid_tgid(); 0 for a thread of another namespace. */
static __always_inline u64 current_pid_tgid(void)
{
	struct bpf_pidns_info ids = {};

	if (!pid_ns_ino)
		return bpf_get_current_pid_tgid();
	if (bpf_get_ns_current_pid_tgid(pid_ns_dev, pid_ns_ino, &ids, sizeof(ids)))
		return 0;
	return (u64)ids.tgid << 32 | ids.pid;
}

#endif
