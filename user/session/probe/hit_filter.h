/* SPDX-License-Identifier: MIT */
/* -if: what has to be true of a hit, such as "arg1 > 100 && comm == \"worker\"". */
#ifndef MTBPF_SESSION_PROBE_HIT_FILTER_H
#define MTBPF_SESSION_PROBE_HIT_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "mtbpf_shared.h"

struct probes;

struct hit_filter {
	struct mt_term terms[MT_TERMS]; /* ARG: size is what the text says; 0: nothing */
	uint32_t n;
};

/* 0, or -EINVAL after a line and a hint. text NULL: no terms. */
int hit_filter__parse(struct hit_filter *filter, const char *text);
/* True if a term is about what the call returns. */
bool hit_filter__has_return(const struct hit_filter *filter);
/*
 * Lets the probes read the arguments that the terms are about. 0, or -EINVAL after a line and a
 * hint: one of them has no such argument.
 */
int hit_filter__apply(const struct hit_filter *filter, struct probes *probes);

#endif
