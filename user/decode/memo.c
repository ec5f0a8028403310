// SPDX-License-Identifier: MIT
#include "decode/memo.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "decode/walk_internal.h"

/* What an entry may hold. */
#define MAX_EVENTS 64
#define MAX_CALLS  16
/* Effects are freed together: beyond this, all of them, to begin anew. */
#define MAX_ARENAS 256

/* While a run is noted: a time that no packet tells. */
#define AT_START UINT64_MAX

struct memo_effects {
	uint8_t n_needs;  /* returns pending before */
	uint8_t n_drops;  /* taken away without being used, if there is one */
	uint8_t n_pushes; /* calls that are pending behind it */
	uint8_t n_events;
	uint8_t most_calls;	   /* of its own that were pending at once */
	uint64_t needs[MAX_CALLS]; /* where they must lead, the last call's first */
	struct block_site *pushes[MAX_CALLS];
	struct branch events[];
};

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

#define ENTRIES_SIZE (sizeof(struct memo_entry) << MEMO_BITS)

struct memo *memo__new(void)
{
	struct memo *memo = calloc(1, sizeof(*memo));

	if (!memo)
		return NULL;
	memo->entries = mmap(NULL, ENTRIES_SIZE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memo->entries != MAP_FAILED)
		return memo;
	free(memo);
	return NULL;
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
	munmap(memo->entries, ENTRIES_SIZE);
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

	size = (size + 15) & ~(size_t)15;
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

static bool can_replay(const struct walker *w, const struct memo_effects *effects)
{
	unsigned int pending = w->top - w->floor;

	/* Too many calls would push out the oldest. */
	if (pending < effects->n_needs || pending + effects->most_calls > RETURN_DEPTH)
		return false;
	for (unsigned int i = 0; i < effects->n_needs; i++)
		if (w->returns[(w->top - 1 - i) % RETURN_DEPTH]->ret_ip != effects->needs[i])
			return false;
	return true;
}

bool memo__replay(struct walker *w, const struct memo_entry *entry)
{
	const struct memo_effects *effects = entry->effects;
	struct outbox *out = w->out;
	struct branch *events;

	if (!can_replay(w, effects))
		return false;
	while (UNLIKELY(out->cap - out->n < effects->n_events))
		if (!outbox__grow(out))
			return false;
	events = &out->v[out->n];
	for (unsigned int i = 0; i < effects->n_events; i++) {
		events[i] = effects->events[i];
		events[i].time_ns =
			effects->events[i].time_ns == AT_START ? w->block_tsc : w->time.tsc;
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
		w->returns[w->top++ % RETURN_DEPTH] = effects->pushes[i];
	return true;
}

void memo__start(struct walker *w, struct memo_note *note, uint64_t run)
{
	*note = (struct memo_note){.block = w->block,
				   .run = run,
				   .block_tsc = w->block_tsc,
				   .counts = w->counts,
				   .n_out = w->out->n,
				   .top = w->top};
	w->counts = 0;
	w->block_tsc = AT_START;
}

/* The TIP's header, at the end of a run, or 0. */
static unsigned int tip_header(uint64_t run)
{
	uint64_t odd = run & 0x0101010101010101ull;

	return odd ? run >> (__builtin_ctzll(odd) / 8 * 8) & 0xff : 0;
}

/* What the events mean for the calls that are pending. False: too much of it. */
static bool count_calls(const struct walker *w, const struct memo_note *note,
			struct memo_effects *e)
{
	const struct branch *events = &w->out->v[note->n_out];
	unsigned int own = 0;

	for (unsigned int i = 0; i < e->n_events; i++) {
		const struct branch *b = &events[i];
		bool by_tip = i + 1u == e->n_events && tip_header(note->run);

		if (b->kind == BRANCH_CALL && b->to != b->from + b->len) {
			if (++own > e->most_calls)
				e->most_calls = (uint8_t)own;
		} else if (b->kind == BRANCH_RETURN && own) {
			own--;
		} else if (b->kind == BRANCH_RETURN && by_tip && w->block->ip == b->to) {
			e->n_drops = 1;
		} else if (b->kind == BRANCH_RETURN && e->n_needs < MAX_CALLS) {
			e->needs[e->n_needs++] = b->to;
		} else if (b->kind != BRANCH_JUMP && b->kind != BRANCH_COND) {
			return false;
		}
	}
	e->n_pushes = (uint8_t)own;
	return e->most_calls <= MAX_CALLS;
}

static struct memo_effects *effects_of(struct walker *w, const struct memo_note *note)
{
	struct memo_effects e = {.n_events = (uint8_t)(w->out->n - note->n_out)}, *effects;

	if (!count_calls(w, note, &e))
		return NULL;
	for (unsigned int i = 0; i < e.n_pushes; i++)
		e.pushes[i] = w->returns[(w->top - e.n_pushes + i) % RETURN_DEPTH];
	effects = alloc(w->space->memo, sizeof(e) + e.n_events * sizeof(e.events[0]));
	if (!effects)
		return NULL;
	*effects = e;
	memcpy(effects->events, &w->out->v[note->n_out], e.n_events * sizeof(e.events[0]));
	return effects;
}

static void fill(struct walker *w, const struct memo_note *note, struct memo_entry *entry)
{
	static const uint64_t masks[8] = {
		[IP_UPDATE_16] = ~0xffffull, [IP_UPDATE_32] = ~0xffffffffull};
	size_t n = w->out->n - note->n_out;
	struct memo_effects *effects = NULL;
	unsigned int tip = tip_header(note->run);

	if (n)
		effects = n <= MAX_EVENTS ? effects_of(w, note) : NULL;
	if (n && !effects)
		return;
	*entry = (struct memo_entry){.block = note->block,
				     .bytes = note->run,
				     .to = w->block,
				     .counts = w->counts,
				     .effects = effects,
				     .ip = tip ? w->reader.last_ip : 0,
				     .ip_mask = masks[tip >> 5],
				     .has_ip = tip != 0};
}

void memo__finish(struct walker *w, const struct memo_note *note, struct memo_entry *entry)
{
	struct outbox *out = w->out;
	size_t n = note->n_out;

	if (w->state == WALK_ON && !w->tnt_left && !out->err)
		fill(w, note, entry);
	for (size_t i = n; i < out->n; i++)
		if (out->v[i].time_ns == AT_START)
			out->v[i].time_ns = note->block_tsc;
	if (w->block_tsc == AT_START)
		w->block_tsc = note->block_tsc;
	if (out->n == n) {
		w->counts += note->counts;
	} else {
		out->v[n].n_insns += (uint32_t)note->counts;
		out->v[n].n_branches += (uint32_t)(note->counts >> 32);
	}
}
