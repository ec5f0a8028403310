/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Members of the kernel's tasks, for programs without CO-RE relocations. */
#ifndef MTBPF_TASK_BPF_H
#define MTBPF_TASK_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "mtbpf_shared.h"

/* Offsets of the members; user space finds them in the kernel's BTF. */
const volatile struct mt_task_offsets task_at;

static __always_inline u32 read_task(u64 task, u32 offset)
{
	u32 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (const void *)(task + offset));
	return value;
}

/* The address as a number: the verifier refuses to subtract from some pointers. */
static __always_inline u64 address_of(const void *pointer)
{
	u64 address = 0;

	bpf_probe_read_kernel(&address, sizeof(address), &pointer);
	return address;
}

/* The address of the saved user registers with which the current thread entered the kernel. */
static __always_inline u64 saved_registers(void)
{
	return address_of((const void *)bpf_task_pt_regs(bpf_get_current_task_btf()));
}

#endif
