// SPDX-License-Identifier: MIT
/* The loop over packets. */
#include "decode/walk.h"

#include <errno.h>
#include <stdlib.h>

#include "decode/walk_internal.h"

/* Enough to be worth handing over. */
#define BATCH 8192

int walker__init(struct walker *w, const struct decode_request *request, struct outbox *out)
{
	const struct rec_aux *aux = request->aux;

	*w = (struct walker){
		.out = out, .tsc_base = aux->tsc, .switches = request->switches, .cpu = aux->cpu};
	w->space = space__get(request->images, aux->pid, request->all_branches);
	if (!w->space)
		return -ENOMEM;
	packet_reader__init(&w->reader, aux->data, aux->size);
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

static void on_mode_exec(struct walker *w, uint64_t bits)
{
	/* CS.L and not CS.D. */
	w->is_other_mode = (bits & 3) != 1;
}

/* Behind what is no packet: to the next PSB. */
static const uint8_t *skip_bad(struct walker *w, const uint8_t *at)
{
	const uint8_t *psb = packet__find_psb(at + 1, w->reader.end);

	walker__lose(w, GAP_BAD_PACKET, w->block ? w->block->ip : 0, w->time.tsc);
	return psb ? psb : w->reader.end;
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
		walker__on_pge(w, ip);
		break;
	case PACKET_PGD:
		walker__on_pgd(w, packet->n != IP_SUPPRESSED, ip);
		break;
	case PACKET_FUP:
		walker__on_fup(w, packet->n, ip);
		break;
	default:
		break;
	}
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

/* Any packet. Where the next one is. */
static const uint8_t *on_packet(struct walker *w, const uint8_t *at)
{
	struct packet packet;

	packet__read(&w->reader, at, &packet);
	switch ((enum packet_kind)packet.kind) {
	case PACKET_END:
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
	case PACKET_MODE_EXEC:
		on_mode_exec(w, packet.value);
		break;
	case PACKET_MODE_TSX:
		/* The FUP of an abort is that of an asynchronous branch. */
		w->ignores_fup = !(packet.value & 2);
		break;
	case PACKET_BEFORE_FUP:
		w->ignores_fup = true;
		break;
	default:
		on_time(w, &packet);
		break;
	}
	return at + packet.len;
}

static int flush(struct walker *w)
{
	struct outbox *out = w->out;

	if (!out->err)
		out->err = out->flush(out->ctx, out);
	out->n = 0;
	return out->err;
}

/* The longest packet that is read here without looking at where the bytes end. */
#define MAX_TIP 9

static inline const uint8_t *walk_packet(struct walker *w, const uint8_t *at)
{
	uint8_t byte = *at;
	unsigned int n, ip_bytes = byte >> 5;
	uint64_t value;

	if (packet__is_short_tnt(byte)) {
		value = packet__short_tnt(byte, &n);
		walker__on_tnt(w, value, n);
		return at + 1;
	}
	if ((byte & 0x1f) != 0x0d || w->reader.end - at < MAX_TIP ||
	    packet__ip_size(ip_bytes) - 1 >= 8)
		return on_packet(w, at);
	memcpy(&value, at + 1, sizeof(value));
	walker__on_tip(w, ip_bytes, packet_reader__ip(&w->reader, ip_bytes, value));
	return at + 1 + packet__ip_size(ip_bytes);
}

static bool replay(struct walker *w, const struct memo_entry *entry)
{
	if ((w->reader.last_ip ^ entry->ip) & entry->ip_mask)
		return false;
	if (entry->effects && !memo__replay(w, entry))
		return false;
	w->reader.last_ip = entry->has_ip ? entry->ip : w->reader.last_ip;
	w->counts += entry->counts;
	walker__enter(w, entry->to);
	return true;
}

static void walk_run(struct walker *w, const uint8_t *at, const uint8_t *end, uint64_t run,
		     struct memo_entry *entry)
{
	struct memo_note note;

	memo__start(w, &note, run);
	while (at < end)
		at = walk_packet(w, at);
	memo__finish(w, &note, entry);
}

/* A CYC of one or two bytes, which is most of them. Its length, or 0. */
static inline unsigned int short_cyc(uint64_t bytes, uint64_t *cycles)
{
	if ((bytes & 7) == 3) {
		*cycles = bytes >> 3 & 0x1f;
		return 1;
	}
	if ((bytes & 0x107) == 7) {
		*cycles = (bytes >> 3 & 0x1f) | (bytes >> 9 & 0x7f) << 5;
		return 2;
	}
	return 0;
}

static int walk_packets(struct walker *w, const uint8_t *at, const uint8_t *to)
{
	while (at < to) {
		uint64_t run = packet__load(at, to), cycles;
		unsigned int n = short_cyc(run, &cycles);

		if (n && (size_t)(to - at) >= n) {
			pt_time__on_cyc(&w->time, cycles);
			at += n;
			continue;
		}
		n = memo__run_length(run);
		if (n && (size_t)(to - at) >= n && w->block && !w->has_fup && !w->tnt_left) {
			struct memo_entry *entry;

			run = memo__run(run, n);
			entry = memo__slot(w->space->entries, w->block, run);
			if (UNLIKELY(entry->block != w->block || entry->bytes != run ||
				     !replay(w, entry)))
				walk_run(w, at, at + n, run, entry);
			at += n;
		} else {
			at = walk_packet(w, at);
		}
		if (UNLIKELY(w->out->n >= BATCH || w->out->err) && flush(w))
			return w->out->err;
	}
	return 0;
}

int walker__run(struct walker *w, const uint8_t *from, const uint8_t *to)
{
	struct psb_plus psb;
	int err;

	w->state = WALK_OFF;
	err = walk_packets(w, from, to);
	if (err)
		return err;
	if (to < w->reader.end)
		walker__read_psb(w, to, &psb);
	if (to < w->reader.end && psb.end != PACKET_END)
		walker__finish(w, &psb);
	else
		walker__end_of_stream(w);
	if (w->counts)
		walker__emit(w, OUTBOX_REST, 0, 0, 0, 0);
	return flush(w);
}
