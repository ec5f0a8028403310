// SPDX-License-Identifier: MIT
/* Where the thread is not known, and how that is found out again. */
#include "decode/walk/walk_internal.h"

void walker__lose(struct walker *w, enum gap_reason reason, uint64_t ip, uint64_t tsc)
{
	w->state = WALK_LOST;
	w->block = NULL;
	w->tnt_left = 0;
	w->has_fup = false;
	w->ignores_fup = false;
	w->is_abort = false;
	w->after_ovf = false;
	w->knows_ip = false;
	w->floor = w->top;
	walker__emit(w, BRANCH_GAP, 0, ip, 0, tsc);
	if (w->out->n)
		w->out->v[w->out->n - 1].reason = (uint8_t)reason;
}

bool walker__lose_mode(struct walker *w, uint64_t ip)
{
	if (w->is_other_mode)
		walker__lose(w, GAP_32_BIT, ip, w->time.tsc);
	return w->is_other_mode;
}

bool walker__renew(struct walker *w)
{
	struct block *block = w->block;
	uint64_t before = block->stamp;

	if (blocks__renew(w->space->blocks, block))
		return walker__fail(w);
	return block->stamp != before;
}

void walker__cannot(struct walker *w)
{
	struct block *block = w->block;

	if (!block)
		return;
	walker__take_steps(w, block, block->n_steps, w->block_tsc);
	w->counts += block->counts;
	if (block->end == BLOCK_UNMAPPED)
		walker__lose(w, GAP_UNMAPPED, block->last_ip, w->block_tsc);
	else
		walker__lose(w, GAP_MISMATCH, block->last_ip, w->block_tsc);
}

/*
 * A packet that says it in full is right whatever was lost before it: its TNT bits and TIPs follow.
 */
bool walker__resume(struct walker *w, unsigned int ip_bytes, uint64_t ip)
{
	struct block *block;

	if (w->state != WALK_LOST || ip_bytes == IP_SUPPRESSED || w->is_other_mode)
		return false;
	if (!w->knows_ip && !packet__is_full_ip(ip_bytes))
		return false;
	w->knows_ip = true;
	walker__update_space(w);
	block = walker__find(w, ip);
	if (!block)
		return false;
	/* Still in code that nobody has. */
	if (block->end >= BLOCK_UNMAPPED && !block->counts && !block->n_steps)
		return false;
	walker__emit(w, BRANCH_BEGIN, 0, 0, ip, w->time.tsc);
	w->state = WALK_ON;
	walker__enter(w, block);
	return true;
}

bool walker__wake(struct walker *w)
{
	struct block *block;

	if (w->state == WALK_OFF) {
		walker__lose(w, GAP_MISMATCH, 0, w->time.tsc);
		return false;
	}
	if (w->state != WALK_START)
		return false;
	block = walker__find(w, w->start_ip);
	if (!block)
		return false;
	walker__emit(w, w->start_kind, 0, 0, w->start_ip, w->start_tsc);
	w->state = WALK_ON;
	w->block = block;
	w->block_tsc = w->start_tsc;
	return true;
}
