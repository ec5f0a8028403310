// SPDX-License-Identifier: MIT
#include "decode/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decode/branch.h"
#include "kernel/kernel.h"
#include "util/insn.h"

#define FIRST_SLOTS 1024

/*
 * A branch's two ends, and the place where it is followed to, are mostly in the same few functions.
 */
#define KNOWN_FUNCTIONS 4

struct blocks_slot {
	uint64_t ip;
	struct block *block;
};

struct blocks_arena {
	struct blocks_arena *before;
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
	struct blocks_arena *arena;
};

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

static void free_arena(struct blocks *b)
{
	while (b->arena) {
		struct blocks_arena *before = b->arena->before;

		free(b->arena);
		b->arena = before;
	}
}

void blocks__free(struct blocks *b)
{
	if (!b)
		return;
	free_arena(b);
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
	free_arena(b);
	memset(b->slots, 0, b->n_slots * sizeof(*b->slots));
	b->n = 0;
}

/* 16-byte aligned; freed with all the others. NULL: no memory. */
static void *alloc(struct blocks *b, size_t size)
{
	struct blocks_arena *arena = b->arena;
	void *at;

	size = (size + 15) & ~(size_t)15;
	if (!arena || arena->used + size > sizeof(arena->bytes)) {
		arena = aligned_alloc(64, sizeof(*arena));
		if (!arena)
			return NULL;
		arena->before = b->arena;
		arena->used = 0;
		b->arena = arena;
	}
	at = arena->bytes + arena->used;
	arena->used += size;
	return at;
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
	uint64_t before; /* the instruction that falls through to it; 0: it was jumped to, or is the
			    first */
	const struct function *known; /* where the last transfer went */
	block_counts counts;	      /* since the last step */
	unsigned int n_insns, n_jumps;
	struct block_step steps[MAX_STEPS];
};

/*
 * Remembers the function found at the place. Only if the function is contiguous: other parts of it,
 * and code beyond the mapped piece, are looked up each time.
 */
static void note_function(struct blocks *blocks, uint64_t ip, const struct code_place *place)
{
	const struct function *function = place->function;
	const struct code_piece *piece = &blocks->piece;
	uint64_t start = place->entry, size = function->size;

	if (ip - start >= size || start - piece->start >= piece->len ||
	    size > piece->len - (start - piece->start))
		return;
	blocks->known[blocks->next_known++ % KNOWN_FUNCTIONS] =
		(struct known_function){start, size, function};
}

/* NULL: no code is known at ip. */
static const struct function *function_at(struct blocks *blocks, uint64_t ip)
{
	struct code_place place;

	for (unsigned int i = 0; i < KNOWN_FUNCTIONS; i++)
		if (ip - blocks->known[i].start < blocks->known[i].size)
			return blocks->known[i].function;
	if (!code_map__find(blocks->map, ip, &place))
		return NULL;
	note_function(blocks, ip, &place);
	return place.function;
}

