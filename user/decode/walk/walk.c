// SPDX-License-Identifier: MIT
/* The loop over packets: most of them come in runs that have been walked before. */
#include "decode/walk/walk.h"

#include <errno.h>
#include <string.h>

#include "decode/memo.h"
#include "decode/packet.h"
#include "decode/pt_time.h"
#include "decode/walk/walk_branches.h"
#include "decode/walk/walk_packets.h"

/* The walk hands over its branches when there are this many. */
#define BATCH 8192

int walker__init(struct walker *w, const struct decode_request *request, struct branch_buffer *out)
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
	w->has_events = request->rec->pt.config & PT_CONFIG_EVENT;
	pt_time__init(&w->time, &request->rec->pt);
	return 0;
}

void walker__fini(struct walker *w)
{
	packet_reader__fini(&w->reader);
	space__put(w->space);
}

/* Empties the buffer. 0, or what stopped it. */
static int flush(struct walker *w)
{
	struct branch_buffer *out = w->out;

	if (!out->err)
		out->err = out->flush(out->ctx, out);
	out->n = 0;
	return out->err;
}

static inline const uint8_t *walk_packet(struct walker *w, const uint8_t *at)
{
	const uint8_t *next = walker__on_branches(w, at);

	return next ? next : walker__on_packet(w, at);
}

/* ---- runs are read ahead of the walk, so that the memo's entries are fetched meanwhile */

/* Enough runs for the memo's entries to be fetched before they are needed. */
#define BATCH_RUNS 16

/* A place in the stream, with the decoder's state there. */
struct run_point {
	const uint8_t *at;
	uint64_t last_ip, context;
	struct pt_time time;
};

struct run_batch {
	unsigned int n;
	struct memo_run runs[BATCH_RUNS];
	struct run_point end; /* after the last run */
};

#define noinline __attribute__((noinline))

/* Upper limit for the bytes of a CYC, an MTC and a TIP. */
#define MAX_READ 24

/* The caller has checked that there are eight bytes. */
static inline uint64_t load(const uint8_t *at)
{
	uint64_t bytes;

	memcpy(&bytes, at, sizeof(bytes));
	return bytes;
}

/* Moves `time` from an earlier run of the batch to the run that begins with these values. */
static void go_to(struct pt_time *time, uint64_t cycles, uint64_t tsc)
{
	time->mtc_cycles += cycles - time->cycles;
	time->cycles = cycles;
	time->tsc = tsc;
}

/* Reads a CYC of three bytes or more. Returns its length; 0: not a valid CYC. */
static noinline unsigned int read_long_cyc(const uint8_t *at, uint64_t *cycles)
{
	unsigned int len = 1;

	*cycles = *at >> 3;
	do {
		/* packet__read() will tell what it is. */
		if (len > 6)
			return 0;
		*cycles |= (uint64_t)(at[len] >> 1) << (7 * len - 2);
	} while (at[len++] & 1);
	return len;
}

/* The bytes of a TIP with 2, 4 or 6 bytes of IP; 0: it is something else. */
static inline unsigned int tip_size(uint8_t header)
{
	static const uint8_t sizes[256] = {[0x2d] = 3, [0x4d] = 5, [0x6d] = 7};

	return sizes[header];
}

static inline uint64_t first_bytes(uint64_t bytes, unsigned int n)
{
	return bytes & (UINT64_MAX >> (64 - 8 * n));
}

#define MTC 0x59

/* The members of pt_time that a CYC changes. */
struct clock {
	uint64_t ref, ratio, cycles, tsc;
};

static struct clock clock_of(const struct pt_time *time)
{
	/* Without a reference, cycles do not change the time. */
	return (struct clock){time->ref, time->ref ? time->ratio : 0, time->cycles, time->tsc};
}

/* An MTC before a packet of the run. */
struct mtc {
	const uint8_t *at; /* NULL: there has been none */
	bool is_of_run;	   /* a packet of the run came after one */
	struct pt_time time;
};

/* The time after the MTC belongs to the run if a packet came after it. `end`: of the run so far. */
static void settle_mtc(struct mtc *mtc, struct pt_time *time, const uint8_t *end)
{
	if (end <= mtc->at)
		return;
	*time = mtc->time;
	mtc->is_of_run = true;
}

