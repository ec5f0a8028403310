// SPDX-License-Identifier: MIT
/* The loop over packets: most of them come in runs that have been walked before. */
#include "decode/walk/walk_internal.h"

/* Enough to be worth handing over. */
#define BATCH 8192

/* The longest packet that is read here without looking at where the bytes end. */
#define MAX_TIP 9

static const uint8_t *walk_packet(struct walker *w, const uint8_t *at)
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
		return walker__on_packet(w, at);
	memcpy(&value, at + 1, sizeof(value));
	walker__on_tip(w, ip_bytes, packet_reader__ip(&w->reader, ip_bytes, value));
	return at + 1 + packet__ip_size(ip_bytes);
}

static inline bool can_replay(const struct walker *w, const struct memo_effects *effects)
{
	unsigned int pending = w->top - w->floor;

	/* Too many calls would push out the oldest. */
	if (pending < effects->n_needs || pending + effects->most_calls > RETURN_DEPTH)
		return false;
	for (unsigned int i = 0; i < effects->n_needs; i++)
		if (w->returns[(w->top - 1 - i) % RETURN_DEPTH]->ret_ip !=
		    memo_effects__needs(effects)[i])
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
	for (unsigned int i = 0; i < effects->n_pushes; i++)
		w->returns[w->top++ % RETURN_DEPTH] = memo_effects__pushes(effects)[i];
	return true;
}

static inline bool replay(struct walker *w, const struct memo_entry *entry,
			  const struct memo_run *run)
{
	if ((w->reader.last_ip ^ entry->ip) & entry->ip_mask)
		return false;
	if (entry->effects && !replay_effects(w, entry, run))
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

static inline bool is_of(const struct memo_entry *entry, const struct walker *w,
			 const struct memo_run *run)
{
	return entry->block == w->block && entry->bytes == run->bytes;
}

/* In the other of the two places that it may have: what returns elsewhere, or shares the hash. */
static bool replay_second(struct walker *w, const struct memo_entry *first,
			  const struct memo_run *run)
{
	const struct memo_entry *second = memo__second(w->space->entries, first);

	return is_of(second, w, run) && replay(w, second, run);
}

static void walk_run(struct walker *w, const uint8_t *at, const struct memo_run *run,
		     struct memo_entry *entry)
{
	struct memo_note note;

	/* The newest comes first. */
	*memo__second(w->space->entries, entry) = *entry;
	memo__start(w, &note, run->bytes);
	while (at < run->end) {
		if (is_cyc(*at)) {
			at = walker__on_packet(w, at);
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

int walker__on_packets(struct walker *w, const uint8_t *at, const uint8_t *to)
{
	while (at < to) {
		struct clock clock = {w->time.ref, w->time.ref ? w->time.ratio : 0, w->time.cycles,
				      w->time.tsc};
		struct memo_run run;

		if (w->block && !w->has_fup && !w->tnt_left && read_run(w, at, to, &run, &clock)) {
			struct memo_entry *entry =
				memo__slot(w->space->entries, w->block, run.bytes);

			run.times[0] = w->block_tsc;
			if (LIKELY((is_of(entry, w, &run) && replay(w, entry, &run)) ||
				   replay_second(w, entry, &run))) {
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
		if (UNLIKELY(w->out->n >= BATCH || w->out->err) && walker__flush(w))
			return w->out->err;
	}
	return 0;
}
