// SPDX-License-Identifier: MIT
#include "trigger/exit_sites.h"

#include <errno.h>
#include <stdlib.h>

#include "trigger/probe_site.h"
#include "util/insn.h"

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
	for (size_t i = 0; i < f->n; i++)
		if (vaddr >= f->parts[i].code.vaddr &&
		    vaddr - f->parts[i].code.vaddr < f->parts[i].code.len)
			return &f->parts[i];
	return NULL;
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

/* If data among the code was decoded, jumps lead into the middle of instructions. */
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
	for (size_t i = 0; i < n; i++)
		if (insn__loads_indexed(c->code + starts[i], c->len - starts[i]))
			return true;
	return false;
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

	if (!probe_site__is_possible(c->code + at, c->len - at))
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

/* Length of "pop %r; lea ...,%rsp; push %r" before a `ret`; 0: it does not begin here. */
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

/* Marks the instructions that run one after the other. */
static void mark_reached(struct sweep *sweep, size_t from)
{
	const struct exit_part *c = sweep->code;
	struct insn insn;

	for (size_t at = from; at < c->len && !sweep->is_start[at]; at += insn.len) {
		if (insn__decode(c->code + at, c->len - at, c->vaddr + at, &insn))
			return;
		sweep->is_start[at] = 1;
		if ((insn.cls == INSN_JUMP || insn.cls == INSN_COND) && insn.target >= c->vaddr &&
		    insn.target - c->vaddr < c->len && !sweep->is_start[insn.target - c->vaddr])
			sweep->todo[sweep->n++] = insn.target - c->vaddr;
		if (insn.cls == INSN_RET || insn.cls == INSN_JUMP ||
		    insn.cls == INSN_JUMP_INDIRECT || insn.cls == INSN_INT3)
			return;
	}
}

/*
 * Marks what is reached from the entry; then, as handlers of exceptions and a table's targets are
 * reached in other ways, what lies between.
 */
static void mark_all(struct sweep *sweep)
{
	const struct exit_part *c = sweep->code;
	struct insn insn;

	sweep->todo[sweep->n++] = 0;
	while (sweep->n)
		mark_reached(sweep, sweep->todo[--sweep->n]);
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
		/* The `ret` after it is not another place. */
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
