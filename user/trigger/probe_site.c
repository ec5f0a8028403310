// SPDX-License-Identifier: MIT
#include "trigger/probe_site.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/insn.h"
#include "util/vec.h"

/* The most bytes from the entry to a site. */
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
	return memchr(bytes, prefix, count_prefixes(bytes, len));
}

/* The kernel cannot probe such an instruction (arch/x86/kernel/uprobes.c: is_prefix_bad()). */
static bool is_refused(const uint8_t *bytes, const struct insn *insn)
{
	static const uint8_t bad[] = {0x26, 0x2e, 0x36, 0x3e, 0xf0};

	return ARRAY_FIND(bad, prefix, has_prefix(bytes, insn->len, *prefix));
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
 * (cmd/internal/obj/x86: stacksplit). A hit at which the jump to `target` is taken is not a call
 * yet: the function starts again.
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

/*
 * Sets *site to the instruction of the entry block that the kernel emulates. False: not found.
 */
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
	 * Otherwise chooses the first instruction that can be probed. It is after the endbr64,
	 * unless the function jumps back to the address after the endbr64.
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
	/*
	 * Straight code must lead from the entry to the probe without changing the stack pointer.
	 */
	site->at_entry = at < block.end;
	for (size_t i = 0; i < at && site->at_entry; i += insn.len)
		site->at_entry = decode_next(&block, i, &insn) && insn.cls == INSN_OTHER &&
				 !insn__changes_sp(code + i, insn.len);
	return 0;
}

/* The most instructions between the load from a jump table and the indirect jump. */
#define TABLE_LOAD_DISTANCE 6

/* Most parts of one function: its body and its cold parts. */
#define PARTS_MAX 8

struct code_part {
	struct exit_part code;
	uint8_t *is_start; /* per byte: 1 if an instruction begins there */
};

struct function_code {
	struct code_part parts[PARTS_MAX];
	size_t n;
	exit_sites_part_fn find_part;
	void *ctx;
};

static struct code_part *part_of(struct function_code *f, uint64_t vaddr)
{
	return FIND_IN(f->parts, f->n, part, vaddr - part->code.vaddr < part->code.len);
}

static int decode(const struct code_part *part, size_t at, struct insn *insn)
{
	const struct exit_part *code = &part->code;

	return insn__decode(code->code + at, code->len - at, code->vaddr + at, insn);
}

static int add_part(struct function_code *f, const struct exit_part *code)
{
	uint8_t *is_start = f->n < PARTS_MAX ? calloc(1, code->len ? code->len : 1) : NULL;

	if (!is_start)
		return f->n < PARTS_MAX ? -ENOMEM : -E2BIG;
	f->parts[f->n++] = (struct code_part){*code, is_start};
	return 0;
}

/* Marks where instructions begin, and adds the other parts of the function that jumps lead to. */
static int mark_starts(struct function_code *f, size_t number)
{
	struct exit_part other;
	struct insn insn;

	for (size_t at = 0; at < f->parts[number].code.len; at += insn.len) {
		int err = 0;

		if (decode(&f->parts[number], at, &insn))
			return -EILSEQ;
		f->parts[number].is_start[at] = 1;
		if ((insn.cls == INSN_JUMP || insn.cls == INSN_COND) && !part_of(f, insn.target) &&
		    f->find_part && f->find_part(f->ctx, insn.target, &other))
			err = add_part(f, &other);
		if (err)
			return err;
	}
	return 0;
}

/* Refuses code with jumps into the middle of instructions: then data was decoded as code. */
static int check_targets(struct function_code *f, const struct code_part *part)
{
	struct insn insn;

	for (size_t at = 0; at < part->code.len; at += insn.len) {
		const struct code_part *to;

		if (decode(part, at, &insn))
			return -EILSEQ;
		to = insn.target ? part_of(f, insn.target) : NULL;
		if (to && !to->is_start[insn.target - to->code.vaddr])
			return -EILSEQ;
	}
	return 0;
}

/* True for jmp *table(,%rax,8), or movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp *%rax. */
static bool is_table_jump(const struct code_part *part, size_t at)
{
	const struct exit_part *c = &part->code;
	size_t starts[TABLE_LOAD_DISTANCE], n = 0;

	if (insn__has_index(c->code + at, c->len - at))
		return true;
	for (size_t i = at; i-- > 0 && n < TABLE_LOAD_DISTANCE;)
		if (part->is_start[i])
			starts[n++] = i;
	return FIND_IN(starts, n, start, insn__loads_indexed(c->code + *start, c->len - *start));
}

static bool leaves(struct function_code *f, const struct code_part *part, size_t at,
		   const struct insn *insn)
{
	switch (insn->cls) {
	case INSN_RET:
		return true;
	case INSN_JUMP:
	case INSN_COND:
		return !part_of(f, insn->target);
	case INSN_JUMP_INDIRECT:
		return !is_table_jump(part, at);
	default:
		return false;
	}
}

static int add(struct function_code *f, const struct code_part *part, size_t at,
	       const struct insn *insn, struct exit_sites *sites)
{
	const struct exit_part *c = &part->code;
	uint8_t condition = 0;

	if (is_refused(c->code + at, insn))
		return -EOPNOTSUPP;
	if (insn->cls == INSN_COND) {
		condition = insn__condition(c->code + at, c->len - at);
		/* loop and jrcxz test a register, not flags. */
		if (!condition)
			return -EOPNOTSUPP;
	}
	if (sites->n == EXIT_SITES_MAX)
		return -E2BIG;
	sites->at[sites->n] = (int32_t)(c->vaddr + at - f->parts[0].code.vaddr);
	if (insn->cls != INSN_RET && !sites->n_jumps++)
		sites->first_jump = sites->at[sites->n];
	sites->condition[sites->n++] = condition;
	return 0;
}

