/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Writing to a log that user space may read meanwhile: an entry's time is 0 while the rest of it is
 * written. x86 keeps the order of stores, and this keeps the compiler's.
 */
#ifndef MTBPF_LOGS_BPF_H
#define MTBPF_LOGS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

static __always_inline void begin_write(__u64 *time_ns)
{
	*(volatile __u64 *)time_ns = 0;
	barrier();
}

static __always_inline void end_write(__u64 *time_ns, __u64 value)
{
	barrier();
	*(volatile __u64 *)time_ns = value;
}

#endif
