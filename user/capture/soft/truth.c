// SPDX-License-Identifier: MIT
#include "capture/soft/truth.h"

#include <inttypes.h>

void truth__init(struct truth *truth, FILE *log, pid_t tid)
{
	*truth = (struct truth){.log = log, .tid = tid};
}

void truth__fini(struct truth *truth)
{
	VEC_FINI(&truth->frames);
}

static struct truth_frame *top(const struct truth *truth)
{
	return truth->frames.n ? &truth->frames.v[truth->frames.n - 1] : NULL;
}

static void drop(struct truth *truth)
{
	if (top(truth)->entry)
		truth->waiting--;
	truth->frames.n--;
}

static void drop_dead(struct truth *truth, uint64_t sp)
{
	while (truth->frames.n && top(truth)->slot < sp)
		drop(truth);
}

static struct truth_frame *push(struct truth *truth, uint64_t slot)
{
	struct truth_frame *frame = VEC_PUSH(&truth->frames);

	if (frame)
		*frame = (struct truth_frame){.slot = slot};
	return frame;
}

static void write_line(const struct truth *truth, uint64_t time_ns, const char *kind, uint64_t to)
{
	fprintf(truth->log, "%d %" PRIu64 " %s %#" PRIx64 " %ld\n", truth->tid, time_ns, kind, to,
		truth->base + (long)truth->frames.n - truth->waiting);
}

void truth__call(struct truth *truth, uint64_t time_ns, uint64_t to, uint64_t sp)
{
	if (!truth->log)
		return;
	/* Where the return address lies now, none of a frame that lives can be. */
	drop_dead(truth, sp + 1);
	push(truth, sp);
	write_line(truth, time_ns, "call", to);
}

void truth__return(struct truth *truth, uint64_t time_ns, uint64_t to, uint64_t slot)
{
	if (!truth->log)
		return;
	/* Frames that were left without a return lie below. */
	drop_dead(truth, slot);
	if (!truth->frames.n)
		truth->base--;
	else if (top(truth)->slot == slot)
		drop(truth);
	/* else it jumped by "push; ret", and left no frame */
	write_line(truth, time_ns, "return", to);
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
	drop_dead(truth, sp);
	/* What lies above the return address lives until rt_sigreturn, not until the RET. */
	frame = push(truth, sp + 8);
	if (!frame)
		return;
	frame->is_signal = true;
	frame->entry = entry;
	truth->waiting++;
}

void truth__sigreturn(struct truth *truth)
{
	while (truth->frames.n) {
		bool is_signal = top(truth)->is_signal;

		drop(truth);
		if (is_signal)
			return;
	}
	/* The handler ran before the log began. */
	truth->base--;
}

void truth__ran(struct truth *truth, uint64_t ip)
{
	struct truth_frame *frame = top(truth);

	if (!frame || !frame->entry || frame->entry != ip)
		return;
	frame->entry = 0;
	truth->waiting--;
}

void truth__reset(struct truth *truth)
{
	truth->frames.n = 0;
	truth->waiting = 0;
	truth->base = 0;
}
