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
	int32_t at[EXIT_SITES_MAX]; /* bytes from the function's entry */
	/* Left there only if the flags say so: of a conditional jump, see insn__condition().
	 */
	uint8_t condition[EXIT_SITES_MAX];
};

/* A run of a function's code. */
struct exit_part {
	const uint8_t *code;
	size_t len;
	uint64_t vaddr;
};

/* True where the code at vaddr is of the same function, in another part: its cold one. */
typedef bool (*exit_sites_part_fn)(void *ctx, uint64_t vaddr, struct exit_part *part);

/*
 * Those of a function that begins with `entry`: its returns, and its jumps out of it (tail calls),
 * direct, conditional, or through a pointer; jumps through a table stay inside. Parts that it jumps
 * to are looked through as well. 0; -EILSEQ where instructions cannot be told from data, so that a
 * probe might break them; -EOPNOTSUPP where the kernel takes no probe on one of them; -E2BIG;
 * -ENOENT where it is never left.
 */
int exit_sites__find(const struct exit_part *entry, exit_sites_part_fn find_part, void *ctx,
		     struct exit_sites *sites);

#endif
