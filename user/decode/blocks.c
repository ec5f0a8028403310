// SPDX-License-Identifier: MIT
#include "decode/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decode/branch.h"
#include "kernel/kernel.h"
#include "util/insn.h"

#define FIRST_SLOTS 1024
#define BLOCK_ALIGN 16

/*
 * The number of functions that function_at() caches: both ends of a branch, and its successor, are
 * mostly in the same few functions.
 */
#define KNOWN_FUNCTIONS 4

struct blocks_slot {
	uint64_t ip;
	struct block *block;
};

struct arena_chunk {
	struct arena_chunk *before;
	size_t used;
	uint8_t bytes[64 * 1024] __attribute__((aligned(64)));
};

struct blocks {
	struct code_map *map;
	struct code_piece piece; /* of the last instruction that was decoded */
	/* Functions that were found last, by where they begin. */
	struct known_function {
		uint64_t start, size;
		const struct function *function;
	} known[KNOWN_FUNCTIONS];
	unsigned int next_known;
	bool tell_all;
	uint64_t stamp; /* how often the code has changed */
	struct blocks_slot *slots;
	size_t n, n_slots;
	struct arena arena;
};

void *arena__alloc(struct arena *arena, size_t size, size_t align)
{
	struct arena_chunk *chunk = arena->last;
	void *at;

	size = (size + align - 1) & ~(align - 1);
	if (!chunk || chunk->used + size > sizeof(chunk->bytes)) {
		chunk = aligned_alloc(64, sizeof(*chunk));
		if (!chunk)
			return NULL;
		chunk->before = arena->last;
		chunk->used = 0;
		arena->last = chunk;
		arena->n_chunks++;
	}
	at = chunk->bytes + chunk->used;
	chunk->used += size;
	return at;
}

void arena__free(struct arena *arena)
{
	while (arena->last) {
		struct arena_chunk *before = arena->last->before;

		free(arena->last);
		arena->last = before;
	}
	arena->n_chunks = 0;
}

/*
 * Writes the pages first: a page that is read before it is written faults twice, and the second
 * fault interrupts all other decoding CPUs.
 */
static struct blocks_slot *new_slots(size_t n)
{
	struct blocks_slot *slots = huge_pages__alloc(n * sizeof(*slots));

	if (slots)
		memset(slots, 0, n * sizeof(*slots));
	return slots;
}

struct blocks *blocks__new(struct code_map *map, bool tell_all)
{
	struct blocks *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->map = map;
	b->tell_all = tell_all;
	b->slots = new_slots(FIRST_SLOTS);
	b->n_slots = FIRST_SLOTS;
	if (!b->slots) {
		free(b);
		return NULL;
	}
	return b;
}

void blocks__free(struct blocks *b)
{
	if (!b)
		return;
	arena__free(&b->arena);
	free(b->slots);
	free(b);
}

void blocks__code_added(struct blocks *b)
{
	b->stamp++;
	b->piece.len = 0;
	memset(b->known, 0, sizeof(b->known));
}

void blocks__clear(struct blocks *b)
{
	blocks__code_added(b);
	arena__free(&b->arena);
	memset(b->slots, 0, b->n_slots * sizeof(*b->slots));
	b->n = 0;
}

/* ---- instructions to blocks */

/* A longer stretch of code continues in another block. */
#define MAX_STEPS 32
#define MAX_JUMPS 32
#define MAX_INSNS 512

struct building {
	struct blocks *blocks;
	struct block *block;
	uint64_t ip;	 /* of the next instruction */
	uint64_t before; /* the instruction that falls through to ip; 0: a jump led to ip, or the
			    block begins there */
	const struct function *known; /* the function that the last call or jump went to */
	block_counts counts;	      /* since the last step */
	unsigned int n_insns, n_jumps;
	struct block_step steps[MAX_STEPS];
};

