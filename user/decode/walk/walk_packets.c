// SPDX-License-Identifier: MIT
#include "decode/walk/walk_packets.h"

#include <string.h>

#include "decode/pt_note.h"
#include "decode/walk/walker.h"
#include "util/insn.h"

#define VM_ENTRY_LEN 3

/* ---- packets that are not about branches (pt_note.h) */

static void tell(struct walker *w, uint8_t kind, uint64_t ip, uint64_t value, uint64_t tsc)
{
	walker__emit(w, ENTRY_NOTE, 0, ip, value, tsc);
	if (w->out->n && !w->out->err)
		w->out->v[w->out->n - 1].reason = kind;
}

/* Hands on the event that waits for its FUP. ip: the FUP's; 0: the FUP is missing. */
static void place_event(struct walker *w, uint64_t ip)
{
	/* A reader of the event needs the map of the code, which comes with the begin. */
	if (w->event.kind && ip && w->state == WALK_START)
		walker__wake(w);
	if (w->event.kind)
		tell(w, w->event.kind, ip, w->event.value, w->event.tsc);
	w->event.kind = PT_NOTE_NONE;
}

/* Returns the kind of the next packet that is not about time. `at`: where to look. */
static enum packet_kind kind_of_next(struct walker *w, const uint8_t *at)
{
	struct packet packet;

	do {
		packet__read(&w->reader, at, &packet);
		at += packet.len;
	} while (packet.kind == PACKET_PAD ||
		 (packet.kind >= PACKET_TSC && packet.kind <= PACKET_CBR));
	return (enum packet_kind)packet.kind;
}

/*
 * If a FUP will tell where the event happened, the event waits for it. SDM "Event Trace": a CFE
 * without the IP bit precedes the FUP of its branch, while branches are traced. SDM "Power Event
 * Tracing": a PWRE may come between an MWAIT and its FUP.
 */
static void on_event(struct walker *w, const struct packet *packet, const uint8_t *next)
{
	bool has_fup = packet->kind == PACKET_BEFORE_FUP;

	/* After bad bytes the packet may be garbage. */
	if (walker__doubts(w))
		return;
	if (packet->kind == PACKET_CFE && w->state != WALK_OFF)
		has_fup = kind_of_next(w, next) == PACKET_FUP;
	if (!has_fup) {
		tell(w, packet->event, 0, packet->value, w->time.tsc);
		return;
	}
	place_event(w, 0);
	w->event.kind = packet->event;
	w->event.value = packet->value;
	w->event.tsc = w->time.tsc;
}

/* ---- tracing begins and ends, and overflows */

/* True for the uprobes page, where probed instructions run; the thread then returns to its code. */
static bool is_slot(struct walker *w, uint64_t ip)
{
	struct code_place place;

	return code_map__find(w->space->map, ip, &place) && place.function &&
	       !strcmp(place.function->module, "[uprobes]");
}

