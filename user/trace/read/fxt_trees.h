/* SPDX-License-Identifier: MIT */
/*
 * Call trees back from a trace file: as much of them as a report needs, which is less than was
 * written. Addresses, call sites, source lines and leaps are not read.
 */
#ifndef MTBPF_TRACE_READ_FXT_TREES_H
#define MTBPF_TRACE_READ_FXT_TREES_H

#include <stdbool.h>

#include "stack/call_tree.h"
#include "trace/read/fxt_by.h"
#include "trace/read/fxt_counters.h"
#include "trace/read/fxt_order.h"
#include "util/hash_index.h"
#include "util/vec.h"

struct meter;

struct fxt_track {
	uint64_t pid, tid;
	uint32_t open; /* the innermost call that is; CALL_NO_PARENT: none */
	uint64_t last_ns;
	fxt_places places; /* of its calls, as they come */
	uint32_t n_edges;
	bool is_unsorted; /* times go back */
	struct fxt_counters counters;
};

struct fxt_trees {
	VEC(struct call_tree) trees;  /* a track each */
	VEC(struct fxt_track) tracks; /* the same, by number */
	VEC(struct hit_mark) hits;
	VEC(struct function *) functions; /* told apart by name and module */
	struct hash_index by_name;
	fxt_texts texts; /* what calls waited for, in words, and names of functions */
	uint32_t n_strands;
	bool is_sampled;
	uint64_t first_ns, last_ns;
};

/*
 * Times are those of the file. 0; -EBADMSG
 * where it is no FXT file, or damaged; another -errno. The meter, or NULL, counts the
 * file's bytes. Prints nothing. fxt_trees__fini() in any case.
 */
int fxt_trees__read(struct fxt_trees *trees, int fd, struct meter *meter);
void fxt_trees__fini(struct fxt_trees *trees);

#endif
