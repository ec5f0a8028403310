/* SPDX-License-Identifier: MIT */
/* Follows TNT and TIP packets along blocks; after a gap, finds where packets fit the code. */
#ifndef MTBPF_DECODE_WALK_WALK_BRANCHES_H
#define MTBPF_DECODE_WALK_WALK_BRANCHES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "decode/walk/walker.h"

/* n bits, the oldest in bit 63. */
void walker__on_tnt(struct walker *w, uint64_t bits, unsigned int n);
void walker__on_tip(struct walker *w, unsigned int ip_bytes, uint64_t ip);
/* The stream ends within a TIP, which still tells that the thread came to an indirect branch. */
void walker__on_cut_tip(struct walker *w);

/* The longest packet that walker__on_branches() reads without checking for the end. */
#define MAX_TIP 9

/*
 * Handles a short TNT or a TIP at `at`, and returns the address of the next packet. NULL: it is
 * another packet.
 */
static inline const uint8_t *walker__on_branches(struct walker *w, const uint8_t *at)
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
		return NULL;
	memcpy(&value, at + 1, sizeof(value));
	w->next = at + 1 + packet__ip_size(ip_bytes);
	walker__on_tip(w, ip_bytes, packet_reader__ip(&w->reader, ip_bytes, value));
	return at + 1 + packet__ip_size(ip_bytes);
}

/*
 * After a gap a packet tells an IP. True if the walk goes on there; after bad bytes it does so only
 * if the packets that follow fit the code.
 */
bool walker__resume(struct walker *w, unsigned int ip_bytes, uint64_t ip);
/*
 * The bytes before `at` do not form a packet. Returns the place nearby where packets begin that fit
 * the code as if the bytes had told of no branch, or NULL.
 */
const uint8_t *walker__step_over(const struct walker *w, const uint8_t *at);

#endif
