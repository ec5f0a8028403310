// SPDX-License-Identifier: MIT
/*
 * An exception comes to every frame with a landing pad in turn. Of one that was on its way in a gap
 * it is not known which level of a recursion it had come to: the innermost is taken. When it has
 * left the recursion, and there are levels over that it should have come to, it was so many further
 * below: those are the ones that it had left in the gap.
 */
#include "stack/stitch/sink.h"

/* All that is known is where it landed. */
static bool is_landing(const struct beginning *begin)
{
	return begin->seam == SEAM_LEAP && begin->frames.n == 1 && !begin->n_roots;
}

void stitcher__follow(struct stitcher *stitcher, const struct beginning *begin, size_t found)
{
	struct unwinding *unwinding = &stitcher->unwinding;

	if (begin->is_unwinding && begin->seam == SEAM_GAP)
		*unwinding = (struct unwinding){.is_followed = true,
						.joint = (uint32_t)(stitcher->joints.n - 1),
						.run = (uint32_t)stitcher->runs.n};
	else if (unwinding->is_followed && is_landing(begin))
		unwinding->pad = found ? begin->frames.v[0].entry_ip : 0;
	else
		unwinding->is_followed = false;
}

uint64_t stitcher__last_pad(const struct stitcher *stitcher, uint32_t end)
{
	const struct stitched *last = &stitcher->ends[end];
	const struct joint *joint = &stitcher->joints.v[stitcher->joints.n - 1];

	if (!stitcher->unwinding.is_followed || joint->run != last->run ||
	    joint->base != last->base + (int64_t)last->stack.n)
		return 0;
	return stitcher->unwinding.pad;
}

void stitcher__sink(struct stitcher *stitcher, uint32_t end, size_t n)
{
	struct stitched *last = &stitcher->ends[end];

	for (size_t i = stitcher->unwinding.joint + 1; i < stitcher->joints.n; i++)
		if (stitcher->joints.v[i].run == last->run)
			stitcher->joints.v[i].base -= (int64_t)n;
	stitcher->runs.v[stitcher->unwinding.run].base -= (int64_t)n;
	/* What ran further up has been left: it is another call. */
	stitcher->joints.v[stitcher->unwinding.joint].n_joined = 0;
	last->stack.n -= n;
	last->left_ip = last->stack.v[last->stack.n].return_ip;
}
