/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Reads the arguments of a hit: those of mtbpf.h's call, or of a USDT probe. */
#ifndef MTBPF_ARGS_BPF_H
#define MTBPF_ARGS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "mtbpf_shared.h"

/* Indexed by the number of the probe. User space sets the size and fills it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct mt_args);
} args_of_probes SEC(".maps");

/*
 * False if no probe has arguments. The verifier then drops the loop over them, which it would
 * follow for longer than the rest of the program.
 */
const volatile bool reads_args;

/* The verifier rejects direct reads of the context at a variable offset. */
static __always_inline u64 read_register(const void *ctx, u16 offset)
{
	u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), ctx + offset);
	return value;
}

/* Extends to 64 bits; size: 1, 2, 4 or 8 bytes, negative if signed. */
static __always_inline u64 widen(u64 value, s8 size)
{
	u32 shift = (64 - 8 * (size < 0 ? -size : size)) & 63;

	value <<= shift;
	return size < 0 ? (u64)((s64)value >> shift) : value >> shift;
}

/* False if the memory cannot be read without a page fault. */
static __always_inline bool read_memory(u64 address, s8 signed_size, u64 *value)
{
	u64 size = (signed_size < 0 ? -signed_size : signed_size) & 15;

	/*
	 * clang 21 checks one register and uses another, so that the verifier sees no bound. The
	 * size has 64 bits, since Linux 6.1's verifier does not know the upper half of a 32-bit
	 * one.
	 */
	asm volatile("" : "+r"(size));
	if (size > sizeof(*value))
		return false;
	*value = 0;
	if (bpf_probe_read_user(value, size, (const void *)address))
		return false;
	*value = widen(*value, signed_size);
	return true;
}

/* clang may load through a pointer to the member, which the verifier rejects for the context. */
#define load_register(regs, name)                                                                  \
	({                                                                                         \
		u64 word;                                                                          \
		asm volatile("%0 = *(u64 *)(%1 + %2)"                                              \
			     : "=r"(word)                                                          \
			     : "r"(regs), "i"(offsetof(struct pt_regs, name)));                    \
		word;                                                                              \
	})

/*
 * True if mtbpf_hit() was called with an argument: its third parameter is not 0 or, if it is 4 (the
 * thread has a trace id), its sixth is not 0.
 */
static __always_inline bool has_given(const void *regs)
{
	u64 n = load_register(regs, dx), has_arg = load_register(regs, r9);

	return n == 4 ? has_arg : n;
}

static __always_inline bool read_arg(const void *ctx, const struct mt_arg *arg, u64 *value)
{
	u64 address = arg->value;

	if (arg->kind == MT_ARG_GIVEN && !has_given(ctx))
		return false;
	*value = arg->value;
	if (arg->kind == MT_ARG_CONSTANT)
		return true;
	if (arg->kind == MT_ARG_REGISTER || arg->kind == MT_ARG_GIVEN) {
		*value = widen(read_register(ctx, arg->base), arg->size);
		return true;
	}
	if (arg->kind != MT_ARG_MEMORY)
		return false;
	address += read_register(ctx, arg->base);
	if (arg->scale)
		address += arg->scale * read_register(ctx, arg->index);
	return read_memory(address, arg->size, value);
}

/* Without arguments, and at a call's return, the hit's members for arguments are 0. */
static __always_inline void clear_args(struct mt_hit *hit)
{
	hit->n_args = hit->args_read = hit->args_signed = 0;
	__builtin_memset(hit->args, 0, sizeof(hit->args));
}

/* Must not be called at a call's return, where the arguments cannot be read any more. */
static __always_inline void take_args(const struct pt_regs *regs, u32 key, struct mt_hit *hit)
{
	const struct mt_args *args = bpf_map_lookup_elem(&args_of_probes, &key);
	u32 n = args ? args->n : 0;

	if (args && args->is_library && regs->dx < n)
		n = regs->dx;
	hit->n_args = n;
	for (u32 i = 0; i < MT_ARGS_MAX; i++) {
		if (!args || i >= n)
			break;
		if (read_arg(regs, &args->v[i], &hit->args[i]))
			hit->args_read |= 1u << i;
		if (args->v[i].size < 0)
			hit->args_signed |= 1u << i;
	}
}

/* mtbpf_hit()'s second argument: the thread's mark; 0: the thread has not set one. */
static __always_inline u64 mark_of(const struct pt_regs *ctx)
{
	return ctx->si;
}

#endif
