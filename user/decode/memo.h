/* SPDX-License-Identifier: MIT */
/*
 * Caches the effects of runs. A run is TNT packets and the TIP after them, at most eight bytes, and
 * programs repeat the same runs. When a run comes for the second time, the walk stores its effects,
 * and replays them when the same bytes arrive at the same block with the same returns pending.
 */
#ifndef MTBPF_DECODE_MEMO_H
#define MTBPF_DECODE_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/blocks.h"
#include "decode/branch.h"
#include "decode/returns.h"

#define MEMO_BITS 16

/* Variable-sized, so that frequent ones fit into the cache: the arrays follow it without padding.
 */
struct memo_effects {
	uint8_t n_needs;    /* uint64_t: return addresses that must be pending, the newest first */
	uint8_t n_drops;    /* 1: one pending return is removed without being used */
	uint8_t n_pushes;   /* struct block_site *: calls that the run leaves pending */
	uint8_t n_events;   /* struct branch; `packet` is an index into run.times instead of time_ns
			     */
	uint8_t most_calls; /* the most of its own calls that were pending at once */
	uint8_t pad[3];
	uint64_t behind[];
};

static inline uint64_t *memo_effects__needs(const struct memo_effects *effects)
{
	return (uint64_t *)effects->behind;
}

static inline struct block_site **memo_effects__pushes(const struct memo_effects *effects)
{
	return (struct block_site **)(memo_effects__needs(effects) + effects->n_needs);
}

static inline struct branch *memo_effects__events(const struct memo_effects *effects)
{
	return (struct branch *)(memo_effects__pushes(effects) + effects->n_pushes);
}

/* A run at a block. */
struct memo_entry {
	struct block *block;
	uint64_t bytes;
	struct block *to;	      /* NULL: the run has come once, and its effects are unknown */
	block_counts counts;	      /* after the last event */
	struct memo_effects *effects; /* NULL: no event, no call, no return */
	uint64_t ip;		      /* of the run's TIP, if it has one */
	uint64_t pad[2];
};
_Static_assert(sizeof(struct memo_entry) == 64, "memo_entry");

struct memo;

/* is_busy: the memo will fill up, so that large pages are worth it. NULL: out of memory. */
struct memo *memo__new(bool is_busy);
void memo__free(struct memo *memo);
/* Forgets all runs: their blocks have been freed. */
void memo__clear(struct memo *memo);

/* The maximum number of packets per run. */
#define MEMO_PACKETS 8

/* One run of the stream. */
struct memo_run {
	uint64_t bytes; /* its packets without the timing packets between them */
	uint64_t ip;	/* the last IP after it */
	const uint8_t *at, *end;
	uint64_t cycles, tsc; /* pt_time's at its begin */
	uint32_t slot;	      /* its first place in the memo */
	uint8_t n_packets;
	uint8_t tip; /* the header of its TIP, or 0 */
	/* times[0]: when the thread reached the run's block; then the time of each packet. */
	uint64_t times[1 + MEMO_PACKETS];
};

struct memo_entry *memo__entries(struct memo *memo);

/*
 * Hashes the run with what preceded it in the stream, which nearly always determines the block: the
 * entry can be fetched before the block is known.
 */
static inline uint32_t memo__slot_of(uint64_t run, uint64_t context)
{
	uint64_t hash = (run ^ context * 0xff51afd7ed558ccdull) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(hash >> (64 - MEMO_BITS));
}

/*
 * The context of the run after this one, if this one has no TIP. last_ip: of the last TIP before
 * it. Older runs do not count: a loop without TIPs would never come to the same context again.
 */
static inline uint64_t memo__context_after(uint64_t run, uint64_t last_ip)
{
	return last_ip ^ (run << 7 | run >> 57);
}

/* The other place where a run may be stored. */
static inline struct memo_entry *memo__second(struct memo_entry *entries,
					      const struct memo_entry *first)
{
	return &entries[(first - entries) ^ 1];
}

/* A run that has been walked. */
struct memo_walked {
	const struct memo_run *run;
	struct block *from, *to;
	block_counts counts; /* after the last event */
	/* An event's `packet` is an index into run.times. */
	const struct branch *events;
	size_t n_events;
	const struct returns *calls; /* pending after the run */
};

/* Stores the run in the entry, if it can be replayed. */
void memo__keep(struct memo *memo, const struct memo_walked *walked, struct memo_entry *entry);

/* True if the entry holds this run at this block. */
static inline bool memo_entry__is_of(const struct memo_entry *entry, const struct block *block,
				     const struct memo_run *run)
{
	return entry->block == block && entry->bytes == run->bytes &&
	       (!run->tip || entry->ip == run->ip);
}

static inline bool memo_entry__has_effects(const struct memo_entry *entry)
{
	return entry->to;
}

/* Notes that the run has been at the block. */
static inline void memo_entry__mark(struct memo_entry *entry, struct block *block,
				    const struct memo_run *run)
{
	*entry = (struct memo_entry){
		.block = block, .bytes = run->bytes, .ip = run->tip ? run->ip : 0};
}

/* True if the run has the same effects with these calls pending. */
static inline bool memo_effects__fit(const struct memo_effects *effects,
				     const struct returns *calls)
{
	unsigned int pending = calls->top - calls->floor;

	/* Too many calls would drop the oldest, and first those from before a gap. */
	if (pending < effects->n_needs ||
	    calls->top - calls->stale + effects->most_calls > RETURN_DEPTH)
		return false;
	for (unsigned int i = 0; i < effects->n_needs; i++)
		if (calls->ips[(calls->top - 1 - i) % RETURN_DEPTH] !=
		    memo_effects__needs(effects)[i])
			return false;
	return true;
}

/* Applies the effects again. `events` has room for effects->n_events. */
static inline void memo_effects__replay(const struct memo_effects *effects,
					const struct memo_run *run, struct returns *calls,
					struct branch *events)
{
	const struct branch *noted = memo_effects__events(effects);

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
		returns__push(calls, memo_effects__pushes(effects)[i]);
}

#endif
