/* SPDX-License-Identifier: MIT */
/*
 * Hits in the trace file: a track of their own, a slice each; and on the thread that hit, where its
 * slices are, an instant, to which an arrow leads from there.
 */
#ifndef MTBPF_TRACE_HIT_WRITER_H
#define MTBPF_TRACE_HIT_WRITER_H

#include <stdint.h>
#include <sys/types.h>

#include "stack/call_tree.h"
#include "trace/fxt.h"
#include "util/vec.h"

struct hit_track {
	pid_t pid, tid;
	uint64_t end_ns; /* of the slice that ends last */
};

/* Whose slices have been written. */
struct hit_thread {
	pid_t pid, tid;
	uint64_t end_ns; /* of its slices, in the file's time */
};

/* All zeroes at first, but for `fxt`, which stays the caller's. */
struct hit_writer {
	struct fxt *fxt;
	VEC(struct hit_track) tracks;
	VEC(struct hit_thread) threads;
	uint64_t n_flows;
};

void hit_writer__fini(struct hit_writer *writer);

/* 0 or -ENOMEM. */
int hit_writer__add_thread(struct hit_writer *writer, const struct hit_thread *thread);
/* Behind the slices of its thread. Times are relative to base_ns. 0 or -ENOMEM. */
int hit_writer__write(struct hit_writer *writer, const struct hit_mark *hit, uint64_t base_ns);

#endif