/* Reads the MTC at `at`. Returns the clock after it. */
static noinline struct clock take_mtc(struct mtc *mtc, struct pt_time *time, const uint8_t *at,
				      const uint8_t *end, const struct clock *clock)
{
	if (mtc->at)
		settle_mtc(mtc, time, end);
	else
		mtc->time = *time;
	mtc->at = at;
	go_to(&mtc->time, clock->cycles, clock->tsc);
	pt_time__on_mtc(&mtc->time, at[1]);
	return clock_of(&mtc->time);
}

/* Erratum SKD007: an OVF may have come in the middle of the CYC that ends at `at`. */
static bool is_cut_cyc(const uint8_t *at)
{
	return at[0] == 0xf3 && at[-1] == 0x02 && (at[-2] & 7) == 7;
}

/* The last IP after a TIP of `size` bytes (SDM "FUP/TIP IP Reconstruction"). */
static inline uint64_t ip_after(uint64_t last_ip, uint64_t tip, unsigned int size)
{
	uint64_t value = tip >> 8;

	if (size == 7)
		return (uint64_t)((int64_t)(value << 16) >> 16);
	return (last_ip & UINT64_MAX << 8 * (size - 1)) | value;
}

/* The reader's position, always after the last packet of a run. */
struct run_reader {
	const uint8_t *at, *last; /* no packet is read that begins after `last` */
	bool skd007;
	struct clock clock;
	uint64_t last_ip;
	struct pt_time *time; /* complete, after the last MTC */
	bool has_mtc;
};

/*
 * Reads a run without timing packets in one step: TNT packets, and the TIP after them, within eight
 * bytes. Returns its length; 0: another packet comes first.
 */
static inline unsigned int read_plain_run(struct run_reader *r, struct memo_run *run)
{
	const uint64_t ones = 0x0101010101010101ull;
	uint64_t bytes = load(r->at), masked = bytes & ~(2 * ones);
	/* Bytes 00 and 02, which are not short TNTs. Only the lowest bit set is exact. */
	uint64_t special = (masked - ones) & ~masked & (ones << 7);
	uint64_t other = (bytes & ones) | special;
	unsigned int n = other ? (unsigned int)__builtin_ctzll(other) / 8 : 8;
	uint8_t header = n < 8 ? (uint8_t)(bytes >> (8 * n)) : 0;
	unsigned int size = tip_size(header);

	if (n < 8 && !size)
		return 0;
	run->tip = n + size <= 8 ? header : 0;
	size = run->tip ? size : 0;
	run->n_packets = n + (size != 0);
	n += size;
	run->bytes = first_bytes(bytes, n);
	run->end = r->at += n;
	if (size)
		r->last_ip = ip_after(r->last_ip, run->bytes >> 8 * (n - size), size);
	for (unsigned int i = 1; i <= MEMO_PACKETS; i++)
		run->times[i] = r->clock.tsc;
	return n;
}

