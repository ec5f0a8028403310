// SPDX-License-Identifier: MIT
/* The loop over packets: most of them come in runs that have been walked before. */
#include "decode/walk/run_batch.h"
#include "decode/walk/walk_internal.h"

/* Enough to be worth handing over. */
#define BATCH 8192

/* The longest packet that is read here without looking at where the bytes end. */
#define MAX_TIP 9

static inline const uint8_t *walk_packet(struct walker *w, const uint8_t *at)
{
	uint8_t byte = *at;
	unsigned int n, ip_bytes = byte >> 5;
	uint64_t value;

	if (packet__is_short_tnt(byte)) {
		value = packet__short_tnt(byte, &n);
		w->next = at + 1;
		walker__on_tnt(w, value, n);
		return at + 1;
	}
	if ((byte & 0x1f) != 0x0d || w->reader.end - at < MAX_TIP ||
	    packet__ip_size(ip_bytes) - 1 >= 8)
		return walker__on_packet(w, at);
	memcpy(&value, at + 1, sizeof(value));
	w->next = at + 1 + packet__ip_size(ip_bytes);
	walker__on_tip(w, ip_bytes, packet_reader__ip(&w->reader, ip_bytes, value));
	return at + 1 + packet__ip_size(ip_bytes);
}

const uint8_t *walker__walk_packet(struct walker *w, const uint8_t *at)
{
	return walk_packet(w, at);
}

static inline bool can_replay(const struct walker *w, const struct memo_effects *effects)
{
	unsigned int pending = w->top - w->floor;

	/* Too many calls would push out the oldest. */
	if (pending < effects->n_needs || pending + effects->most_calls > RETURN_DEPTH)
		return false;
	for (unsigned int i = 0; i < effects->n_needs; i++)
		if (w->ret_ips[(w->top - 1 - i) % RETURN_DEPTH] != memo_effects__needs(effects)[i])
			return false;
	return true;
}

/* The entry's effects happen again. False: here they cannot, and nothing has. */
static inline bool replay_effects(struct walker *w, const struct memo_entry *entry,
				  const struct memo_run *run)
{
	const struct memo_effects *effects = entry->effects;
	struct outbox *out = w->out;
	const struct branch *noted = memo_effects__events(effects);
	struct branch *events;

	if (!can_replay(w, effects))
		return false;
	while (UNLIKELY(out->cap - out->n < effects->n_events))
		if (!outbox__grow(out))
			return false;
	events = &out->v[out->n];
	for (unsigned int i = 0; i < effects->n_events; i++) {
		events[i] = noted[i];
		events[i].time_ns = run->times[noted[i].packet];
	}
	if (effects->n_events) {
		events[0].n_insns += (uint32_t)w->counts;
		events[0].n_branches += (uint32_t)(w->counts >> 32);
		w->counts = 0;
	}
	out->n += effects->n_events;
	w->top -= effects->n_needs;
	if (effects->n_drops && w->top != w->floor)
		w->top--;
	else if (effects->n_drops)
		walker__pop_stale(w);
	for (unsigned int i = 0; i < effects->n_pushes; i++)
		walker__push(w, memo_effects__pushes(effects)[i]);
	return true;
}

static inline bool replay(struct walker *w, const struct memo_entry *entry,
			  const struct memo_run *run)
{
	if (entry->block != w->block || entry->bytes != run->bytes)
		return false;
	if (run->tip && entry->ip != run->ip)
		return false;
	if (entry->effects && !replay_effects(w, entry, run))
		return false;
	w->reader.last_ip = run->ip;
	w->counts += entry->counts;
	w->block = entry->to;
	w->block_tsc = run->times[run->n_packets];
	return true;
}

static bool tells_time(uint8_t byte)
{
	return (byte & 3) == 3 || byte == 0x59;
}

static void walk_run(struct walker *w, const struct memo_run *run, struct memo_entry *entry)
{
	const uint8_t *at = run->at;
	struct memo_note note;

	/* The newest comes first. */
	*memo__second(w->space->entries, entry) = *entry;
	memo__start(w, &note, run);
	while (at < run->end) {
		if (tells_time(*at)) {
			at = walker__on_packet(w, at);
			continue;
		}
		memo__before_packet(w, &note);
		at = walk_packet(w, at);
		memo__after_packet(w, &note);
	}
	memo__finish(w, &note, entry);
}

/* A run begins where nothing is left over from the packets before. */
static bool is_plain(const struct walker *w)
{
	return w->block && !w->has_fup && !w->tnt_left;
}

/* One that was not seen here before. False: what follows is read anew. */
static bool take_new_run(struct walker *w, const struct memo_run *run, struct memo_entry *entry)
{
	pt_time__go_to(&w->time, run->cycles, run->tsc);
	walk_run(w, run, entry);
	return is_plain(w);
}

/* Runs between an entry and what lies behind it: by then the entry itself is there. */
#define AHEAD 4

static inline void fetch_effects(const struct walker *w, const struct memo_run *run)
{
	const struct memo_entry *first = &w->space->entries[run->slot];
	const struct memo_entry *second = memo__second(w->space->entries, first);
	const struct memo_effects *effects =
		first->bytes == run->bytes ? first->effects : second->effects;

	__builtin_prefetch(effects);
	/* There may be none. */
	__builtin_prefetch((const void *)((uintptr_t)effects + 64));
}

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
	w->time = batch->time;
	w->context = batch->context;
	return batch->runs[batch->n - 1].end;
}

int walker__on_packets(struct walker *w, const uint8_t *at, const uint8_t *to)
{
	struct run_batch batch;

	while (at < to) {
		const uint8_t *end = UNLIKELY(w->sync > at && w->sync < to) ? w->sync : to;

		batch.n = 0;
		if (is_plain(w))
			run_batch__read(&batch, &w->reader, &w->time, w->context, w->space->entries,
					at, end);
		if (batch.n) {
			at = take_runs(w, &batch);
		} else {
			at = walk_packet(w, at);
			w->context = w->reader.last_ip;
			if (UNLIKELY(at > end))
				at = end;
		}
		if (UNLIKELY(w->out->n >= BATCH || w->out->err) && walker__flush(w))
			return w->out->err;
	}
	return 0;
}
