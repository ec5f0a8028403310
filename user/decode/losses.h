/* SPDX-License-Identifier: MIT */
/* What the capture says is missing, put among the branches as gaps. */
#ifndef MTBPF_DECODE_LOSSES_H
#define MTBPF_DECODE_LOSSES_H

#include <sys/types.h>

#include "capture/recording/recording.h"
#include "decode/branch.h"
#include "decode/decode.h"

/* On the way of one thread's branches to fn. Zero-initialise, but for the first five. */
struct loss_filter {
	const struct recording *rec;
	pid_t tid;
	branch_fn fn;
	void *ctx;
	struct decode_totals *totals;
	size_t next; /* of the recording's losses */
};

/*
 * A branch_fn: hands on, and a BRANCH_GAP first where tracing goes on behind a loss (the kernel
 * notes one as it stops the trace).
 */
int loss_filter__branch(void *filter, const struct branch *branch);
/* Behind the last branch: what was lost after it is counted, though nothing shows it. */
void loss_filter__finish(struct loss_filter *filter);

#endif
