/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* -if: terms that have to be true of a hit, or of what a call returns, or it does not count. */
#ifndef MTBPF_FILTER_BPF_H
#define MTBPF_FILTER_BPF_H

#include "args.bpf.h"
#include "pid_namespace.bpf.h"

const volatile struct mt_term terms[MT_TERMS];
const volatile __u32 n_terms;

static __always_inline bool compare(u64 value, u64 with, u32 op, bool is_signed)
{
	bool less = is_signed ? (s64)value < (s64)with : value < with;

	switch (op) {
	case MT_OP_EQ:
		return value == with;
	case MT_OP_NE:
		return value != with;
	case MT_OP_LT:
		return less;
	case MT_OP_LE:
		return less || value == with;
	case MT_OP_GT:
		return !less && value != with;
	case MT_OP_GE:
		return !less;
	case MT_OP_AND:
		return value & with;
	}
	return false;
}

static __always_inline bool is_comm(const volatile struct mt_term *term)
{
	u64 comm[2] = {};

	bpf_get_current_comm(comm, sizeof(comm));
	return comm[0] == term->comm[0] && comm[1] == term->comm[1];
}

/* What cannot be read is not true. */
static __always_inline bool arg_holds(const void *ctx, const volatile struct mt_term *term)
{
	u32 key = bpf_get_attach_cookie((void *)ctx), i = term->arg;
	const struct mt_args *args = bpf_map_lookup_elem(&args_of_probes, &key);
	u64 value;

	if (!args || i >= MT_ARGS_MAX || i >= args->n || !read_arg(ctx, &args->v[i], &value))
		return false;
	return compare(value, term->value, term->op, args->v[i].size < 0);
}

static __always_inline bool term_holds(const struct pt_regs *ctx,
				       const volatile struct mt_term *term)
{
	switch (term->field) {
	case MT_FIELD_ARG:
		return arg_holds(ctx, term);
	case MT_FIELD_RETVAL:
		return compare(widen(ctx->ax, term->size), term->value, term->op, term->size < 0);
	case MT_FIELD_TID:
		return compare((u32)current_pid_tgid(), term->value, term->op, true);
	case MT_FIELD_COMM:
		return is_comm(term) == (term->op == MT_OP_EQ);
	}
	return false;
}

/* Those of the returned value, or all others. */
static __always_inline bool terms_hold(const struct pt_regs *ctx, bool of_return)
{
	for (u32 i = 0; i < MT_TERMS; i++)
		if (i < n_terms && (terms[i].field == MT_FIELD_RETVAL) == of_return &&
		    !term_holds(ctx, &terms[i]))
			return false;
	return true;
}

#endif
