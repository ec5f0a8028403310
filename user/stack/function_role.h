/* SPDX-License-Identifier: MIT */
/*
 * Functions that do something to the stack that no call or return shows: known by their names, and
 * those that switch to another stack by their code.
 */
#ifndef MTBPF_STACK_FUNCTION_ROLE_H
#define MTBPF_STACK_FUNCTION_ROLE_H

#include <stdbool.h>

#include "target/code_map.h"

enum function_role {
	ROLE_NONE,
	ROLE_SETJMP,	 /* returns once more, by longjmp() */
	ROLE_SIGSETJMP,	 /* by siglongjmp() */
	ROLE_GETCONTEXT, /* by setcontext() */
	ROLE_RESOLVER,	 /* of lazy binding: jumps to the function that it has found */
	ROLE_START,	 /* where the kernel begins a program */
	ROLE_LINKER,	 /* of the dynamic linker, without a name: one of these two, or neither */
	ROLE_FIND_FDE,	 /* the unwinder asks it for each frame that it looks at: rules/steps.c */
	ROLE_MAY_SWITCH, /* to another stack: its code could do that */
	ROLE_SWITCH,	 /* it does */
	ROLE_SETCONTEXT, /* it does, and does not come back */
	ROLE_GOGO,	 /* Go's: from its scheduler's stack to a goroutine */
	ROLE_MCALL, /* Go's: calls a function on the scheduler's stack, never comes back itself */
	/* OCaml's effects: rules/effects.c */
	ROLE_PERFORM,
	ROLE_REPERFORM,
	ROLE_RESUME,
	ROLE_RUNSTACK,
	ROLE_FIBER, /* what a fiber's first function returns to, on its own stack */
};

static inline bool function_role__switches(enum function_role role)
{
	return role >= ROLE_MAY_SWITCH;
}

static inline bool function_role__is_effect(enum function_role role)
{
	return role >= ROLE_PERFORM;
}

/* Of the function that begins at `place`, or of what a stub there leads to. */
enum function_role function_role__at(struct code_map *map, const struct code_place *place);

#endif
