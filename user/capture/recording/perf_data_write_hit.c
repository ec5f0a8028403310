// SPDX-License-Identifier: MIT
/*
 * A hit in a perf.data file: a sample like those of `perf record --call-graph dwarf`, so that perf
 * unwinds it as well. The order of a sample's parts: kernel/events/core.c, perf_output_sample().
 */
#include "capture/recording/perf_data_writer.h"

#include <stddef.h>

#define HIT_REGS 8

void perf_writer__describe_hits(const struct perf_writer *w, struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_BPF_OUTPUT;
	attr->sample_type |= PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW;
	if (!w->rec->stacks.n)
		return;
	perf_writer__describe_user(attr, MT_COPY_MAX);
}

/* The bytes, and behind them how many of them are the stack's. */
static void put_stack(struct perf_writer *w, const struct rec_user *user)
{
	size_t pad = padding(user->size, 8);

	put_u64(w, user->size + pad);
	if (!user->size)
		return;
	put(w, user->stack, user->size);
	put_zeroes(w, pad);
	put_u64(w, user->size);
}

void perf_writer__put_user(struct perf_writer *w, const struct rec_user *user)
{
	const uint64_t regs[HIT_REGS] = {
		user->bx, user->bp, user->sp, user->ip, user->r12, user->r13, user->r14, user->r15,
	};

	put_u64(w, PERF_SAMPLE_REGS_ABI_64);
	put(w, regs, sizeof(regs));
	put_stack(w, user);
}

size_t perf_writer__user_size(const struct rec_user *user)
{
	size_t size = 8 + 8 * HIT_REGS + 8;

	return user->size ? size + user->size + padding(user->size, 8) + 8 : size;
}

void perf_writer__describe_user(struct perf_event_attr *attr, uint32_t stack_size)
{
	attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	attr->sample_regs_user = PERF_HIT_REGS;
	attr->sample_stack_user = stack_size;
	attr->exclude_callchain_user = 1;
}

static struct rec_user user_of(const struct mt_hit *hit, const struct rec_stack *stack)
{
	return (struct rec_user){
		.bx = hit->bx,
		.bp = hit->bp,
		.sp = hit->sp,
		.ip = hit->ip,
		.r12 = hit->r12,
		.r13 = hit->r13,
		.r14 = hit->r14,
		.r15 = hit->r15,
		.stack = stack ? stack->data : NULL,
		.size = stack ? stack->size : 0,
	};
}

/* How many, which could be read, and which are signed. */
static uint64_t args_word(const struct mt_hit *hit)
{
	return hit->n_args | (uint64_t)hit->args_read << 32 | (uint64_t)hit->args_signed << 48;
}

static uint32_t count_args(const struct mt_hit *hit)
{
	return hit->n_args < MT_ARGS_MAX ? hit->n_args : MT_ARGS_MAX;
}

static uint64_t count_branches(const struct mt_hit *hit)
{
	return hit->n_branches < MT_BRANCHES_MAX ? hit->n_branches : MT_BRANCHES_MAX;
}

/* With the branches behind them. */
static size_t args_size(const struct mt_hit *hit)
{
	size_t branches = count_branches(hit) ? 8 + 24 * count_branches(hit) : 0;

	return hit->n_args || branches ? 8 + 8 * count_args(hit) + branches : 0;
}

/* Behind all that earlier versions read. */
static void put_args(struct perf_writer *w, const struct mt_hit *hit)
{
	if (!args_size(hit))
		return;
	put_u64(w, args_word(hit));
	put(w, hit->args, 8 * count_args(hit));
	if (!count_branches(hit))
		return;
	put_u64(w, count_branches(hit));
	put(w, hit->branches, 24 * count_branches(hit));
}

/*
 * perf shows the call chain and then what it has unwound: where it can unwind, the chain by frame
 * pointer goes with the raw data.
 */
void perf_writer__put_hit(struct perf_writer *w, const struct mt_hit *hit)
{
	const struct rec_stack *stack = recording__find_stack(w->rec, hit);
	struct rec_user user = user_of(hit, stack);
	uint32_t depth = hit->stack_depth < MT_STACK_DEPTH ? hit->stack_depth : MT_STACK_DEPTH;
	uint32_t chain = stack ? 0 : depth;
	size_t raw = offsetof(struct mt_hit, stack) + 8 * (depth - chain);
	size_t args = args_size(hit), pad = padding(4 + raw + args, 8);

	put_header(w, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
		   40 + 8 + 8 * (1 + chain) + 4 + raw + args + pad +
			   (w->rec->stacks.n ? perf_writer__user_size(&user) : 0));
	put_u64(w, perf_event_ids[EVENT_HIT]);
	/* A return's own ip is in the stack. */
	put_u64(w, hit->probe_ip ? hit->probe_ip : hit->ip);
	put_u32(w, hit->tgid);
	put_u32(w, hit->tid);
	put_u64(w, hit->time_ns);
	put_u32(w, hit->cpu);
	put_u32(w, 0);
	put_u64(w, 1 + chain);
	put_u64(w, (uint64_t)PERF_CONTEXT_USER);
	put(w, hit->stack, 8 * chain);
	put_u32(w, (uint32_t)(raw + args + pad));
	put(w, hit, raw);
	put_args(w, hit);
	put_zeroes(w, pad);
	if (w->rec->stacks.n)
		perf_writer__put_user(w, &user);
}
