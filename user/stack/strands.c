// SPDX-License-Identifier: MIT
#include "stack/strands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void strands__init(struct strands *strands, struct frames *own_frames)
{
	*strands = (struct strands){
		.own_frames = own_frames, .own.state = STRAND_RUNS, .system_index = UINT32_MAX};
	strands->running = &strands->own;
}

void strands__fini(struct strands *strands)
{
	for (size_t i = 0; i < strands->others.n; i++) {
		frames__fini(&strands->others.v[i]->frames);
		VEC_FINI(&strands->others.v[i]->pending);
		free(strands->others.v[i]);
	}
	VEC_FINI(&strands->others);
	VEC_FINI(&strands->own.pending);
	VEC_FINI(&strands->system_base);
	frames_mark__fini(&strands->mark);
}

static struct strand *later(struct strand *best, struct strand *strand)
{
	return !best || strand->since > best->since ? strand : best;
}

static bool waits_at(const struct strand *strand, uint64_t ip, enum strand_state state)
{
	return strand->state == state && strand->waits_at && ip - strand->waits_at <= strand->slack;
}

bool strands__has_parked(const struct strands *strands)
{
	for (size_t i = 0; i < strands__count(strands); i++)
		if (strands__at(strands, i)->state == STRAND_PARKED)
			return true;
	return false;
}

struct strand *strands__find_first_waiting(const struct strands *strands, uint64_t ip)
{
	struct strand *best = NULL;

	for (size_t i = 0; ip && i < strands__count(strands); i++) {
		struct strand *strand = strands__at(strands, i);

		if (waits_at(strand, ip, STRAND_WAITS) && (!best || strand->since < best->since))
			best = strand;
	}
	return best;
}

struct strand *strands__find_waiting(const struct strands *strands, uint64_t ip)
{
	struct strand *best = NULL;

	for (size_t i = 0; ip && i < strands__count(strands); i++) {
		struct strand *strand = strands__at(strands, i);

		if (waits_at(strand, ip, STRAND_WAITS))
			best = later(best, strand);
	}
	return best;
}

struct strand *strands__find_other(const struct strands *strands, uint64_t return_ip,
				   enum strand_state state)
{
	struct strand *running = strands->running, *best = NULL;
	struct frames *frames = strands__frames_of(strands, running);

	for (size_t i = 0; i < strands__count(strands); i++) {
		struct strand *strand = strands__at(strands, i);

		if (waits_at(strand, strands->mark.waits_at, state) &&
		    frames_mark__fits(&strands->mark, frames, strands__frames_of(strands, strand),
				      return_ip))
			best = later(best, strand);
	}
	return best;
}

static bool is_free(const struct strand *strand, bool is_loose)
{
	return strand->state == STRAND_OVER && !strand->is_loose &&
	       (!is_loose || !strand->frames.parts.n);
}

/* Of the one that was there before it keeps its track only. */
static struct strand *use_again(struct strands *strands, struct strand *strand)
{
	if (strands->system == strand)
		strands->system = NULL;
	if (strands->lost_system == strand)
		strands->lost_system = NULL;
	frames__forget(&strand->frames);
	strand->is_fiber = strand->is_rootless = false;
	strand->parent = strand->child = strand->performed = NULL;
	return strand;
}

struct strand *strands__add(struct strands *strands, bool is_loose)
{
	struct strand **place, *strand;

	/* From here on, what was taken for the thread's own may turn out to be another's. */
	strands->own_frames->taker = NULL;
	for (size_t i = 0; i < strands->others.n; i++)
		if (is_free(strands->others.v[i], is_loose))
			return use_again(strands, strands->others.v[i]);
	if (strands->others.n == STRANDS_MAX)
		return NULL;
	strand = calloc(1, sizeof(*strand));
	place = strand ? VEC_PUSH(&strands->others) : NULL;
	if (!place) {
		free(strand);
		return NULL;
	}
	*place = strand;
	frames__init(&strand->frames);
	strand->number = (uint32_t)strands->others.n;
	return strand;
}

struct strand *strands__take_next(struct strands *strands)
{
	while (strands->n_taken < strands->others.n) {
		struct strand *strand = strands->others.v[strands->n_taken++];

		if (strand->frames.parts.n)
			return strand;
	}
	return NULL;
}

void strands__name(const struct strands *strands, const struct strand *strand, char *buf,
		   size_t size)
{
	const char *kind = strand->is_goroutine ? "goroutine"
			   : strand->is_fiber	? "fiber"
						: "coroutine";

	if (strand == strands->system)
		snprintf(buf, size, "g0");
	else
		snprintf(buf, size, "%s %" PRIu32, kind, strand->number);
}
