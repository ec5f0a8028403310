// SPDX-License-Identifier: MIT
/*
 * Walks the packets about branches: TNT and TIP. After bad bytes the next packet may begin
 * anywhere, and garbage may look like a packet: an IP is believed only if a walk from there (a
 * trial) fits the packets that follow.
 */
#include "decode/walk/walk_branches.h"

#include <stdlib.h>

#include "kernel/kernel.h"

/* Packets about branches in a trial: so many that fit are no coincidence. */
#define ENOUGH 24
#define SOME   3
/* Calls whose return a gap may have hidden. */
#define MAX_STALE 4
/* The most bad bytes that may have been a timing packet. */
#define MAX_STEP 3
/* A trial reads no more bytes than that. */
#define MAX_BYTES 512

static struct block_site *find_stale(struct walker *w);

/* ---- TNT: conditions and compressed returns */

/* The block at the target of an indirect branch; usually that of the last time. */
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
	struct block_site *site = bit ? returns__pop(&w->calls) : NULL;

	if (UNLIKELY(bit && !site))
		site = find_stale(w);
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
	return walker__follow(w, block, bit);
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

static void take_bits(struct walker *w)
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
	take_bits(w);
}

/* ---- TIP: indirect branches, and entries into the kernel and returns from it */

/* The branch before an abort went to the abort handler. */
static void mend_target(struct walker *w)
{
	struct branch_buffer *out = w->out;
	struct branch *last = out->n ? &out->v[out->n - 1] : NULL;

	if (last && last->kind <= BRANCH_COND && last->to == w->block->ip)
		last->to = w->fup_ip;
}

/*
 * BDM64: the branch right in front of the abort went there, and not where its packet says. So it is
 * taken for one where the thread cannot have come to the abort from there.
 */
static void mend_abort(struct walker *w)
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

/* A far branch that stays in what is traced: a syscall or the return from one, mostly. */
static void on_far_tip(struct walker *w, uint64_t ip)
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
static void on_async_tip(struct walker *w, uint64_t ip)
{
	struct block *next;

	w->has_fup = false;
	mend_abort(w);
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

/* Follows blocks up to one that ends with a packet. False: the walk is lost. */
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
		returns__push(&w->calls, &block->site);
	} else {
		walker__emit(w, BRANCH_RETURN, block->last_len, block->last_ip, ip, w->time.tsc);
		/* The CPU pops its entry as well, although it did not use it. */
		if (UNLIKELY(!returns__pop(&w->calls)))
			returns__pop_stale(&w->calls);
	}
	walker__enter(w, next);
	if (UNLIKELY(w->tnt_left))
		take_bits(w);
}

void walker__on_tip(struct walker *w, unsigned int ip_bytes, uint64_t ip)
{
	if (UNLIKELY(!w->block && !walker__wake(w))) {
		walker__resume(w, ip_bytes, ip);
		return;
	}
	if (UNLIKELY(w->has_fup)) {
		on_async_tip(w, ip);
		walker__resume(w, ip_bytes, ip);
		return;
	}
	if (UNLIKELY(w->block->end >= BLOCK_GOES_ON) && !to_branch(w)) {
		walker__resume(w, ip_bytes, ip);
	} else if (UNLIKELY(w->block->end == BLOCK_FAR)) {
		on_far_tip(w, ip);
	} else if (UNLIKELY(w->block->end == BLOCK_COND || ip_bytes == IP_SUPPRESSED)) {
		walker__lose(w, GAP_MISMATCH, w->block->last_ip, w->time.tsc);
		walker__resume(w, ip_bytes, ip);
	} else {
		take_tip(w, ip);
	}
}

void walker__on_cut_tip(struct walker *w)
{
	const struct block *block = w->block;

	if (w->state != WALK_ON || w->has_fup)
		return;
	if (block->end >= BLOCK_RETURN && block->end <= BLOCK_JUMP &&
	    walker__arrive(w, block->last_ip))
		w->block = walker__find(w, block->last_ip);
}

/* ---- trials */

/* A trial ends at packets that are neither about branches nor about time. */
static bool tells_branches(uint8_t byte)
{
	return packet__is_short_tnt(byte) || (byte & 0x1f) == 0x0d;
}

static bool tells_time(uint8_t byte)
{
	return !byte || (byte & 3) == 3 || byte == 0x59;
}

