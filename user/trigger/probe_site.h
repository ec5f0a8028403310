/* SPDX-License-Identifier: MIT */
/*
 * Where in a function to put the probe. The int3 of a uprobe costs little where the kernel
 * emulates the instruction under it (push, one-byte nop, call, jmp, jcc), and a single-step
 * anywhere else.
 */
#ifndef MTBPF_TRIGGER_PROBE_SITE_H
#define MTBPF_TRIGGER_PROBE_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct probe_site {
	uint32_t skip; /* bytes from the function's entry to the probe */
	bool emulated; /* the kernel emulates the instruction there */
	bool at_entry; /* nothing before it changes the stack pointer: [sp] is the return address */
	char insn[16]; /* its mnemonic, for messages: "push", "sub" */
	/*
	 * A hit counts only with flags of that kind, see insn__condition(): Go's check of its stack
	 * leads back to the entry where that has to be moved first. 0: any does.
	 */
	uint8_t condition;
};

/*
 * Picks the site in a function whose code starts at code[0]: the first emulated push or nop of
 * the entry block, that is before any branch or branch target, so that it runs exactly once a
 * call; else the direct branch that ends the entry block, if it is emulated; else the entry
 * itself, behind an endbr64. `vaddr` is the address of code[0].
 *
 * A return probe must not go to a site that is not `at_entry`, but to the function's entry: the
 * kernel takes what is at [sp] for the return address and writes its own there.
 *
 * 0, or -EILSEQ where the entry is no valid instruction.
 */
int probe_site__choose(const uint8_t *code, size_t len, uint64_t vaddr, struct probe_site *site);
/*
 * The instruction `offset` bytes into the function. 0; -EILSEQ where none begins there; -EOPNOTSUPP
 * where the kernel takes no probe on it.
 */
int probe_site__at(const uint8_t *code, size_t len, uint64_t vaddr, size_t offset,
		   struct probe_site *site);

/* Whether the kernel takes a probe on the instruction there. */
bool probe_site__is_possible(const uint8_t *code, size_t len);

#endif
