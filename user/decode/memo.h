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

#define MEMO_BITS 16

struct walker;
struct memo_effects;

struct memo_entry {
	struct block *block;
	uint64_t bytes;
	struct block *to;
	block_counts counts;	      /* behind the last event */
	struct memo_effects *effects; /* NULL: no event, no call, no return */
	uint64_t ip;		      /* the last IP from then on */
	uint64_t ip_mask;	      /* bits of it that come from the last IP before */
	bool has_ip;		      /* a TIP is in the run */
	uint8_t pad[7];
};
_Static_assert(sizeof(struct memo_entry) == 64, "memo_entry");

struct memo;

struct memo *memo__new(void);
void memo__free(struct memo *memo);
/* The blocks of before are gone. */
void memo__clear(struct memo *memo);

/* Packets in a run, at most. */
#define MEMO_PACKETS 8

/* A run as it stands in the stream: without what tells the time between its packets. */
struct memo_run {
	uint64_t bytes;
	const uint8_t *end; /* in the stream */
	unsigned int n_packets;
	/* When the thread came to the block where the run begins, and when each packet was. */
	uint64_t times[1 + MEMO_PACKETS];
};

/* Where it would be. */
struct memo_entry *memo__entries(struct memo *memo);
static inline struct memo_entry *memo__slot(struct memo_entry *entries, const struct block *block,
					    uint64_t run)
{
	uint64_t hash = run * 0x9e3779b97f4a7c15ull >> (64 - MEMO_BITS);

	return &entries[(hash ^ (uintptr_t)block >> 4) & ((1u << MEMO_BITS) - 1)];
}

/* The entry's effects happen again. False: here they cannot, and nothing has. */
bool memo__replay(struct walker *w, const struct memo_entry *entry, const struct memo_run *run);

struct memo_note {
	struct block *block;
	uint64_t run;
	block_counts counts;
	size_t n_out, n_marked;
	uint64_t block_tsc;
	uint8_t n_packets;
};

/* Around the walk of a run, and in it around each packet. */
void memo__start(struct walker *w, struct memo_note *note, uint64_t run);
void memo__before_packet(struct walker *w, struct memo_note *note);
void memo__after_packet(struct walker *w, struct memo_note *note);
void memo__finish(struct walker *w, const struct memo_note *note, struct memo_entry *entry);

#endif
