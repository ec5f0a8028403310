// SPDX-License-Identifier: MIT
/* Where the thread is not known, and how that is found out again. */
#include "decode/walk/walk_internal.h"

void walker__lose(struct walker *w, enum gap_reason reason, uint64_t ip, uint64_t tsc)
{
	walker__settle_left(w, 0);
	w->state = WALK_LOST;
	w->block = NULL;
	w->tnt_left = 0;
	w->has_fup = false;
	w->ignores_fup = false;
	w->is_abort = false;
	w->after_ovf = false;
	/* The last IP is that of the last packet, whether there was code for it or not. */
	if (reason == GAP_BAD_PACKET && w->knows_ip) {
		w->sure_ip = w->reader.last_ip;
		w->knows_ip = false;
	}
	w->lost_calls = true;
	w->floor = w->top;
	/* Code that is not there calls what is, and nobody sees it. */
	if (reason != GAP_BAD_PACKET && reason != GAP_MISMATCH)
		w->stale = w->top;
	walker__emit(w, BRANCH_GAP, 0, ip, 0, tsc);
	if (w->out->n)
		w->out->v[w->out->n - 1].reason = (uint8_t)reason;
}

void walker__break(struct walker *w, enum gap_reason reason)
{
	struct block *block = w->block;
	unsigned int floor = w->floor;
	bool lost_calls = w->lost_calls;

	walker__lose(w, reason, block->ip, w->time.tsc);
	w->floor = floor;
	w->lost_calls = lost_calls;
	w->knows_ip = true;
	walker__emit(w, BRANCH_BEGIN, 0, 0, block->ip, w->time.tsc);
	w->state = WALK_ON;
	walker__enter(w, block);
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

	if (block)
		walker__lose_behind(w, block->end == BLOCK_UNMAPPED ? GAP_UNMAPPED : GAP_MISMATCH,
				    w->block_tsc);
}

void walker__lose_behind(struct walker *w, enum gap_reason reason, uint64_t tsc)
{
	struct block *block = w->block;

	walker__take_steps(w, block, block->n_steps, w->block_tsc);
	w->counts += block->counts;
	walker__lose(w, reason, block->last_ip, tsc);
}

/* The block at ip, if the walk may go on there; otherwise NULL. */
static struct block *believe(struct walker *w, uint64_t ip, bool is_guess)
{
	struct block *block = walker__find(w, ip);

	if (!block)
		return NULL;
	/* Still in code that nobody has. */
	if (block->end >= BLOCK_UNMAPPED && !block->counts && !block->n_steps)
		return NULL;
	return walker__doubts(w) && !walker__try(w, block, is_guess) ? NULL : block;
}

/*
 * Bad bytes that look like an IP packet change the last IP, and so the upper bytes of the IPs after
 * them. This takes those of the last IP before the bad bytes.
 */
static struct block *believe_sure(struct walker *w, unsigned int ip_bytes, uint64_t ip)
{
	uint64_t last_ip = w->reader.last_ip;
	struct block *block;

	w->reader.last_ip = w->sure_ip;
	ip = packet_reader__ip(&w->reader, ip_bytes, ip);
	block = ip != last_ip ? believe(w, ip, true) : NULL;
	if (!block)
		w->reader.last_ip = last_ip;
	return block;
}

bool walker__resume(struct walker *w, unsigned int ip_bytes, uint64_t ip)
{
	struct block *block;

	if (w->state != WALK_LOST || ip_bytes == IP_SUPPRESSED || w->is_other_mode || w->is_trial)
		return false;
	walker__update_space(w);
	block = believe(w, ip, false);
	if (!block && walker__doubts(w))
		block = believe_sure(w, ip_bytes, ip);
	if (!block)
		return false;
	w->knows_ip = true;
	walker__emit(w, BRANCH_BEGIN, 0, 0, block->ip, w->time.tsc);
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