/* For an instruction that may cross into another mapping, or is patched. */
static int fetch_copy(struct blocks *blocks, uint64_t ip, struct insn *insn)
{
	uint8_t code[INSN_MAX_LEN];
	size_t n = code_map__read(blocks->map, ip, code, sizeof(code));
	int err = n ? insn__decode(code, n, ip, insn) : -ENOENT;

	return err == -ENODATA ? -ENOENT : err;
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

	if (!has_piece(blocks, ip) && !code_map__piece(blocks->map, ip, &blocks->piece))
		blocks->piece.len = 0;
	if (!has_piece(blocks, ip))
		return fetch_copy(blocks, ip, insn);
	return insn__decode(piece->bytes + (ip - piece->start), INSN_MAX_LEN, ip, insn);
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

static void add_step(struct building *g, const struct insn *insn, bool is_call)
{
	uint64_t next = g->ip + insn->len;

	g->steps[g->block->n_steps++] = (struct block_step){
		.from = g->ip,
		.to = insn->target,
		.counts = g->counts,
		.site = {.ret_ip = next},
		.kind = is_call ? BRANCH_CALL : BRANCH_JUMP,
		.len = insn->len,
		/* SDM "Indirect Transfer Compression for Returns": not the call that reads the IP.
		 */
		.pushes = is_call && insn->target != next,
	};
	g->counts = 0;
}

static void follow(struct building *g, const struct insn *insn)
{
	bool is_call = insn->cls == INSN_CALL;

	g->n_jumps++;
	g->counts += BLOCK_TAKEN;
	if (is_call || leaves(g, g->ip, insn->target))
		add_step(g, insn, is_call);
	g->known = function_at(g->blocks, insn->target);
	g->ip = insn->target;
}

static void end_cond(struct building *g, const struct insn *insn)
{
	struct block *block = g->block;

	block->end = BLOCK_COND;
	block->target = insn->target;
	/* The target is the next instruction: both outcomes lead there. */
	if (insn->target != g->ip + insn->len && leaves(g, g->ip, insn->target))
		block->flags |= BLOCK_TELLS_TAKEN;
}

/* A jump to the same function may still enter another activation of it. */
static bool may_raise(const struct building *g)
{
	uint8_t code[JUMP_TO_POPPED_LEN];

	return code_map__read(g->blocks->map, g->ip - JUMP_TO_POPPED_BEFORE, code, sizeof(code)) ==
		       sizeof(code) &&
	       insn__jumps_to_popped(code);
}

static void end_jump(struct building *g)
{
	g->block->end = BLOCK_JUMP;
	if (g->blocks->tell_all || function_at(g->blocks, g->ip) != g->known || may_raise(g))
		g->block->flags |= BLOCK_TELLS_JUMP;
	g->counts += BLOCK_TAKEN;
}

/*
 * Such an instruction loads where to continue from memory: from a signal frame or the kernel's
 * stack.
 */
static bool restores(const struct building *g, const struct insn *insn)
{
	uint8_t code[RESTORER_MAX_LEN] = {0};

	if (insn->cls == INSN_FAR)
		return true;
	code_map__read(g->blocks->map, g->before, code, sizeof(code));
	return insn__is_restorer(code);
}

/* True if insn ends the block. */
static bool end_at(struct building *g, const struct insn *insn)
{
	struct block *block = g->block;

	block->last_ip = g->ip;
	block->last_len = insn->len;
	switch ((enum insn_class)insn->cls) {
	case INSN_COND:
		end_cond(g, insn);
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
		end_jump(g);
		return true;
	case INSN_INT3:
		block->flags |= BLOCK_ENTERS | BLOCK_TRAPS;
		block->end = BLOCK_FAR;
		return true;
	case INSN_SYSCALL:
	case INSN_FAR:
		if (insn->cls == INSN_SYSCALL)
			block->flags |= BLOCK_ENTERS;
		if (restores(g, insn))
			block->flags |= BLOCK_RESTORES;
		block->end = BLOCK_FAR;
		return true;
	default:
		return false;
	}
}

static void build(struct building *g)
{
	struct block *block = g->block;
	struct insn insn;
	int err = 0;

	while (g->n_insns < MAX_INSNS && g->n_jumps < MAX_JUMPS) {
		err = fetch(g->blocks, g->ip, &insn);
		if (err)
			break;
		g->n_insns++;
		g->counts++;
		if (end_at(g, &insn))
			return;
		if (insn.cls == INSN_CALL || insn.cls == INSN_JUMP) {
			g->before = 0;
			follow(g, &insn);
		} else {
			g->before = g->ip;
			g->ip += insn.len;
		}
	}
	block->last_ip = g->ip;
	block->last_len = 0;
	block->end = !err ? BLOCK_GOES_ON : err == -ENOENT ? BLOCK_UNMAPPED : BLOCK_NO_CODE;
}

static int fill(struct building *g)
{
	struct block *block = g->block;
	size_t size;

	build(g);
	block->n_before = (uint16_t)(g->n_insns - (block->last_len != 0));
	block->counts = g->counts;
	block->known_function = g->known;
	block->end_function = function_at(g->blocks, block->last_ip);
	size = block->n_steps * sizeof(*block->steps);
	if (!size)
		return 0;
	block->steps = alloc(g->blocks, size);
	if (!block->steps)
		return -ENOMEM;
	memcpy(block->steps, g->steps, size);
	return 0;
}

static int fill_block(struct blocks *blocks, struct block *block, uint64_t ip,
		      const struct function *known)
{
	struct building g = {.blocks = blocks, .block = block, .ip = ip, .known = known};

	*block = (struct block){
		.ip = ip, .function = function_at(blocks, ip), .stamp = blocks->stamp};
	return fill(&g);
}

/* known: the function that the last transfer went to. NULL: no memory. */
static struct block *build_block(struct blocks *blocks, uint64_t ip, const struct function *known)
{
	struct block *block = alloc(blocks, sizeof(*block));

	return block && !fill_block(blocks, block, ip, known) ? block : NULL;
}

/* ---- blocks by their address */

/* Fibonacci hashing: the high bits of the product depend on all of ip. */
static size_t slot_of(const struct blocks *b, uint64_t ip)
{
	return (size_t)(ip * 0x9e3779b97f4a7c15ull >> 20) & (b->n_slots - 1);
}

static void insert(struct blocks *b, struct block *block)
{
	size_t i = slot_of(b, block->ip);

	while (b->slots[i].block)
		i = (i + 1) & (b->n_slots - 1);
	b->slots[i] = (struct blocks_slot){block->ip, block};
}

static int grow(struct blocks *b)
{
	struct blocks_slot *old = b->slots;
	size_t n = b->n_slots;

	b->slots = new_slots(2 * n);
	if (!b->slots) {
		b->slots = old;
		return -ENOMEM;
	}
	b->n_slots = 2 * n;
	for (size_t i = 0; i < n; i++)
		if (old[i].block)
			insert(b, old[i].block);
	free(old);
	return 0;
}

static struct block *add(struct blocks *b, uint64_t ip)
{
	struct block *block;

	if (2 * b->n >= b->n_slots && grow(b))
		return NULL;
	block = build_block(b, ip, function_at(b, ip));
	if (!block)
		return NULL;
	insert(b, block);
	b->n++;
	return block;
}

struct block *blocks__find(struct blocks *b, uint64_t ip)
{
	size_t i = slot_of(b, ip);

	while (b->slots[i].block) {
		if (b->slots[i].ip == ip)
			return b->slots[i].block;
		i = (i + 1) & (b->n_slots - 1);
	}
	return add(b, ip);
}

/*
 * After a condition that was not taken, no branch has told the reader which function runs. If it is
 * another one by now, the next branch must be handed on, and this path needs a block of its own.
 */
static struct block *fall_through(struct blocks *b, struct block *block)
{
	uint64_t ip = block->last_ip + block->last_len;

	if (b->tell_all || function_at(b, ip) == block->known_function)
		return blocks__find(b, ip);
	return build_block(b, ip, block->known_function);
}

struct block *blocks__link(struct blocks *b, struct block *block, unsigned int which)
{
	if (!block->next[which])
		block->next[which] = which && block->end == BLOCK_COND
					     ? blocks__find(b, block->target)
					     : fall_through(b, block);
	return block->next[which];
}

/* ---- how far a thread came */

int blocks__renew(struct blocks *blocks, struct block *block)
{
	if (block->stamp == blocks->stamp)
		return 0;
	return fill_block(blocks, block, block->ip, function_at(blocks, block->ip));
}

/* A walk through a block's instructions, one by one. */
struct stepping {
	struct blocks *blocks;
	const struct block *block;
	struct block_reach *reach;
	uint64_t ip;
	unsigned int n; /* instructions that ran */
	struct insn insn;
};

/* Advances by one instruction. False: the block's last instruction is next. */
static bool step(struct stepping *s)
{
	struct block_reach *reach = s->reach;
	const struct block *block = s->block;

	if (s->n == block->n_before || fetch(s->blocks, s->ip, &s->insn))
		return false;
	s->n++;
	reach->from = s->ip;
	reach->len = s->insn.len;
	reach->counts++;
	if (s->insn.cls != INSN_CALL && s->insn.cls != INSN_JUMP) {
		s->ip += s->insn.len;
		return true;
	}
	reach->counts += BLOCK_TAKEN;
	s->ip = s->insn.target;
	return true;
}

/* The instruction was the block's next step. */
static void count_step(struct stepping *s)
{
	struct block_reach *reach = s->reach;

	if (reach->n_steps == s->block->n_steps ||
	    s->block->steps[reach->n_steps].from != reach->from)
		return;
	reach->n_steps++;
	reach->counts = 0;
}

bool blocks__reach(struct blocks *blocks, const struct block *block, uint64_t ip,
		   struct block_reach *reach)
{
	struct stepping s = {.blocks = blocks, .block = block, .reach = reach, .ip = block->ip};

	*reach = (struct block_reach){0};
	while (s.ip != ip) {
		if (!step(&s))
			return false;
		count_step(&s);
	}
	return true;
}

bool blocks__reach_branch_to(struct blocks *blocks, const struct block *block, uint64_t ip,
			     struct block_reach *reach)
{
	struct stepping s = {.blocks = blocks, .block = block, .reach = reach, .ip = block->ip};

	*reach = (struct block_reach){0};
	while (step(&s)) {
		if (s.insn.target == ip && s.insn.cls != INSN_COND)
			return true;
		count_step(&s);
	}
	return false;
}

bool blocks__reach_only_branch(struct blocks *blocks, const struct block *block,
			       struct block_reach *reach)
{
	struct block_reach here = {0};
	struct stepping s = {.blocks = blocks, .block = block, .reach = &here, .ip = block->ip};
	unsigned int n = 0;

	while (step(&s)) {
		if ((s.insn.cls == INSN_CALL || s.insn.cls == INSN_JUMP) && !n++)
			*reach = here;
		count_step(&s);
	}
	return n == 1;
}
