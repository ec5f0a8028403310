// SPDX-License-Identifier: MIT
/* Packets that tell of more than branches: into and out of what is traced, and overflows. */
#include <string.h>

#include "decode/walk/walk_internal.h"
#include "kernel/address.h"

#define VM_ENTRY_LEN 3

/* Through the block's first instructions. */
static void take_reach(struct walker *w, const struct block_reach *reach)
{
	walker__take_steps(w, w->block, reach->n_steps, w->block_tsc);
	w->counts += reach->counts;
}

/* False: the thread cannot have come there from where it was; or no memory. */
static bool reach(struct walker *w, uint64_t ip)
{
	struct block_reach reach;

	for (unsigned int goes_on = 0; goes_on < MAX_GOES_ON; goes_on++) {
		if (blocks__reach(w->space->blocks, w->block, ip, &reach)) {
			take_reach(w, &reach);
			return true;
		}
		if (w->block->end == BLOCK_GOES_ON) {
			if (!walker__go_on(w))
				return false;
		} else if (w->block->end < BLOCK_UNMAPPED || !walker__renew(w)) {
			break;
		}
	}
	return false;
}

bool walker__arrive(struct walker *w, uint64_t ip)
{
	if (reach(w, ip))
		return true;
	if (!w->block)
		return false;
	if (w->block->end >= BLOCK_UNMAPPED)
		walker__cannot(w);
	else
		walker__lose(w, GAP_MISMATCH, w->block->ip, w->block_tsc);
	return false;
}

void walker__begin(struct walker *w, uint64_t ip)
{
	struct block *block;

	walker__update_space(w);
	if (walker__lose_mode(w, ip))
		return;
	block = walker__find(w, ip);
	if (!block)
		return;
	walker__emit(w, BRANCH_BEGIN, 0, 0, ip, w->time.tsc);
	w->state = WALK_ON;
	w->tnt_left = 0;
	w->has_fup = false;
	walker__enter(w, block);
}

/* A far branch that stays in what is traced: a syscall or the return from one, mostly. */
void walker__on_far_tip(struct walker *w, uint64_t ip)
{
	struct block *block = w->block, *next = walker__find(w, ip);
	uint8_t kind = BRANCH_JUMP;

	if (!next)
		return;
	if (block->flags & BLOCK_ENTERS)
		kind = BRANCH_ENTER;
	else if (address__is_kernel(block->last_ip))
		kind = BRANCH_LEAVE;
	walker__take_steps(w, block, block->n_steps, w->block_tsc);
	w->counts += block->counts;
	walker__emit(w, kind, block->last_len, block->last_ip, ip, w->time.tsc);
	if (!walker__lose_mode(w, ip))
		walker__enter(w, next);
}

/* An interrupt or a fault whose handler is traced, or an aborted transaction. */
void walker__on_async_tip(struct walker *w, uint64_t ip)
{
	struct block *next;

	w->has_fup = false;
	walker__mend_abort(w);
	if (!w->block || !walker__arrive(w, w->fup_ip))
		return;
	next = walker__find(w, ip);
	if (!next)
		return;
	walker__emit(w, address__is_kernel(ip) ? BRANCH_ENTER : BRANCH_JUMP, 0, w->fup_ip, ip,
		     w->time.tsc);
	if (!walker__lose_mode(w, ip))
		walker__enter(w, next);
}

static void end_at(struct walker *w, uint8_t kind, uint64_t from, uint8_t len, uint64_t tsc)
{
	walker__emit(w, kind, len, from, 0, tsc);
	w->state = WALK_OFF;
	w->block = NULL;
	w->tnt_left = 0;
	w->has_fup = false;
}

/* Left by the end of the block: the whole of it ran. */
static void end_with_block(struct walker *w, uint8_t kind, uint64_t tsc)
{
	const struct block *block = w->block;

	walker__take_steps(w, block, block->n_steps, w->block_tsc);
	w->counts += block->counts;
	end_at(w, kind, block->last_ip, block->last_len, tsc);
}

static bool leads_to(const struct block *block, uint64_t ip)
{
	if (block->end == BLOCK_COND)
		return ip == block->target || ip == block->last_ip + block->last_len;
	return block->end <= BLOCK_FAR;
}

/* By a direct branch within the block. */
static void leave_through(struct walker *w, const struct block_reach *reach)
{
	take_reach(w, reach);
	end_at(w, BRANCH_END, reach->from, reach->len, w->time.tsc);
}

/* Out of an address range, by a branch. */
static void leave_range(struct walker *w, uint64_t ip)
{
	struct block_reach reach;

	if (blocks__reach_branch_to(w->space->blocks, w->block, ip, &reach)) {
		leave_through(w, &reach);
	} else if (leads_to(w->block, ip)) {
		end_with_block(w, w->block->end == BLOCK_FAR ? BRANCH_END_SYSCALL : BRANCH_END,
			       w->time.tsc);
	} else {
		walker__cannot(w);
	}
}

static void end_at_fup(struct walker *w)
{
	if (walker__is_vm_entry(w, w->fup_ip)) {
		w->counts++;
		end_at(w, BRANCH_END_SYSCALL, w->fup_ip, VM_ENTRY_LEN, w->time.tsc);
	} else {
		end_at(w, BRANCH_END_ASYNC, w->fup_ip, 0, w->time.tsc);
	}
}

/*
 * The block's end left, if all of it ran, and went on at ip: wherever a signal's frame or the
 * kernel's says, which may be in the block once more; or at a syscall that is restarted.
 */
