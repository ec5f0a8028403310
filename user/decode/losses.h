/* SPDX-License-Identifier: MIT */
/*
 * What the capture says is missing, put among a thread's branches as gaps: what was lost, and what
 * lies outside of -start and -stop.
 */
#ifndef MTBPF_DECODE_LOSSES_H
#define MTBPF_DECODE_LOSSES_H

#include <stdbool.h>
#include <sys/types.h>

#include "capture/recording/recording.h"
#include "decode/request.h"
#include "util/vec.h"

struct losses {
	const struct recording *rec;
	struct decode_totals *totals;
	pid_t tid;
	size_t next;	     /* of the recording's losses */
	VEC(uint64_t) stops; /* where the process's recording ends (-stop) */
	bool is_outside;     /* it did, at left_ns, and has not gone on */
	uint64_t left_ns;
	VEC(struct branch) out;
};

/* Of one thread. 0 or -ENOMEM; losses__fini() in any case. */
int losses__init(struct losses *losses, const struct recording *rec, pid_t pid, pid_t tid,
		 struct decode_totals *totals);
void losses__fini(struct losses *losses);

/* False: every branch would stay as it is. */
bool losses__are_any(const struct losses *losses);
/*
 * Where tracing goes on after a loss (the kernel notes one as it stops the trace) or after a stop,
 * a BRANCH_GAP comes before the BRANCH_BEGIN. Without one, the code at a stop would look as if it
 * had been interrupted by what is recorded next. *out is all of it, until the next call. 0 or
 * -ENOMEM.
 */
int losses__mark(struct losses *losses, const struct branch *v, size_t n, struct branch_batch *out);
/* After the last branch: what was lost since is counted, though nothing shows it. */
void losses__finish(struct losses *losses);

#endif