/* NULL: no code is known at ip. */
static const struct function *function_at(struct blocks *blocks, uint64_t ip)
{
	const struct code_piece *piece = &blocks->piece;
	struct code_place place;
	uint64_t start, size;

	for (unsigned int i = 0; i < KNOWN_FUNCTIONS; i++)
		if (ip - blocks->known[i].start < blocks->known[i].size)
			return blocks->known[i].function;
	if (!code_map__find(blocks->map, ip, &place))
		return NULL;
	/*
	 * Remembers the function only if it is contiguous: other parts of it, and code beyond the
	 * mapped piece, are looked up each time.
	 */
	start = place.entry;
	size = place.function->size;
	if (ip - start < size && start - piece->start < piece->len &&
	    size <= piece->len - (start - piece->start))
		blocks->known[blocks->next_known++ % KNOWN_FUNCTIONS] =
			(struct known_function){start, size, place.function};
	return place.function;
}

static bool has_piece(const struct blocks *blocks, uint64_t ip)
{
	const struct code_piece *piece = &blocks->piece;

	return piece->len >= INSN_MAX_LEN && ip - piece->start <= piece->len - INSN_MAX_LEN;
}

/*
 * Decodes the instruction at ip. 0; -ENOENT: nothing is mapped there; -EILSEQ: not a valid
 * instruction.
 */
static int fetch(struct blocks *blocks, uint64_t ip, struct insn *insn)
{
	const struct code_piece *piece = &blocks->piece;
	uint8_t code[INSN_MAX_LEN];
	size_t n;
	int err;

	if (!has_piece(blocks, ip) && !code_map__piece(blocks->map, ip, &blocks->piece))
		blocks->piece.len = 0;
	if (has_piece(blocks, ip))
		return insn__decode(piece->bytes + (ip - piece->start), INSN_MAX_LEN, ip, insn);
	/* The instruction may cross into another mapping, or is patched. */
	n = code_map__read(blocks->map, ip, code, sizeof(code));
	err = n ? insn__decode(code, n, ip, insn) : -ENOENT;
	return err == -ENODATA ? -ENOENT : err;
}

/*
 * True if the branch must be handed on: it leaves its function, or follows a change of function
 * that was not handed on.
 */
static bool leaves(const struct building *g, uint64_t from, uint64_t to)
{
	const struct function *function = function_at(g->blocks, from);

	return g->blocks->tell_all || function != g->known ||
	       function != function_at(g->blocks, to);
}

/* A direct call or jump within the block. */
static void follow(struct building *g, const struct insn *insn)
{
	bool is_call = insn->cls == INSN_CALL;
	uint64_t next = g->ip + insn->len;

	g->n_jumps++;
	g->counts += BLOCK_TAKEN;
	if (is_call || leaves(g, g->ip, insn->target)) {
		g->steps[g->block->n_steps++] = (struct block_step){
			.from = g->ip,
			.to = insn->target,
			.counts = g->counts,
			.site = {.ret_ip = next},
			.kind = is_call ? BRANCH_CALL : BRANCH_JUMP,
			.len = insn->len,
			/*
			 * SDM "Indirect Transfer Compression for Returns": a call of the next
			 * instruction, which only reads the IP, is not pushed.
			 */
			.pushes = is_call && insn->target != next,
		};
		g->counts = 0;
	}
	g->known = function_at(g->blocks, insn->target);
	g->ip = insn->target;
}

