/* SPDX-License-Identifier: MIT */
/* Page faults back from the counters that tell how many there were until then. */
#ifndef MTBPF_TRACE_READ_FXT_FAULTS_H
#define MTBPF_TRACE_READ_FXT_FAULTS_H

#include "stack/call_tree.h"
#include "trace/read/fxt_read.h"

/* So many were there before: minor ones, major ones. */
struct fxt_faults {
	uint64_t seen[2];
};

/* Of a counter, whatever it counts: adds what it has grown by. 0 or -ENOMEM. */
int fxt_faults__take(struct fxt_faults *faults, struct call_tree *tree,
		     const struct fxt_read *read);

#endif
