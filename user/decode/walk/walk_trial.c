// SPDX-License-Identifier: MIT
/*
 * Behind bytes that are no packets the next packet may begin anywhere, and what looks like one may
 * be a part of another. An IP is believed where a walk from there fits what follows.
 */
#include <stdlib.h>

#include "decode/walk/walk_internal.h"

/* Packets that tell of branches: that many do not fit by chance. */
#define ENOUGH 24
#define SOME   3
/* Calls whose return a gap may have hidden. */
#define MAX_STALE 4
/* Bytes that may have told nothing of branches, but the time. */
#define MAX_STEP 3
/* Bytes that are looked at for them. */
#define MAX_BYTES 512

/* Anything else than branches, their times and bad bytes ends the trial. */
static bool tells_branches(uint8_t byte)
{
	return packet__is_short_tnt(byte) || (byte & 0x1f) == 0x0d;
}

static bool tells_time(uint8_t byte)
{
	return !byte || (byte & 3) == 3 || byte == 0x59;
}

static bool is_bad(struct packet_reader *reader, const uint8_t *at)
{
	struct packet packet;

	packet__read(reader, at, &packet);
	return packet.kind == PACKET_BAD;
}

/* How many packets tell of branches that fit, ENOUGH at most; 0: the walk was lost. */
static unsigned int count_fitting(const struct walker *w, struct block *block, const uint8_t *at)
{
	struct outbox out = {0};
	struct walker trial = *w;
	const uint8_t *end = w->reader.end;
	unsigned int n = 0;
	bool fits = false;

	trial.out = &out;
	trial.is_trial = true;
	trial.knows_ip = true;
	trial.state = WALK_ON;
	walker__enter(&trial, block);
	if (trial.tnt_left)
		walker__take_bits(&trial);
	if (end - at > MAX_BYTES)
		end = at + MAX_BYTES;
	while (at < end && trial.state == WALK_ON && n < ENOUGH) {
		if (tells_branches(*at))
			n++;
		else if (!tells_time(*at) && !is_bad(&trial.reader, at))
			break;
		at = walker__walk_packet(&trial, at);
	}
	/* Damage again, which says nothing of what was before it. */
	if (trial.state == WALK_LOST && out.n && out.v[out.n - 1].reason == GAP_BAD_PACKET)
		fits = n > SOME;
	free(out.v);
	/* Opened for a packet of the trial: w may go on without. */
	if (trial.reader.libipt != w->reader.libipt)
		packet_reader__fini(&trial.reader);
	return fits || trial.state == WALK_ON ? n + 1 : 0;
}

bool walker__try(const struct walker *w, struct block *block, bool is_guess)
{
	return count_fitting(w, block, w->next) > (is_guess ? SOME : 0);
}

struct block_site *walker__find_stale(struct walker *w)
{
	unsigned int floor = w->floor;

	if (w->is_trial) {
		if (w->floor == w->stale)
			return NULL;
		walker__pop_stale(w);
		return w->returns[w->floor % RETURN_DEPTH];
	}
	for (unsigned int i = 0; i < MAX_STALE && w->floor != w->stale; i++) {
		struct walker trial;
		struct block_site *site;

		w->floor--;
		site = w->returns[w->floor % RETURN_DEPTH];
		trial = *w;
		trial.top = trial.floor;
		/* The return's own bit. */
		trial.tnt <<= 1;
		trial.tnt_left--;
		if (!site->after)
			site->after = walker__find(w, site->ret_ip);
		if (!site->after)
			return NULL;
		if (count_fitting(&trial, site->after, w->next) > SOME) {
			w->top = w->floor;
			return site;
		}
	}
	w->floor = w->stale = floor;
	return NULL;
}

const uint8_t *walker__step_over(const struct walker *w, const uint8_t *at)
{
	for (unsigned int i = 0; i < MAX_STEP && at < w->reader.end; i++, at++)
		if (count_fitting(w, w->block, at) >= ENOUGH)
			return at;
	return NULL;
}
