// SPDX-License-Identifier: MIT
/*
 * The loop over packets. Most of them come in runs, which programs repeat: a run is TNT packets and
 * the TIP after them, at most eight bytes. When a run comes for the second time, the walk stores
 * its effects in the memo, and replays them when the same bytes arrive at the same block with the
 * same returns pending.
 */
#include "decode/walk/walk.h"

#include <errno.h>
#include <string.h>

#include "decode/packet.h"
#include "decode/pt_time.h"
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

/* The maximum number of packets per run. */
#define RUN_PACKETS 8

/* One run of the stream. */
struct run {
	uint64_t bytes; /* its packets without the timing packets between them */
	uint64_t ip;	/* the last IP after it */
	const uint8_t *at, *end;
	uint64_t cycles, tsc; /* of pt_time at the run's begin */
	uint32_t slot;	      /* its first place in the memo; the other one is slot ^ 1 */
	uint8_t n_packets;
	uint8_t tip; /* the header of its TIP, or 0 */
	/* times[0]: when the thread reached the run's block; then the time of each packet. */
	uint64_t times[1 + RUN_PACKETS];
};

/* Enough runs for the memo's entries to be fetched before they are needed. */
#define BATCH_RUNS 16

struct run_batch {
	unsigned int n;
	struct run runs[BATCH_RUNS];
	/* After the last run. */
	const uint8_t *at;
	uint64_t context;
	struct pt_time time;
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
		/* A longer CYC is left to packet__read(). */
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

/* The members of pt_time that reading a CYC needs. */
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
	const uint8_t *at; /* the last MTC read; NULL: none */
	bool is_of_run;	   /* a packet of the run came after an MTC */
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
	struct pt_time *time; /* the whole time state as of the last MTC; `clock` is newer */
	bool has_mtc;
};

/*
 * Reads the run without timing packets in one step: TNT packets, and the TIP after them, within
 * eight bytes. Returns its length; 0: another packet comes first.
 */
static inline unsigned int read_plain_run(struct run_reader *r, struct run *run)
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
	for (unsigned int i = 1; i <= RUN_PACKETS; i++)
		run->times[i] = r->clock.tsc;
	return n;
}

/*
 * Reads the CYC at `at`. *bytes holds the eight bytes from `at` on; afterwards, those after the
 * CYC. Returns its length; 0: not a valid CYC. The code does not branch on the length, which the
 * CPU cannot predict. Shifting the next bytes down is faster than loading them again.
 */
static inline unsigned int read_cyc(const uint8_t *at, uint64_t *bytes, struct clock *now)
{
	uint64_t is_long = *bytes >> 2 & 1, payload = *bytes >> 3 & 0x1fff, ticks;
	unsigned int len = 1 + (unsigned int)is_long;

	if (UNLIKELY(*bytes & (is_long << 8))) {
		len = read_long_cyc(at, &ticks);
		if (!len)
			return 0;
		*bytes = load(at + len);
	} else {
		/*
		 * In a CYC of two bytes, bit 5 of the payload is the second byte's flag: it is 0,
		 * and not part of the number.
		 */
		ticks = payload & 0x1f;
		ticks = is_long ? (payload + ticks) >> 1 : ticks;
		*bytes >>= 8 * len;
	}
	now->cycles += ticks;
	ticks = now->ref + (now->cycles * now->ratio >> PT_TIME_RATIO_BITS);
	now->tsc = ticks > now->tsc ? ticks : now->tsc;
	return len;
}

