// SPDX-License-Identifier: MIT
#include "capture/soft/truth.h"

#include <inttypes.h>

void truth__init(struct truth *truth, FILE *log, pid_t tid)
{
	*truth = (struct truth){.log = log, .tid = tid};
}

void truth__fini(struct truth *truth)
{
	VEC_FINI(&truth->slots);
}

static void drop_dead(struct truth *truth, uint64_t sp)
{
	while (truth->slots.n && truth->slots.v[truth->slots.n - 1] < sp)
		truth->slots.n--;
}

static void push(struct truth *truth, uint64_t slot)
{
	uint64_t *top = VEC_PUSH(&truth->slots);

	if (top)
		*top = slot;
}

static void write_line(const struct truth *truth, uint64_t time_ns, const char *kind, uint64_t to)
{
	fprintf(truth->log, "%d %" PRIu64 " %s %#" PRIx64 " %ld\n", truth->tid, time_ns, kind, to,
		truth->base + (long)truth->slots.n);
}

void truth__call(struct truth *truth, uint64_t time_ns, uint64_t to, uint64_t sp)
{
	if (!truth->log)
		return;
	drop_dead(truth, sp);
	push(truth, sp);
	write_line(truth, time_ns, "call", to);
}

void truth__return(struct truth *truth, uint64_t time_ns, uint64_t to, uint64_t sp)
{
	if (!truth->log)
		return;
	if (truth->slots.n)
		drop_dead(truth, sp);
	else
		truth->base--;
	write_line(truth, time_ns, "return", to);
}

void truth__signal(struct truth *truth, uint64_t sp)
{
	if (!truth->log)
		return;
	drop_dead(truth, sp);
	/* The signal frame above the return address lives until rt_sigreturn, not until the RET. */
	push(truth, sp + 8);
}

void truth__reset(struct truth *truth)
{
	truth->slots.n = 0;
	truth->base = 0;
}
