/* SPDX-License-Identifier: MIT */
/* One call as the trace file has it, encoded once a kind of slice. */
#ifndef MTBPF_TRACE_SLICE_WRITER_H
#define MTBPF_TRACE_SLICE_WRITER_H

#include <stdint.h>

#include "stack/call_tree.h"
#include "trace/fxt.h"
#include "trace/slice_args.h"

/* Less than an index of 16 bits; and places for them, a power of two. */
#define SLICE_TEMPLATES 32768
#define SLICE_PLACES	65536

struct slice_template {
	struct slice_kind kind;
	struct fxt_template fxt;
};

/* All zeroes at first, but for `fxt`, which stays the caller's. */
struct slice_writer {
	struct fxt *fxt;
	/* Of the kinds of slices written before, side by side; by hash, counted from 1 on; 0: none.
	 */
	uint16_t places[SLICE_PLACES];
	uint16_t n_templates;
	struct slice_template templates[SLICE_TEMPLATES];
};

/*
 * Writes the tree's call, made at that site (NULL: nothing is known of it): all of it in one
 * record, or where end_ns is 0 its begin, with fxt__end() left to the caller. Sites must outlive
 * the writer, which tells slices of a kind by them.
 */
void slice_writer__write(struct slice_writer *writer, const struct call_tree *tree,
			 const struct call *call, const struct call_site *site, uint64_t time_ns,
			 uint64_t end_ns);

#endif
