/* SPDX-License-Identifier: MIT */
/* Prints a recording's branches (-print branches), and those that LBR recorded before the hits. */
#ifndef MTBPF_PIPELINE_PRINT_BRANCHES_H
#define MTBPF_PIPELINE_PRINT_BRANCHES_H

#include <stdio.h>

#include "capture/recording/recording.h"
#include "decode/branch.h"
#include "decode/images.h"
#include "pipeline/trace_filter.h"

/*
 * Prints every branch as it is decoded, one line each: "tid time kind from to", with the reason
 * after a gap; and other events of the stream: "tid time ptwrite ip value". Prints the part that
 * the filter leaves (trace_filter__apply()), or all if it is NULL. 0, -ENOMEM, or another -errno
 * after a line.
 */
int recording__print_branches(struct recording *rec, const struct trace_filter *filter, FILE *out);
/* Prints the branch in the format of recording__print_branches(). */
void print_branch(FILE *out, pid_t tid, const struct branch *branch);

/*
 * Prints one line per branch that the CPU recorded before the hit, the newest first. 0 or -ENOMEM.
 */
int last_branches__print(FILE *out, const struct mt_hit *hit, struct images *images);

#endif
