// SPDX-License-Identifier: MIT
#include "trigger/probe_site.h"

#include <errno.h>
#include <string.h>

#include "util/insn.h"

/* The farthest that a site may be from the entry. */
#define MAX_SKIP 64

/* A function's code and where its entry block must end. */
struct entry_block {
	const uint8_t *code;
	size_t len;
	uint64_t vaddr;
	size_t end;   /* the first branch target after the entry, or len */
	uint8_t kept; /* see probe_site__choose() */
};

static size_t count_prefixes(const uint8_t *bytes, size_t len)
{
	/* es, cs, ss, ds, fs, gs; operand size, address size; lock, repne, rep */
	static const uint8_t prefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65,
					   0x66, 0x67, 0xf0, 0xf2, 0xf3};
	size_t n = 0;

	while (n < len && memchr(prefixes, bytes[n], sizeof(prefixes)))
		n++;
	return n;
}

static bool has_prefix(const uint8_t *bytes, size_t len, uint8_t prefix)
{
	for (size_t i = 0; i < count_prefixes(bytes, len); i++)
		if (bytes[i] == prefix)
			return true;
	return false;
}

/* The kernel cannot probe such an instruction (arch/x86/kernel/uprobes.c: is_prefix_bad()). */
static bool is_refused(const uint8_t *bytes, const struct insn *insn)
{
	static const uint8_t bad[] = {0x26, 0x2e, 0x36, 0x3e, 0xf0};

	for (size_t i = 0; i < sizeof(bad); i++)
		if (has_prefix(bytes, insn->len, bad[i]))
			return true;
	return false;
}

/*
 * True for direct call, jmp and jcc (arch/x86/kernel/uprobes.c: branch_setup_xol_ops()); not for
 * loop and jrcxz (e0-e3), nor with an operand size prefix, which AMD and Intel treat differently.
 */
static bool is_emulated_branch(const uint8_t *bytes, const struct insn *insn)
{
	size_t prefixes = count_prefixes(bytes, insn->len);
	uint8_t opcode = prefixes < insn->len ? bytes[prefixes] : 0;

	if (has_prefix(bytes, insn->len, 0x66))
		return false;
	switch (insn->cls) {
	case INSN_CALL:
	case INSN_JUMP:
		return true;
	case INSN_COND:
		return opcode < 0xe0;
	default:
		return false;
	}
}

/*
 * True for other emulated instructions: 0x90 (a jmp to the next instruction for
 * branch_setup_xol_ops()), and push 50+r with at most REX.B (push_setup_xol_ops()). Longer nops are
 * left out: Linux 6.18 turns a 5-byte nop into a call, which would be in the trace, and older
 * kernels single-step them.
 */
static bool is_emulated_straight(const uint8_t *bytes, const struct insn *insn)
{
	if (insn->is_nop1)
		return true;
	return insn->is_push_reg && (insn->len == 1 || (insn->len == 2 && bytes[0] == 0x41));
}

/*
 * The entry block ends where the function jumps back to: a probe after that point would run more
 * than once per call. A jump to the entry itself is a new call (a tail call to itself). Invalid
 * instructions are data among the code; decoding them can only end the block too early.
 */
static size_t first_branch_target(const uint8_t *code, size_t len, uint64_t vaddr)
{
	size_t first = len;

	for (size_t at = 0; at < len;) {
		struct insn insn;
		uint64_t target;

		if (insn__decode(code + at, len - at, vaddr + at, &insn)) {
			at++;
			continue;
		}
		target = insn.target - vaddr;
		if (insn.target && target > 0 && target < first)
			first = target;
		at += insn.len;
	}
	return first;
}

/* Decodes the instruction at `at`. False after the end of the entry block. */
static bool decode_next(const struct entry_block *block, size_t at, struct insn *insn)
{
	return at < block->end && at <= MAX_SKIP &&
	       !insn__decode(block->code + at, block->len - at, block->vaddr + at, insn);
}

static void set_site(const struct entry_block *block, size_t at, bool emulated,
		     struct probe_site *site)
{
	site->skip = at;
	site->emulated = emulated;
	insn__mnemonic(block->code + at, block->len - at, site->insn, sizeof(site->insn));
}

/* Most bytes of Go's morestack code: moves, a call, and the jump back. */
#define MAX_MORESTACK 48

/*
 * True if the code at `target` calls something and jumps back to the function's entry
 * (cmd/internal/obj/x86: stacksplit): hits before that are not calls yet.
 */
