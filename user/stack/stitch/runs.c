// SPDX-License-Identifier: MIT
#include "stack/stitch/runs.h"

#include <errno.h>

#include "stack/stitch/search.h"

static int push_all(held_vec *to, struct held_stack stack)
{
	for (size_t i = 0; i < stack.n; i++) {
		struct held *held = VEC_PUSH(to);

		if (!held)
			return -ENOMEM;
		*held = stack.v[i];
	}
	return 0;
}

uint32_t runs__begin(struct stitcher *stitcher, struct held_stack begin)
{
	struct run *run = VEC_PUSH(&stitcher->runs);
	uint32_t *loose;

	/* It has its vectors before anything else can fail: they are freed with it. */
	if (!run)
		return RUN_NONE;
	*run = (struct run){.outer = RUN_NONE, .joint = (uint32_t)(stitcher->joints.n - 1)};
	loose = VEC_PUSH(&stitcher->loose);
	if (!loose)
		return RUN_NONE;
	*loose = (uint32_t)(stitcher->runs.n - 1);
	return push_all(&run->begun, begin) ? RUN_NONE : *loose;
}

void held__inherit_return(struct held *held, const struct held *from)
{
	if (held->return_ip)
		return;
	held->return_ip = from->return_ip;
	held->slack = from->slack;
}

/* As it was first seen; NULL: nothing has run in it. */
static struct held *run__lowest(const struct run *run)
{
	if (run->below.n)
		return &run->below.v[run->below.n - 1];
	return run->begun.n ? run->begun.v : NULL;
}

int runs__learn_callers(struct run *run, struct held_stack callers, const struct held *first)
{
	struct held *lowest = run__lowest(run);

	if (!callers.n)
		return 0;
	if (lowest && lowest->function == first->function)
		held__inherit_return(lowest, first);
	for (size_t k = callers.n; k-- > 0;) {
		struct held *held = VEC_PUSH(&run->below);

		if (!held)
			return -ENOMEM;
		*held = callers.v[k];
	}
	return 0;
}

/* All that is known of the stack that it began with. */
static int look(struct stitcher *stitcher, const struct run *run)
{
	stitcher->view.n = 0;
	for (size_t i = run->below.n; i-- > 0;)
		if (push_all(&stitcher->view, (struct held_stack){&run->below.v[i], 1}))
			return -ENOMEM;
	return push_all(&stitcher->view, (struct held_stack){run->begun.v, run->begun.n});
}

static struct held_stack view(const struct stitcher *stitcher)
{
	return (struct held_stack){stitcher->view.v, stitcher->view.n};
}

bool runs__fits(struct stitcher *stitcher, const struct stitched *end, const struct run *run,
		enum seam seam, struct fit *on)
{
	if (look(stitcher, run))
		return false;
	return held_stack__fits(stitched__stack(end), view(stitcher), stitched__seam(end, seam),
				on) &&
	       on->first <= run->below.n;
}

int runs__hand_callers(struct stitcher *stitcher, struct run *from, struct run *to, size_t n)
{
	from->below.n -= n;
	return runs__learn_callers(to, (struct held_stack){stitcher->view.v, n},
				   &stitcher->view.v[n]);
}

void runs__place(struct stitcher *stitcher, struct run *run, uint32_t outer, int64_t depth,
		 size_t n_joined)
{
	struct joint *first = &stitcher->joints.v[run->joint];
	size_t n_below = run->below.n;

	run->outer = outer;
	if (n_joined <= n_below) {
		run->base = depth + (int64_t)n_joined;
		run->below.n = n_below - n_joined;
		return;
	}
	run->base = depth + (int64_t)n_below;
	run->below.n = 0;
	first->joins = true;
	first->n_joined = (uint32_t)(n_joined - n_below);
}

static bool fits_since(struct stitcher *stitcher, struct held_stack stack, const struct run *run,
		       enum seam seam, struct fit *on)
{
	if (look(stitcher, run))
		return false;
	if (seam == SEAM_LEAP)
		return held_stack__fits(stack, view(stitcher), seam, on) && on->offset >= 0;
	return held_stack__fits_lowest(stack, view(stitcher), seam, on);
}

/*
 * It was called in the gap, and left without a return: so is what lay between, which is known if it
 * has been left like that before.
 */
