/* SPDX-License-Identifier: MIT */
/* Decodes PT bytes and code to branches. This folder is the only user of libipt's decoders. */
#ifndef MTBPF_DECODE_DECODE_H
#define MTBPF_DECODE_DECODE_H

#include <stddef.h>

#include "decode/pt_note.h"
#include "decode/request.h"

/*
 * Decodes one thread's PT. Calls `take` in the caller's thread with the branches in order, a few
 * thousand at a time. `map` starts empty; during each call of `take` it shows the code at the
 * branches. Adds to totals. 0; -ENOMEM; or what `take` returned. Damage in the stream becomes a
 * BRANCH_GAP.
 */
int decode__run(const struct decode_request *request);

/* The version of the linked libipt. */
void decode__library_version(char *text, size_t size);

/* ---- a whole recording, thread by thread */

/* The functions that receive the result. A non-zero result stops decoding, which returns it. */
struct branch_receiver {
	/* The next branches are this thread's; `map` shows its code at each of them. */
	int (*begin)(void *ctx, pid_t pid, pid_t tid, struct code_map *map);
	/* Receives a few thousand at a time. */
	branches_fn take;
	/*
	 * Notes of CPUs while no known thread ran; called before `begin` for threads of CPUs'
	 * rings. May be NULL.
	 */
	int (*take_notes)(void *ctx, const struct pt_note *v, size_t n);
	/*
	 * Called after the thread's last branch, unless there was an error; the map is still valid.
	 */
	int (*end)(void *ctx);
	void *ctx;
	/* Shows progress: first in bytes of PT; then, for CPUs' rings, in branches. May be NULL. */
	struct meter *meter;
	bool wants_source; /* the receiver will look up source lines */
};

/*
 * Decodes all threads, and every snapshot of each, with a GAP_BETWEEN between two, and a GAP_LOST
 * where the capture lost something. Adds to totals. 0; -ENOMEM; or what a function of the receiver
 * returned.
 */
int decode__threads(const struct recording *rec, struct images *images, bool all_branches,
		    const struct branch_receiver *receiver, struct decode_totals *totals);

/* The bounds of a whole recording; 0 and 0 if nothing can be decoded. */
struct decode_bounds {
	uint64_t first_ns, last_ns;
};

/*
 * Finds totals.first_ns and last_ns without decoding more than both ends of each ring. 0 or
 * -ENOMEM.
 */
int decode__find_bounds(const struct recording *rec, struct images *images,
			struct decode_bounds *bounds);

#endif