static bool restarts_function(const struct entry_block *block, uint64_t target)
{
	bool has_called = false;
	struct insn insn;

	for (uint64_t at = target - block->vaddr, end = at + MAX_MORESTACK;
	     at < end && at < block->len; at += insn.len) {
		if (insn__decode(block->code + at, block->len - at, block->vaddr + at, &insn))
			return false;
		if (insn.cls == INSN_JUMP)
			return has_called && insn.target == block->vaddr;
		if (insn.cls != INSN_CALL && insn.cls != INSN_OTHER)
			return false;
		has_called |= insn.cls == INSN_CALL;
	}
	return false;
}

/*
 * Finds the last jump to `target` in the stack check that begins at `at`. For a frame of more than
 * 4 KB there are two (stacksplit, "huge"): sp minus frame size below 0, and below the limit. Code
 * that passes the second jump has passed both.
 */
static size_t last_of_check(const struct entry_block *block, size_t at, uint64_t target)
{
	struct insn insn;
	size_t last = at;

	for (; decode_next(block, at, &insn); at += insn.len) {
		const uint8_t *bytes = block->code + at;

		if (insn.cls == INSN_COND && insn.target == target &&
		    is_emulated_branch(bytes, &insn) && !is_refused(bytes, &insn))
			last = at;
		else if (insn.cls != INSN_OTHER || insn__changes_sp(bytes, insn.len))
			break;
	}
	return last;
}

/* True if the entry block has an instruction that the kernel emulates. */
static bool choose_emulated(const struct entry_block *block, struct probe_site *site)
{
	struct insn insn;
	uint8_t changed = 0;

	site->at_entry = true;
	for (size_t at = 0; decode_next(block, at, &insn); at += insn.len) {
		const uint8_t *bytes = block->code + at;
		bool straight = is_emulated_straight(bytes, &insn);

		if ((straight || is_emulated_branch(bytes, &insn)) && !is_refused(bytes, &insn)) {
			set_site(block, at, true, site);
			site->changed = changed;
			if (insn.cls == INSN_COND && restarts_function(block, insn.target)) {
				at = last_of_check(block, at, insn.target);
				set_site(block, at, true, site);
				site->condition =
					insn__condition(block->code + at, block->len - at) ^ 1;
			}
			return true;
		}
		changed |= insn__changed_arguments(bytes, insn.len);
		if (insn.cls != INSN_OTHER || changed & block->kept)
			return false;
		if (insn__changes_sp(bytes, insn.len))
			site->at_entry = false;
	}
	return false;
}

int probe_site__choose(const uint8_t *code, size_t len, uint64_t vaddr, uint8_t kept,
		       struct probe_site *site)
{
	struct entry_block block = {.code = code, .len = len, .vaddr = vaddr, .kept = kept};
	bool moved = false, moves = false;
	size_t chosen = 0;
	struct insn insn;

	*site = (struct probe_site){0};
	if (insn__decode(code, len, vaddr, &insn))
		return -EILSEQ;
	block.end = first_branch_target(code, len, vaddr);
	if (choose_emulated(&block, site))
		return 0;
	/*
	 * The first instruction that can be probed, after an endbr64 unless the function jumps back
	 * to there.
	 */
	for (size_t at = 0; decode_next(&block, at, &insn); at += insn.len) {
		chosen = at;
		moved = moves;
		if (insn.cls != INSN_OTHER || (!insn.is_endbr && !is_refused(code + at, &insn)))
			break;
		moves = moves || insn__changes_sp(code + at, insn.len);
	}
	set_site(&block, chosen, false, site);
	site->at_entry = !moved;
	return 0;
}

int probe_site__at(const uint8_t *code, size_t len, uint64_t vaddr, size_t offset,
		   struct probe_site *site)
{
	struct entry_block block = {.code = code, .len = len, .vaddr = vaddr};
	struct insn insn = {0};
	size_t at = 0;
	bool emulated;

	*site = (struct probe_site){0};
	for (; at < len && at <= offset; at += insn.len) {
		if (insn__decode(code + at, len - at, vaddr + at, &insn))
			return -EILSEQ;
		if (at == offset)
			break;
	}
	if (at != offset || at >= len)
		return -EILSEQ;
	if (is_refused(code + at, &insn))
		return -EOPNOTSUPP;
	block.end = first_branch_target(code, len, vaddr);
	emulated = is_emulated_straight(code + at, &insn) || is_emulated_branch(code + at, &insn);
	set_site(&block, at, emulated, site);
	/* Straight code must lead from the entry to there without changing the stack pointer. */
	site->at_entry = at < block.end;
	for (size_t i = 0; i < at && site->at_entry; i += insn.len)
		site->at_entry = decode_next(&block, i, &insn) && insn.cls == INSN_OTHER &&
				 !insn__changes_sp(code + i, insn.len);
	return 0;
}

bool probe_site__is_possible(const uint8_t *code, size_t len)
{
	struct insn insn;

	return !insn__decode(code, len, 0, &insn) && !is_refused(code, &insn);
}
