/* SPDX-License-Identifier: MIT */
/*
 * The instructions by which a function is left: what is probed in the place of its return address,
 * which a return probe replaces. Go's runtime, and others that walk their stacks, find that there.
 */
#ifndef MTBPF_TRIGGER_EXIT_SITES_H
#define MTBPF_TRIGGER_EXIT_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXIT_SITES_MAX 128

struct exit_sites {
	uint32_t n;
	uint32_t at[EXIT_SITES_MAX]; /* bytes from the function's entry, ascending */
};

/* True where the code at vaddr is of the same function: its cold part, elsewhere. */
typedef bool (*exit_sites_own_fn)(void *ctx, uint64_t vaddr);

/*
 * Those of a function with code[0..len) at vaddr: its returns, and its jumps out of it (tail
 * calls), direct or through a pointer; jumps through a table stay inside. A conditional jump out of
 * it is left out, and so is what leaves its cold part: such calls are not measured. 0; -EILSEQ
 * where instructions cannot be told from data, so that a probe might break them; -EOPNOTSUPP where
 * the kernel takes no probe on one of them; -E2BIG; -ENOENT where it is never left.
 */
int exit_sites__find(const uint8_t *code, size_t len, uint64_t vaddr, exit_sites_own_fn is_own,
		     void *ctx, struct exit_sites *sites);

#endif