static void on_pge(struct walker *w, unsigned int ip_bytes, uint64_t ip)
{
	/*
	 * If another thread runs now, this IP does not tell where the thread that left (w->left)
	 * had got to.
	 */
	bool is_other = w->left && walker__is_other_thread(w);

	/*
	 * Errata BDM70 and APL12: a PSB+ or an OVF may give the IP of a thread that is not traced
	 * yet. It produced no branches, so nothing needs to be undone.
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

/* Tracing ends before the instruction of the last FUP. */
static void leave_at_fup(struct walker *w)
{
	uint64_t ip = w->fup_ip, slot = w->block->ip;
	uint8_t code[3] = {0};
	/*
	 * The thread was stopped after the one instruction that the kernel had put into a slot of
	 * the uprobes page. Its block cannot show that: the recording has the code of one probe in
	 * all slots. The instruction has not branched, as no branch leads to its own end.
	 */
	bool has_stepped = ip > slot && ip - slot <= INSN_MAX_LEN && is_slot(w, slot);

	if (!has_stepped && !walker__arrive(w, ip))
		return;
	/* SKD022: tracing is ended by VMLAUNCH or VMRESUME itself, not by an interrupt before it.
	 */
	if (w->errata.skd022)
		code_map__read(w->space->map, ip, code, sizeof(code));
	if (code[0] == 0x0f && code[1] == 0x01 && (code[2] == 0xc2 || code[2] == 0xc3)) {
		w->counts++;
		walker__end_at(w, BRANCH_END_SYSCALL, ip, VM_ENTRY_LEN, w->time.tsc);
	} else {
		walker__end_at(w, BRANCH_END_ASYNC, ip, 0, w->time.tsc);
	}
}

/* Tracing ends; an IP is the target outside of the address range of a filter. */
static void leave(struct walker *w, bool has_ip, uint64_t ip)
{
	struct block_reach reach;
	struct blocks *blocks = w->space->blocks;
	struct block *block;
	bool is_within;

	while (w->block->end == BLOCK_UNMAPPED && walker__renew(w))
		;
	block = w->block;
	if (!block) /* out of memory */
		return;
	/*
	 * A direct branch within the block. SKL014: its TIP.PGD may lack its IP. The branch is then
	 * known only if the block has exactly one; and if the block ends with a system call, that
	 * is what ended tracing.
	 */
	if (has_ip)
		is_within = blocks__reach_branch_to(blocks, block, ip, &reach);
	else
		is_within = w->errata.skl014 && block->end != BLOCK_FAR &&
			    blocks__reach_only_branch(blocks, block, &reach);
	if (is_within) {
		walker__take_reach(w, &reach);
		walker__end_at(w, BRANCH_END, reach.from, reach.len, w->time.tsc);
	} else if (has_ip && !block__may_lead_to(block, ip)) {
		walker__cannot(w);
	} else if (has_ip) {
		walker__end_with_block(w, block->end == BLOCK_FAR ? BRANCH_END_SYSCALL : BRANCH_END,
				       w->time.tsc);
	} else if (block->end == BLOCK_FAR && is_slot(w, block->last_ip)) {
		/* The uretprobe's trampoline: the thread goes on in the caller, like a return. */
		walker__end_with_block(w,
				       block->flags & BLOCK_TRAPS ? BRANCH_END : BRANCH_END_SYSCALL,
				       w->time.tsc);
	} else {
		w->left = block;
		w->left_tsc = w->time.tsc;
	}
}

static void on_pgd(struct walker *w, bool has_ip, uint64_t ip)
{
	if (walker__doubts(w))
		return;
	if (w->state == WALK_START)
		walker__wake(w);
	if (w->state == WALK_ON && w->has_fup)
		leave_at_fup(w);
	else if (w->state == WALK_ON)
		leave(w, has_ip, ip);
	w->state = WALK_OFF;
	w->block = NULL;
	w->has_fup = false;
}

static void on_fup(struct walker *w, unsigned int ip_bytes, uint64_t ip)
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
	/* The packet that the previous FUP belongs to is missing. */
	if (w->has_fup)
		walker__lose(w, GAP_MISMATCH, w->fup_ip, w->time.tsc);
	if (w->state == WALK_LOST)
		walker__resume(w, ip_bytes, ip);
	w->has_fup = w->state == WALK_ON;
	w->fup_ip = w->reader.last_ip;
}

static void on_overflow(struct walker *w)
{
	if (w->state == WALK_START)
		walker__wake(w);
	walker__lose(w, GAP_OVERFLOW, 0, w->time.tsc);
	w->reader.last_ip = 0;
	w->after_ovf = true;
	w->knows_ip = true;
}

/*
 * ---- PSB+ (SDM "Packet Stream Boundary"): a decoder can start there. The packets before it end
 * at the IP that it gives.
 */

/* The state that the packets from PSB to PSBEND give. */
struct psb_plus {
	struct pt_time time;
	uint64_t last_ip;
	uint64_t ip;
	bool has_ip; /* the thread is being traced, and about to execute ip */
	bool other_mode;
	uint8_t end; /* PACKET_PSBEND, PACKET_OVF; PACKET_BAD or PACKET_END if it was damaged */
	const uint8_t *at; /* the end of the PSB+ */
};

