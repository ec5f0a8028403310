/* SPDX-License-Identifier: MIT */
/*
 * The stacks of a thread that were there before a gap, and which of them one is that went on behind
 * it: by the frames that it shows, and the addresses that they return to.
 */
#ifndef MTBPF_STACK_PARKED_H
#define MTBPF_STACK_PARKED_H

#include "stack/strands.h"

/* Strands that cannot be told apart: the same frames, and they wait at the same address. */
struct parked_group {
	struct held_stack pending;
	uint64_t waits_at; /* 0: they did not wait */
	uint8_t slack;	   /* or so many bytes behind it */
	bool is_rootless;
	size_t first, n_taken; /* in parked.strands */
	size_t n;
};

struct parked {
	VEC(struct strand *) strands; /* a group's together, the one that waited last first */
	VEC(struct parked_group) groups;
};

/* How well a group fits. */
struct likeness {
	size_t group; /* counted from 1; 0: none fits, or several do that are different below */
	struct fit fit;
	bool has_waited; /* and has not moved since */
};

/* 0 or -ENOMEM. The strands' `pending` must outlive it. */
int parked__list(struct parked *parked, struct strands *strands);
void parked__fini(struct parked *parked);

/*
 * One that began with these frames, to which a switch to began_at went (0: it ran when the gap
 * ended).
 */
struct likeness parked__find(const struct parked *parked, struct held_stack begin,
			     uint64_t began_at);

/* One of that group, which is not to be found again. */
struct strand *parked__take(struct parked *parked, size_t group);

#endif
