/* SPDX-License-Identifier: MIT */
/* What a slice says about itself when it is clicked. */
#ifndef MTBPF_TRACE_SLICE_ARGS_H
#define MTBPF_TRACE_SLICE_ARGS_H

#include "stack/call_tree.h"
#include "trace/fxt.h"

/* Arguments of one event. They point into what they were made from. */
struct slice_args {
	unsigned int n;
	struct fxt_arg v[FXT_MAX_ARGS];
};

/* A call's: address, module, file, line, call_ip, insns, and its flags; each where it is known. */
void slice_args__of_call(struct slice_args *args, const struct call *call);
/* A hit's: its delay or duration, sequence number, thread and address. */
void slice_args__of_hit(struct slice_args *args, const struct hit_mark *hit);

/* "user", "library", "kernel", "gap", "signal". */
const char *slice__category(const struct call *call);

#endif
