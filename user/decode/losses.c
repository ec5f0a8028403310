// SPDX-License-Identifier: MIT
#include "decode/losses.h"

#include <errno.h>

/* Finds the addresses of -stop's probes in the process. 0 or -ENOMEM. */
static int find_stops(struct losses *l, pid_t pid)
{
	const struct recording *rec = l->rec;

	for (size_t i = 0; i < rec->maps.n; i++) {
		if (rec->maps.v[i].pid != pid)
			continue;
		for (size_t k = 0; k < rec->stops.n; k++) {
			uint64_t ip;

			if (rec_map__has(&rec->maps.v[i], &rec->stops.v[k], &ip) &&
			    VEC_ADD(&l->stops, ip))
				return -ENOMEM;
		}
	}
	return 0;
}

int losses__init(struct losses *l, const struct recording *rec, pid_t pid, pid_t tid,
		 struct decode_totals *totals)
{
	*l = (struct losses){.rec = rec, .totals = totals, .tid = tid};
	return find_stops(l, pid);
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
	for (size_t i = 0; i < l->rec->losses.n; i++)
		if (l->rec->losses.v[i].tid == l->tid)
			return true;
	return l->stops.n;
}

/* All losses since the trace stopped are one gap. */
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

static int add_gap(struct losses *l, enum gap_reason reason, uint64_t from_ns, uint64_t to_ns)
{
	l->totals->gap_ns[reason] += to_ns - from_ns;
	return VEC_ADD(
		&l->out,
		(struct branch){.time_ns = from_ns, .kind = BRANCH_GAP, .reason = (uint8_t)reason});
}

static int go_on(struct losses *l, const struct branch *begin)
{
	uint64_t lost_ns;
	int err = 0;

	if (l->is_outside) {
		l->totals->gaps[GAP_OUTSIDE]++;
		err = add_gap(l, GAP_OUTSIDE, l->left_ns, begin->time_ns);
	}
	if (!err && skip_losses(l, begin->time_ns, &lost_ns))
		err = add_gap(l, GAP_LOST, lost_ns, begin->time_ns);
	return err;
}

static bool is_stop(const struct losses *l, uint64_t ip)
{
	for (size_t i = 0; i < l->stops.n; i++)
		if (l->stops.v[i] == ip)
			return true;
	return false;
}

int losses__mark(struct losses *l, const struct branch *v, size_t n, struct branch_batch *out)
{
	int err = 0;

	l->out.n = 0;
	for (size_t i = 0; i < n && !err; i++) {
		const struct branch *b = &v[i];

		if (b->kind == BRANCH_BEGIN)
			err = go_on(l, b);
		if (!branch__is_entry(b)) {
			/* The probe's int3 ends it: an interrupt before the probed instruction. */
			l->is_outside = b->kind == BRANCH_END_ASYNC && is_stop(l, b->from);
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
