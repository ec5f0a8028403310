/* SPDX-License-Identifier: MIT */
/*
 * What a run of packets did the last time that it came to a block: TNT packets and the TIP behind
 * them, eight bytes at most, are the same few over and over. A run is noted while it is walked, and
 * replayed where the same bytes come to the same block with the same returns pending.
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

/* Small, so that what happens often stays in the cache: what it has lies behind it, without gaps.
 */
struct memo_effects {
	uint8_t n_needs;    /* uint64_t: where pending returns must lead, the last call's first */
	uint8_t n_drops;    /* 1: one that is pending is taken away without being used */
	uint8_t n_pushes;   /* struct block_site *: calls that are pending behind it */
	uint8_t n_events;   /* struct branch, but for time_ns: `packet` is its place in run.times */
	uint8_t most_calls; /* of its own that were pending at once */
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

struct memo_entry {
	struct block *block;
	uint64_t bytes;
	struct block *to;
	block_counts counts;	      /* behind the last event */
	struct memo_effects *effects; /* NULL: no event, no call, no return */
	uint64_t ip;		      /* of the run's TIP, if it has one */
	uint64_t pad[2];
};
_Static_assert(sizeof(struct memo_entry) == 64, "memo_entry");

struct memo;

/* is_busy: it will fill up, which is worth large pages. NULL: no memory. */
struct memo *memo__new(bool is_busy);
void memo__free(struct memo *memo);
/* The blocks of before are gone. */
void memo__clear(struct memo *memo);

/* Packets in a run, at most. */
#define MEMO_PACKETS 8

/* A run as it stands in the stream. */
struct memo_run {
	uint64_t bytes; /* without what tells the time between its packets */
	uint64_t ip;	/* the last IP behind it */
	const uint8_t *at, *end;
	uint64_t cycles, tsc; /* where it begins: pt_time's */
	uint32_t slot;	      /* where it would be in the memo */
	uint8_t n_packets;
	uint8_t tip; /* the header of its TIP, or 0 */
	/* When the thread came to the block where the run begins, and when each packet was. */
	uint64_t times[1 + MEMO_PACKETS];
};

struct memo_entry *memo__entries(struct memo *memo);

/*
 * By what came before in the stream, which mostly tells the block: the entry's place is known
 * before the block is.
 */
static inline uint32_t memo__slot_of(uint64_t run, uint64_t context)
{
	uint64_t hash = (run ^ context * 0xff51afd7ed558ccdull) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(hash >> (64 - MEMO_BITS));
}

/* The other place where a run may be. */
static inline struct memo_entry *memo__second(struct memo_entry *entries,
					      const struct memo_entry *first)
{
	return &entries[(first - entries) ^ 1];
}

/* A run that has been walked. */
struct memo_walked {
	const struct memo_run *run;
	struct block *from, *to;
	block_counts counts; /* behind the last event */
	/* `packet` is an event's place in run.times. */
	const struct branch *events;
	size_t n_events;
	const struct returns *calls; /* that are pending behind it */
};

/* Keeps it in the entry, if it is one that can be replayed. */
void memo__keep(struct memo *memo, const struct memo_walked *walked, struct memo_entry *entry);

/* Whether what the run did at the block is noted there. */
static inline bool memo_entry__is_of(const struct memo_entry *entry, const struct block *block,
				     const struct memo_run *run)
{
	return entry->block == block && entry->bytes == run->bytes &&
	       (!run->tip || entry->ip == run->ip);
}

/* Whether with these calls pending it does the same. */
static inline bool memo_effects__fit(const struct memo_effects *effects,
				     const struct returns *calls)
{
	unsigned int pending = calls->top - calls->floor;

	/* Too many calls would push out the oldest, those of before a gap first. */
	if (pending < effects->n_needs ||
	    calls->top - calls->stale + effects->most_calls > RETURN_DEPTH)
		return false;
	for (unsigned int i = 0; i < effects->n_needs; i++)
		if (calls->ips[(calls->top - 1 - i) % RETURN_DEPTH] !=
		    memo_effects__needs(effects)[i])
			return false;
	return true;
}

/* It happens again; `events` has room for as many as there are. */
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
