// SPDX-License-Identifier: MIT
/* Where streams are wrong, and it is known how: decode/errata.h. */
#include "decode/walk/walk_internal.h"

/* What was told last went to the abort. */
static void mend_target(struct walker *w)
{
	struct outbox *out = w->out;
	struct branch *last = out->n ? &out->v[out->n - 1] : NULL;

	if (last && last->kind <= BRANCH_COND && last->to == w->block->ip)
		last->to = w->fup_ip;
}

/*
 * BDM64: the branch right in front of the abort went there, and not where its packet says. So it is
 * taken for one where the thread cannot have come to the abort from there.
 */
void walker__mend_abort(struct walker *w)
{
	bool is_abort = w->is_abort;
	struct block_reach reach;
	struct block *block;

	w->is_abort = false;
	if (!is_abort || !w->errata.bdm64 || w->tnt_left)
		return;
	if (blocks__reach(w->space->blocks, w->block, w->fup_ip, &reach))
		return;
	block = walker__find(w, w->fup_ip);
	if (!block)
		return;
	mend_target(w);
	walker__enter(w, block);
}

/* SKD022: VMLAUNCH and VMRESUME are what ends tracing, and no interrupt before them. */
bool walker__is_vm_entry(struct walker *w, uint64_t ip)
{
	uint8_t code[3] = {0};

	if (!w->errata.skd022)
		return false;
	code_map__read(w->space->map, ip, code, sizeof(code));
	return code[0] == 0x0f && code[1] == 0x01 && (code[2] == 0xc2 || code[2] == 0xc3);
}

/* SKL014: which branch it was is certain only where there is one. */
bool walker__find_exit(struct walker *w, struct block_reach *reach)
{
	return w->errata.skl014 && blocks__reach_only_branch(w->space->blocks, w->block, reach);
}
