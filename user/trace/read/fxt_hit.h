/* SPDX-License-Identifier: MIT */
/* A hit back from its slice in a trace file. */
#ifndef MTBPF_TRACE_READ_FXT_HIT_H
#define MTBPF_TRACE_READ_FXT_HIT_H

#include "stack/call_tree.h"
#include "trace/read/fxt_read.h"

/*
 * All but its function, whose name is returned: it lasts as long as the event's strings. NULL where
 * the slice has no name of one.
 */
const char *fxt_hit__read(struct hit_mark *hit, const struct fxt_read *read);

#endif
