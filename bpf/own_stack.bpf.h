/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Makes a program that can be preempted use its thread's stack, instead of a stack that belongs to
 * the CPU.
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
 * Since Linux 6.13 a program with 64 bytes of variables gets a stack per CPU
 * (kernel/bpf/verifier.c: bpf_enable_priv_stack). That is safe only for programs that cannot be
 * preempted. A uprobe's program does not migrate, but it can be preempted (include/linux/bpf.h:
 * bpf_prog_run_array_uprobe), and the next thread that hits a probe on that CPU would overwrite its
 * variables. A program with a tail call keeps its thread's stack, even if the call is never made.
 */
static __always_inline void stay_on_own_stack(void *ctx)
{
	if (never)
		bpf_tail_call(ctx, &nowhere, 0);
}

#endif
