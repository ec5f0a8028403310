// SPDX-License-Identifier: MIT
/*
 * Into the middle of a function, by something that is no return: of its frames, the one that an
 * exception or a longjmp() came back to.
 */
#include "stack/stack_internal.h"

bool stack__land(struct stack *s, const struct branch *b, const struct function *function)
{
	struct frame *caller;

	if (stack__longjmp(s, b))
		return true;
	caller = stack__find_caller(s, function);
	if (!caller)
		return false;
	frames__cut_to(s->frames, caller, b->time_ns, LEFT_BY_UNKNOWN);
	return true;
}
