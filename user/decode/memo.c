// SPDX-License-Identifier: MIT
#include "decode/memo.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "decode/walk/walk_internal.h"
#include "kernel/huge_pages.h"

#include "util/page.h"

/* What an entry may hold. */
#define MAX_EVENTS 64
#define MAX_CALLS  16
/* Effects are freed together: beyond this, all of them, to begin anew. */
#define MAX_ARENAS 256

/* While a run is noted: the time that the walk of a packet began with. */
#define BEFORE UINT64_MAX

struct memo_arena {
	struct memo_arena *before;
	size_t used;
	uint8_t bytes[64 * 1024] __attribute__((aligned(16)));
};

struct memo {
	struct memo_entry *entries; /* pages that are there when they are first touched */
	struct memo_arena *arena;
	unsigned int n_arenas;
};

/* madvise() takes whole ones. */
#define ENTRIES_SIZE (sizeof(struct memo_entry) << MEMO_BITS)

struct memo *memo__new(bool is_busy)
{
	struct memo *memo = calloc(1, sizeof(*memo));

	if (!memo)
		return NULL;
	memo->entries =
		is_busy ? huge_pages__alloc(ENTRIES_SIZE) : aligned_alloc(PAGE, ENTRIES_SIZE);
	if (!memo->entries) {
		free(memo);
		return NULL;
	}
	memo__clear(memo);
	return memo;
}

void memo__clear(struct memo *memo)
{
	while (memo->arena) {
		struct memo_arena *before = memo->arena->before;

		free(memo->arena);
		memo->arena = before;
	}
	memo->n_arenas = 0;
	/* They are zeroes again. */
	madvise(memo->entries, ENTRIES_SIZE, MADV_DONTNEED);
}

void memo__free(struct memo *memo)
{
	if (!memo)
		return;
	memo__clear(memo);
	free(memo->entries);
	free(memo);
}

struct memo_entry *memo__entries(struct memo *memo)
{
	return memo->entries;
}

static void *alloc(struct memo *memo, size_t size)
{
	struct memo_arena *arena = memo->arena;
	void *at;

	size = (size + 7) & ~(size_t)7;
	if (!arena || arena->used + size > sizeof(arena->bytes)) {
		if (memo->n_arenas == MAX_ARENAS)
			memo__clear(memo);
		arena = aligned_alloc(16, sizeof(*arena));
		if (!arena)
			return NULL;
		arena->before = memo->arena;
		arena->used = 0;
		memo->arena = arena;
		memo->n_arenas++;
	}
	at = arena->bytes + arena->used;
	arena->used += size;
	return at;
}

void memo__start(struct walker *w, struct memo_note *note, const struct memo_run *run)
{
	*note = (struct memo_note){.block = w->block,
				   .run = run->bytes,
				   .ip = run->tip ? run->ip : 0,
				   .tip = run->tip,
				   .counts = w->counts,
				   .n_out = w->out->n,
				   .n_marked = w->out->n};
	w->counts = 0;
}

void memo__before_packet(struct walker *w, struct memo_note *note)
{
	note->block_tsc = w->block_tsc;
	w->block_tsc = BEFORE;
}

void memo__after_packet(struct walker *w, struct memo_note *note)
{
	for (; note->n_marked < w->out->n; note->n_marked++) {
		struct branch *b = &w->out->v[note->n_marked];
		bool before = b->time_ns == BEFORE;

		b->packet = (uint8_t)(note->n_packets + !before);
		if (before)
			b->time_ns = note->block_tsc;
	}
	if (w->block_tsc == BEFORE)
		w->block_tsc = note->block_tsc;
	note->n_packets++;
}

/* What the events mean for the calls that are pending. False: too much of it. */
static bool count_calls(const struct walker *w, const struct memo_note *note,
			struct memo_effects *e, uint64_t needs[MAX_CALLS])
{
	const struct branch *events = &w->out->v[note->n_out];
	unsigned int own = 0;

	for (unsigned int i = 0; i < e->n_events; i++) {
		const struct branch *b = &events[i];
		bool by_tip = i + 1u == e->n_events && note->tip;

		if (b->kind == BRANCH_CALL && b->to != b->from + b->len) {
			if (++own > e->most_calls)
				e->most_calls = (uint8_t)own;
		} else if (b->kind == BRANCH_RETURN && own) {
			own--;
		} else if (b->kind == BRANCH_RETURN && by_tip && w->block->ip == b->to) {
			e->n_drops = 1;
		} else if (b->kind == BRANCH_RETURN && e->n_needs < MAX_CALLS) {
			needs[e->n_needs++] = b->to;
		} else if (b->kind != BRANCH_JUMP && b->kind != BRANCH_COND) {
			return false;
		}
	}
	e->n_pushes = (uint8_t)own;
	return e->most_calls <= MAX_CALLS;
}

static struct memo_effects *note_effects(struct walker *w, const struct memo_note *note)
{
	struct memo_effects e = {.n_events = (uint8_t)(w->out->n - note->n_out)}, *effects;
	uint64_t needs[MAX_CALLS];
	size_t events_size = e.n_events * sizeof(struct branch);

	if (!count_calls(w, note, &e, needs))
		return NULL;
	effects = alloc(w->space->memo, sizeof(e) + 8ull * (e.n_needs + e.n_pushes) + events_size);
	if (!effects)
		return NULL;
	*effects = e;
	memcpy(memo_effects__needs(effects), needs, e.n_needs * sizeof(needs[0]));
	for (unsigned int i = 0; i < e.n_pushes; i++)
		memo_effects__pushes(effects)[i] =
			w->returns[(w->top - e.n_pushes + i) % RETURN_DEPTH];
	memcpy(memo_effects__events(effects), &w->out->v[note->n_out], events_size);
	return effects;
}

static void fill(struct walker *w, const struct memo_note *note, struct memo_entry *entry)
{
	size_t n = w->out->n - note->n_out;
	struct memo_effects *effects = NULL;

	if (n)
		effects = n <= MAX_EVENTS ? note_effects(w, note) : NULL;
	if (n && !effects)
		return;
	*entry = (struct memo_entry){.block = note->block,
				     .bytes = note->run,
				     .to = w->block,
				     .counts = w->counts,
				     .effects = effects,
				     .ip = note->ip};
}

void memo__finish(struct walker *w, const struct memo_note *note, struct memo_entry *entry)
{
	struct outbox *out = w->out;
	size_t n = note->n_out;

	if (w->state == WALK_ON && !w->tnt_left && !out->err)
		fill(w, note, entry);
	if (out->n == n) {
		w->counts += note->counts;
	} else {
		out->v[n].n_insns += (uint32_t)note->counts;
		out->v[n].n_branches += (uint32_t)(note->counts >> 32);
	}
}
