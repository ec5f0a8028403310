// SPDX-License-Identifier: MIT
/* Hits in a perf.data file: samples of our own event, as perf_data_write_hit.c writes them. */
#include "capture/recording/perf_data_internal.h"

#include <stddef.h>

#define FIXED offsetof(struct mt_hit, stack)

#define SAMPLE_HIT                                                                                 \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW)

static int damaged_hit(struct perf_reader *r)
{
	return damaged(r, "a hit's record is damaged");
}

/* The next n bytes, as a part to be read by itself. */
static struct cursor take_part(struct cursor *c, uint64_t n)
{
	struct cursor part = {.at = c->at, .end = c->at};

	if (n > (uint64_t)(c->end - c->at)) {
		c->failed = part.failed = true;
		return part;
	}
	c->at += n;
	part.end = c->at;
	return part;
}

/* Behind the arguments, where there are any. */
static int take_branches(struct perf_reader *r, struct cursor *raw, struct mt_hit *hit)
{
	uint64_t n;

	if (raw->end - raw->at < 8)
		return 0;
	n = take_u64(raw);
	if (n > MT_BRANCHES_MAX)
		return damaged_hit(r);
	hit->n_branches = (uint32_t)n;
	take(raw, hit->branches, sizeof(hit->branches[0]) * hit->n_branches);
	return raw->failed ? damaged_hit(r) : 0;
}

/* Behind the stack; 4 bytes of padding are all that else follows there. */
static int take_args(struct perf_reader *r, struct cursor *raw, struct mt_hit *hit)
{
	uint64_t word;

	if (raw->end - raw->at < 8)
		return 0;
	word = take_u64(raw);
	hit->n_args = (uint32_t)word;
	hit->args_read = (uint16_t)(word >> 32);
	hit->args_signed = (uint16_t)(word >> 48);
	if (hit->n_args > MT_ARGS_MAX)
		return damaged_hit(r);
	take(raw, hit->args, 8 * hit->n_args);
	return raw->failed ? damaged_hit(r) : take_branches(r, raw, hit);
}

/* The stack by frame pointer is the chain, behind PERF_CONTEXT_USER, or in the raw data. */
static int read_raw(struct perf_reader *r, struct cursor *chain, struct cursor *raw,
		    struct mt_hit *hit)
{
	size_t in_chain = (size_t)(chain->end - chain->at) / 8;

	if ((size_t)(raw->end - raw->at) < FIXED)
		return damaged(r, "a hit's record is of another version");
	take(raw, hit, FIXED);
	take_u64(chain);
	if (hit->stack_depth > MT_STACK_DEPTH ||
	    (in_chain != 1 && in_chain != 1 + hit->stack_depth))
		return damaged_hit(r);
	take(in_chain == 1 ? raw : chain, hit->stack, 8 * hit->stack_depth);
	return chain->failed || raw->failed ? damaged_hit(r) : take_args(r, raw, hit);
}

static void take_regs(struct cursor *c, uint64_t mask, struct rec_user *user)
{
	uint64_t regs[64] = {0};

	if (!take_u64(c))
		return; /* PERF_SAMPLE_REGS_ABI_NONE */
	for (int i = 0; i < 64; i++)
		if (mask >> i & 1)
			regs[i] = take_u64(c);
	*user = (struct rec_user){
		.bx = regs[PERF_REG_X86_BX],
		.bp = regs[PERF_REG_X86_BP],
		.sp = regs[PERF_REG_X86_SP],
		.ip = regs[PERF_REG_X86_IP],
		.r12 = regs[PERF_REG_X86_R12],
		.r13 = regs[PERF_REG_X86_R13],
		.r14 = regs[PERF_REG_X86_R14],
		.r15 = regs[PERF_REG_X86_R15],
	};
}

static void take_stack(struct cursor *c, struct rec_user *user)
{
	uint64_t room = take_u64(c);
	struct cursor stack = take_part(c, room);
	uint64_t size = room ? take_u64(c) : 0;

	if (size > room || c->failed) {
		c->failed = true;
		return;
	}
	user->stack = (uint8_t *)stack.at;
	user->size = size;
}

void perf_reader__take_user(const struct perf_reader_event *event, struct cursor *c,
			    struct rec_user *user)
{
	*user = (struct rec_user){0};
	if (event->sample_type & PERF_SAMPLE_REGS_USER)
		take_regs(c, event->regs_user, user);
	if (event->sample_type & PERF_SAMPLE_STACK_USER)
		take_stack(c, user);
}

/* ip, sp and bp are in the hit already. */
static int read_user(struct perf_reader *r, const struct perf_reader_event *event, struct cursor *c,
		     struct mt_hit *hit, struct rec_user *user)
{
	perf_reader__take_user(event, c, user);
	hit->bx = user->bx;
	hit->r12 = user->r12;
	hit->r13 = user->r13;
	hit->r14 = user->r14;
	hit->r15 = user->r15;
	hit->copied = (uint32_t)user->size;
	return c->failed ? damaged_hit(r) : 0;
}

int perf_reader__sample(struct perf_reader *r, const struct perf_reader_event *event,
			struct cursor *c)
{
	struct cursor chain, raw;
	struct rec_user user = {0};
	struct mt_hit hit = {0};
	uint64_t depth, probe_ip;
	int err;

	if (event->type != PERF_TYPE_SOFTWARE || event->config != PERF_COUNT_SW_BPF_OUTPUT ||
	    !(event->sample_type & PERF_SAMPLE_RAW))
		return 0;
	probe_ip = take_u64(c);
	take_part(c, 24); /* TID, TIME, CPU: mt_hit has them */
	depth = take_u64(c);
	if (c->failed || !depth || depth > 1 + MT_STACK_DEPTH)
		return damaged_hit(r);
	chain = take_part(c, 8 * depth);
	raw = take_part(c, take_u32(c));
	if (c->failed)
		return damaged_hit(r);
	err = read_raw(r, &chain, &raw, &hit);
	hit.probe_ip = probe_ip;
	if (!err &&
	    !(event->sample_type & ~(SAMPLE_HIT | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)))
		err = read_user(r, event, c, &hit, &user);
	if (!err)
		err = recording__add_hit(r->rec, &hit);
	if (err || !user.size)
		return err;
	return recording__add_stack(r->rec, user.stack, user.size);
}
