/* SPDX-License-Identifier: MIT */
/* -print branches */
#ifndef MTBPF_PIPELINE_PRINT_BRANCHES_H
#define MTBPF_PIPELINE_PRINT_BRANCHES_H

#include <stdio.h>

#include "capture/recording/recording.h"
#include "decode/branch.h"
#include "pipeline/trace_filter.h"

/*
 * Every branch as it is decoded, as a line: tid time kind from to, and behind a gap its reason. Of
 * the part that the filter leaves (trace_filter__apply()), unless it is NULL. 0, or -errno with a
 * line.
 */
int recording__print_branches(struct recording *rec, const struct trace_filter *filter, FILE *out);
/* One of these lines. */
void print_branch(FILE *out, pid_t tid, const struct branch *branch);

#endif
