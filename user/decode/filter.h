/* SPDX-License-Identifier: MIT */
/*
 * The part of a recording that is asked for: decoding begins at the last PSB before it and ends at
 * the second one behind it, and of the branches between only its own are handed on.
 */
#ifndef MTBPF_DECODE_FILTER_H
#define MTBPF_DECODE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/request.h"
#include "util/vec.h"

/* Zero-initialised, but for to_ns: all of it. */
struct decode_filter {
	uint64_t from_ns, to_ns; /* both included; 0 and UINT64_MAX: open */
	/*
	 * Of each thread: from a call of the one function to the next call of the other, each time;
	 * named as in -symbol. NULL: from the beginning on, up to the end.
	 */
	const char *start, *stop;
};

/*
 * Leaves only those of the rings' bytes in rec that must be decoded. Where PSBs do not tell the
 * time, that is all of them.
 */
void decode_filter__narrow(const struct decode_filter *filter, struct recording *rec);

/* What it has found. */
struct filter_totals {
	uint64_t branches;	/* handed on, with those that say where the part begins and ends */
	uint64_t starts, stops; /* calls of these functions, in that time */
};

/* What functions are asked for most is asked again. */
#define SELECTION_KNOWN 1024

/*
 * Of threads' branches, chooses those of the part. A thread that runs when the part
 * begins has a BEGIN there, and an END where the part ends; one that is in a system call, or was
 * interrupted, is left so again at the part's beginning. GAP_FILTERED lies between two regions.
 */
struct selection {
	const struct decode_filter *filter;
	struct decode_totals *totals; /* of what is handed on */
	struct filter_totals *found;
	struct known_function {
		const struct function *function;
		unsigned int is;
	} known[SELECTION_KNOWN];

	VEC(struct branch) out;

	/* Of the thread that is taken now. */
	struct code_map *map;
	bool is_empty;	     /* nothing was handed on */
	bool has_before;     /* `before` is the last branch before the part */
	bool is_in, is_over; /* the part has begun; it has ended */
	struct branch before;
	bool is_inside;	   /* of a region */
	bool has_left;	   /* one, at left_ns */
	bool is_running;   /* as far as it was handed on; at `ip` */
	bool is_in_gap;	   /* since gap_ns */
	uint64_t async_ip; /* where the last branch was an END_ASYNC; else 0 */
	uint64_t left_ns, gap_ns, ip;
	uint8_t gap_reason;
};

/* All that is pointed to must outlive it. */
void selection__init(struct selection *selection, const struct decode_filter *filter,
		     struct decode_totals *totals, struct filter_totals *found);
void selection__fini(struct selection *selection);
/* What follows is of another thread, whose code is `map`. */
void selection__begin_thread(struct selection *selection, struct code_map *map);
/* *out, until the next call: those of them that are of the part, and all entries. 0 or -ENOMEM. */
int selection__take(struct selection *selection, const struct branch *v, size_t n,
		    struct branch_batch *out);

bool decode_filter__has_time(const struct decode_filter *filter, uint64_t time_ns);
/* Whether a stretch of time belongs to the part as a whole. */
bool decode_filter__has(const struct decode_filter *filter, uint64_t begin_ns, uint64_t end_ns);

#endif