static void read_psb(struct walker *w, const uint8_t *at, struct psb_plus *psb)
{
	uint64_t last_ip = w->reader.last_ip;
	struct packet packet;

	*psb = (struct psb_plus){.at = at};
	pt_time__init(&psb->time, w->time.config);
	w->reader.last_ip = 0;
	packet__read(&w->reader, at, &packet);
	do {
		psb->at += packet.len;
		packet__read(&w->reader, psb->at, &packet);
		if (packet.kind == PACKET_FUP && packet.n != IP_SUPPRESSED) {
			psb->ip = packet_reader__ip(&w->reader, packet.n, packet.value);
			psb->has_ip = true;
		} else if (packet.kind == PACKET_MODE_EXEC)
			psb->other_mode = (packet.value & 3) != 1;
		else
			pt_time__on_packet(&psb->time, &packet);
		/* A PSB+ does not contain packets about branches: it is damaged. */
		if ((packet.kind >= PACKET_TNT && packet.kind <= PACKET_PGD) ||
		    packet.kind == PACKET_PSB)
			packet.kind = PACKET_BAD;
	} while (packet.kind > PACKET_BAD && packet.kind != PACKET_PSBEND &&
		 packet.kind != PACKET_OVF);
	psb->end = packet.kind;
	if (psb->end > PACKET_BAD)
		psb->at += packet.len;
	psb->last_ip = psb->end == PACKET_OVF ? 0 : w->reader.last_ip;
	w->reader.last_ip = last_ip;
}

static void finish(struct walker *w, const struct psb_plus *psb)
{
	walker__settle_left(w, 0);
	/* Erratum APL12: the OVF gave the IP of a thread that was not traced. */
	if (w->state == WALK_START && (psb->has_ip || w->start_kind != BRANCH_BEGIN))
		walker__wake(w);
	if (w->state != WALK_ON)
		return;
	if (psb->has_ip && !w->tnt_left && psb->end != PACKET_BAD)
		walker__arrive(w, psb->ip);
	else
		walker__lose(w,
			     psb->end == PACKET_BAD   ? GAP_BAD_PACKET
			     : psb->end == PACKET_OVF ? GAP_OVERFLOW
						      : GAP_MISMATCH,
			     w->block->ip, w->time.tsc);
}

static void begin_region(struct walker *w, const struct psb_plus *psb)
{
	w->time = psb->time;
	w->reader.last_ip = psb->last_ip;
	w->is_other_mode = psb->other_mode;
	walker__forget(w, WALK_OFF);
	w->knows_ip = true;
	w->lost_calls = false;
	w->calls.floor = w->calls.stale = w->calls.top;
	if (psb->end == PACKET_OVF) {
		on_overflow(w);
		return;
	}
	w->knows_who = false;
	walker__update_space(w);
	if (!psb->has_ip || psb->end != PACKET_PSBEND || walker__lose_mode(w, psb->ip))
		return;
	w->state = WALK_START;
	w->start_kind = RAW_START;
	w->start_ip = psb->ip;
	w->start_tsc = w->time.tsc;
}

/* ---- packets that change how the next ones are read */

/* Returns the next place to try after a bad byte: the next PSB at the latest. */
static const uint8_t *skip_bad(struct walker *w, const uint8_t *at)
{
	const uint8_t *psb = w->sync, *next = NULL;

	place_event(w, 0);
	if (psb <= at) {
		psb = packet__find_psb(at + 1, w->reader.end);
		w->sync = psb ? psb : w->reader.end;
	}
	if (w->state == WALK_ON && !w->tnt_left && !w->has_fup && !w->is_trial)
		next = walker__step_over(w, at + 1);
	if (next)
		walker__break(w, GAP_BAD_PACKET);
	else if (w->block)
		walker__lose_behind(w, GAP_BAD_PACKET, w->time.tsc);
	else
		walker__lose(w, GAP_BAD_PACKET, 0, w->time.tsc);
	return next ? next : at + 1;
}

/* A packet that is further than this ahead of the last known time is garbage. */
#define MAX_LATER_TSC	 (1ull << 33)
#define MAX_LATER_CYCLES (1u << 12)
#define MAX_LATER_MTC	 4

/* After bad bytes: true for packets that would set the clock far ahead, or change the mode. */
static bool is_doubtful(const struct walker *w, const struct packet *packet)
{
	switch (packet->kind) {
	case PACKET_TSC:
		return packet->value - w->time.tsc >= MAX_LATER_TSC;
	case PACKET_CYC:
		return packet->value >= MAX_LATER_CYCLES;
	case PACKET_MTC:
		return (uint8_t)(packet->value - w->time.last_mtc - 1) >= MAX_LATER_MTC;
	default:
		return true;
	}
}

