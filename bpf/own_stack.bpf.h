/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Keeps a program that may lose its CPU in the middle on the stack of the thread that it runs in.
 */
#ifndef MTBPF_OWN_STACK_BPF_H
#define MTBPF_OWN_STACK_BPF_H

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} nowhere SEC(".maps");

const volatile bool never;

/*
 * Since Linux 6.13 a program with 64 bytes of variables has a stack of its CPU's
 * (kernel/bpf/verifier.c: bpf_enable_priv_stack), good for programs that run to their end. One of a
 * uprobe does not (include/linux/bpf.h: bpf_prog_run_array_uprobe keeps it from migrating, no
 * more), and the next thread that comes to a probe on that CPU would overwrite what the one before
 * has left there. The kernel gives none to a program with a tail call, taken or not.
 */
static __always_inline void stay_on_own_stack(void *ctx)
{
	if (never)
		bpf_tail_call(ctx, &nowhere, 0);
}

#endif
