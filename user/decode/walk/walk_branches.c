// SPDX-License-Identifier: MIT
/* TNT bits and TIPs along blocks. */
#include "decode/walk/walk_internal.h"

#include <errno.h>

bool walker__fail(struct walker *w)
{
	if (!w->out->err)
		w->out->err = -ENOMEM;
	w->state = WALK_LOST;
	w->block = NULL;
	w->tnt_left = 0;
	return false;
}

struct block *walker__find(struct walker *w, uint64_t ip)
{
	struct block *block = blocks__find(w->space->blocks, ip);

	if (UNLIKELY(!block))
		walker__fail(w);
	return block;
}

static inline struct block *follow(struct walker *w, struct block *block, unsigned int which)
{
	struct block *next = block->next[which];

	if (UNLIKELY(!next))
		next = blocks__link(w->space->blocks, block, which);
	if (UNLIKELY(!next))
		walker__fail(w);
	return next;
}

/* Where an indirect branch went: mostly where it did the last time. */
static inline struct block *follow_to(struct walker *w, struct block *block, uint64_t ip)
{
	struct block *next = block->next[0];

	if (UNLIKELY(!next || next->ip != ip)) {
		next = walker__find(w, ip);
		block->next[0] = next;
	}
	return next;
}

/* SDM "Indirect Transfer Compression for Returns": a taken bit says that it went to its call. */
static inline struct block *compressed_return(struct walker *w, const struct block *block, bool bit)
{
	struct block_site *site = bit ? walker__pop(w) : NULL;

	if (UNLIKELY(bit && !site))
		site = walker__find_stale(w);
	if (UNLIKELY(!site)) {
		walker__lose(w, bit && w->lost_calls ? GAP_CALLER : GAP_MISMATCH, block->last_ip,
			     w->time.tsc);
		return NULL;
	}
	w->counts += block->counts;
	walker__emit(w, BRANCH_RETURN, block->last_len, block->last_ip, site->ret_ip, w->time.tsc);
	if (UNLIKELY(!site->after))
		site->after = walker__find(w, site->ret_ip);
	return site->after;
}

static inline struct block *condition(struct walker *w, struct block *block, bool bit)
{
	w->counts += block->counts + ((block_counts)bit << 32);
	if (bit && block->flags & BLOCK_TELLS_TAKEN)
		walker__emit(w, BRANCH_COND, block->last_len, block->last_ip, block->target,
			     w->time.tsc);
	return follow(w, block, bit);
}

/* At a block that no bit belongs to. False where the bits have to wait, or the walk is lost. */
static bool pass(struct walker *w, unsigned int *goes_on)
{
	struct block *block = w->block;

	switch ((enum block_end)block->end) {
	case BLOCK_GOES_ON:
		if (++*goes_on < MAX_GOES_ON)
			return walker__go_on(w);
		break;
	case BLOCK_UNMAPPED:
	case BLOCK_NO_CODE:
		if (walker__renew(w))
			return true;
		break;
	default:
		return false;
	}
	walker__cannot(w);
	return false;
}

bool walker__go_on(struct walker *w)
{
	struct block *block = w->block;

	walker__take_steps(w, block, block->n_steps, w->block_tsc);
	w->counts += block->counts;
	w->block = follow(w, block, 0);
	return w->block;
}

void walker__take_bits(struct walker *w)
{
	unsigned int goes_on = 0;

	while (w->tnt_left) {
		struct block *block = w->block, *next;
		bool bit = w->tnt >> 63;

		if (UNLIKELY(block->end > BLOCK_RETURN)) {
			if (!pass(w, &goes_on))
				return;
			continue;
		}
		if (block->n_steps)
			walker__take_steps(w, block, block->n_steps, w->block_tsc);
		next = block->end == BLOCK_COND ? condition(w, block, bit)
						: compressed_return(w, block, bit);
		if (UNLIKELY(!next))
			return;
		w->tnt <<= 1;
		w->tnt_left--;
		walker__enter(w, next);
	}
}

void walker__on_tnt(struct walker *w, uint64_t bits, unsigned int n)
{
	if (UNLIKELY(!w->block && !walker__wake(w)))
		return;
	/* The TIPs of those before come first. */
	if (UNLIKELY(w->tnt_left)) {
		walker__lose(w, GAP_MISMATCH, w->block->last_ip, w->time.tsc);
		return;
	}
	w->has_fup = false;
	w->tnt = bits;
	w->tnt_left = n;
	walker__take_bits(w);
}

/* The block at the end of all that goes on by itself; false where the walk is lost. */
static bool to_branch(struct walker *w)
{
	unsigned int goes_on = 0;

	while (w->block->end >= BLOCK_GOES_ON)
		if (!pass(w, &goes_on))
			return false;
	return true;
}

static void take_tip(struct walker *w, uint64_t ip)
{
	struct block *block = w->block, *next;

	walker__take_steps(w, block, block->n_steps, w->block_tsc);
	w->counts += block->counts;
	next = follow_to(w, block, ip);
	if (UNLIKELY(!next))
		return;
	if (block->end == BLOCK_JUMP) {
		if (block->flags & BLOCK_TELLS_JUMP || next->function != block->end_function)
			walker__emit(w, BRANCH_JUMP, block->last_len, block->last_ip, ip,
				     w->time.tsc);
	} else if (block->end == BLOCK_CALL) {
		walker__emit(w, BRANCH_CALL, block->last_len, block->last_ip, ip, w->time.tsc);
		walker__push(w, &block->site);
	} else {
		walker__emit(w, BRANCH_RETURN, block->last_len, block->last_ip, ip, w->time.tsc);
		/* The CPU takes its entry as well, though it was of no use. */
		if (UNLIKELY(!walker__pop(w)))
			walker__pop_stale(w);
	}
	walker__enter(w, next);
	if (UNLIKELY(w->tnt_left))
		walker__take_bits(w);
}

void walker__on_tip(struct walker *w, unsigned int ip_bytes, uint64_t ip)
{
	if (UNLIKELY(!w->block && !walker__wake(w))) {
		walker__resume(w, ip_bytes, ip);
		return;
	}
	if (UNLIKELY(w->has_fup)) {
		walker__on_async_tip(w, ip);
		walker__resume(w, ip_bytes, ip);
		return;
	}
	if (UNLIKELY(w->block->end >= BLOCK_GOES_ON) && !to_branch(w)) {
		walker__resume(w, ip_bytes, ip);
	} else if (UNLIKELY(w->block->end == BLOCK_FAR)) {
		walker__on_far_tip(w, ip);
	} else if (UNLIKELY(w->block->end == BLOCK_COND || ip_bytes == IP_SUPPRESSED)) {
		walker__lose(w, GAP_MISMATCH, w->block->last_ip, w->time.tsc);
		walker__resume(w, ip_bytes, ip);
	} else {
		take_tip(w, ip);
	}
}
