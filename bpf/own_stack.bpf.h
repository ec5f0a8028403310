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
 * Since Linux 6.13 a program with 64 bytes of variables gets a stack that belongs to the CPU
 * (kernel/bpf/verifier.c: bpf_enable_priv_stack). That is safe only for programs that run to their
 * end. The kernel keeps a uprobe's program from migrating, but not from losing its CPU
 * (include/linux/bpf.h: bpf_prog_run_array_uprobe), and the next thread that hits a probe there
 * would overwrite its variables. A program with a tail call stays on its thread's stack, whether or
 * not the call is ever made.
 */
static __always_inline void stay_on_own_stack(void *ctx)
{
	if (never)
		bpf_tail_call(ctx, &nowhere, 0);
}

#endif
