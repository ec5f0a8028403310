// SPDX-License-Identifier: MIT
#include "decode/losses.h"

/* The first loss of the thread that is not done yet; NULL: none up to time_ns. */
static const struct rec_loss *next_loss(struct loss_filter *f, uint64_t time_ns)
{
	for (; f->next < f->rec->losses.n; f->next++) {
		const struct rec_loss *loss = &f->rec->losses.v[f->next];

		if (loss->time_ns > time_ns)
			return NULL;
		if (loss->aux_flags && loss->tid == f->tid)
			return loss;
	}
	return NULL;
}

/* However many there were since the trace stopped, they are one gap. */
static bool skip_losses(struct loss_filter *f, uint64_t time_ns, uint64_t *first_ns)
{
	const struct rec_loss *loss = next_loss(f, time_ns);

	if (!loss)
		return false;
	*first_ns = loss->time_ns;
	do {
		f->next++;
	} while (next_loss(f, time_ns));
	f->totals->gaps[GAP_LOST]++;
	return true;
}

int loss_filter__branch(void *filter, const struct branch *branch)
{
	struct loss_filter *f = filter;
	struct branch gap = {.kind = BRANCH_GAP, .reason = GAP_LOST};
	int err = 0;

	if (branch->kind == BRANCH_BEGIN && skip_losses(f, branch->time_ns, &gap.time_ns)) {
		f->totals->gap_ns[GAP_LOST] += branch->time_ns - gap.time_ns;
		err = f->fn(f->ctx, &gap);
	}
	return err ? err : f->fn(f->ctx, branch);
}

void loss_filter__finish(struct loss_filter *f)
{
	uint64_t first_ns;

	skip_losses(f, UINT64_MAX, &first_ns);
}
