/* SPDX-License-Identifier: MIT */
/* How much memory work may take whose need is not known before it is done: calls, of bytes of
 * trace. */
#ifndef MTBPF_UTIL_MEMORY_LIMIT_H
#define MTBPF_UTIL_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * From now on as many bytes as that may be allocated beside those that are now; 0: three quarters
 * of what the machine has left (MemAvailable of /proc/meminfo). Without a call there is no limit.
 */
void memory_limit__set(uint64_t bytes);
/* What was set last; UINT64_MAX: none. */
uint64_t memory_limit__get(void);

/*
 * Whether there is room for so many more, from any thread; it is looked at with each MiB that was
 * asked for. What is refused is remembered.
 */
bool memory_limit__allows(size_t more);
/* Whether something was refused since it was set, or since this was asked. */
bool memory_limit__was_met(void);

#endif
