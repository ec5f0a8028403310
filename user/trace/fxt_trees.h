/* SPDX-License-Identifier: MIT */
/*
 * Reads call trees back from a trace file, as far as a report needs them. Addresses, call sites,
 * source lines and unwinds are not read.
 */
#ifndef MTBPF_TRACE_FXT_TREES_H
#define MTBPF_TRACE_FXT_TREES_H

#include <stdbool.h>
#include <stdint.h>

#include "stack/call_tree.h"
#include "trace/fxt_read.h"
#include "util/vec.h"

/* Texts that trees point to, each to be freed. */
typedef VEC(char *) fxt_texts;

/* The last values of a track's counters of page faults, moves between CPUs and interrupt time. */

struct fxt_counters {
	uint64_t seen[3];    /* last totals: minor faults, major faults, moves */
	bool has_interrupts; /* false: the two below are not set */
	uint64_t interrupts_ns, interrupts_until_ns;
};

/* Adds to the tree by how much a counter has grown. Other counters are ignored. 0 or -ENOMEM. */
int fxt_counters__take(struct fxt_counters *counters, struct call_tree *tree,
		       const struct fxt_read *read);

/*
 * Restores the time order of one track's slices: calls that were written while a recording was
 * decoded precede their callers in the file.
 */

/* Positions of a call's begin and end among all begins and ends of the track. */
struct fxt_place {
	uint32_t begin, end;
};

typedef VEC(struct fxt_place) fxt_places;

/*
 * `places` has an entry per call, in the order of begins in the file; calls have their times. Sets
 * their order, parents and depths. 0 or -ENOMEM.
 */
int fxt_order__restore(struct call_tree *tree, const fxt_places *places);

struct meter;

struct fxt_track {
	uint64_t pid, tid;
	uint32_t open; /* the innermost open call; CALL_NO_PARENT: none */
	uint64_t last_ns;
	fxt_places places; /* of its calls, in the file's order */
	uint32_t n_edges;
	bool is_unsorted; /* times go back */
	struct fxt_counters counters;
};

struct fxt_trees {
	VEC(struct call_tree) trees;  /* one per track */
	VEC(struct fxt_track) tracks; /* tracks.v[i] belongs to trees.v[i] */
	VEC(struct hit_mark) hits;
	VEC(struct function *) functions; /* told apart by name and module */
	struct hash_index by_name;
	fxt_texts texts; /* what calls waited for, in words, and names of functions */
	uint32_t n_coroutines;
	bool is_sampled;
	uint64_t first_ns, last_ns;
};

/*
 * Times are those of the file. 0; -EBADMSG if it is damaged or not an FXT file; another -errno. The
 * meter, or NULL, counts the file's bytes. Prints nothing. fxt_trees__fini() in any case.
 */
int fxt_trees__read(struct fxt_trees *trees, int fd, struct meter *meter);
void fxt_trees__fini(struct fxt_trees *trees);

#endif
