/* SPDX-License-Identifier: MIT */
/*
 * A queue of calls from the thread that decodes them to the one that writes them: encoding a slice
 * takes a third as long as decoding it.
 */
#ifndef MTBPF_PIPELINE_EARLY_QUEUE_H
#define MTBPF_PIPELINE_EARLY_QUEUE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "stack/call_tree.h"
#include "trace/trace_writer.h"

struct early_queue;

/* The thread that made the calls, and the time to which the trace's times are relative. */
struct early_owner {
	pid_t pid, tid;
	uint64_t base_ns;
};

/* Until early_queue__finish(), nobody else uses the writer. NULL: no memory. */
struct early_queue *early_queue__new(struct trace_writer *writer);
/* Waits for batches that are being written. NULL is fine. */
void early_queue__free(struct early_queue *queue);

/* Sets the owner of the calls that are added next. Waits if the writer falls behind. */
void early_queue__begin(struct early_queue *queue, const struct early_owner *owner);
/*
 * Adds the next call, made at that site; the caller fills it. Calls are in pre-order; depth 0 is
 * that of the first one since early_queue__begin(). NULL: out of memory.
 */
struct call *early_queue__add(struct early_queue *queue, const struct call_site *site);
/* Waits until all calls are written. Nothing may be added afterwards. May be called twice. */
void early_queue__finish(struct early_queue *queue);

#endif
