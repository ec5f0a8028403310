// SPDX-License-Identifier: MIT
#include "decode/memo.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernel/kernel.h"
#include "util/page.h"

/* Limits of an entry. */
#define MAX_EVENTS 64
#define MAX_CALLS  16
/* Effects are never freed one by one: with more arenas than this, the memo is cleared. */
#define MAX_ARENAS 256

struct memo_arena {
	struct memo_arena *before;
	size_t used;
	uint8_t bytes[64 * 1024] __attribute__((aligned(16)));
};

struct memo {
	struct memo_entry *entries; /* pages are allocated when first touched */
	struct memo_arena *arena;
	unsigned int n_arenas;
};

/* A multiple of the page size, for madvise(). */
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
	/* The pages are zero when touched again. */
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

/* Derives from the events what happens to pending calls. False: the run cannot be replayed. */
static bool count_calls(const struct memo_walked *walked, struct memo_effects *e,
			uint64_t needs[MAX_CALLS])
{
	unsigned int own = 0;

	for (unsigned int i = 0; i < e->n_events; i++) {
		const struct branch *b = &walked->events[i];
		bool by_tip = i + 1u == e->n_events && walked->run->tip;

		if (b->kind == BRANCH_CALL && b->to != b->from + b->len) {
			if (++own > e->most_calls)
				e->most_calls = (uint8_t)own;
		} else if (b->kind == BRANCH_RETURN && own) {
			own--;
		} else if (b->kind == BRANCH_RETURN && by_tip && walked->to->ip == b->to) {
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

static struct memo_effects *keep_effects(struct memo *memo, const struct memo_walked *walked)
{
	struct memo_effects e = {.n_events = (uint8_t)walked->n_events}, *effects;
	const struct returns *calls = walked->calls;
	uint64_t needs[MAX_CALLS];
	size_t events_size = e.n_events * sizeof(struct branch);

	if (!count_calls(walked, &e, needs))
		return NULL;
	effects = alloc(memo, sizeof(e) + 8ull * (e.n_needs + e.n_pushes) + events_size);
	if (!effects)
		return NULL;
	*effects = e;
	memcpy(memo_effects__needs(effects), needs, e.n_needs * sizeof(needs[0]));
	for (unsigned int i = 0; i < e.n_pushes; i++)
		memo_effects__pushes(effects)[i] =
			calls->sites[(calls->top - e.n_pushes + i) % RETURN_DEPTH];
	memcpy(memo_effects__events(effects), walked->events, events_size);
	return effects;
}

void memo__keep(struct memo *memo, const struct memo_walked *walked, struct memo_entry *entry)
{
	const struct memo_run *run = walked->run;
	struct memo_effects *effects = NULL;

	if (walked->n_events > MAX_EVENTS)
		return;
	if (walked->n_events) {
		effects = keep_effects(memo, walked);
		if (!effects)
			return;
	}
	*entry = (struct memo_entry){.block = walked->from,
				     .bytes = run->bytes,
				     .to = walked->to,
				     .counts = walked->counts,
				     .effects = effects,
				     .ip = run->tip ? run->ip : 0};
}
