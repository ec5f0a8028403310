/* SPDX-License-Identifier: MIT */
/* Functions that do something to the stack that no call or return shows: known by their names. */
#ifndef MTBPF_STACK_FUNCTION_ROLE_H
#define MTBPF_STACK_FUNCTION_ROLE_H

#include "target/code_map.h"

enum function_role {
	ROLE_NONE,
	ROLE_SETJMP,	 /* returns once more, by longjmp() */
	ROLE_SIGSETJMP,	 /* by siglongjmp() */
	ROLE_GETCONTEXT, /* by setcontext() */
	ROLE_RESOLVER,	 /* of lazy binding: jumps to the function that it has found */
	ROLE_START,	 /* where the kernel begins a program */
	ROLE_LINKER,	 /* of the dynamic linker, without a name: one of these two, or neither */
};

/* Of the function at `place`, or of what a stub there leads to. */
enum function_role function_role__at(const struct code_place *place);

#endif