static int collect(struct function_code *f, const struct code_part *part, struct exit_sites *sites)
{
	struct insn insn;
	int err = 0;

	for (size_t at = 0; at < part->code.len && !err; at += insn.len) {
		err = decode(part, at, &insn);
		if (!err && leaves(f, part, at, &insn))
			err = add(f, part, at, &insn, sites);
	}
	return err;
}

int exit_sites__find(const struct exit_part *entry, exit_sites_part_fn find_part, void *ctx,
		     struct exit_sites *sites)
{
	struct function_code f = {.find_part = find_part, .ctx = ctx};
	int err = add_part(&f, entry);

	*sites = (struct exit_sites){0};
	for (size_t i = 0; i < f.n && !err; i++)
		err = mark_starts(&f, i);
	for (size_t i = 0; i < f.n && !err; i++)
		err = check_targets(&f, &f.parts[i]);
	for (size_t i = 0; i < f.n && !err; i++)
		err = collect(&f, &f.parts[i], sites);
	if (!err && !sites->n)
		err = -ENOENT;
	for (size_t i = 0; i < f.n; i++)
		free(f.parts[i].is_start);
	return err;
}

/* Length of "pop %r; lea ...,%rsp; push %r" before a `ret`; 0: no such code begins at `at`. */
static size_t drop_length(const struct exit_part *code, size_t at)
{
	struct insn insn;
	struct insn_move pop, push = {0};
	size_t next = at;

	if (insn__decode(code->code + at, code->len - at, code->vaddr + at, &insn))
		return 0;
	pop = insn__move(code->code + at, insn.len, code->vaddr + at);
	if (pop.kind != MOVE_POP || pop.reg == INSN_RSP)
		return 0;
	for (int i = 0; i < 2; i++) {
		next += insn.len;
		if (insn__decode(code->code + next, code->len - next, code->vaddr + next, &insn) ||
		    !insn__changes_sp(code->code + next, insn.len))
			return 0;
		push = insn__move(code->code + next, insn.len, code->vaddr + next);
	}
	next += insn.len;
	if (push.kind != MOVE_PUSH || push.reg != pop.reg ||
	    insn__decode(code->code + next, code->len - next, code->vaddr + next, &insn) ||
	    insn.cls != INSN_RET)
		return 0;
	return next - at;
}

struct sweep {
	const struct exit_part *code;
	uint8_t *is_start; /* per byte: 1 if an instruction begins there */
	size_t *todo, n;   /* places that are reached by a jump: one per instruction at most */
};

/*
 * Marks the instructions that are reached from the entry, one after the other or by jumps. Then
 * marks instructions that fit between those: exception handlers, and targets of jump tables, are
 * reached in other ways.
 */
static void mark_all(struct sweep *sweep)
{
	const struct exit_part *c = sweep->code;
	struct insn insn;

	sweep->todo[sweep->n++] = 0;
	while (sweep->n) {
		size_t at = sweep->todo[--sweep->n];
		bool ends = false;

		while (!ends && at < c->len && !sweep->is_start[at] &&
		       !insn__decode(c->code + at, c->len - at, c->vaddr + at, &insn)) {
			uint64_t to = insn.target - c->vaddr;

			sweep->is_start[at] = 1;
			if ((insn.cls == INSN_JUMP || insn.cls == INSN_COND) &&
			    insn.target >= c->vaddr && to < c->len && !sweep->is_start[to])
				sweep->todo[sweep->n++] = to;
			ends = insn.cls == INSN_RET || insn.cls == INSN_JUMP ||
			       insn.cls == INSN_JUMP_INDIRECT || insn.cls == INSN_INT3;
			at += insn.len;
		}
	}
	for (size_t at = 0; at < c->len;) {
		bool fits = !insn__decode(c->code + at, c->len - at, c->vaddr + at, &insn);

		for (size_t i = 1; fits && !sweep->is_start[at] && i < insn.len; i++)
			fits = !sweep->is_start[at + i];
		sweep->is_start[at] |= fits;
		at += fits ? insn.len : 1;
	}
}

static int take_returns(const struct exit_part *code, const uint8_t *is_start,
			struct exit_sites *sites)
{
	struct insn insn;

	for (size_t at = 0; at < code->len; at++) {
		size_t dropped;

		if (!is_start[at] ||
		    insn__decode(code->code + at, code->len - at, code->vaddr + at, &insn))
			continue;
		dropped = drop_length(code, at);
		if (insn.cls != INSN_RET && !dropped)
			continue;
		if (sites->n == EXIT_SITES_MAX)
			return -E2BIG;
		sites->at[sites->n++] = (int32_t)at;
		/* Skip the `ret` that belongs to this place. */
		at += dropped;
	}
	return sites->n ? 0 : -ENOENT;
}

int exit_sites__find_returns(const struct exit_part *code, struct exit_sites *sites)
{
	struct sweep sweep = {.code = code,
			      .is_start = calloc(1, code->len + 1),
			      .todo = calloc(code->len + 1, sizeof(*sweep.todo))};
	int err = sweep.is_start && sweep.todo ? 0 : -ENOMEM;

	*sites = (struct exit_sites){0};
	if (!err) {
		mark_all(&sweep);
		err = take_returns(code, sweep.is_start, sites);
	}
	free(sweep.is_start);
	free(sweep.todo);
	return err;
}