/* True if insn ends the block. */
static bool end_at(struct building *g, const struct insn *insn)
{
	struct block *block = g->block;
	struct blocks *blocks = g->blocks;
	uint8_t raise[JUMP_TO_POPPED_LEN], restorer[RESTORER_MAX_LEN] = {0};

	block->last_ip = g->ip;
	block->last_len = insn->len;
	switch ((enum insn_class)insn->cls) {
	case INSN_COND:
		block->end = BLOCK_COND;
		block->target = insn->target;
		/* If the target is the next instruction, both outcomes lead there. */
		if (insn->target != g->ip + insn->len && leaves(g, g->ip, insn->target))
			block->flags |= BLOCK_TELLS_TAKEN;
		return true;
	case INSN_RET:
		block->end = BLOCK_RETURN;
		g->counts += BLOCK_TAKEN;
		return true;
	case INSN_CALL_INDIRECT:
		block->end = BLOCK_CALL;
		block->site.ret_ip = g->ip + insn->len;
		g->counts += BLOCK_TAKEN;
		return true;
	case INSN_JUMP_INDIRECT:
		block->end = BLOCK_JUMP;
		/* A jump to the same function may still enter another activation of it. */
		if (blocks->tell_all || function_at(blocks, g->ip) != g->known ||
		    (code_map__read(blocks->map, g->ip - JUMP_TO_POPPED_BEFORE, raise,
				    sizeof(raise)) == sizeof(raise) &&
		     insn__jumps_to_popped(raise)))
			block->flags |= BLOCK_TELLS_JUMP;
		g->counts += BLOCK_TAKEN;
		return true;
	case INSN_INT3:
		block->flags |= BLOCK_ENTERS | BLOCK_TRAPS;
		block->end = BLOCK_FAR;
		return true;
	case INSN_SYSCALL:
		block->flags |= BLOCK_ENTERS;
		code_map__read(blocks->map, g->before, restorer, sizeof(restorer));
		if (insn__is_restorer(restorer))
			block->flags |= BLOCK_RESTORES;
		block->end = BLOCK_FAR;
		return true;
	case INSN_FAR:
		block->flags |= BLOCK_RESTORES;
		block->end = BLOCK_FAR;
		return true;
	default:
		return false;
	}
}

/* Decodes the block at ip. known: the function that the last transfer went to. 0 or -ENOMEM. */
static int build(struct blocks *blocks, struct block *block, uint64_t ip,
		 const struct function *known)
{
	struct building g = {.blocks = blocks, .block = block, .ip = ip, .known = known};
	bool has_end = false;
	size_t size;
	int err = 0;

	*block = (struct block){
		.ip = ip, .function = function_at(blocks, ip), .stamp = blocks->stamp};
	while (!has_end && g.n_insns < MAX_INSNS && g.n_jumps < MAX_JUMPS) {
		struct insn insn;

		err = fetch(blocks, g.ip, &insn);
		if (err)
			break;
		g.n_insns++;
		g.counts++;
		has_end = end_at(&g, &insn);
		if (insn.cls == INSN_CALL || insn.cls == INSN_JUMP) {
			g.before = 0;
			follow(&g, &insn);
		} else {
			g.before = g.ip;
			g.ip += insn.len;
		}
	}
	if (!has_end) {
		block->last_ip = g.ip;
		block->last_len = 0;
		block->end = !err ? BLOCK_GOES_ON : err == -ENOENT ? BLOCK_UNMAPPED : BLOCK_NO_CODE;
	}
	block->n_before = (uint16_t)(g.n_insns - (block->last_len != 0));
	block->counts = g.counts;
	block->known_function = g.known;
	block->end_function = function_at(blocks, block->last_ip);
	size = block->n_steps * sizeof(*block->steps);
	if (!size)
		return 0;
	block->steps = arena__alloc(&blocks->arena, size, BLOCK_ALIGN);
	if (!block->steps)
		return -ENOMEM;
	memcpy(block->steps, g.steps, size);
	return 0;
}

/* A new block; NULL: no memory. */
static struct block *build_block(struct blocks *blocks, uint64_t ip, const struct function *known)
{
	struct block *block = arena__alloc(&blocks->arena, sizeof(*block), BLOCK_ALIGN);

	return block && !build(blocks, block, ip, known) ? block : NULL;
}

/* ---- blocks by their address */

/* Fibonacci hashing: the high bits of the product depend on all of ip. */
static size_t slot_of(const struct blocks *b, uint64_t ip)
{
	return (size_t)(ip * 0x9e3779b97f4a7c15ull >> 20) & (b->n_slots - 1);
}

/* Returns the slot that has the block at ip, or the free slot where it belongs. */
static struct blocks_slot *find_slot(const struct blocks *b, uint64_t ip)
{
	size_t i = slot_of(b, ip);

	while (b->slots[i].block && b->slots[i].ip != ip)
		i = (i + 1) & (b->n_slots - 1);
	return &b->slots[i];
}

