// SPDX-License-Identifier: MIT
/* Packets, one by one. */
#include "decode/walk/walk.h"

#include <errno.h>
#include <stdlib.h>

#include "decode/pt_note.h"
#include "decode/walk/walk_internal.h"

int walker__init(struct walker *w, const struct decode_request *request, struct outbox *out)
{
	const struct rec_aux *aux = request->aux;

	*w = (struct walker){
		.out = out, .tsc_base = aux->tsc, .switches = request->switches, .cpu = aux->cpu};
	w->space = space__get(request->images, aux->pid, request->all_branches);
	if (!w->space)
		return -ENOMEM;
	packet_reader__init(&w->reader, aux->data, aux->size);
	errata__of(&w->errata, &request->rec->pt);
	w->reader.skd007 = w->errata.skd007;
	pt_time__init(&w->time, &request->rec->pt);
	return 0;
}

void walker__fini(struct walker *w)
{
	packet_reader__fini(&w->reader);
	space__put(w->space);
}

bool outbox__grow(struct outbox *out)
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

static void tell(struct walker *w, uint8_t kind, uint64_t ip, uint64_t value, uint64_t tsc)
{
	walker__emit(w, ENTRY_NOTE, 0, ip, value, tsc);
	if (w->out->n && !w->out->err)
		w->out->v[w->out->n - 1].reason = kind;
}

/* The event that waits for its FUP happened at ip; 0: the FUP has not come. */
static void place_event(struct walker *w, uint64_t ip)
{
	if (w->event.kind)
		tell(w, w->event.kind, ip, w->event.value, w->event.tsc);
	w->event.kind = PT_NOTE_NONE;
}

/*
 * A packet that tells what is no branch (pt_note.h). Between an MWAIT and its FUP, a PWRE may lie
 * (SDM "Power Event Tracing").
 */
static void on_event(struct walker *w, const struct packet *packet)
{
	/* It may only look like a packet. */
	if (walker__doubts(w))
		return;
	if (packet->kind != PACKET_BEFORE_FUP) {
		tell(w, packet->event, 0, packet->value, w->time.tsc);
		return;
	}
	place_event(w, 0);
	w->event.kind = packet->event;
	w->event.value = packet->value;
	w->event.tsc = w->time.tsc;
}

/* What tells of branches next is a TNT. */
static bool is_before_tnt(struct walker *w)
{
	const uint8_t *at = w->next;
	struct packet packet;

	do {
		packet__read(&w->reader, at, &packet);
		at += packet.len;
	} while (packet.kind == PACKET_PAD ||
		 (packet.kind >= PACKET_TSC && packet.kind <= PACKET_CBR));
	return packet.kind == PACKET_TNT;
}

/*
 * SDM "MODE.Exec Packet": it is sent right before the TIP or TIP.PGE that it applies to. What
 * stands elsewhere only looks like one, of bytes that are damaged.
 */
static void on_mode_exec(struct walker *w, uint64_t bits)
{
	/* CS.L and not CS.D. */
	bool is_other = (bits & 3) != 1;

	if (!is_other || !is_before_tnt(w))
		w->is_other_mode = is_other;
}

/* Packets may begin anywhere behind it, up to the next PSB, which is not stepped over. */
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

static void on_time(struct walker *w, const struct packet *packet)
{
	switch (packet->kind) {
	case PACKET_TSC:
		pt_time__on_tsc(&w->time, packet->value);
		break;
	case PACKET_TMA:
		pt_time__on_tma(&w->time, packet->value, packet->fc);
		break;
	case PACKET_MTC:
		pt_time__on_mtc(&w->time, (uint8_t)packet->value);
		break;
	case PACKET_CYC:
		pt_time__on_cyc(&w->time, packet->value);
		break;
	case PACKET_CBR:
		pt_time__on_cbr(&w->time, (uint8_t)packet->value);
		break;
	default:
		break;
	}
}

/* TSC ticks, cycles and MTC periods that nobody is ahead of the last known time by. */
#define MAX_LATER_TSC	 (1ull << 33)
#define MAX_LATER_CYCLES (1u << 12)
#define MAX_LATER_MTC	 4

/* What only looks like a packet would set the clock, and change the mode. */
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

/* A packet that says how those behind it are to be understood. */
static void on_mode(struct walker *w, const struct packet *packet)
{
	switch (packet->kind) {
	case PACKET_MODE_EXEC:
		on_mode_exec(w, packet->value);
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
		on_time(w, packet);
		break;
	}
}

static const uint8_t *on_psb(struct walker *w, const uint8_t *at)
{
	struct psb_plus psb;

	walker__read_psb(w, at, &psb);
	if (psb.end == PACKET_END)
		return w->reader.end;
	walker__finish(w, &psb);
	walker__begin_region(w, &psb);
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
		walker__on_pge(w, packet->n, ip);
		break;
	case PACKET_PGD:
		walker__on_pgd(w, packet->n != IP_SUPPRESSED, ip);
		break;
	case PACKET_FUP:
		place_event(w, packet->n == IP_SUPPRESSED ? 0 : ip);
		walker__on_fup(w, packet->n, ip);
		break;
	default:
		break;
	}
}

/* The stream ends within a packet. A TIP still tells that the thread came to an indirect branch. */
static void on_cut_packet(struct walker *w, uint8_t header)
{
	const struct block *block = w->block;

	if ((header & 0x1f) != 0x0d || w->state != WALK_ON || w->has_fup)
		return;
	if (block->end >= BLOCK_RETURN && block->end <= BLOCK_JUMP &&
	    walker__arrive(w, block->last_ip))
		w->block = walker__find(w, block->last_ip);
}

const uint8_t *walker__on_packet(struct walker *w, const uint8_t *at)
{
	struct packet packet;

	packet__read(&w->reader, at, &packet);
	if (packet.event)
		on_event(w, &packet);
	w->next = at + packet.len;
	switch ((enum packet_kind)packet.kind) {
	case PACKET_END:
		on_cut_packet(w, *at);
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
		walker__on_overflow(w);
		break;
	case PACKET_PSBEND: /* of a PSB that is no more */
		walker__lose(w, GAP_BAD_PACKET, w->block ? w->block->ip : 0, w->time.tsc);
		break;
	default:
		if (!walker__doubts(w) || !is_doubtful(w, &packet))
			on_mode(w, &packet);
		break;
	}
	return at + packet.len;
}

int walker__flush(struct walker *w)
{
	struct outbox *out = w->out;

	if (!out->err)
		out->err = out->flush(out->ctx, out);
	out->n = 0;
	return out->err;
}

int walker__run(struct walker *w, const uint8_t *from, const uint8_t *to)
{
	struct psb_plus psb;
	int err;

	w->state = WALK_OFF;
	w->sync = from;
	err = walker__on_packets(w, from, to);
	if (err)
		return err;
	if (to < w->reader.end)
		walker__read_psb(w, to, &psb);
	if (to < w->reader.end && psb.end != PACKET_END)
		walker__finish(w, &psb);
	else
		walker__end_of_stream(w);
	place_event(w, 0);
	if (w->counts)
		walker__emit(w, OUTBOX_REST, 0, 0, 0, 0);
	return walker__flush(w);
}
