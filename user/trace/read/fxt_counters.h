/* SPDX-License-Identifier: MIT */
/* Page faults, and the time of interrupts, back from the counters of what there was until then. */
#ifndef MTBPF_TRACE_READ_FXT_FAULTS_H
#define MTBPF_TRACE_READ_FXT_FAULTS_H

#include <stdbool.h>

#include "stack/call_tree.h"
#include "trace/read/fxt_read.h"

struct fxt_counters {
	uint64_t seen[3];    /* the counts before: minor, major; moves */
	bool has_interrupts; /* else the rest does not count */
	uint64_t interrupts_ns, interrupts_until_ns;
};

/* Adds what a counter of any kind has grown by. 0 or -ENOMEM. */
int fxt_counters__take(struct fxt_counters *counters, struct call_tree *tree,
		       const struct fxt_read *read);

#endif
