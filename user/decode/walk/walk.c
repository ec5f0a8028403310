// SPDX-License-Identifier: MIT
/* The loop over packets: most of them come in runs that have been walked before. */
#include "decode/walk/walk.h"

#include <errno.h>

#include "decode/memo.h"
#include "decode/walk/run_batch.h"
#include "decode/walk/walk_branches.h"
#include "decode/walk/walk_packets.h"

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

/* Empties the outbox. 0, or what stopped it. */
static int flush(struct walker *w)
{
	struct outbox *out = w->out;

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

/* ---- a run that is known happens again */

/* The entry's effects happen again. False: here they cannot, and nothing has. */
static inline __attribute__((always_inline)) bool
replay_effects(struct walker *w, const struct memo_effects *effects, const struct memo_run *run)
{
	struct outbox *out = w->out;
	struct branch *events;

	if (!memo_effects__fit(effects, &w->calls))
		return false;
	while (UNLIKELY(out->cap - out->n < effects->n_events))
		if (!outbox__grow(out))
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
	if (!memo_entry__is_of(entry, w->block, run))
		return false;
	if (entry->effects && !replay_effects(w, entry->effects, run))
		return false;
	w->reader.last_ip = run->ip;
	w->counts += entry->counts;
	w->block = entry->to;
	w->block_tsc = run->times[run->n_packets];
	return true;
}

/* ---- another one is walked, and noted */

/* While a run is noted: the time that the walk of a packet began with. */
#define BEFORE UINT64_MAX

struct noting {
	size_t n_out, n_marked; /* of the outbox: before it, and marked with their packet */
	uint8_t n_packets;
	uint8_t entered; /* with which of them the thread came to its block; 0: before all */
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

/* What tells the time within a run: of CYC packets, the short ones are read here. */
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
	struct outbox *out = w->out;
	struct noting noting = {.n_out = out->n, .n_marked = out->n};
	struct block *from = w->block;
	block_counts counts = w->counts;
	const uint8_t *at = run->at;

	/* The newest comes first. */
	*memo__second(w->space->entries, entry) = *entry;
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

/* ---- all of a region */

/* A run begins where nothing is left over from the packets before. */
static bool is_plain(const struct walker *w)
{
	return w->block && !w->has_fup && !w->tnt_left;
}

/* Walks a run that the memo does not have. False: the batch's next runs are invalid. */
static bool take_new_run(struct walker *w, const struct memo_run *run, struct memo_entry *entry)
{
	pt_time__go_to(&w->time, run->cycles, run->tsc);
	walk_run(w, run, entry);
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
		walker__emit(w, OUTBOX_REST, 0, 0, 0, 0);
	return flush(w);
}
