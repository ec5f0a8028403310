// SPDX-License-Identifier: MIT
#include "decode/losses.h"

#include <errno.h>

int losses__init(struct losses *l, const struct recording *rec, pid_t pid, pid_t tid,
		 struct decode_totals *totals)
{
	*l = (struct losses){.rec = rec, .totals = totals, .tid = tid};
	VEC_EACH(&rec->maps, map) {
		if (map->pid != pid)
			continue;
		VEC_EACH(&rec->stops, stop) {
			uint64_t ip;

			if (rec_map__has(map, stop, &ip) && VEC_ADD(&l->stops, ip))
				return -ENOMEM;
		}
	}
	return 0;
}

void losses__fini(struct losses *l)
{
	VEC_FINI(&l->stops);
	VEC_FINI(&l->out);
}

/* The first loss of the thread that is not done yet; NULL: none up to time_ns. */
static const struct rec_loss *next_loss(struct losses *l, uint64_t time_ns)
{
	for (; l->next < l->rec->losses.n; l->next++) {
		const struct rec_loss *loss = &l->rec->losses.v[l->next];

		if (loss->time_ns > time_ns)
			return NULL;
		if (loss->aux_flags && loss->tid == l->tid)
			return loss;
	}
	return NULL;
}

bool losses__are_any(const struct losses *l)
{
	return l->stops.n || VEC_FIND(&l->rec->losses, loss, loss->tid == l->tid);
}

/*
 * Skips the losses up to time_ns, and counts them as one gap. False: no loss. *first_ns:
 * the time of the first one.
 */
static bool skip_losses(struct losses *l, uint64_t time_ns, uint64_t *first_ns)
{
	const struct rec_loss *loss = next_loss(l, time_ns);

	if (!loss)
		return false;
	*first_ns = loss->time_ns;
	do {
		l->next++;
	} while (next_loss(l, time_ns));
	l->totals->gaps[GAP_LOST]++;
	return true;
}

/* Adds the gaps before a BRANCH_BEGIN at that time. */
static int add_gaps(struct losses *l, uint64_t time_ns)
{
	struct branch gap = {.time_ns = l->left_ns, .kind = BRANCH_GAP, .reason = GAP_OUTSIDE};
	uint64_t lost_ns;

	if (l->is_outside) {
		l->totals->gaps[GAP_OUTSIDE]++;
		l->totals->gap_ns[GAP_OUTSIDE] += time_ns - l->left_ns;
		if (VEC_ADD(&l->out, gap))
			return -ENOMEM;
	}
	if (!skip_losses(l, time_ns, &lost_ns))
		return 0;
	l->totals->gap_ns[GAP_LOST] += time_ns - lost_ns;
	gap.time_ns = lost_ns;
	gap.reason = GAP_LOST;
	return VEC_ADD(&l->out, gap);
}

int losses__mark(struct losses *l, const struct branch *v, size_t n, struct branch_batch *out)
{
	int err = 0;

	l->out.n = 0;
	for (const struct branch *b = v; b < v + n && !err; b++) {
		if (b->kind == BRANCH_BEGIN)
			err = add_gaps(l, b->time_ns);
		if (!branch__is_entry(b)) {
			/*
			 * The probe's int3 ends tracing, like an interrupt before the probed
			 * instruction.
			 */
			l->is_outside = false;
			VEC_EACH_WHILE(&l->stops, stop, b->kind == BRANCH_END_ASYNC)
				l->is_outside |= *stop == b->from;
			l->left_ns = b->time_ns;
		}
		if (!err)
			err = VEC_ADD(&l->out, *b);
	}
	*out = (struct branch_batch){l->out.v, l->out.n};
	return err;
}

void losses__finish(struct losses *l)
{
	uint64_t first_ns;

	skip_losses(l, UINT64_MAX, &first_ns);
}
