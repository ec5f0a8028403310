/* SPDX-License-Identifier: MIT */
/*
 * Chooses the probed instruction of a function. A uprobe is cheap on instructions that the kernel
 * emulates (push, one-byte nop, call, jmp, jcc); on others it costs a single-step.
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

/* True if the kernel can probe the instruction. */
bool probe_site__is_possible(const uint8_t *code, size_t len);

#endif
