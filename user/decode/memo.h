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

/* Bytes that make up a run, at the start of these eight; 0: none. */
static inline unsigned int memo__run_length(uint64_t bytes)
{
	const uint64_t ones = 0x0101010101010101ull;
	uint64_t masked = bytes & ~(2 * ones);
	/* 00 and 02, which are no short TNT; the lowest is found exactly. */
	uint64_t special = (masked - ones) & ~masked & (ones << 7);
	uint64_t other = (bytes & ones) | special;
	unsigned int n, header, len;

	if (!other)
		return 8;
	n = (unsigned int)__builtin_ctzll(other) / 8;
	header = (unsigned int)(bytes >> (8 * n)) & 0xff;
	/* A TIP with 2, 4 or 6 bytes of IP. */
	len = (header & 0x9f) == 0x0d && header > 0x0d ? 2 * (header >> 5) + 1 : 0;
	return n + len <= 8 ? n + len : n;
}

/* The first n bytes. */
static inline uint64_t memo__run(uint64_t bytes, unsigned int n)
{
	return bytes & (UINT64_MAX >> (64 - 8 * n));
}

/* Where it would be. */
struct memo_entry *memo__entries(struct memo *memo);
static inline struct memo_entry *memo__slot(struct memo_entry *entries, const struct block *block,
					    uint64_t run)
{
	uint64_t hash = run * 0x9e3779b97f4a7c15ull >> (64 - MEMO_BITS);

	return &entries[(hash ^ (uintptr_t)block >> 4) & ((1u << MEMO_BITS) - 1)];
}

/* They happen again. False: here they cannot, and nothing has. */
bool memo__replay(struct walker *w, const struct memo_entry *entry);

struct memo_note {
	struct block *block;
	uint64_t run, block_tsc;
	block_counts counts;
	size_t n_out;
	unsigned int top;
};

/* Before and after the walk of a run. */
void memo__start(struct walker *w, struct memo_note *note, uint64_t run);
void memo__finish(struct walker *w, const struct memo_note *note, struct memo_entry *entry);

#endif
