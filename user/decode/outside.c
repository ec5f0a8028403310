// SPDX-License-Identifier: MIT
#include "decode/outside.h"

#include <errno.h>

int outside_filter__init(struct outside_filter *f, const struct recording *rec, pid_t pid)
{
	*f = (struct outside_filter){0};
	for (size_t i = 0; i < rec->maps.n; i++) {
		if (rec->maps.v[i].pid != pid)
			continue;
		for (size_t k = 0; k < rec->stops.n; k++) {
			uint64_t ip, *out;

			if (!rec_map__has(&rec->maps.v[i], &rec->stops.v[k], &ip))
				continue;
			out = VEC_PUSH(&f->stops);
			if (!out)
				return -ENOMEM;
			*out = ip;
		}
	}
	return 0;
}

void outside_filter__fini(struct outside_filter *f)
{
	VEC_FINI(&f->stops);
}

static bool is_stop(const struct outside_filter *f, uint64_t ip)
{
	for (size_t i = 0; i < f->stops.n; i++)
		if (f->stops.v[i] == ip)
			return true;
	return false;
}

static int go_on(struct outside_filter *f, const struct branch *begin)
{
	struct branch gap = {.time_ns = f->left_ns, .kind = BRANCH_GAP, .reason = GAP_OUTSIDE};

	f->totals->gaps[GAP_OUTSIDE]++;
	f->totals->gap_ns[GAP_OUTSIDE] += begin->time_ns - f->left_ns;
	return f->fn(f->ctx, &gap);
}

/* The probe's int3 ends it: an interrupt in front of the probed instruction. */
int outside_filter__branch(void *filter, const struct branch *b)
{
	struct outside_filter *f = filter;
	int err = f->is_outside && b->kind == BRANCH_BEGIN ? go_on(f, b) : 0;

	f->is_outside = b->kind == BRANCH_END_ASYNC && is_stop(f, b->from);
	f->left_ns = b->time_ns;
	return err ? err : f->fn(f->ctx, b);
}
