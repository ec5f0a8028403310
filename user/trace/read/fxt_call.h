/* SPDX-License-Identifier: MIT */
/* What a slice of a trace file was as a call. */
#ifndef MTBPF_TRACE_READ_FXT_CALL_H
#define MTBPF_TRACE_READ_FXT_CALL_H

#include <stdint.h>

#include "stack/call_tree.h"
#include "trace/read/fxt_read.h"

/*
 * The kind, and a gap's or an absence's reason. What is no function is told by its category, and
 * its name, which call__name() has given it; a function's call is left as it is.
 */
void fxt_call__set_kind(struct call *call, const struct fxt_read *read);
/* Of enum call_flags. */
uint8_t fxt_call__flags(const struct fxt_read *read);

#endif