static void on_mode(struct walker *w, const struct packet *packet)
{
	/* 64-bit mode is CS.L and not CS.D. */
	bool is_other = (packet->value & 3) != 1;
	enum packet_kind next = PACKET_OTHER;

	switch (packet->kind) {
	case PACKET_MODE_EXEC:
		/*
		 * SDM "MODE.Exec Packet": it is sent right before the TIP or TIP.PGE that it
		 * applies to. Elsewhere, damaged bytes look like one. With Event Trace a CLI, STI
		 * or POPF that changes the interrupt flag sends one as well, with a FUP that tells
		 * where, and nothing else.
		 */
		if (is_other || w->has_events)
			next = kind_of_next(w, w->next);
		if (!is_other || next != PACKET_TNT)
			w->is_other_mode = is_other;
		if (next == PACKET_FUP && w->has_events)
			w->ignores_fup = true;
		break;
	case PACKET_MODE_TSX:
		/* The FUP of an abort is that of an asynchronous branch. */
		w->ignores_fup = !(packet->value & 2);
		w->is_abort = !w->ignores_fup;
		break;
	case PACKET_BEFORE_FUP:
		w->ignores_fup = true;
		break;
	default:
		pt_time__on_packet(&w->time, packet);
		break;
	}
}

/* ---- single packets */

static const uint8_t *on_psb(struct walker *w, const uint8_t *at)
{
	struct psb_plus psb;

	read_psb(w, at, &psb);
	if (psb.end == PACKET_END)
		return w->reader.end;
	finish(w, &psb);
	begin_region(w, &psb);
	return psb.end == PACKET_BAD ? skip_bad(w, psb.at) : psb.at;
}

static void on_ip(struct walker *w, const struct packet *packet)
{
	uint64_t ip = w->reader.last_ip;

	if (packet->n != IP_SUPPRESSED)
		ip = packet_reader__ip(&w->reader, packet->n, packet->value);
	switch (packet->kind) {
	case PACKET_TIP:
		walker__on_tip(w, packet->n, ip);
		break;
	case PACKET_PGE:
		on_pge(w, packet->n, ip);
		break;
	case PACKET_PGD:
		on_pgd(w, packet->n != IP_SUPPRESSED, ip);
		break;
	case PACKET_FUP:
		place_event(w, packet->n == IP_SUPPRESSED ? 0 : ip);
		on_fup(w, packet->n, ip);
		break;
	default:
		break;
	}
}

const uint8_t *walker__on_packet(struct walker *w, const uint8_t *at)
{
	struct packet packet;

	packet__read(&w->reader, at, &packet);
	if (packet.event)
		on_event(w, &packet, at + packet.len);
	w->next = at + packet.len;
	switch ((enum packet_kind)packet.kind) {
	case PACKET_END:
		if ((*at & 0x1f) == 0x0d)
			walker__on_cut_tip(w);
		return w->reader.end;
	case PACKET_BAD:
		return skip_bad(w, at);
	case PACKET_PSB:
		return on_psb(w, at);
	case PACKET_TNT:
		walker__on_tnt(w, packet.value, packet.n);
		break;
	case PACKET_TIP:
	case PACKET_PGE:
	case PACKET_PGD:
	case PACKET_FUP:
		on_ip(w, &packet);
		break;
	case PACKET_OVF:
		on_overflow(w);
		break;
	case PACKET_PSBEND: /* its PSB is missing */
		walker__lose(w, GAP_BAD_PACKET, w->block ? w->block->ip : 0, w->time.tsc);
		break;
	default:
		if (!walker__doubts(w) || !is_doubtful(w, &packet))
			on_mode(w, &packet);
		break;
	}
	return at + packet.len;
}

void walker__end_region(struct walker *w, const uint8_t *to)
{
	struct psb_plus psb = {.end = PACKET_END};

	if (to < w->reader.end)
		read_psb(w, to, &psb);
	if (psb.end != PACKET_END) {
		finish(w, &psb);
	} else {
		walker__settle_left(w, 0);
		if (w->state == WALK_START)
			walker__wake(w);
		/* The last packet tells the thread's block, and not how far it ran in it. */
		if (w->state == WALK_ON)
			walker__emit(w, BRANCH_END, 0, w->block->ip, 0, w->time.tsc);
	}
	place_event(w, 0);
}