/* Reads a run that contains timing packets. */
static inline void read_timed_run(struct run_reader *r, struct memo_run *run)
{
	const uint8_t *at = r->at, *end = at;
	struct clock now = r->clock;
	uint64_t run_bytes = 0, cycles = now.cycles;
	unsigned int shift = 0, n = 0;
	struct mtc mtc;

	mtc.at = NULL;
	mtc.is_of_run = false;
	while (at <= r->last) {
		uint64_t bytes = load(at);
		uint8_t header;
		unsigned int size;

		if ((bytes & 3) == 3) {
			/*
			 * This code does not branch on the length, which the CPU cannot predict.
			 * Shifting the next bytes down is faster than loading them again.
			 */
			uint64_t is_long = bytes >> 2 & 1, payload = bytes >> 3 & 0x1fff, ticks;
			unsigned int len = 1 + (unsigned int)is_long;

			if (UNLIKELY(bytes & (is_long << 8))) {
				len = read_long_cyc(at, &ticks);
				if (!len)
					break;
				bytes = load(at + len);
			} else {
				/* In a CYC of two bytes bit 5 is 0, and not part of the number. */
				ticks = payload & 0x1f;
				ticks = is_long ? (payload + ticks) >> 1 : ticks;
				bytes >>= 8 * len;
			}
			at += len;
			now.cycles += ticks;
			ticks = now.ref + (now.cycles * now.ratio >> PT_TIME_RATIO_BITS);
			now.tsc = ticks > now.tsc ? ticks : now.tsc;
		} else if (UNLIKELY((bytes & 0xff) == MTC)) {
			now = take_mtc(&mtc, r->time, at, end,
				       &(struct clock){.cycles = now.cycles, .tsc = now.tsc});
			at += 2;
			continue;
		}
		header = (uint8_t)bytes;
		if (LIKELY(packet__is_short_tnt(header))) {
			run_bytes |= (uint64_t)header << shift;
			shift += 8;
			end = ++at;
			run->times[++n] = now.tsc;
			cycles = now.cycles;
			if (UNLIKELY(shift == 64))
				break;
			continue;
		}
		size = tip_size(header);
		if (size && shift + 8 * size <= 64) {
			bytes = first_bytes(load(at), size);
			run_bytes |= bytes << shift;
			run->tip = header;
			r->last_ip = ip_after(r->last_ip, bytes, size);
			end = at += size;
			run->times[++n] = now.tsc;
			cycles = now.cycles;
			break;
		}
		/* Another timing packet may follow directly. */
		if (((header & 3) != 3 && header != MTC) || (r->skd007 && is_cut_cyc(at)))
			break;
	}
	run->bytes = run_bytes;
	run->n_packets = (uint8_t)n;
	run->end = r->at = end;
	if (UNLIKELY(mtc.at)) {
		settle_mtc(&mtc, r->time, end);
		r->has_mtc = mtc.is_of_run;
	}
	if (UNLIKELY(at != end)) {
		/* Timing packets that no packet of the run follows belong to the next run. */
		now = clock_of(r->time);
		now.tsc = n ? run->times[n] : run->tsc;
	}
	now.cycles = cycles;
	r->clock = now;
}

/* False: no run begins there. */
static inline bool read_run(struct run_reader *r, struct memo_run *run)
{
	unsigned int n = 0;

	if (r->at > r->last)
		return false;
	run->at = r->at;
	run->tip = 0;
	run->cycles = r->clock.cycles;
	run->tsc = r->clock.tsc;
	if ((*r->at & 3) != 3)
		n = read_plain_run(r, run);
	if (!n)
		read_timed_run(r, run);
	return run->n_packets;
}

/*
 * Reads consecutive runs from a place on. It reads none if another packet comes first, or if there
 * are too few bytes before `to` to read without checks for the end.
 */
static noinline void run_batch__read(struct run_batch *batch, const struct run_point *from,
				     bool skd007, const struct memo_entry *entries,
				     const uint8_t *to)
{
	struct run_point *end = &batch->end;
	struct run_reader r = {.at = from->at,
			       .last = from->at,
			       .skd007 = skd007,
			       .clock = clock_of(&from->time),
			       .last_ip = from->last_ip,
			       .time = &end->time};
	uint64_t context = from->context;
	unsigned int n = 0;

	batch->n = 0;
	if (to - from->at < MAX_READ)
		return;
	r.last = to - MAX_READ;
	end->time = from->time;
	/* After an MTC, cycles alone do not determine the time of a run. */
	for (; n < BATCH_RUNS && !r.has_mtc; n++) {
		struct memo_run *run = &batch->runs[n];

		if (!read_run(&r, run))
			break;
		run->slot = memo__slot_of(run->bytes, context);
		__builtin_prefetch(&entries[run->slot]);
		__builtin_prefetch(&entries[run->slot ^ 1]);
		context = run->tip ? r.last_ip : memo__context_after(run->bytes, r.last_ip);
		run->ip = r.last_ip;
	}
	go_to(&end->time, r.clock.cycles, r.clock.tsc);
	end->at = r.at;
	end->last_ip = r.last_ip;
	end->context = context;
	batch->n = n;
}

/* ---- known runs are replayed */

