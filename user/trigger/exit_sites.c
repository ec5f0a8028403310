// SPDX-License-Identifier: MIT
#include "trigger/exit_sites.h"

#include <errno.h>
#include <stdlib.h>

#include "trigger/probe_site.h"
#include "util/cleanup.h"
#include "util/insn.h"

/* So many instructions before a jump through a register may load it from a table. */
#define TABLE_LOAD_DISTANCE 6

struct function_code {
	const uint8_t *code;
	size_t len;
	uint64_t vaddr;
	uint8_t *is_start; /* of each byte: an instruction begins there */
	exit_sites_own_fn is_own;
	void *ctx;
};

static bool is_inside(const struct function_code *f, uint64_t vaddr)
{
	return vaddr >= f->vaddr && vaddr - f->vaddr < f->len;
}

static int decode(const struct function_code *f, size_t at, struct insn *insn)
{
	return insn__decode(f->code + at, f->len - at, f->vaddr + at, insn);
}

static int mark_starts(const struct function_code *f)
{
	struct insn insn;

	for (size_t at = 0; at < f->len; at += insn.len) {
		if (decode(f, at, &insn))
			return -EILSEQ;
		f->is_start[at] = 1;
	}
	return 0;
}

/* Data among the code would be read out of step with it, and then jumps lead amid instructions. */
static int check_targets(const struct function_code *f)
{
	struct insn insn;

	for (size_t at = 0; at < f->len; at += insn.len) {
		if (decode(f, at, &insn))
			return -EILSEQ;
		if (insn.target && is_inside(f, insn.target) &&
		    !f->is_start[insn.target - f->vaddr])
			return -EILSEQ;
	}
	return 0;
}

/* jmp *table(,%rax,8), or, with relative tables: movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp. */
static bool is_table_jump(const struct function_code *f, size_t at)
{
	size_t starts[TABLE_LOAD_DISTANCE], n = 0;

	if (insn__has_index(f->code + at, f->len - at))
		return true;
	for (size_t i = at; i-- > 0 && n < TABLE_LOAD_DISTANCE;)
		if (f->is_start[i])
			starts[n++] = i;
	for (size_t i = 0; i < n; i++)
		if (insn__loads_indexed(f->code + starts[i], f->len - starts[i]))
			return true;
	return false;
}

static bool leaves(const struct function_code *f, size_t at, const struct insn *insn)
{
	switch (insn->cls) {
	case INSN_RET:
		return true;
	case INSN_JUMP:
		return !is_inside(f, insn->target) &&
		       !(f->is_own && f->is_own(f->ctx, insn->target));
	case INSN_JUMP_INDIRECT:
		return !is_table_jump(f, at);
	default:
		return false;
	}
}

static int add(const struct function_code *f, size_t at, struct exit_sites *sites)
{
	if (!probe_site__is_possible(f->code + at, f->len - at))
		return -EOPNOTSUPP;
	if (sites->n == EXIT_SITES_MAX)
		return -E2BIG;
	sites->at[sites->n++] = (uint32_t)at;
	return 0;
}

static int collect(const struct function_code *f, struct exit_sites *sites)
{
	struct insn insn;
	int err = 0;

	for (size_t at = 0; at < f->len && !err; at += insn.len) {
		err = decode(f, at, &insn);
		if (!err && leaves(f, at, &insn))
			err = add(f, at, sites);
	}
	return err ? err : sites->n ? 0 : -ENOENT;
}

int exit_sites__find(const uint8_t *code, size_t len, uint64_t vaddr, exit_sites_own_fn is_own,
		     void *ctx, struct exit_sites *sites)
{
	_cleanup_free_ uint8_t *is_start = calloc(1, len ? len : 1);
	const struct function_code f = {code, len, vaddr, is_start, is_own, ctx};
	int err;

	*sites = (struct exit_sites){0};
	if (!is_start)
		return -ENOMEM;
	err = mark_starts(&f);
	if (!err)
		err = check_targets(&f);
	return err ? err : collect(&f, sites);
}
