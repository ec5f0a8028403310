/* SPDX-License-Identifier: MIT */
/*
 * Who had called whom, of the frames that ended without a return: an exception's runtime is reached
 * the same way each time. So it is known what lies between a frame and the runtime, where a gap has
 * swallowed the calls, and the exception the returns.
 */
#ifndef MTBPF_STACK_STITCH_WAYS_H
#define MTBPF_STACK_STITCH_WAYS_H

#include "stack/stitch/fit.h"
#include "util/hash_index.h"

struct way {
	const struct function *caller, *callee;
	uint64_t return_ip; /* of the callee, into the caller */
	bool is_passed;	    /* by an exception, which did not land in the caller then */
};

/* Zero-initialised is empty. */
struct ways {
	VEC(struct way) all;
	struct hash_index index; /* by the callee, and by both */
};

/* Frames that one way may lead over. */
#define WAY_MAX 6

void ways__fini(struct ways *ways);

/* 0 or -ENOMEM. */
int ways__learn(struct ways *ways, const struct way *way);

/*
 * What the shortest way from one function to what it has called leads over, from the former on.
 * Their number; 0 where nothing lies between, no way is known, or several are as short.
 */
size_t ways__between(const struct ways *ways, const struct function *from,
		     const struct function *to, struct held between[WAY_MAX]);

/* Frames of which only their number is known. */
#define BETWEEN_MAX 32

/*
 * An exception has passed n frames between one function's and another's: on all ways that are known
 * to be passed, what each is; without a function where the ways differ. It landed in the former, or
 * has passed that as well. False: there is no such way.
 */
bool ways__pass(const struct ways *ways, const struct function *from, bool has_landed,
		const struct function *to, struct held between[BETWEEN_MAX], size_t n);

#endif
