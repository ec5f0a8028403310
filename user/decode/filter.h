/* SPDX-License-Identifier: MIT */
/*
 * Decodes a part of a recording: from the last PSB before the part to the second one after it.
 * Only branches within the part are handed on.
 */
#ifndef MTBPF_DECODE_FILTER_H
#define MTBPF_DECODE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/request.h"
#include "util/vec.h"

/* All members zero except to_ns (UINT64_MAX): the whole recording. */
struct decode_filter {
	uint64_t from_ns, to_ns; /* inclusive; 0 and UINT64_MAX: no limit */
	/*
	 * For each thread: every stretch from a call of `start` to the next call of `stop`, which
	 * are named as in -symbol. NULL: from the beginning, or to the end.
	 */
	const char *start, *stop;
};

/*
 * Removes the bytes from rec's rings that need not be decoded. Keeps all bytes if PSBs lack times.
 */
void decode_filter__narrow(const struct decode_filter *filter, struct recording *rec);

/* Counts of what the filter has found. */
struct filter_totals {
	uint64_t branches;	/* handed on, including the BEGIN and END of the part */
	uint64_t starts, stops; /* calls of `start` and `stop` within the part */
};

/* Size of the cache of functions that were compared with `start` and `stop`. */
#define SELECTION_KNOWN 1024

/*
 * Selects the branches of the part. A thread that runs when the part begins gets a BEGIN there, and
 * an END at the end of the part. A thread that is in a system call, or interrupted, when the part
 * begins gets a BEGIN and its END_SYSCALL or END_ASYNC at that time. Two regions have a
 * GAP_FILTERED between them.
 */
struct selection {
	const struct decode_filter *filter;
	struct decode_totals *totals; /* counts what is handed on */
	struct filter_totals *found;
	struct known_function {
		const struct function *function;
		unsigned int is;
	} known[SELECTION_KNOWN];

	VEC(struct branch) out;

	/* State of the current thread. */
	struct code_map *map;
	bool is_empty;	     /* nothing was handed on */
	bool has_before;     /* `before` is the last branch before the part */
	bool is_in, is_over; /* the part has begun; the part has ended */
	struct branch before;
	bool is_inside;	   /* the thread is in a region */
	bool has_left;	   /* the thread left a region at left_ns */
	bool is_running;   /* the last branch that was handed on left the thread running, at `ip` */
	bool is_in_gap;	   /* the thread is in a gap, since gap_ns */
	uint64_t async_ip; /* the IP if the last branch was an END_ASYNC; otherwise 0 */
	uint64_t left_ns, gap_ns, ip;
	uint8_t gap_reason;
};

/* Keeps all the pointers, which must stay valid. */
void selection__init(struct selection *selection, const struct decode_filter *filter,
		     struct decode_totals *totals, struct filter_totals *found);
void selection__fini(struct selection *selection);
/* The next branches are of another thread, whose code is `map`. */
void selection__begin_thread(struct selection *selection, struct code_map *map);
/* *out holds the selected branches and all entries until the next call. 0 or -ENOMEM. */
int selection__take(struct selection *selection, const struct branch *v, size_t n,
		    struct branch_batch *out);

bool decode_filter__has_time(const struct decode_filter *filter, uint64_t time_ns);
/* True if all of the stretch is within the part's times; always false for a filter of functions. */
bool decode_filter__has(const struct decode_filter *filter, uint64_t begin_ns, uint64_t end_ns);

#endif