static bool end_leads_to(const struct block *block, uint64_t ip)
{
	return block->end == BLOCK_FAR && (block->flags & BLOCK_RESTORES || ip == block->last_ip);
}

/*
 * Before the instruction where tracing goes on; or at the block's condition, which the kernel
 * did in the thread's place, as it does under a probe.
 */
static bool left_before(struct walker *w, uint64_t ip)
{
	struct block *block = w->block;

	if (end_leads_to(block, ip))
		return false;
	if (!reach(w, ip)) {
		block = w->block;
		if (!block || block->end != BLOCK_COND || !leads_to(block, ip) ||
		    !reach(w, block->last_ip))
			return false;
		ip = block->last_ip;
	}
	end_at(w, BRANCH_END_ASYNC, ip, 0, w->left_tsc);
	return true;
}

/*
 * SDM "Packet Generation under Different Enable Conditions": a far branch leaves a TIP.PGD without
 * an IP, and a software interrupt a FUP before it. But CPUs have been seen to leave none at an
 * int3, and the code that is known does not show those of debuggers and probes. So where the thread
 * was is told by where it goes on: the same place, or one that follows it.
 */
void walker__settle_left(struct walker *w, uint64_t ip)
{
	struct block *block = w->left;

	if (!block)
		return;
	w->left = NULL;
	w->block = block;
	w->state = WALK_ON;
	if (ip && left_before(w, ip))
		return;
	block = w->block;
	if (!block)
		return;
	if (block->end == BLOCK_FAR)
		end_with_block(w, block->flags & BLOCK_TRAPS ? BRANCH_END : BRANCH_END_SYSCALL,
			       w->left_tsc);
	else if (!ip && block->end < BLOCK_UNMAPPED)
		end_at(w, BRANCH_END, block->ip, 0, w->left_tsc);
	else
		walker__cannot(w);
}

/* Instructions under a probe run here; behind it the thread goes on in its own code. */
static bool is_slot(struct walker *w, uint64_t ip)
{
	struct code_place place;

	return code_map__find(w->space->map, ip, &place) && place.function &&
	       !strcmp(place.function->module, "[uprobes]");
}

void walker__on_pge(struct walker *w, unsigned int ip_bytes, uint64_t ip)
{
	/* The IP of another thread does not tell where the first one was. */
	bool is_other = w->left && walker__is_other_thread(w);

	/*
	 * Errata BDM70 and APL12: a PSB+ or an OVF may tell where a thread is that is not traced
	 * yet. Nothing happened there, so that nothing has to be taken back.
	 */
	if (w->state == WALK_ON)
		walker__lose(w, GAP_MISMATCH, w->block->ip, w->time.tsc);
	if (w->left && !is_other && is_slot(w, ip))
		return;
	walker__settle_left(w, is_other ? 0 : ip);
	if (w->state == WALK_LOST)
		walker__resume(w, ip_bytes, ip);
	else
		walker__begin(w, ip);
}

static void leave(struct walker *w, bool has_ip, uint64_t ip)
{
	struct block_reach reach;

	if (w->has_fup) {
		if (walker__arrive(w, w->fup_ip))
			end_at_fup(w);
		return;
	}
	while (w->block->end == BLOCK_UNMAPPED && walker__renew(w))
		;
	if (has_ip) {
		leave_range(w, ip);
	} else if (w->block->end == BLOCK_FAR && is_slot(w, w->block->last_ip)) {
		/* The uretprobe's trampoline: the thread goes on at the caller, as after a return.
		 */
		end_with_block(w, w->block->flags & BLOCK_TRAPS ? BRANCH_END : BRANCH_END_SYSCALL,
			       w->time.tsc);
	} else if (walker__find_exit(w, &reach)) {
		leave_through(w, &reach);
	} else {
		w->left = w->block;
		w->left_tsc = w->time.tsc;
	}
}

void walker__on_pgd(struct walker *w, bool has_ip, uint64_t ip)
{
	if (walker__doubts(w))
		return;
	if (w->state == WALK_START)
		walker__wake(w);
	if (w->state == WALK_ON)
		leave(w, has_ip, ip);
	w->state = WALK_OFF;
	w->block = NULL;
	w->has_fup = false;
}

void walker__on_fup(struct walker *w, unsigned int ip_bytes, uint64_t ip)
{
	bool after_ovf = w->after_ovf;

	if (w->ignores_fup || ip_bytes == IP_SUPPRESSED) {
		w->ignores_fup = false;
		return;
	}
	if (w->state == WALK_LOST && after_ovf) {
		w->state = WALK_START;
		w->start_kind = BRANCH_BEGIN;
		w->start_ip = ip;
		w->start_tsc = w->time.tsc;
		w->after_ovf = false;
		return;
	}
	if (w->state == WALK_START)
		walker__wake(w);
	/* What the one before belongs to is missing. */
	if (w->has_fup)
		walker__lose(w, GAP_MISMATCH, w->fup_ip, w->time.tsc);
	if (w->state == WALK_LOST)
		walker__resume(w, ip_bytes, ip);
	w->has_fup = w->state == WALK_ON;
	w->fup_ip = w->reader.last_ip;
}

void walker__on_overflow(struct walker *w)
{
	if (w->state == WALK_START)
		walker__wake(w);
	walker__lose(w, GAP_OVERFLOW, 0, w->time.tsc);
	w->reader.last_ip = 0;
	w->after_ovf = true;
	w->knows_ip = true;
}