/* Replays the entry's effects. False: they do not fit here, and nothing was changed. */
static inline __attribute__((always_inline)) bool
replay_effects(struct walker *w, const struct memo_effects *effects, const struct memo_run *run)
{
	struct branch_buffer *out = w->out;
	struct branch *events;

	if (!memo_effects__fit(effects, &w->calls))
		return false;
	while (UNLIKELY(out->cap - out->n < effects->n_events))
		if (!branch_buffer__grow(out))
			return false;
	events = &out->v[out->n];
	memo_effects__replay(effects, run, &w->calls, events);
	if (effects->n_events) {
		events[0].n_insns += (uint32_t)w->counts;
		events[0].n_branches += (uint32_t)(w->counts >> 32);
		w->counts = 0;
	}
	out->n += effects->n_events;
	return true;
}

static inline bool replay(struct walker *w, const struct memo_entry *entry,
			  const struct memo_run *run)
{
	if (!memo_entry__is_of(entry, w->block, run) || !memo_entry__has_effects(entry))
		return false;
	if (entry->effects && !replay_effects(w, entry->effects, run))
		return false;
	w->reader.last_ip = run->ip;
	w->counts += entry->counts;
	w->block = entry->to;
	w->block_tsc = run->times[run->n_packets];
	return true;
}

/* ---- other runs are walked, and noted in the memo */

/* While a run is noted, this replaces the time at which the thread reached its block. */
#define BEFORE UINT64_MAX

struct noting {
	size_t n_out, n_marked; /* of the buffer: before it, and marked with their packet */
	uint8_t n_packets;
	uint8_t entered; /* the number of the packet with which the thread reached its block; 0:
			    before all packets */
};

static void walk_noted_packet(struct walker *w, const uint8_t **at, struct noting *noting)
{
	uint64_t block_tsc = w->block_tsc;

	w->block_tsc = BEFORE;
	*at = walk_packet(w, *at);
	noting->n_packets++;
	for (; noting->n_marked < w->out->n; noting->n_marked++) {
		struct branch *b = &w->out->v[noting->n_marked];
		bool before = b->time_ns == BEFORE;

		b->packet = before ? noting->entered : noting->n_packets;
		if (before)
			b->time_ns = block_tsc;
	}
	/* TNT bits may have to wait for a TIP (SDM "Deferred TIPs"). */
	if (w->block_tsc == BEFORE)
		w->block_tsc = block_tsc;
	else
		noting->entered = noting->n_packets;
}

static bool tells_time(uint8_t byte)
{
	return (byte & 3) == 3 || byte == 0x59;
}

/* A timing packet within a run. Short CYCs are read here, as they are frequent. */
static const uint8_t *walk_time(struct walker *w, const uint8_t *at)
{
	bool is_long = at[0] & 4;
	unsigned int len = 1 + is_long;

	if ((at[0] & 3) != 3 || (is_long && (at[1] & 1 || w->reader.skd007)) || walker__doubts(w))
		return walker__on_packet(w, at);
	pt_time__on_cyc(&w->time, at[0] >> 3 | (is_long ? (uint64_t)(at[1] >> 1) << 5 : 0));
	w->next = at + len;
	return w->next;
}

static void walk_run(struct walker *w, const struct memo_run *run, struct memo_entry *entry)
{
	struct branch_buffer *out = w->out;
	struct noting noting = {.n_out = out->n, .n_marked = out->n};
	struct block *from = w->block;
	block_counts counts = w->counts;
	const uint8_t *at = run->at;

	w->counts = 0;
	while (at < run->end) {
		if (tells_time(*at))
			at = walk_time(w, at);
		else
			walk_noted_packet(w, &at, &noting);
	}
	if (w->state == WALK_ON && !w->tnt_left && !out->err)
		memo__keep(w->space->memo,
			   &(struct memo_walked){.run = run,
						 .from = from,
						 .to = w->block,
						 .counts = w->counts,
						 .events = &out->v[noting.n_out],
						 .n_events = out->n - noting.n_out,
						 .calls = &w->calls},
			   entry);
	if (out->n == noting.n_out) {
		w->counts += counts;
	} else {
		out->v[noting.n_out].n_insns += (uint32_t)counts;
		out->v[noting.n_out].n_branches += (uint32_t)(counts >> 32);
	}
}

