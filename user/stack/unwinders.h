/* SPDX-License-Identifier: MIT */
/* The functions of runtimes by which calls end without a return: known by their names. */
#ifndef MTBPF_STACK_UNWINDERS_H
#define MTBPF_STACK_UNWINDERS_H

#include <stdbool.h>

#include "stack/call_tree.h"

struct unwinder {
	enum left_by left_by;
	/* It goes on with what an earlier one began, and a clean-up interrupted. */
	bool resumes;
};

/* What a function does as its readable name says (function.name); NULL where it is no unwinder. */
const struct unwinder *unwinder__find(const char *name);

#endif
