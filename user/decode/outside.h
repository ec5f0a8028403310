/* SPDX-License-Identifier: MIT */
/* What lies outside of -start and -stop, put among the branches as gaps. */
#ifndef MTBPF_DECODE_OUTSIDE_H
#define MTBPF_DECODE_OUTSIDE_H

#include <stdbool.h>
#include <sys/types.h>

#include "capture/recording/recording.h"
#include "decode/branch.h"
#include "decode/decode.h"

/* On the way of one thread's branches to fn. */
struct outside_filter {
	branch_fn fn;
	void *ctx;
	struct decode_totals *totals;
	VEC(uint64_t) stops; /* where its recording ends */
	uint64_t left_ns;    /* when it did */
	bool is_outside;
};

/*
 * Of a process's threads; fn, ctx and totals are the caller's to set. 0 or -ENOMEM;
 * outside_filter__fini() in any case.
 */
int outside_filter__init(struct outside_filter *filter, const struct recording *rec, pid_t pid);
void outside_filter__fini(struct outside_filter *filter);

/*
 * A branch_fn: hands on, and a BRANCH_GAP first where tracing goes on behind a stop. Without one it
 * would look as if the code there had been interrupted by that which is recorded next.
 */
int outside_filter__branch(void *filter, const struct branch *branch);

#endif