/* ---- the packets of a region */

/* A run begins where nothing is left over from the packets before. */
static bool is_plain(const struct walker *w)
{
	return w->block && !w->has_fup && !w->tnt_left;
}

/* Walks a run that may never come again, without keeping its effects. */
static void walk_once(struct walker *w, const struct memo_run *run)
{
	const uint8_t *at = run->at;

	while (at < run->end)
		at = tells_time(*at) ? walk_time(w, at) : walk_packet(w, at);
}

/*
 * Takes a run that neither place has the fitting effects of. Its effects are kept when it comes for
 * the second time: in CPython two of three different runs come only once. False: the batch's next
 * runs are invalid.
 */
static bool take_new_run(struct walker *w, const struct memo_run *run, struct memo_entry *first)
{
	struct memo_entry *second = memo__second(w->space->entries, first);
	bool is_first = memo_entry__is_of(first, w->block, run);
	bool is_known = is_first || memo_entry__is_of(second, w->block, run);

	/* The newest run is in the first place. */
	if (!is_first || memo_entry__has_effects(first))
		*second = *first;
	go_to(&w->time, run->cycles, run->tsc);
	if (is_known) {
		walk_run(w, run, first);
	} else {
		memo_entry__mark(first, w->block, run);
		walk_once(w, run);
	}
	return is_plain(w);
}

/* Effects are fetched this many runs ahead; their entry, fetched earlier, is in the cache by then.
 */
#define AHEAD 4

static inline void fetch_effects(const struct walker *w, const struct memo_run *run)
{
	const struct memo_entry *first = &w->space->entries[run->slot];
	const struct memo_entry *second = memo__second(w->space->entries, first);
	const struct memo_effects *effects =
		first->bytes == run->bytes ? first->effects : second->effects;

	__builtin_prefetch(effects);
	/* A prefetch of an invalid address is harmless. */
	__builtin_prefetch((const void *)((uintptr_t)effects + 64));
}

/* Returns where to read on: after the batch, or earlier if its next runs are invalid. */
static const uint8_t *take_runs(struct walker *w, struct run_batch *batch)
{
	for (unsigned int i = 0; i < batch->n; i++) {
		struct memo_run *run = &batch->runs[i];
		struct memo_entry *entry = &w->space->entries[run->slot];

		if (i + AHEAD < batch->n)
			fetch_effects(w, &batch->runs[i + AHEAD]);
		run->times[0] = w->block_tsc;
		if (LIKELY(replay(w, entry, run) ||
			   replay(w, memo__second(w->space->entries, entry), run)))
			continue;
		if (!take_new_run(w, run, entry)) {
			w->context = w->reader.last_ip;
			return run->end;
		}
	}
	w->time = batch->end.time;
	w->context = batch->end.context;
	return batch->end.at;
}

static int walk_packets(struct walker *w, const uint8_t *at, const uint8_t *to)
{
	struct run_batch batch;

	while (at < to) {
		const uint8_t *end = UNLIKELY(w->sync > at && w->sync < to) ? w->sync : to;
		struct run_point from = {.at = at,
					 .last_ip = w->reader.last_ip,
					 .context = w->context,
					 .time = w->time};

		batch.n = 0;
		if (is_plain(w))
			run_batch__read(&batch, &from, w->reader.skd007, w->space->entries, end);
		if (batch.n) {
			at = take_runs(w, &batch);
		} else {
			at = walk_packet(w, at);
			w->context = w->reader.last_ip;
			if (UNLIKELY(at > end))
				at = end;
		}
		if (UNLIKELY(w->out->n >= BATCH || w->out->err) && flush(w))
			return w->out->err;
	}
	return 0;
}

int walker__run(struct walker *w, const uint8_t *from, const uint8_t *to)
{
	int err;

	w->state = WALK_OFF;
	w->sync = from;
	err = walk_packets(w, from, to);
	if (err)
		return err;
	walker__end_region(w, to);
	if (w->counts)
		walker__emit(w, RAW_REST, 0, 0, 0, 0);
	return flush(w);
}
