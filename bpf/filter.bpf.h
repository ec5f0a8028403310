/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * -if: terms that must be true of a hit, or of the value that a call returns. Otherwise the hit, or
 * the call, does not count.
 */
#ifndef MTBPF_FILTER_BPF_H
#define MTBPF_FILTER_BPF_H

#include "pid_namespace.bpf.h"
#include "reads.bpf.h"

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

/* A value that cannot be read makes its term false. */
static __always_inline bool value_holds(const struct hit_place *place, u32 i)
{
	const struct mt_reads *reads = reads_of(place);
	const struct mt_value *value;
	u64 found;
	s8 size;

	if (!reads || i >= MT_TERMS)
		return false;
	value = &reads->terms[i];
	size = value->n_derefs ? value->size : value->from.size;
	return read_value(place->regs, value, &found) &&
	       compare(found, terms[i].value, terms[i].op, size < 0);
}

static __always_inline bool term_holds(const struct hit_place *place, u32 i)
{
	switch (terms[i].field) {
	case MT_FIELD_ARG:
	case MT_FIELD_RETVAL:
		return value_holds(place, i);
	case MT_FIELD_TID:
		return compare((u32)current_pid_tgid(), terms[i].value, terms[i].op, true);
	case MT_FIELD_COMM:
		return is_comm(&terms[i]) == (terms[i].op == MT_OP_EQ);
	}
	return false;
}

/* Checks the terms about the returned value, or all others. */
static __always_inline bool terms_hold(const struct hit_place *place, bool of_return)
{
	for (u32 i = 0; i < MT_TERMS; i++)
		if (i < n_terms && (terms[i].field == MT_FIELD_RETVAL) == of_return &&
		    !term_holds(place, i))
			return false;
	return true;
}

#endif
