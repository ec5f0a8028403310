/* SPDX-License-Identifier: MIT */
/*
 * Calls on their way from the thread that finds them to one that writes them: to encode a slice
 * takes a third as long as to find it.
 */
#ifndef MTBPF_PIPELINE_EARLY_QUEUE_H
#define MTBPF_PIPELINE_EARLY_QUEUE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "stack/call_tree.h"
#include "trace/trace_writer.h"

struct early_queue;

/* The thread that made the calls, and the time that the trace's times are relative to. */
struct early_owner {
	pid_t pid, tid;
	uint64_t base_ns;
};

/* Until early_queue__finish(), nobody else uses the writer. NULL: no memory. */
struct early_queue *early_queue__new(struct trace_writer *writer);
/* Waits for what is under way. NULL is fine. */
void early_queue__free(struct early_queue *queue);

/* The calls that are added next are theirs; it waits where the writing falls behind. */
void early_queue__begin(struct early_queue *queue, const struct early_owner *owner);
/*
 * A place for one call, made at that site, which the caller fills: in pre-order, where depth 0 is
 * that of the first since early_queue__begin(). NULL: no memory.
 */
struct call *early_queue__add(struct early_queue *queue, const struct call_site *site);
/*
 * Returns when everything that was added is written; nothing may be added after it. May be called
 * twice.
 */
void early_queue__finish(struct early_queue *queue);

#endif
