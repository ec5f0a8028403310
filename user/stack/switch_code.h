/* SPDX-License-Identifier: MIT */
/* What a function that switches stacks looks like, where its name does not say what it is. */
#ifndef MTBPF_STACK_SWITCH_CODE_H
#define MTBPF_STACK_SWITCH_CODE_H

#include <stdbool.h>

#include "target/code_map.h"

/*
 * The function at `place` takes the stack pointer from a register or from memory, and goes on by a
 * return or an indirect jump: a switch of coroutines does, and the end of some functions that align
 * their stack. glibc's longjmp() is told from them.
 */
bool switch_code__is_at(struct code_map *map, const struct code_place *place);

#endif
