// SPDX-License-Identifier: MIT
#include "capture/soft/truth.h"

#include <inttypes.h>

void truth__init(struct truth *truth, FILE *log, pid_t tid)
{
	*truth = (struct truth){.log = log, .tid = tid};
}

void truth__fini(struct truth *truth)
{
	VEC_FINI(&truth->now.frames);
	for (size_t i = 0; i < truth->stacks.n; i++)
		if (i != truth->stack)
			VEC_FINI(&truth->stacks.v[i].depth.frames);
	VEC_FINI(&truth->stacks);
}

static bool is_on(const struct truth *truth, size_t i, uint64_t sp)
{
	const struct truth_stack *stack = &truth->stacks.v[i];

	return sp + truth->distance >= stack->low && sp <= stack->high + truth->distance;
}

static bool add_stack(struct truth *truth, uint64_t sp)
{
	struct truth_stack *stack = VEC_PUSH(&truth->stacks);

	if (stack)
		*stack = (struct truth_stack){.low = sp, .high = sp};
	return stack;
}

static void change_to(struct truth *truth, size_t i)
{
	if (i == truth->stack)
		return;
	truth->stacks.v[truth->stack].depth = truth->now;
	truth->stack = i;
	truth->now = truth->stacks.v[i].depth;
}

/*
 * Changes to the stack of this stack pointer and returns it. NULL: there is only one stack, or no
 * memory.
 */
static struct truth_stack *select_stack(struct truth *truth, uint64_t sp)
{
	struct truth_stack *stack;
	size_t i = truth->stack;

	if (!truth->distance)
		return NULL;
	if (i >= truth->stacks.n || !is_on(truth, i, sp))
		for (i = 0; i < truth->stacks.n && !is_on(truth, i, sp); i++)
			;
	if (i == truth->stacks.n && !add_stack(truth, sp))
		return NULL;
	change_to(truth, i);
	stack = &truth->stacks.v[i];
	stack->low = sp < stack->low ? sp : stack->low;
	stack->high = sp > stack->high ? sp : stack->high;
	return stack;
}

uint64_t truth__use_stack(struct truth *truth, uint64_t key, uint64_t top)
{
	size_t i = 0, n = truth->stacks.n;

	truth->by_key = true;
	while (i < n && truth->stacks.v[i].key != key)
		i++;
	/* The first stack was in use before its key was known. */
	if (i == n && n == 1 && !truth->stacks.v[0].key)
		i = 0;
	else if (i == n && !add_stack(truth, 0))
		return 0;
	if (!truth->stacks.v[i].key) {
		truth->stacks.v[i].key = key;
		truth->stacks.v[i].top = top;
	}
	change_to(truth, i);
	return truth->stacks.v[i].top - top;
}

static struct truth_frame *top(const struct truth *truth)
{
	return truth->now.frames.n ? &truth->now.frames.v[truth->now.frames.n - 1] : NULL;
}

static void drop(struct truth *truth)
{
	if (top(truth)->entry)
		truth->now.waiting--;
	truth->now.frames.n--;
}

/* Drops the frames whose slot is below sp. True if there were any. */
static bool drop_dead(struct truth *truth, uint64_t sp)
{
	size_t n = truth->now.frames.n;

	while (truth->now.frames.n && top(truth)->slot < sp)
		drop(truth);
	return truth->now.frames.n < n;
}

static struct truth_frame *push(struct truth *truth, uint64_t slot)
{
	struct truth_frame *frame = VEC_PUSH(&truth->now.frames);

	if (frame)
		*frame = (struct truth_frame){.slot = slot};
	return frame;
}

/* Writes the line with one call, since several threads write to one log. */
static void write_line(const struct truth *truth, uint64_t time_ns, const char *kind, uint64_t to)
{
	char stack[24] = "";

	if (truth->distance || truth->by_key)
		snprintf(stack, sizeof(stack), " %zu", truth->stack);
	fprintf(truth->log, "%d %" PRIu64 " %s %#" PRIx64 " %ld%s\n", truth->tid, time_ns, kind, to,
		truth->now.base + (long)truth->now.frames.n - truth->now.waiting, stack);
}

void truth__pushed(struct truth *truth, uint64_t sp)
{
	if (truth->log)
		push(truth, sp);
}

void truth__call(struct truth *truth, uint64_t time_ns, uint64_t to, uint64_t sp)
{
	if (!truth->log)
		return;
	select_stack(truth, sp);
	/* A frame cannot be alive at the address where the return address is now. */
	drop_dead(truth, sp + 1);
	push(truth, sp);
	write_line(truth, time_ns, "call", to);
}

void truth__return(struct truth *truth, uint64_t time_ns, uint64_t to, uint64_t slot)
{
	struct truth_stack *stack;
	bool left_frames;

	if (!truth->log)
		return;
	stack = select_stack(truth, slot);
	/* Frames below were left without a return. */
	left_frames = drop_dead(truth, slot);
	/* A return at the stack's first slot begins its coroutine, or another one on its memory. */
	if (stack && !stack->entry && stack->low == stack->high && !truth->now.frames.n)
		stack->entry = slot;
	if (stack && truth->stack && slot == stack->entry)
		truth__reset(truth);
	/*
	 * Without a frame, the call was before the log: the base falls. But if a RET left all
	 * frames of a coroutine, it raised an exception (OCaml): no frame had called these.
	 */
	if (!truth->now.frames.n)
		truth->now.base -= !truth->stack || !left_frames;
	else if (top(truth)->slot == slot)
		drop(truth);
	/* else it jumped by "push; ret", and left no frame */
	write_line(truth, time_ns, "return", to);
}

void truth__at(struct truth *truth, uint64_t sp)
{
	if (!truth->log)
		return;
	select_stack(truth, sp);
	drop_dead(truth, sp);
}

void truth__jump(struct truth *truth, uint64_t time_ns, const char *kind, uint64_t to)
{
	if (truth->log)
		write_line(truth, time_ns, kind, to);
}

void truth__signal(struct truth *truth, uint64_t entry, uint64_t sp)
{
	struct truth_frame *frame;

	if (!truth->log)
		return;
	select_stack(truth, sp);
	drop_dead(truth, sp);
	/*
	 * The memory above the return address stays in use until rt_sigreturn, not until the RET.
	 */
	frame = push(truth, sp + 8);
	if (!frame)
		return;
	frame->is_signal = true;
	frame->entry = entry;
	truth->now.waiting++;
}

void truth__sigreturn(struct truth *truth)
{
	while (truth->now.frames.n) {
		bool is_signal = top(truth)->is_signal;

		drop(truth);
		if (is_signal)
			return;
	}
	/* The handler ran before the log began. */
	truth->now.base--;
}

void truth__ran(struct truth *truth, uint64_t ip)
{
	struct truth_frame *frame = top(truth);

	if (!frame || !frame->entry || frame->entry != ip)
		return;
	frame->entry = 0;
	truth->now.waiting--;
}

void truth__reset(struct truth *truth)
{
	truth->now.frames.n = 0;
	truth->now.waiting = 0;
	truth->now.base = 0;
}