/* 0 or -ENOMEM. */
static int grow(struct blocks *b)
{
	struct blocks_slot *old = b->slots, *bigger = new_slots(2 * b->n_slots);
	size_t n = b->n_slots;

	if (!bigger)
		return -ENOMEM;
	b->slots = bigger;
	b->n_slots = 2 * n;
	for (size_t i = 0; i < n; i++)
		if (old[i].block)
			*find_slot(b, old[i].ip) = old[i];
	free(old);
	return 0;
}

struct block *blocks__find(struct blocks *b, uint64_t ip)
{
	struct block *block = find_slot(b, ip)->block;

	if (block)
		return block;
	if (2 * b->n >= b->n_slots && grow(b))
		return NULL;
	block = build_block(b, ip, function_at(b, ip));
	if (!block)
		return NULL;
	*find_slot(b, ip) = (struct blocks_slot){ip, block};
	b->n++;
	return block;
}

struct block *blocks__link(struct blocks *b, struct block *block, unsigned int which)
{
	uint64_t ip = block->last_ip + block->last_len;

	if (block->next[which])
		return block->next[which];
	if (which && block->end == BLOCK_COND)
		block->next[which] = blocks__find(b, block->target);
	else if (b->tell_all || function_at(b, ip) == block->known_function)
		block->next[which] = blocks__find(b, ip);
	else
		/*
		 * The thread falls through into another function than the last branch handed on
		 * went to. The next branch must tell the receiver, so this path needs a block of
		 * its own.
		 */
		block->next[which] = build_block(b, ip, block->known_function);
	return block->next[which];
}

/* ---- how far a thread came */

int blocks__renew(struct blocks *blocks, struct block *block)
{
	if (block->stamp == blocks->stamp)
		return 0;
	return build(blocks, block, block->ip, function_at(blocks, block->ip));
}

/* A walk through a block's instructions, one by one. */
struct stepping {
	const struct block *block;
	struct block_reach reach;
	/* Like `reach`, but the last instruction is not counted as a step of the block. */
	struct block_reach uncounted;
	uint64_t ip;
	unsigned int n; /* instructions that ran */
	struct insn insn;
};

/*
 * Advances by one instruction. False: the block's last instruction is next, or its code cannot be
 * read.
 */
static bool step(struct blocks *blocks, struct stepping *s)
{
	struct block_reach *reach = &s->reach;
	const struct block *block = s->block;

	if (s->n == block->n_before || fetch(blocks, s->ip, &s->insn))
		return false;
	s->n++;
	reach->from = s->ip;
	reach->len = s->insn.len;
	reach->counts++;
	s->ip += s->insn.len;
	if (s->insn.cls == INSN_CALL || s->insn.cls == INSN_JUMP) {
		reach->counts += BLOCK_TAKEN;
		s->ip = s->insn.target;
	}
	s->uncounted = *reach;
	if (reach->n_steps < block->n_steps && block->steps[reach->n_steps].from == reach->from) {
		reach->n_steps++;
		reach->counts = 0;
	}
	return true;
}

bool blocks__reach(struct blocks *blocks, const struct block *block, uint64_t ip,
		   struct block_reach *reach)
{
	struct stepping s = {.block = block, .ip = block->ip};

	while (s.ip != ip)
		if (!step(blocks, &s))
			return false;
	*reach = s.reach;
	return true;
}

bool blocks__reach_branch_to(struct blocks *blocks, const struct block *block, uint64_t ip,
			     struct block_reach *reach)
{
	struct stepping s = {.block = block, .ip = block->ip};

	while (step(blocks, &s)) {
		if (s.insn.target == ip && s.insn.cls != INSN_COND) {
			*reach = s.uncounted;
			return true;
		}
	}
	return false;
}

bool blocks__reach_only_branch(struct blocks *blocks, const struct block *block,
			       struct block_reach *reach)
{
	struct stepping s = {.block = block, .ip = block->ip};
	unsigned int n = 0;

	while (step(blocks, &s))
		if ((s.insn.cls == INSN_CALL || s.insn.cls == INSN_JUMP) && !n++)
			*reach = s.uncounted;
	return n == 1;
}
