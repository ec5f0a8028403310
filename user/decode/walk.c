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

static bool replay(struct walker *w, const struct memo_entry *entry, const struct memo_run *run)
{
	if ((w->reader.last_ip ^ entry->ip) & entry->ip_mask)
		return false;
	if (entry->effects && !memo__replay(w, entry, run))
		return false;
	w->reader.last_ip = entry->has_ip ? entry->ip : w->reader.last_ip;
	w->counts += entry->counts;
	w->block = entry->to;
	w->block_tsc = run->times[run->n_packets];
	return true;
}

static bool is_cyc(uint8_t byte)
{
	return (byte & 3) == 3;
}

static void walk_run(struct walker *w, const uint8_t *at, const struct memo_run *run,
		     struct memo_entry *entry)
{
	struct memo_note note;

	memo__start(w, &note, run->bytes);
	while (at < run->end) {
		if (is_cyc(*at)) {
			at = on_packet(w, at);
			continue;
		}
		memo__before_packet(w, &note);
		at = walk_packet(w, at);
		memo__after_packet(w, &note);
	}
	memo__finish(w, &note, entry);
}

/* Time as it passes within a run; what of it is kept is known only at its end. */
struct clock {
	uint64_t ref, ratio, cycles, tsc;
};

/* A CYC of one or two bytes, which is most of them. Its length; 0: it is longer. */
static inline unsigned int take_cyc(struct clock *clock, uint64_t bytes)
{
	bool is_long = bytes & 4;
	uint64_t now;

	if (UNLIKELY(is_long && bytes & 0x100))
		return 0;
	clock->cycles += (bytes >> 3 & 0x1f) | (is_long ? (bytes >> 9 & 0x7f) << 5 : 0);
	now = clock->ref + (clock->cycles * clock->ratio >> PT_TIME_RATIO_BITS);
	clock->tsc = now > clock->tsc ? now : clock->tsc;
	return 1 + is_long;
}

/* The bytes of a TIP with 2, 4 or 6 bytes of IP; 0: it is something else. */
static inline unsigned int tip_size(uint8_t header)
{
	return (header & 0x9f) == 0x0d && header > 0x0d ? 2 * (header >> 5) + 1 : 0;
}

/*
 * Where nothing tells the time in between: TNT packets and the TIP behind them, as many as lie in
 * eight bytes, found at once.
 */
static inline bool read_plain_run(uint64_t bytes, const uint8_t *at, uint64_t tsc,
				  struct memo_run *run)
{
	const uint64_t ones = 0x0101010101010101ull;
	uint64_t masked = bytes & ~(2 * ones);
	/* 00 and 02, which are no short TNT; the lowest is found exactly. */
	uint64_t special = (masked - ones) & ~masked & (ones << 7);
	uint64_t other = (bytes & ones) | special;
	unsigned int n = other ? (unsigned int)__builtin_ctzll(other) / 8 : 8;
	unsigned int size = n < 8 ? tip_size((uint8_t)(bytes >> (8 * n))) : 0;

	if (n + size > 8)
		size = 0;
	run->n_packets = n + (size != 0);
	n += size;
	if (!n)
		return false;
	run->bytes = bytes & (UINT64_MAX >> (64 - 8 * n));
	run->end = at + n;
	for (unsigned int i = 1; i <= MEMO_PACKETS; i++)
		run->times[i] = tsc;
	return true;
}

/* The run that begins at `at`, if one does; and the time behind it. */
static inline bool read_run(const struct walker *w, const uint8_t *at, const uint8_t *to,
			    struct memo_run *run, struct clock *clock)
{
	struct clock now = *clock;
	unsigned int n = 0, size;

	if (to - at >= 8 && !is_cyc(*at))
		return read_plain_run(packet__load(at, to), at, clock->tsc, run);
	run->bytes = 0;
	run->n_packets = 0;
	while (to - at >= 10) {
		uint64_t bytes = packet__load(at, to);

		if (is_cyc((uint8_t)bytes)) {
			unsigned int len = take_cyc(&now, bytes);

			if (UNLIKELY(!len))
				break;
			bytes = packet__load(at + len, to);
			at += len;
		}
		size = packet__is_short_tnt((uint8_t)bytes) ? 1 : tip_size((uint8_t)bytes);
		if (!size || n + size > 8)
			break;
		run->bytes |= (bytes & (UINT64_MAX >> (64 - 8 * size))) << (8 * n);
		run->times[++run->n_packets] = now.tsc;
		*clock = now;
		n += size;
		at += size;
		run->end = at;
		if (size > 1 || n == 8)
			break;
	}
	return run->n_packets;
}

static int walk_packets(struct walker *w, const uint8_t *at, const uint8_t *to)
{
	while (at < to) {
		struct clock clock = {w->time.ref, w->time.ref ? w->time.ratio : 0, w->time.cycles,
				      w->time.tsc};
		struct memo_run run;

		if (w->block && !w->has_fup && !w->tnt_left && read_run(w, at, to, &run, &clock)) {
			struct memo_entry *entry =
				memo__slot(w->space->entries, w->block, run.bytes);

			run.times[0] = w->block_tsc;
			if (LIKELY(entry->block == w->block && entry->bytes == run.bytes &&
				   replay(w, entry, &run))) {
				w->time.mtc_cycles += clock.cycles - w->time.cycles;
				w->time.cycles = clock.cycles;
				w->time.tsc = clock.tsc;
			} else {
				walk_run(w, at, &run, entry);
			}
			at = run.end;
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
