/* SPDX-License-Identifier: MIT */
/*
 * What CPUs' streams hold of each thread: a piece for each time that it ran on one. A thread's
 * pieces, in the order of time, are its branches.
 */
#ifndef MTBPF_DECODE_PIECES_H
#define MTBPF_DECODE_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/recording/recording.h"
#include "decode/branch.h"
#include "decode/pt_note.h"
#include "util/vec.h"

struct piece {
	const struct rec_switch *who; /* whose, and since when */
	unsigned int snapshot;
	uint64_t start_ns, end_ns;
	const struct rec_aux *aux;
	VEC(struct branch) branches; /* as in an outbox: walk.h */
};

struct pieces {
	const struct recording *rec;
	VEC(struct piece) all;
	/* What is taken now. */
	const struct rec_aux *aux;
	unsigned int snapshot;
	bool is_known;		    /* the thread is: the last of `all` is its piece */
	uint64_t unknown_insns;	    /* of threads that nothing names */
	VEC(struct pt_note) events; /* of CPUs, while no thread ran that is known */
};

void pieces__fini(struct pieces *pieces);

/* Behind it come the branches of this CPU's ring, its snapshot'th. */
void pieces__begin(struct pieces *pieces, const struct rec_aux *aux, unsigned int snapshot);
/* What a walker's outbox holds; an outbox_fn. 0 or -ENOMEM. */
int pieces__take(void *pieces, struct branch *branches, size_t n);

/* By thread, and each thread's by time. */
void pieces__sort(struct pieces *pieces);

#endif