/* Reads the run that contains timing packets. */
static inline void read_timed_run(struct run_reader *r, struct run *run)
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
			unsigned int len = read_cyc(at, &bytes, &now);

			if (!len)
				break;
			at += len;
		} else if (UNLIKELY((bytes & 0xff) == MTC_HEADER)) {
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
		if (!packet__is_time(header))
			break;
		/* Erratum SKD007: an OVF may have come in the middle of the CYC that ends here. */
		if (r->skd007 && at[0] == 0xf3 && at[-1] == 0x02 && (at[-2] & 7) == 7)
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

/*
 * Reads consecutive runs from `at` on. It reads none if another packet comes first, or if there are
 * too few bytes before `to` to read without checks for the end.
 */
static noinline void run_batch__read(struct run_batch *batch, const struct walker *w,
				     const uint8_t *at, const uint8_t *to)
{
	struct run_reader r = {.at = at,
			       .last = at,
			       .skd007 = w->reader.skd007,
			       .clock = clock_of(&w->time),
			       .last_ip = w->reader.last_ip,
			       .time = &batch->time};
	uint64_t context = w->context;
	unsigned int n = 0;

	batch->n = 0;
	if (to - at < MAX_READ)
		return;
	r.last = to - MAX_READ;
	batch->time = w->time;
	/* After an MTC, cycles alone do not determine the time of a run. */
	for (; n < BATCH_RUNS && !r.has_mtc && r.at <= r.last; n++) {
		struct run *run = &batch->runs[n];
		uint64_t hash;

		run->at = r.at;
		run->tip = 0;
		run->cycles = r.clock.cycles;
		run->tsc = r.clock.tsc;
		if ((*r.at & 3) == 3 || !read_plain_run(&r, run))
			read_timed_run(&r, run);
		/* No run begins there. */
		if (!run->n_packets)
			break;
		/*
		 * The packets before the run nearly always determine its block: the entry can be
		 * fetched before the block is known.
		 */
		hash = (run->bytes ^ context * 0xff51afd7ed558ccdull) * 0x9e3779b97f4a7c15ull;
		run->slot = (uint32_t)(hash >> (64 - MEMO_BITS));
		__builtin_prefetch(&w->space->entries[run->slot]);
		__builtin_prefetch(&w->space->entries[run->slot ^ 1]);
		/*
		 * The context of the next run depends on this run and the last IP, not on the runs
		 * before it: a loop without TIPs would never come to the same context again.
		 */
		context = r.last_ip;
		if (!run->tip)
			context ^= run->bytes << 7 | run->bytes >> 57;
		run->ip = r.last_ip;
	}
	go_to(&batch->time, r.clock.cycles, r.clock.tsc);
	batch->at = r.at;
	batch->context = context;
	batch->n = n;
}

/* ---- known runs are replayed */

/*
 * Variable-sized, so that frequent ones fit into the cache. The arrays follow it without padding:
 * n_needs return addresses that must be pending, the newest first (uint64_t); n_pushes calls that
 * the run leaves pending (struct block_site *); n_events branches (struct branch), whose `packet`
 * is an index into run.times instead of time_ns.
 */
struct memo_effects {
	uint8_t n_needs, n_pushes, n_events;
	uint8_t n_drops;    /* 1: one pending return is removed without being used */
	uint8_t most_calls; /* the most of its own calls that were pending at once */
	uint8_t pad[3];
	uint64_t behind[];
};

/* True if the entry holds this run at this block. */
static inline bool is_of(const struct memo_entry *entry, const struct block *block,
			 const struct run *run)
{
	return entry->block == block && entry->bytes == run->bytes &&
	       (!run->tip || entry->ip == run->ip);
}

/* Replays the entry's effects. False: they do not fit here, and nothing was changed. */
static inline __attribute__((always_inline)) bool
replay_effects(struct walker *w, const struct memo_effects *effects, const struct run *run)
{
	struct block_site *const *pushes = (void *)(effects->behind + effects->n_needs);
	const struct branch *noted = (const void *)(pushes + effects->n_pushes);
	struct returns *calls = &w->calls;
	struct branch_buffer *out = w->out;
	struct branch *events;

	/* Too many calls would drop the oldest, and first those from before a gap. */
	if (calls->top - calls->floor < effects->n_needs ||
	    calls->top - calls->stale + effects->most_calls > RETURN_DEPTH)
		return false;
	for (unsigned int i = 0; i < effects->n_needs; i++)
		if (calls->ips[(calls->top - 1 - i) % RETURN_DEPTH] != effects->behind[i])
			return false;
	while (UNLIKELY(out->cap - out->n < effects->n_events))
		if (!branch_buffer__grow(out))
			return false;
	events = &out->v[out->n];
	for (unsigned int i = 0; i < effects->n_events; i++) {
		events[i] = noted[i];
		events[i].time_ns = run->times[noted[i].packet];
	}
	calls->top -= effects->n_needs;
	if (effects->n_drops && calls->top != calls->floor)
		calls->top--;
	else if (effects->n_drops)
		returns__pop_stale(calls);
	for (unsigned int i = 0; i < effects->n_pushes; i++)
		returns__push(calls, pushes[i]);
	if (effects->n_events) {
		events[0].n_insns += (uint32_t)w->counts;
		events[0].n_branches += (uint32_t)(w->counts >> 32);
		w->counts = 0;
	}
	out->n += effects->n_events;
	return true;
}

static inline bool replay(struct walker *w, const struct memo_entry *entry, const struct run *run)
{
	if (!is_of(entry, w->block, run) || !entry->to)
		return false;
	if (entry->effects && !replay_effects(w, entry->effects, run))
		return false;
	w->reader.last_ip = run->ip;
	w->counts += entry->counts;
	w->block = entry->to;
	w->block_tsc = run->times[run->n_packets];
	return true;
}

/* ---- other runs are walked, and their effects are kept */

/* Limits of an entry. */
#define MAX_EVENTS 64
#define MAX_CALLS  16
/* Effects are never freed one by one: with more memory than this, the memo is cleared. */
#define MAX_CHUNKS 256

/*
 * Stores what the walk of a run has done to the pending calls, which follows from its events. An
 * event's `packet` is an index into run.times. NULL: the run cannot be replayed, or no memory.
 */
static struct memo_effects *keep_effects(struct walker *w, const struct run *run,
					 const struct branch *events, size_t n)
{
	struct memo_effects e = {.n_events = (uint8_t)n}, *effects;
	uint64_t needs[MAX_CALLS];
	struct block_site **pushes;
	unsigned int own = 0;

	for (const struct branch *b = events; b < events + n; b++) {
		bool by_tip = b + 1 == events + n && run->tip;

		if (b->kind == BRANCH_CALL && b->to != b->from + b->len) {
			if (++own > e.most_calls)
				e.most_calls = (uint8_t)own;
		} else if (b->kind == BRANCH_RETURN && own) {
			own--;
		} else if (b->kind == BRANCH_RETURN && by_tip && w->block->ip == b->to) {
			e.n_drops = 1;
		} else if (b->kind == BRANCH_RETURN && e.n_needs < MAX_CALLS) {
			needs[e.n_needs++] = b->to;
		} else if (b->kind != BRANCH_JUMP && b->kind != BRANCH_COND) {
			return NULL;
		}
	}
	e.n_pushes = (uint8_t)own;
	if (e.most_calls > MAX_CALLS)
		return NULL;
	if (w->space->effects.n_chunks > MAX_CHUNKS)
		space__forget_runs(w->space);
	effects = arena__alloc(&w->space->effects,
			       sizeof(e) + 8ull * (e.n_needs + e.n_pushes) + n * sizeof(*events),
			       sizeof(uint64_t));
	if (!effects)
		return NULL;
	*effects = e;
	memcpy(effects->behind, needs, e.n_needs * sizeof(needs[0]));
	pushes = (void *)(effects->behind + e.n_needs);
	for (unsigned int i = 0; i < e.n_pushes; i++)
		pushes[i] = w->calls.sites[(w->calls.top - e.n_pushes + i) % RETURN_DEPTH];
	memcpy(pushes + e.n_pushes, events, n * sizeof(*events));
	return effects;
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

/*
 * walk_and_keep() sets block_tsc to this, and so recognises branches whose time is that at which
 * the thread reached its block.
 */
#define BEFORE UINT64_MAX

/* Walks the run, and keeps its effects in the entry. */
static void walk_and_keep(struct walker *w, const struct run *run, struct memo_entry *entry)
{
	struct branch_buffer *out = w->out;
	struct memo_effects *effects = NULL;
	struct block *from = w->block;
	block_counts counts = w->counts;
	const uint8_t *at = run->at;
	size_t first = out->n, marked = first, n_events;
	/* The current packet; and the one with which the thread reached its block, or 0. */
	uint8_t number = 0, entered = 0;

	w->counts = 0;
	while (at < run->end) {
		uint64_t block_tsc = w->block_tsc;

		if (packet__is_time(*at)) {
			at = walk_time(w, at);
			continue;
		}
		w->block_tsc = BEFORE;
		at = walk_packet(w, at);
		number++;
		/* Marks the packet's branches with the packet that tells their time. */
		for (; marked < out->n; marked++) {
			struct branch *b = &out->v[marked];
			bool before = b->time_ns == BEFORE;

			b->packet = before ? entered : number;
			if (before)
				b->time_ns = block_tsc;
		}
		/* TNT bits may have to wait for a TIP (SDM "Deferred TIPs"). */
		if (w->block_tsc == BEFORE)
			w->block_tsc = block_tsc;
		else
			entered = number;
	}
	n_events = out->n - first;
	if (w->state == WALK_ON && !w->tnt_left && !out->err && n_events <= MAX_EVENTS) {
		if (n_events)
			effects = keep_effects(w, run, &out->v[first], n_events);
		if (effects || !n_events)
			*entry = (struct memo_entry){.block = from,
						     .bytes = run->bytes,
						     .to = w->block,
						     .counts = w->counts,
						     .effects = effects,
						     .ip = run->tip ? run->ip : 0};
	}
	if (!n_events) {
		w->counts += counts;
	} else {
		out->v[first].n_insns += (uint32_t)counts;
		out->v[first].n_branches += (uint32_t)(counts >> 32);
	}
}

/* ---- the packets of a region */

/* A run begins only if nothing is left over from the packets before. */
static bool is_plain(const struct walker *w)
{
	return w->block && !w->has_fup && !w->tnt_left;
}

/*
 * Walks the run whose effects are in neither place, or do not fit. The effects are kept when it
 * comes for the second time: in CPython two of three different runs come only once. False: the
 * batch's next runs are invalid.
 */
static bool take_new_run(struct walker *w, const struct run *run)
{
	struct memo_entry *first = &w->space->entries[run->slot];
	struct memo_entry *second = &w->space->entries[run->slot ^ 1];
	bool is_first = is_of(first, w->block, run);
	bool is_known = is_first || is_of(second, w->block, run);
	const uint8_t *at = run->at;

	/* The newest run is in the first place. */
	if (!is_first || first->to)
		*second = *first;
	go_to(&w->time, run->cycles, run->tsc);
	if (is_known) {
		walk_and_keep(w, run, first);
		return is_plain(w);
	}
	*first = (struct memo_entry){
		.block = w->block, .bytes = run->bytes, .ip = run->tip ? run->ip : 0};
	while (at < run->end)
		at = packet__is_time(*at) ? walk_time(w, at) : walk_packet(w, at);
	return is_plain(w);
}

/* Effects are fetched this many runs ahead; their entry, fetched earlier, is in the cache by then.
 */
#define AHEAD 4

/* Returns where to read on: after the batch, or earlier if its next runs are invalid. */
static const uint8_t *take_runs(struct walker *w, struct run_batch *batch)
{
	for (unsigned int i = 0; i < batch->n; i++) {
		struct memo_entry *entries = w->space->entries;
		struct run *run = &batch->runs[i];
		struct memo_entry *entry = &entries[run->slot];

		if (i + AHEAD < batch->n) {
			const struct run *next = &run[AHEAD];
			bool is_second = entries[next->slot].bytes != next->bytes;
			struct memo_effects *effects = entries[next->slot ^ is_second].effects;

			__builtin_prefetch(effects);
			/* A prefetch of an invalid address is harmless. */
			__builtin_prefetch((const void *)((uintptr_t)effects + 64));
		}
		run->times[0] = w->block_tsc;
		if (LIKELY(replay(w, entry, run)) || replay(w, &entries[run->slot ^ 1], run))
			continue;
		if (!take_new_run(w, run)) {
			w->context = w->reader.last_ip;
			return run->end;
		}
	}
	w->time = batch->time;
	w->context = batch->context;
	return batch->at;
}

int walker__run(struct walker *w, const uint8_t *from, const uint8_t *to)
{
	struct run_batch batch;
	const uint8_t *at = from;

	w->state = WALK_OFF;
	w->sync = from;
	while (at < to) {
		const uint8_t *end = UNLIKELY(w->sync > at && w->sync < to) ? w->sync : to;

		batch.n = 0;
		if (is_plain(w))
			run_batch__read(&batch, w, at, end);
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
	walker__end_region(w, to);
	if (w->counts)
		walker__emit(w, RAW_REST, 0, 0, 0, 0);
	return flush(w);
}
