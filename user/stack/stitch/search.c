// SPDX-License-Identifier: MIT
/* Which of the runs a segment goes on with. */
#include "stack/stitch/search.h"

/* What runs on those before: but for its lowest, which may be one of these. */
static size_t count_above(const struct stitched *end)
{
	return end->stack.n ? end->stack.n - 1 : 0;
}

/*
 * The run that most speaks for, counted from 1; 0: there is none, or it is not sure enough. What
 * has begun since has ended where it is not the last one.
 */
static size_t find_best(const struct stitcher *stitcher, const struct beginning *begin,
			struct fit *best)
{
	size_t found = 0, n_ended = 0;

	*best = (struct fit){0};
	for (size_t i = stitcher->n_ends; begin->frames.n && i-- > 0;) {
		const struct stitched *end = &stitcher->ends[i];
		enum seam seam = stitched__seam(end, begin->seam);
		struct fit fit;
		bool fits = held_stack__fits(stitched__stack(end), begin->frames, seam, &fit);

		fit.n_changed += n_ended;
		n_ended += count_above(end);
		if (!fits && (seam != SEAM_GAP || !fit.n_agreed))
			continue;
		if (best->n_agreed && fit__weight(&fit) <= fit__weight(best))
			continue;
		*best = fit;
		found = fits ? i + 1 : 0;
	}
	return found;
}

/*
 * The best one's frames go up to the last one's: that is what has run on these. If some of them are
 * above its lowest, they would have ended, and have begun again just alike: more of it must agree.
 */
static bool lies_on(const struct fit *last, const struct fit *best)
{
	size_t top = best->first + best->n_agreed;

	if (last->offset > 0 || last->first < best->first)
		return false;
	if (last->is_certain)
		return last->first + last->n_agreed >= top;
	return last->first == top || last->first + 1 == top;
}

/* One that has begun since, if what the segment shows below it is that best one. Else that. */
static size_t find_later(const struct stitcher *stitcher, const struct beginning *begin,
			 size_t found, struct fit *best)
{
	for (size_t i = stitcher->n_ends; found && i-- > found;) {
		const struct stitched *end = &stitcher->ends[i];
		struct fit fit;

		if (!held_stack__fits(stitched__stack(end), begin->frames,
				      stitched__seam(end, begin->seam), &fit) ||
		    !lies_on(&fit, best))
			continue;
		*best = fit;
		return i + 1;
	}
	return found;
}

/* That of the frame that was leapt to, unless what is below it shows that it was another one. */
static size_t find_taken(const struct stitcher *stitcher, const struct beginning *begin,
			 struct fit *fit)
{
	struct waiting taker = begin->taker;

	if (taker.end >= stitcher->n_ends || begin->n_roots >= begin->frames.n)
		return 0;
	*fit = held_stack__lay(stitched__stack(&stitcher->ends[taker.end]), begin->frames,
			       (int64_t)taker.at - (int64_t)begin->n_roots);
	fit->is_certain = true;
	return fit->first + fit->n_agreed > begin->n_roots ? taker.end + 1 : 0;
}

size_t stitcher__search(const struct stitcher *stitcher, const struct beginning *begin,
			struct fit *fit)
{
	size_t found = find_taken(stitcher, begin, fit);

	if (found)
		return found;
	/* Which of those that have thrown it is shows where the exception lands. */
	if (begin->is_unwinding && begin->seam == SEAM_GAP)
		return 0;
	return find_later(stitcher, begin, find_best(stitcher, begin, fit), fit);
}

struct held_stack stitcher__below(const struct stitcher *stitcher, const struct beginning *begin)
{
	struct fit fit;
	size_t found = stitcher__search(stitcher, begin, &fit);

	if (!found || fit.offset <= 0)
		return (struct held_stack){0};
	return (struct held_stack){stitcher->ends[found - 1].stack.v, (size_t)fit.offset};
}

struct waiting stitcher__reach(const struct stitcher *stitcher, size_t distance)
{
	const struct joint *last = &stitcher->joints.v[stitcher->joints.n - 1];

	for (size_t i = 0; i < stitcher->n_ends && distance; i++) {
		const struct stitched *end = &stitcher->ends[i];
		int64_t at = last->base - end->base - (int64_t)distance;

		if (end->run == last->run && at >= 0 && at < (int64_t)end->stack.n)
			return (struct waiting){.end = (uint32_t)i, .at = (uint32_t)at};
	}
	return WAITING_NONE;
}

struct waiting stitcher__find(const struct stitcher *stitcher,
			      bool (*takes)(void *ctx, const struct function *function,
					    uint64_t return_ip),
			      void *ctx)
{
	for (size_t i = stitcher->n_ends; i-- > 0;) {
		const struct stitched *end = &stitcher->ends[i];
		uint64_t return_ip = end->left_ip;

		for (size_t k = end->stack.n; k-- > 0; return_ip = end->stack.v[k].return_ip)
			if (takes(ctx, end->stack.v[k].function, return_ip))
				return (struct waiting){.end = (uint32_t)i, .at = (uint32_t)k};
	}
	return WAITING_NONE;
}
