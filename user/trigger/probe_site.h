/* SPDX-License-Identifier: MIT */
/*
 * Chooses the probed instructions of a function: at its entry, and where it is left. A uprobe is
 * cheap on instructions that the kernel emulates (push, one-byte nop, call, jmp, jcc); on others it
 * costs a single-step.
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
	 * A hit counts only if this condition holds, see insn__condition(); 0: always. Go's stack
	 * check jumps back to the entry if the stack has to be moved first.
	 */
	uint8_t condition;
	/* Registers of arguments that are written before it: insn__changed_arguments(). */
	uint8_t changed;
};

/*
 * Chooses the site in a function whose code starts at code[0] with address `vaddr`: the first
 * emulated push or nop of the entry block (before any branch or branch target, so that it runs once
 * per call); otherwise the emulated direct branch that ends the entry block; otherwise the entry,
 * after an endbr64.
 *
 * kept: registers of arguments, as in insn__changed_arguments(), that must still have their values
 * at the site: instructions that write them are not passed over.
 *
 * A return probe must be set at the function's entry if the site is not `at_entry`: the kernel
 * replaces the value at [sp] as the return address.
 *
 * Returns 0, or -EILSEQ if the entry is not a valid instruction.
 */
int probe_site__choose(const uint8_t *code, size_t len, uint64_t vaddr, uint8_t kept,
		       struct probe_site *site);
/*
 * Sets *site to the instruction at `offset`. 0; -EILSEQ if no instruction begins there; -EOPNOTSUPP
 * if the kernel cannot probe it.
 */
int probe_site__at(const uint8_t *code, size_t len, uint64_t vaddr, size_t offset,
		   struct probe_site *site);

/*
 * Finds the instructions at which a function is left. They are probed where return probes, which
 * replace the return address, are not possible: for Go and other programs whose runtime walks their
 * stacks.
 */

#define EXIT_SITES_MAX 128

struct exit_sites {
	uint32_t n;
	int32_t at[EXIT_SITES_MAX]; /* bytes from the function's entry */
	/* For a conditional jump: the condition, see insn__condition(); otherwise 0. */
	uint8_t condition[EXIT_SITES_MAX];
	/* Exits that are tail calls and not returns: what the call returns is not known there. */
	uint32_t n_jumps;
	int32_t first_jump; /* the first of them, as in at[] */
};

/* A contiguous part of a function's code. */
struct exit_part {
	const uint8_t *code;
	size_t len;
	uint64_t vaddr;
};

/* Finds the function's other part (its cold part) at vaddr; false if vaddr is not in one. */
typedef bool (*exit_sites_part_fn)(void *ctx, uint64_t vaddr, struct exit_part *part);

/*
 * Finds the exits of the function that begins with `entry`: returns and tail calls (direct,
 * conditional or through a pointer); jumps through a table stay inside. Follows jumps to its other
 * parts. Returns 0; -EILSEQ if instructions cannot be told from data, so that a probe might break
 * the code; -EOPNOTSUPP if the kernel cannot probe one of them; -E2BIG if there are too many;
 * -ENOENT if the function is never left.
 */
int exit_sites__find(const struct exit_part *entry, exit_sites_part_fn find_part, void *ctx,
		     struct exit_sites *sites);

/*
 * Finds the returns of a JIT's function, for breakpoints: since they change nothing, places that
 * are not certain count as well, such as those among data, and code that cannot be decoded is left
 * out. At each, the stack pointer is what it was at the entry: if the function drops its arguments
 * before its `ret`, the place is the instruction that takes the return address from the stack.
 * Exits by a jump are not found. 0; -E2BIG if there are too many; -ENOENT if there are none; or
 * -ENOMEM.
 */
int exit_sites__find_returns(const struct exit_part *code, struct exit_sites *sites);

#endif
