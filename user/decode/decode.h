/* SPDX-License-Identifier: MIT */
/* PT bytes and code to branches. This folder is the only user of libipt's decoders. */
#ifndef MTBPF_DECODE_DECODE_H
#define MTBPF_DECODE_DECODE_H

#include <stddef.h>

#include "decode/speed.h"
#include "decode/pt_note.h"
#include "decode/request.h"

/*
 * Decodes one thread's PT and hands its branches to `take`, in order, in the caller's thread, a few
 * thousand at a time. `map` starts empty; during each call of `take` it shows the code as it was at
 * the branches. Adds to totals. 0; -ENOMEM; or what `take` returned. Damage in the stream is no
 * error: it is a BRANCH_GAP.
 */
int decode__run(const struct decode_request *request);

/* The same, without branches that stay in their function, and on all CPUs. */
int decode__thread(const struct recording *rec, const struct rec_aux *aux, struct images *images,
		   struct code_map *map, branches_fn take, void *ctx, struct decode_totals *totals);

/* libipt's version, from the library itself. */
void decode__library_version(char *text, size_t size);

/* ---- a whole recording, thread by thread */

/*
 * The functions that take the result. If one returns anything but 0, decoding stops, and returns
 * that.
 */
struct branch_receiver {
	/* The next branches are this thread's; `map` shows its code as it was at each branch. */
	int (*begin)(void *ctx, pid_t pid, pid_t tid, struct code_map *map);
	/* A few thousand at a time; `map` as begin() got it. */
	branches_fn take;
	/* Events that CPUs reported while no thread ran, before the first thread; may be NULL. */
	int (*take_notes)(void *ctx, const struct pt_note *v, size_t n);
	/* Before the map is gone. */
	int (*end)(void *ctx);
	void *ctx;
	struct meter *meter; /* of bytes of PT; of CPUs' rings then of their branches; or NULL */
	bool wants_source;   /* will ask for functions' lines */
};

/*
 * Decodes every snapshot of a thread, with a GAP_BETWEEN between two, and a GAP_LOST where the
 * capture lost something. Adds to totals. 0; -ENOMEM; or what `take` returned.
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
