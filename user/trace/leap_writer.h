/* SPDX-License-Identifier: MIT */
/*
 * Leaps in the trace file: an instant where each began, one where it landed, and an arrow between
 * them. Calls are written in their order; this is told of each, and writes what belongs behind it.
 */
#ifndef MTBPF_TRACE_LEAP_WRITER_H
#define MTBPF_TRACE_LEAP_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "stack/call_tree.h"
#include "trace/fxt.h"
#include "util/vec.h"

struct leap_writer {
	struct fxt *fxt;
	uint64_t id_base; /* leaps of the trees before */
	/* Of the tree that is being written. */
	const struct call_tree *tree;
	size_t n_leaps, next;
	VEC(const struct leap *) open; /* have begun, and not landed */
};

void leap_writer__fini(struct leap_writer *writer);
void leap_writer__begin_tree(struct leap_writer *writer, const struct call_tree *tree);

/* The slice of tree->calls.v[index] has just begun at time_ns, as written. 0 or -ENOMEM. */
int leap_writer__begin(struct leap_writer *writer, uint32_t index, uint64_t time_ns);
/* A leap begins with that call, which is the next one to be written. */
static inline bool leap_writer__has(const struct leap_writer *writer, uint32_t index)
{
	return writer->next < writer->n_leaps && writer->tree->leaps.v[writer->next].from <= index;
}
/* The leap that lands in that call next, now that one that it had called is over; NULL: none. */
const struct leap *leap_writer__landing(const struct leap_writer *writer, uint32_t index);
/* It lands there, at time_ns as written. */
void leap_writer__land(struct leap_writer *writer, const struct leap *leap, uint64_t time_ns);

#endif
