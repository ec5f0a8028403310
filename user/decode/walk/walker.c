// SPDX-License-Identifier: MIT
#include "decode/walk/walker.h"

#include <errno.h>
#include <stdlib.h>

bool branch_buffer__grow(struct branch_buffer *out)
{
	size_t cap = out->cap ? 2 * out->cap : 256;
	struct branch *bigger = out->err ? NULL : realloc(out->v, cap * sizeof(*bigger));

	if (!bigger) {
		if (!out->err)
			out->err = -ENOMEM;
		return false;
	}
	out->v = bigger;
	out->cap = cap;
	return true;
}

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

/* ---- whose code runs, and how it looks now: the only place where that is decided */

/* Blocks that are gone take the addresses that calls return to with them. */
static void keep_returns(struct walker *w)
{
	for (unsigned int i = w->calls.stale; i != w->calls.top; i++) {
		unsigned int at = i % RETURN_DEPTH;

		w->kept[at] = (struct block_site){.ret_ip = w->calls.ips[at]};
		w->calls.sites[at] = &w->kept[at];
	}
}

/* False: out of memory. */
static bool change_space(struct walker *w, pid_t pid)
{
	struct space *space = space__get(w->space->images, pid, w->space->tell_all);

	if (!space)
		return walker__fail(w);
	space__put(w->space);
	w->space = space;
	return true;
}

bool walker__is_other_thread(const struct walker *w)
{
	const struct rec_switch *who;
	uint64_t ns;

	if (!w->switches || !w->time.tsc)
		return false;
	ns = tsc__to_ns(w->time.tsc, w->tsc_base, w->time.config);
	who = switches__at(w->switches, w->cpu, ns);
	return !who || !w->who || who->tid != w->who->tid;
}

/*
 * Threads change in the kernel: before the code of the next one is traced, the switch has been
 * recorded.
 */
static bool change_thread(struct walker *w, uint64_t time_ns)
{
	const struct rec_switch *who = switches__at(w->switches, w->cpu, time_ns);
	pid_t pid = who ? who->pid : 0;

	if (w->knows_who && who == w->who)
		return false;
	w->knows_who = true;
	w->who = who;
	walker__emit(w, RAW_WHO, 0, (uintptr_t)who, 0, 0);
	return pid != w->space->kept.pid && change_space(w, pid);
}

void walker__update_space(struct walker *w)
{
	bool cleared, changed;
	uint64_t ns = 0;

	if (w->time.tsc)
		ns = tsc__to_ns(w->time.tsc, w->tsc_base, w->time.config);
	changed = w->switches && change_thread(w, ns);
	if (space__set_time(w->space, ns, &cleared))
		walker__fail(w);
	if (cleared || changed)
		keep_returns(w);
}

/* ---- along blocks, without a packet */

bool walker__go_on(struct walker *w)
{
	struct block *block = w->block;

	walker__take_steps(w, block, block->n_steps, w->block_tsc);
	w->counts += block->counts;
	w->block = walker__follow(w, block, 0);
	return w->block;
}

/* Through the block's first instructions. */
void walker__take_reach(struct walker *w, const struct block_reach *reach)
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
			walker__take_reach(w, &reach);
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

/* ---- where tracing begins and ends */

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

void walker__end_at(struct walker *w, uint8_t kind, uint64_t from, uint8_t len, uint64_t tsc)
{
	walker__emit(w, kind, len, from, 0, tsc);
	w->state = WALK_OFF;
	w->block = NULL;
	w->tnt_left = 0;
	w->has_fup = false;
}

/* Left by the end of the block: the whole of it ran. */
void walker__end_with_block(struct walker *w, uint8_t kind, uint64_t tsc)
{
	const struct block *block = w->block;

	walker__take_steps(w, block, block->n_steps, w->block_tsc);
	w->counts += block->counts;
	walker__end_at(w, kind, block->last_ip, block->last_len, tsc);
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
		if (!block || block->end != BLOCK_COND || !block__may_lead_to(block, ip) ||
		    !reach(w, block->last_ip))
			return false;
		ip = block->last_ip;
	}
	walker__end_at(w, BRANCH_END_ASYNC, ip, 0, w->left_tsc);
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
		walker__end_with_block(w,
				       block->flags & BLOCK_TRAPS ? BRANCH_END : BRANCH_END_SYSCALL,
				       w->left_tsc);
	else if (!ip && block->end < BLOCK_UNMAPPED)
		walker__end_at(w, BRANCH_END, block->ip, 0, w->left_tsc);
	else
		walker__cannot(w);
}

/* ---- where the thread is not known */

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
	w->calls.floor = w->calls.top;
	/* Code that is not there calls what is, and nobody sees it. */
	if (reason != GAP_BAD_PACKET && reason != GAP_MISMATCH)
		w->calls.stale = w->calls.top;
	walker__emit(w, BRANCH_GAP, 0, ip, 0, tsc);
	if (w->out->n)
		w->out->v[w->out->n - 1].reason = (uint8_t)reason;
}

void walker__break(struct walker *w, enum gap_reason reason)
{
	struct block *block = w->block;
	unsigned int floor = w->calls.floor;
	bool lost_calls = w->lost_calls;

	walker__lose(w, reason, block->ip, w->time.tsc);
	w->calls.floor = floor;
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
