// SPDX-License-Identifier: MIT
/* Instructions to blocks. */
#include <errno.h>
#include <string.h>

#include "decode/blocks_internal.h"
#include "decode/branch.h"
#include "util/insn.h"

/* Longer ones go on in another block. */
#define MAX_STEPS 32
#define MAX_JUMPS 32
#define MAX_INSNS 512

struct building {
	struct blocks *blocks;
	struct block *block;
	uint64_t ip;		      /* of the next instruction */
	uint64_t before;	      /* of the one that runs up to it; 0: a jump or none */
	const struct function *known; /* where the last transfer went */
	block_counts counts;	      /* since the last step */
	unsigned int n_insns, n_jumps;
	struct block_step steps[MAX_STEPS];
};

const struct function *blocks__function_at(struct blocks *blocks, uint64_t ip)
{
	struct code_place place;

	return code_map__find(blocks->map, ip, &place) ? place.function : NULL;
}

/* 0, -ENOENT where nothing is mapped, -EILSEQ where it is no instruction. */
static int fetch(struct blocks *blocks, uint64_t ip, struct insn *insn)
{
	uint8_t code[INSN_MAX_LEN];
	size_t n = code_map__read(blocks->map, ip, code, sizeof(code));
	int err = n ? insn__decode(code, n, ip, insn) : -ENOENT;

	return err == -ENODATA ? -ENOENT : err;
}

/* Whoever reads the branches must hear of it: it leaves its function, or ends an unheard change. */
static bool leaves(const struct building *g, uint64_t from, uint64_t to)
{
	const struct function *function = blocks__function_at(g->blocks, from);

	return g->blocks->tell_all || function != g->known ||
	       function != blocks__function_at(g->blocks, to);
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
	g->known = blocks__function_at(g->blocks, insn->target);
	g->ip = insn->target;
}

static void end_cond(struct building *g, const struct insn *insn)
{
	struct block *block = g->block;

	block->end = BLOCK_COND;
	block->target = insn->target;
	/* To the next instruction it goes either way. */
	if (insn->target != g->ip + insn->len && leaves(g, g->ip, insn->target))
		block->flags |= BLOCK_TELLS_TAKEN;
}

/* It may lead to where it is in the code, and yet to another activation of the function. */
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
	if (g->blocks->tell_all || blocks__function_at(g->blocks, g->ip) != g->known ||
	    may_raise(g))
		g->block->flags |= BLOCK_TELLS_JUMP;
	g->counts += BLOCK_TAKEN;
}

/* The state to go on with is in memory: of a signal's frame, or of the kernel's. */
static bool restores(const struct building *g, const struct insn *insn)
{
	uint8_t code[RESTORER_MAX_LEN] = {0};

	if (insn->cls == INSN_FAR)
		return true;
	code_map__read(g->blocks->map, g->before, code, sizeof(code));
	return insn__is_restorer(code);
}

/* True where insn ends the block. */
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
	block->end_function = blocks__function_at(g->blocks, block->last_ip);
	size = block->n_steps * sizeof(*block->steps);
	if (!size)
		return 0;
	block->steps = blocks__alloc(g->blocks, size);
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
		.ip = ip, .function = blocks__function_at(blocks, ip), .stamp = blocks->stamp};
	return fill(&g);
}

struct block *blocks__build(struct blocks *blocks, uint64_t ip, const struct function *known)
{
	struct block *block = blocks__alloc(blocks, sizeof(*block));

	return block && !fill_block(blocks, block, ip, known) ? block : NULL;
}

int blocks__renew(struct blocks *blocks, struct block *block)
{
	if (block->stamp == blocks->stamp)
		return 0;
	return fill_block(blocks, block, block->ip, blocks__function_at(blocks, block->ip));
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

/* One more instruction. False where the block's last one is next. */
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
