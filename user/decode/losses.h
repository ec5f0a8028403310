/* SPDX-License-Identifier: MIT */
/*
 * Adds gaps to branches where the capture reports missing data: losses, and time outside of -start
 * and -stop.
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
	size_t next;	     /* index of the recording's next loss */
	VEC(uint64_t) stops; /* addresses where the process's recording stops (-stop) */
	bool is_outside;     /* the recording stopped at left_ns, and has not started again */
	uint64_t left_ns;
	VEC(struct branch) out;
};

/* For one thread. 0 or -ENOMEM; call losses__fini() in any case. */
int losses__init(struct losses *losses, const struct recording *rec, pid_t pid, pid_t tid,
		 struct decode_totals *totals);
void losses__fini(struct losses *losses);

/* False: losses__mark() would not change anything. */
bool losses__are_any(const struct losses *losses);
/*
 * Inserts a BRANCH_GAP before each BRANCH_BEGIN that follows a loss (the kernel notes one as it
 * stops the trace) or a stop. Otherwise the code at a stop would look as if it had been interrupted
 * by what is recorded next. *out holds the result until the next call. 0 or -ENOMEM.
 */
int losses__mark(struct losses *losses, const struct branch *v, size_t n, struct branch_batch *out);
/* After the last branch: counts what was lost since then, which no gap shows. */
void losses__finish(struct losses *losses);

#endif
