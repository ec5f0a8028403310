// SPDX-License-Identifier: MIT
/*
 * After bad bytes the next packet may begin anywhere, and garbage may look like a packet: an IP is
 * believed only if a walk from there (a trial) fits the packets that follow.
 */
#include "decode/walk/walker.h"

#include <errno.h>
#include <stdlib.h>

#include "kernel/kernel.h"

/* The most blocks in a row without a packet: if code needs more, other code ran. */
#define MAX_GOES_ON 128

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

/* Stops the walk because memory has run out. Returns false. */
static bool fail(struct walker *w)
{
	if (!w->out->err)
		w->out->err = -ENOMEM;
	w->state = WALK_LOST;
	w->block = NULL;
	w->tnt_left = 0;
	return false;
}

/* The block at ip; NULL after fail(). */
static struct block *find(struct walker *w, uint64_t ip)
{
	struct block *block = blocks__find(w->space->blocks, ip);

	if (UNLIKELY(!block))
		fail(w);
	return block;
}

/* next[which] of the block. NULL after fail(). */
static inline struct block *follow(struct walker *w, struct block *block, unsigned int which)
{
	struct block *next = block->next[which];

	if (UNLIKELY(!next))
		next = blocks__link(w->space->blocks, block, which);
	if (UNLIKELY(!next))
		fail(w);
	return next;
}

/* Hands on the first n direct branches of a block. */
static inline void take_steps(struct walker *w, const struct block *block, unsigned int n,
			      uint64_t tsc)
{
	for (unsigned int i = 0; i < n; i++) {
		struct block_step *step = &block->steps[i];

		w->counts += step->counts;
		walker__emit(w, step->kind, step->len, step->from, step->to, tsc);
		if (step->pushes)
			returns__push(&w->calls, &step->site);
	}
}

/* The thread arrives at the block. */
static inline void enter(struct walker *w, struct block *block)
{
	w->block = block;
	w->block_tsc = w->time.tsc;
}

/* ---- whose code runs, and its current content: decided only here */

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

void walker__update_space(struct walker *w)
{
	uint64_t ns = w->time.tsc ? tsc__to_ns(w->time.tsc, w->tsc_base, w->time.config) : 0;
	const struct rec_switch *who = w->switches ? switches__at(w->switches, w->cpu, ns) : NULL;
	pid_t pid = who ? who->pid : 0;
	bool cleared, changed = false;

	/*
	 * Threads are switched in the kernel, which records the switch before the next thread's
	 * code is traced.
	 */
	if (w->switches && (!w->knows_who || who != w->who)) {
		w->knows_who = true;
		w->who = who;
		walker__emit(w, RAW_WHO, 0, (uintptr_t)who, 0, 0);
		changed = pid != w->space->kept.pid;
	}
	if (changed) {
		struct space *space = space__get(w->space->images, pid, w->space->tell_all);

		changed = space ? true : fail(w);
		if (space) {
			space__put(w->space);
			w->space = space;
		}
	}
	if (space__set_time(w->space, ns, &cleared))
		fail(w);
	if (!cleared && !changed)
		return;
	/* Return addresses are stored in blocks, which may be gone: copies them. */
	for (unsigned int i = w->calls.stale; i != w->calls.top; i++) {
		unsigned int at = i % RETURN_DEPTH;

		w->kept[at] = (struct block_site){.ret_ip = w->calls.ips[at]};
		w->calls.sites[at] = &w->kept[at];
	}
}

/* ---- along blocks, without a packet */

/* Goes to the block that follows without a packet. False: out of memory. */
static bool go_on(struct walker *w)
{
	struct block *block = w->block;

	take_steps(w, block, block->n_steps, w->block_tsc);
	w->counts += block->counts;
	w->block = follow(w, block, 0);
	return w->block;
}

/* Executes the first instructions of the block. */
void walker__take_reach(struct walker *w, const struct block_reach *reach)
{
	take_steps(w, w->block, reach->n_steps, w->block_tsc);
	w->counts += reach->counts;
}