enum fit { FITS, ENDS, BAD };

/* Walks the packet at *at, and moves *at. ENDS: it is neither about branches nor about time. */
static enum fit walk_one(struct walker *trial, const uint8_t **at)
{
	const uint8_t *next = tells_branches(**at) ? walker__on_branches(trial, *at) : NULL;
	struct packet packet;

	if (next) {
		*at = next;
		return FITS;
	}
	packet__read(&trial->reader, *at, &packet);
	if (packet.kind == PACKET_BAD)
		return BAD;
	if (!tells_branches(**at) && !tells_time(**at))
		return ENDS;
	trial->next = *at + packet.len;
	if (packet.kind == PACKET_TIP)
		walker__on_tip(trial, packet.n,
			       packet.n == IP_SUPPRESSED
				       ? trial->reader.last_ip
				       : packet_reader__ip(&trial->reader, packet.n, packet.value));
	else if (packet.kind == PACKET_END && tells_branches(**at))
		walker__on_cut_tip(trial);
	else
		pt_time__on_packet(&trial->time, &packet);
	*at = packet.kind == PACKET_END ? trial->reader.end : *at + packet.len;
	return FITS;
}

/*
 * How many packets about branches fit, plus one, ENOUGH + 1 at most; 0: the walk was lost. If more
 * damage follows, the packets before it count.
 */
static unsigned int count_fitting(const struct walker *w, struct block *block, const uint8_t *at)
{
	struct branch_buffer out = {0};
	struct walker trial = *w;
	const uint8_t *end = w->reader.end;
	enum fit fit = FITS;
	unsigned int n = 0;

	trial.out = &out;
	trial.is_trial = true;
	trial.knows_ip = true;
	trial.state = WALK_ON;
	walker__enter(&trial, block);
	if (trial.tnt_left)
		take_bits(&trial);
	if (end - at > MAX_BYTES)
		end = at + MAX_BYTES;
	while (at < end && fit == FITS && trial.state == WALK_ON && n < ENOUGH) {
		n += tells_branches(*at);
		fit = walk_one(&trial, &at);
	}
	free(out.v);
	/* The trial has opened it. */
	if (trial.reader.libipt != w->reader.libipt)
		packet_reader__fini(&trial.reader);
	if (fit == BAD)
		return n > SOME ? n + 1 : 0;
	return trial.state == WALK_ON ? n + 1 : 0;
}

/* True if the packets from w->next on fit a thread at the block. For a guess, some must fit. */
static bool fits_there(const struct walker *w, struct block *block, bool is_guess)
{
	return count_fitting(w, block, w->next) > (is_guess ? SOME : 0);
}

/*
 * Takes, for a compressed return after a gap with no call pending, the call from before the gap
 * that fits the packets that follow. NULL if none fits.
 */
static struct block_site *find_stale(struct walker *w)
{
	unsigned int floor = w->calls.floor;

	if (w->is_trial) {
		if (w->calls.floor == w->calls.stale)
			return NULL;
		returns__pop_stale(&w->calls);
		return w->calls.sites[w->calls.floor % RETURN_DEPTH];
	}
	for (unsigned int i = 0; i < MAX_STALE && w->calls.floor != w->calls.stale; i++) {
		struct walker trial;
		struct block_site *site;

		w->calls.floor--;
		site = w->calls.sites[w->calls.floor % RETURN_DEPTH];
		trial = *w;
		trial.calls.top = trial.calls.floor;
		/* The return's own bit. */
		trial.tnt <<= 1;
		trial.tnt_left--;
		if (!site->after)
			site->after = walker__find(w, site->ret_ip);
		if (!site->after)
			return NULL;
		if (count_fitting(&trial, site->after, w->next) > SOME) {
			w->calls.top = w->calls.floor;
			return site;
		}
	}
	w->calls.floor = w->calls.stale = floor;
	return NULL;
}

const uint8_t *walker__step_over(const struct walker *w, const uint8_t *at)
{
	for (unsigned int i = 0; i < MAX_STEP && at < w->reader.end; i++, at++)
		if (count_fitting(w, w->block, at) >= ENOUGH)
			return at;
	return NULL;
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
	return walker__doubts(w) && !fits_there(w, block, is_guess) ? NULL : block;
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
