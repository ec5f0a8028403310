// SPDX-License-Identifier: MIT
/* What the decoder hands on, from blocks and events. */
#include "oracle/oracle_internal.h"

#include "kernel/kernel.h"

int decoder__hand_on(struct decoder *d, struct branch *branch)
{
	branch->time_ns = d->time_ns;
	branch->n_insns = d->n_insns;
	d->n_insns = 0;
	d->started = true;
	d->totals->branches++;
	if (!d->totals->first_ns || d->time_ns < d->totals->first_ns)
		d->totals->first_ns = d->time_ns;
	if (d->time_ns > d->totals->last_ns)
		d->totals->last_ns = d->time_ns;
	return d->take(d->ctx, branch, 1);
}

int decoder__begin(struct decoder *d, uint64_t ip)
{
	struct branch branch = {.kind = BRANCH_BEGIN, .to = ip};

	d->tracing = true;
	d->in_gap = false;
	d->async_ip = 0;
	return decoder__hand_on(d, &branch);
}

struct insn decoder__fetch(struct decoder *d, uint64_t ip)
{
	uint8_t code[INSN_MAX_LEN];
	size_t n = code_map__read(d->map, ip, code, sizeof(code));
	struct insn insn;

	if (!n || insn__decode(code, n, ip, &insn))
		return (struct insn){0};
	return insn;
}

static uint8_t kind_of(const struct insn *insn, uint64_t ip)
{
	switch ((enum insn_class)insn->cls) {
	case INSN_SYSCALL:
	case INSN_INT3:
		return BRANCH_ENTER;
	case INSN_FAR:
		/* In user code it is a jump to other user code. */
		return address__is_kernel(ip) ? BRANCH_LEAVE : BRANCH_JUMP;
	case INSN_CALL:
	case INSN_CALL_INDIRECT:
		return BRANCH_CALL;
	case INSN_RET:
		return BRANCH_RETURN;
	case INSN_COND:
		return BRANCH_COND;
	default:
		return BRANCH_JUMP;
	}
}

int decoder__resolve(struct decoder *d, uint64_t to)
{
	struct branch branch = {.from = d->last_ip,
				.to = to,
				.kind = kind_of(&d->last_insn, d->last_ip),
				.len = d->last_insn.len};

	if (!d->pending)
		return 0;
	d->pending = false;
	if (branch.kind == BRANCH_COND && to == d->last_ip + branch.len)
		return 0; /* not taken */
	return decoder__hand_on(d, &branch);
}

int decoder__end_sync(struct decoder *d)
{
	struct branch branch = {.from = d->last_ip, .len = d->last_insn.len};
	bool far = d->last_insn.cls == INSN_SYSCALL || d->last_insn.cls == INSN_FAR;

	if (!d->tracing)
		return 0;
	branch.kind = d->pending && far ? BRANCH_END_SYSCALL : BRANCH_END;
	d->pending = false;
	d->tracing = false;
	d->async_ip = 0;
	return decoder__hand_on(d, &branch);
}

int decoder__leave_at(struct decoder *d, uint64_t ip)
{
	return d->tracing ? decoder__resolve(d, ip) : decoder__begin(d, ip);
}

int decoder__end_async(struct decoder *d, uint64_t at)
{
	struct branch branch = {.kind = BRANCH_END_ASYNC, .from = at};

	d->tracing = false;
	d->async_ip = at;
	return decoder__hand_on(d, &branch);
}

int decoder__enter(struct decoder *d, uint64_t from, uint64_t to)
{
	/* In user code it is an aborted transaction's. */
	struct branch branch = {.kind = address__is_kernel(to) ? BRANCH_ENTER : BRANCH_JUMP,
				.from = from,
				.to = to};

	return decoder__hand_on(d, &branch);
}

int decoder__go_on(struct decoder *d, uint64_t ip)
{
	uint64_t from = d->async_ip;
	struct insn insn = from && from != ip ? decoder__fetch(d, from) : (struct insn){0};
	int err;

	if (!insn.target || insn.target != ip)
		return decoder__begin(d, ip);
	err = decoder__begin(d, from);
	d->last_ip = from;
	d->last_insn = insn;
	d->pending = true;
	return err ? err : decoder__resolve(d, ip);
}

int decoder__gap(struct decoder *d, enum gap_reason reason, uint64_t ip)
{
	struct branch branch = {.kind = BRANCH_GAP, .from = ip, .reason = (uint8_t)reason};

	d->pending = false;
	d->tracing = false;
	d->async_ip = 0;
	if (d->in_gap)
		return 0;
	d->in_gap = true;
	d->totals->gaps[reason]++;
	/* At the start there is nothing that it breaks. */
	return d->started ? decoder__hand_on(d, &branch) : 0;
}