static int add_between(const struct stitcher *stitcher, struct run *run, const struct held *on)
{
	struct held between[WAY_MAX];
	const struct held *lowest = run__lowest(run);
	size_t n = lowest && on->function && lowest->function
			   ? ways__between(&stitcher->ways, on->function, lowest->function, between)
			   : 0;

	return runs__learn_callers(run, (struct held_stack){between, n}, lowest);
}

int runs__place_since(struct stitcher *stitcher, const struct joint *joint, int64_t base,
		      struct held_stack stack, size_t left, enum seam seam)
{
	size_t n = stitcher->loose.n;
	/* The last that ran all the time, and those above it, which may have. */
	size_t last = left ? left - 1 : 0;
	struct held_stack above = {0};
	int64_t depth = base + (int64_t)left - 1;

	if (left)
		above = (struct held_stack){stack.v + last, stack.n - last};
	while (n && stitcher->loose.v[n - 1] > joint->run)
		n--;
	for (size_t i = n; i < stitcher->loose.n; i++) {
		struct run *run = &stitcher->runs.v[stitcher->loose.v[i]];
		struct fit on;

		if (run->outer != RUN_NONE)
			continue;
		if (above.n && fits_since(stitcher, above, run, seam, &on)) {
			above.n = (size_t)on.offset + on.n_agreed;
		} else {
			on = (struct fit){.offset = 1};
			above.n = above.n ? 1 : 0;
			if (left && add_between(stitcher, run, &stack.v[last]))
				return -ENOMEM;
		}
		runs__place(stitcher, run, joint->run, depth + on.offset, on.n_agreed);
	}
	stitcher->loose.n = n;
	return 0;
}

/* What the frames are that were left between `from` and the run, which are so many; or nobody. */
static int add_passed(const struct stitcher *stitcher, struct run *run, const struct held *from,
		      bool has_landed, size_t n, bool *has_found)
{
	const struct held *lowest = run__lowest(run);
	struct held between[BETWEEN_MAX];

	*has_found = lowest && ways__pass(&stitcher->ways, from->function, has_landed,
					  lowest->function, between, n);
	return *has_found ? runs__learn_callers(run, (struct held_stack){between, n}, lowest) : 0;
}

/* Nobody knows what they are, but that they were. */
static int add_unknown(struct run *run, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct held *held = VEC_PUSH(&run->below);

		if (!held)
			return -ENOMEM;
		*held = (struct held){0};
	}
	return 0;
}

int runs__hide(const struct stitcher *stitcher, struct run *run, const struct held *caller,
	       size_t n)
{
	bool has_found = false;
	int err = add_passed(stitcher, run, caller, true, n, &has_found);

	return err || has_found ? err : add_unknown(run, n);
}

/* Between the taker, or frames above it which went on as well, and the run there were n frames. */
static int add_hidden(const struct stitcher *stitcher, struct run *run, struct held_stack stack,
		      size_t taker, size_t n)
{
	size_t above = stack.n - 1 - taker < n ? stack.n - 1 - taker : n;
	bool has_found = false;
	int err = 0;

	for (size_t i = above + 1; i-- > 0 && !err && !has_found;)
		err = add_passed(stitcher, run, &stack.v[taker + i], !i, n - i, &has_found);
	return err || has_found ? err : add_unknown(run, n);
}

int runs__place_at_distance(struct stitcher *stitcher, const struct joint *joint, int64_t depth,
			    struct held_stack stack, size_t taker, size_t distance)
{
	const struct joint *left = &stitcher->joints.v[stitcher->joints.n - 2];
	struct run *run = &stitcher->runs.v[left->run];
	int64_t n = (int64_t)distance - left->base - (int64_t)run->below.n - 1;
	struct fit fit = {0};
	int err;

	if (left->run == joint->run || run->outer != RUN_NONE || n < 0)
		return 0;
	if (look(stitcher, run))
		return -ENOMEM;
	if (taker + (size_t)n + 1 < stack.n && stitcher->view.n)
		fit = held_stack__lay(stack, view(stitcher), (int64_t)taker + n + 1);
	err = fit.n_agreed ? 0 : add_hidden(stitcher, run, stack, taker, (size_t)n);
	if (err)
		return err;
	n = (int64_t)distance - left->base - (int64_t)run->below.n - 1;
	runs__place(stitcher, run, joint->run, depth + n + 1, fit.n_agreed);
	return 0;
}