/* False: the thread cannot have reached ip from its block; or out of memory. */
static bool reach(struct walker *w, uint64_t ip)
{
	struct block_reach reach;

	for (unsigned int goes_on = 0; goes_on < MAX_GOES_ON; goes_on++) {
		if (blocks__reach(w->space->blocks, w->block, ip, &reach)) {
			walker__take_reach(w, &reach);
			return true;
		}
		if (w->block->end == BLOCK_GOES_ON) {
			if (!go_on(w))
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
	block = find(w, ip);
	if (!block)
		return;
	walker__emit(w, BRANCH_BEGIN, 0, 0, ip, w->time.tsc);
	w->state = WALK_ON;
	w->tnt_left = 0;
	w->has_fup = false;
	enter(w, block);
}

void walker__end_at(struct walker *w, uint8_t kind, uint64_t from, uint8_t len, uint64_t tsc)
{
	walker__emit(w, kind, len, from, 0, tsc);
	w->state = WALK_OFF;
	w->block = NULL;
	w->tnt_left = 0;
	w->has_fup = false;
}

/* The thread left at the end of its block, which it ran completely. */
void walker__end_with_block(struct walker *w, uint8_t kind, uint64_t tsc)
{
	const struct block *block = w->block;

	take_steps(w, block, block->n_steps, w->block_tsc);
	w->counts += block->counts;
	walker__end_at(w, kind, block->last_ip, block->last_len, tsc);
}

/*
 * Ends tracing before the instruction at ip, where it continues; or at the block's condition, which
 * the kernel executed instead of the thread, as it does under a probe. False if the thread cannot
 * have left there; or if it may have left by the block's last instruction, because that one can
 * continue at any address (BLOCK_RESTORES), or is a system call that is restarted.
 */
static bool left_before(struct walker *w, uint64_t ip)
{
	struct block *block = w->block;

	if (block->end == BLOCK_FAR && (block->flags & BLOCK_RESTORES || ip == block->last_ip))
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
 * SDM "Packet Generation under Different Enable Conditions": a far branch ends with a TIP.PGD
 * without an IP, and a software interrupt with a FUP before it. But some CPUs write no FUP at an
 * int3, and the recorded code lacks the int3 of debuggers and probes. So the place where tracing
 * continues tells where the thread was: there, or before it in the same block.
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

void walker__forget(struct walker *w, enum walk_state state)
{
	w->state = state;
	w->block = NULL;
	w->tnt_left = 0;
	w->has_fup = false;
	w->ignores_fup = false;
	w->is_abort = false;
	w->after_ovf = false;
}

void walker__lose(struct walker *w, enum gap_reason reason, uint64_t ip, uint64_t tsc)
{
	walker__settle_left(w, 0);
	walker__forget(w, WALK_LOST);
	/* The last good packet tells this IP, whether its code is known or not. */
	if (reason == GAP_BAD_PACKET && w->knows_ip) {
		w->sure_ip = w->reader.last_ip;
		w->knows_ip = false;
	}
	w->lost_calls = true;
	w->calls.floor = w->calls.top;
	/* Missing code may have called known code unseen: earlier calls are forgotten. */
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
	enter(w, block);
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
		return fail(w);
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

	take_steps(w, block, block->n_steps, w->block_tsc);
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
	block = find(w, w->start_ip);
	if (!block)
		return false;
	walker__emit(w, w->start_kind, 0, 0, w->start_ip, w->start_tsc);
	w->state = WALK_ON;
	w->block = block;
	w->block_tsc = w->start_tsc;
	return true;
}

/* ---- TNT: conditions and compressed returns */

static struct block_site *find_stale(struct walker *w);

/* SDM "Indirect Transfer Compression for Returns": a taken bit is a return to its call. */
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
		site->after = find(w, site->ret_ip);
	return site->after;
}

/* Passes a block that does not consume a bit. False: the bits have to wait, or the walk is lost. */
static bool pass(struct walker *w, unsigned int *goes_on)
{
	struct block *block = w->block;

	switch ((enum block_end)block->end) {
	case BLOCK_GOES_ON:
		if (++*goes_on < MAX_GOES_ON)
			return go_on(w);
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
			take_steps(w, block, block->n_steps, w->block_tsc);
		if (block->end == BLOCK_COND) {
			w->counts += block->counts + ((block_counts)bit << 32);
			if (bit && block->flags & BLOCK_TELLS_TAKEN)
				walker__emit(w, BRANCH_COND, block->last_len, block->last_ip,
					     block->target, w->time.tsc);
			next = follow(w, block, bit);
		} else {
			next = compressed_return(w, block, bit);
		}
		if (UNLIKELY(!next))
			return;
		w->tnt <<= 1;
		w->tnt_left--;
		enter(w, next);
	}
}

void walker__on_tnt(struct walker *w, uint64_t bits, unsigned int n)
{
	if (UNLIKELY(!w->block && !walker__wake(w)))
		return;
	/* Earlier bits still wait for their TIP, which should have come first. */
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

/*
 * BDM64: the branch right before an abort may have gone to the abort's IP, and not where its packet
 * says. This is assumed if the thread cannot have come from that target to the abort's IP.
 */
static void mend_abort(struct walker *w)
{
	bool is_abort = w->is_abort;
	struct branch_buffer *out = w->out;
	struct branch *last = out->n ? &out->v[out->n - 1] : NULL;
	struct block_reach reach;
	struct block *block;

	w->is_abort = false;
	if (!is_abort || !w->errata.bdm64 || w->tnt_left ||
	    blocks__reach(w->space->blocks, w->block, w->fup_ip, &reach))
		return;
	block = find(w, w->fup_ip);
	if (!block)
		return;
	if (last && last->kind <= BRANCH_COND && last->to == w->block->ip)
		last->to = w->fup_ip;
	enter(w, block);
}

/* A far branch to traced code: mostly a system call, or the return from one. */
static void on_far_tip(struct walker *w, uint64_t ip)
{
	struct block *block = w->block, *next = find(w, ip);
	uint8_t kind = BRANCH_JUMP;

	if (!next)
		return;
	if (block->flags & BLOCK_ENTERS)
		kind = BRANCH_ENTER;
	else if (address__is_kernel(block->last_ip))
		kind = BRANCH_LEAVE;
	take_steps(w, block, block->n_steps, w->block_tsc);
	w->counts += block->counts;
	walker__emit(w, kind, block->last_len, block->last_ip, ip, w->time.tsc);
	if (!walker__lose_mode(w, ip))
		enter(w, next);
}

/* An interrupt or a fault whose handler is traced, or an aborted transaction. */
static void on_async_tip(struct walker *w, uint64_t ip)
{
	struct block *next;

	w->has_fup = false;
	mend_abort(w);
	if (!w->block || !walker__arrive(w, w->fup_ip))
		return;
	next = find(w, ip);
	if (!next)
		return;
	walker__emit(w, address__is_kernel(ip) ? BRANCH_ENTER : BRANCH_JUMP, 0, w->fup_ip, ip,
		     w->time.tsc);
	if (!walker__lose_mode(w, ip))
		enter(w, next);
}

static void take_tip(struct walker *w, uint64_t ip)
{
	struct block *block = w->block, *next;

	take_steps(w, block, block->n_steps, w->block_tsc);
	w->counts += block->counts;
	/* The block at the target is usually that of the last time. */
	next = block->next[0];
	if (UNLIKELY(!next || next->ip != ip)) {
		next = find(w, ip);
		block->next[0] = next;
		if (!next)
			return;
	}
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
	enter(w, next);
	if (UNLIKELY(w->tnt_left))
		take_bits(w);
}

void walker__on_tip(struct walker *w, unsigned int ip_bytes, uint64_t ip)
{
	unsigned int goes_on = 0;

	if (UNLIKELY(!w->block && !walker__wake(w))) {
		walker__resume(w, ip_bytes, ip);
		return;
	}
	if (UNLIKELY(w->has_fup)) {
		on_async_tip(w, ip);
		walker__resume(w, ip_bytes, ip);
		return;
	}
	/* Follows blocks up to one that ends with a packet. */
	while (UNLIKELY(w->block->end >= BLOCK_GOES_ON)) {
		if (!pass(w, &goes_on)) {
			walker__resume(w, ip_bytes, ip);
			return;
		}
	}
	if (UNLIKELY(w->block->end == BLOCK_FAR)) {
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
		w->block = find(w, block->last_ip);
}

/* ---- trials */

/*
 * Branch packets that must fit in a trial: ENOUGH if nothing but the code supports the place;
 * more than SOME if a guessed IP or an earlier call does.
 */
#define ENOUGH 24
#define SOME   3
/*
 * The most calls from before a gap that are tried for one return: the gap may have hidden the
 * returns of those above.
 */
#define MAX_STALE 4
/* The most bad bytes that may have been a timing packet. */
#define MAX_STEP 3
/* A trial reads at most this many bytes. */
#define MAX_BYTES 512

/* True for a short TNT or a TIP. */
static bool tells_branches(uint8_t byte)
{
	return packet__is_short_tnt(byte) || (byte & 0x1f) == 0x0d;
}

enum fit { FITS, ENDS, BAD };

/*
 * Walks the packet at *at, and moves *at. ENDS: it is none of short TNT, TIP, CYC, MTC and PAD, at
 * which a trial ends.
 */
static enum fit walk_one(struct walker *trial, const uint8_t **at)
{
	uint8_t byte = **at;
	const uint8_t *next = tells_branches(byte) ? walker__on_branches(trial, *at) : NULL;
	struct packet packet;

	if (next) {
		*at = next;
		return FITS;
	}
	packet__read(&trial->reader, *at, &packet);
	if (packet.kind == PACKET_BAD)
		return BAD;
	if (!tells_branches(byte) && byte && !packet__is_time(byte))
		return ENDS;
	trial->next = *at + packet.len;
	if (packet.kind == PACKET_TIP)
		walker__on_tip(trial, packet.n,
			       packet.n == IP_SUPPRESSED
				       ? trial->reader.last_ip
				       : packet_reader__ip(&trial->reader, packet.n, packet.value));
	else if (packet.kind == PACKET_END && tells_branches(byte))
		walker__on_cut_tip(trial);
	else
		pt_time__on_packet(&trial->time, &packet);
	*at = packet.kind == PACKET_END ? trial->reader.end : *at + packet.len;
	return FITS;
}

/*
 * Counts the branch packets that fit, at most ENOUGH, and adds one; 0: the walk was lost. If more
 * damage follows, the packets before it count if they are more than SOME.
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
	enter(&trial, block);
	if (trial.tnt_left)
		take_bits(&trial);
	if (end - at > MAX_BYTES)
		end = at + MAX_BYTES;
	while (at < end && fit == FITS && trial.state == WALK_ON && n < ENOUGH) {
		n += tells_branches(*at);
		fit = walk_one(&trial, &at);
	}
	free(out.v);
	/* The trial opened its own libipt decoder. */
	if (trial.reader.libipt != w->reader.libipt)
		packet_reader__fini(&trial.reader);
	if (fit == BAD)
		return n > SOME ? n + 1 : 0;
	return trial.state == WALK_ON ? n + 1 : 0;
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
			site->after = find(w, site->ret_ip);
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

/* The block at ip, if the walk may go on there; otherwise NULL. For a guess, some packets must fit.
 */
static struct block *believe(struct walker *w, uint64_t ip, bool is_guess)
{
	struct block *block = find(w, ip);

	/* The code there may still be missing. */
	if (!block || (block->end >= BLOCK_UNMAPPED && !block->counts && !block->n_steps))
		return NULL;
	if (walker__doubts(w) && count_fitting(w, block, w->next) <= (is_guess ? SOME : 0))
		return NULL;
	return block;
}

bool walker__resume(struct walker *w, unsigned int ip_bytes, uint64_t ip)
{
	uint64_t last_ip = w->reader.last_ip;
	struct block *block;

	if (w->state != WALK_LOST || ip_bytes == IP_SUPPRESSED || w->is_other_mode || w->is_trial)
		return false;
	walker__update_space(w);
	block = believe(w, ip, false);
	if (!block && walker__doubts(w)) {
		/*
		 * Bad bytes that look like an IP packet change the last IP, and so the upper bytes
		 * of the IPs after them. This takes those of the last IP before the bad bytes.
		 */
		w->reader.last_ip = w->sure_ip;
		ip = packet_reader__ip(&w->reader, ip_bytes, ip);
		if (ip != last_ip)
			block = believe(w, ip, true);
		if (!block)
			w->reader.last_ip = last_ip;
	}
	if (!block)
		return false;
	w->knows_ip = true;
	walker__emit(w, BRANCH_BEGIN, 0, 0, block->ip, w->time.tsc);
	w->state = WALK_ON;
	enter(w, block);
	return true;
}
