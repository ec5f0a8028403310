// SPDX-License-Identifier: MIT
/*
 * PSB+ (SDM "Packet Stream Boundary"): enough to start there without anything from before. What
 * came before ends at the IP that it tells.
 */
#include "decode/walk/walk_internal.h"

static void take_time(struct pt_time *time, const struct packet *packet)
{
	switch (packet->kind) {
	case PACKET_TSC:
		pt_time__on_tsc(time, packet->value);
		break;
	case PACKET_TMA:
		pt_time__on_tma(time, packet->value, packet->fc);
		break;
	case PACKET_CBR:
		pt_time__on_cbr(time, (uint8_t)packet->value);
		break;
	case PACKET_MTC:
		pt_time__on_mtc(time, (uint8_t)packet->value);
		break;
	case PACKET_CYC:
		pt_time__on_cyc(time, packet->value);
		break;
	default:
		break;
	}
}

static void take_fup(struct walker *w, const struct packet *packet, struct psb_plus *psb)
{
	if (packet->n == IP_SUPPRESSED)
		return;
	psb->ip = packet_reader__ip(&w->reader, packet->n, packet->value);
	psb->has_ip = true;
}

/* What is in a PSB+, and nothing that is not: by that a damaged one is known. */
static bool belongs(const struct packet *packet)
{
	switch ((enum packet_kind)packet->kind) {
	case PACKET_TNT:
	case PACKET_TIP:
	case PACKET_PGE:
	case PACKET_PGD:
	case PACKET_PSB:
	case PACKET_BAD:
		return false;
	default:
		return true;
	}
}

void walker__read_psb(struct walker *w, const uint8_t *at, struct psb_plus *psb)
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
		if (packet.kind == PACKET_FUP)
			take_fup(w, &packet, psb);
		else if (packet.kind == PACKET_MODE_EXEC)
			psb->other_mode = (packet.value & 3) != 1;
		else
			take_time(&psb->time, &packet);
		if (!belongs(&packet))
			packet.kind = PACKET_BAD;
	} while (packet.kind > PACKET_BAD && packet.kind != PACKET_PSBEND &&
		 packet.kind != PACKET_OVF);
	psb->end = packet.kind;
	if (psb->end > PACKET_BAD)
		psb->at += packet.len;
	psb->last_ip = psb->end == PACKET_OVF ? 0 : w->reader.last_ip;
	w->reader.last_ip = last_ip;
}

static enum gap_reason reason_of(const struct psb_plus *psb)
{
	switch (psb->end) {
	case PACKET_BAD:
		return GAP_BAD_PACKET;
	case PACKET_OVF:
		return GAP_OVERFLOW;
	default:
		return GAP_MISMATCH;
	}
}

void walker__finish(struct walker *w, const struct psb_plus *psb)
{
	walker__settle_left(w, 0);
	/* Erratum APL12: what an OVF said of a thread that was not traced. */
	if (w->state == WALK_START && (psb->has_ip || w->start_kind != BRANCH_BEGIN))
		walker__wake(w);
	if (w->state != WALK_ON)
		return;
	if (psb->has_ip && !w->tnt_left && psb->end != PACKET_BAD)
		walker__arrive(w, psb->ip);
	else
		walker__lose(w, reason_of(psb), w->block->ip, w->time.tsc);
}

void walker__begin_region(struct walker *w, const struct psb_plus *psb)
{
	w->time = psb->time;
	w->reader.last_ip = psb->last_ip;
	w->is_other_mode = psb->other_mode;
	w->state = WALK_OFF;
	w->block = NULL;
	w->tnt_left = 0;
	w->has_fup = false;
	w->ignores_fup = false;
	w->is_abort = false;
	w->after_ovf = false;
	w->knows_ip = true;
	w->lost_calls = false;
	w->floor = w->stale = w->top;
	if (psb->end == PACKET_OVF) {
		walker__on_overflow(w);
		return;
	}
	w->knows_who = false;
	walker__update_space(w);
	if (!psb->has_ip || psb->end != PACKET_PSBEND || walker__lose_mode(w, psb->ip))
		return;
	w->state = WALK_START;
	w->start_kind = OUTBOX_START;
	w->start_ip = psb->ip;
	w->start_tsc = w->time.tsc;
}

void walker__end_of_stream(struct walker *w)
{
	walker__settle_left(w, 0);
	if (w->state == WALK_START)
		walker__wake(w);
	/* Where the last packet sent the thread is known; not how far it ran from there. */
	if (w->state == WALK_ON)
		walker__emit(w, BRANCH_END, 0, w->block->ip, 0, w->time.tsc);
}
