// SPDX-License-Identifier: MIT
/*
 * Stitches segments: finds how one stack matches another, which run a segment continues, and where
 * runs are relative to one another.
 */
#include "stack/stitch.h"

#include <string.h>

#include "stack/functions.h"

/* Limit for the frames that are compared to match two stacks: recursion may be deep. */
#define MAX_COMPARED 1024
/* The same for fits_since(), which tries many offsets: 64 frames do not agree by accident. */
#define ENOUGH_COMPARED 64
/* Two levels of a recursion whose changes differ by less than this are as good as each other. */
#define CLOSE_RIVAL 3

bool held__is_outermost(const struct held *held)
{
	static const char *const names[] = {"main", "_start", "__libc_start_call_main",
					    "start_thread", "clone3"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (function__is_named(held->function, names[i]))
			return true;
	return false;
}

static size_t count(struct held_stack stack, const struct function *function)
{
	size_t n = 0;

	for (size_t i = 0; i < stack.n; i++)
		n += stack.v[i].function == function;
	return n;
}

static bool return_alike(const struct held *a, const struct held *b)
{
	return a->return_ip <= b->return_ip + b->slack && b->return_ip <= a->return_ip + a->slack;
}

/* The match of the two stacks at this offset, by at most `limit` frames. */
static struct fit lay(struct held_stack a, struct held_stack b, int64_t offset, size_t limit)
{
	struct fit fit = {.offset = offset, .first = offset < 0 ? (size_t)-offset : 0};
	int64_t tops = ((int64_t)a.n - 1) - ((int64_t)b.n - 1 + offset);
	size_t k = fit.first, i = (size_t)((int64_t)k + offset);

	fit.distance = (size_t)(tops < 0 ? -tops : tops);
	/* The lowest frame's return address may be known in one of the stacks only, or in none. */
	if (!a.v[i].function || a.v[i].function != b.v[k].function)
		return fit;
	if (a.v[i].return_ip && b.v[k].return_ip && !return_alike(&a.v[i], &b.v[k]))
		return fit;
	do {
		fit.n_agreed++;
		k++, i++;
	} while (fit.n_agreed < limit && k < b.n && i < a.n && a.v[i].function &&
		 a.v[i].function == b.v[k].function && a.v[i].return_ip &&
		 return_alike(&a.v[i], &b.v[k]));
	fit.n_changed = (a.n - i) + (b.n - k);
	return fit;
}

static void try_at(struct held_stack a, struct held_stack b, int64_t offset, struct fit *best)
{
	struct fit fit;

	if (offset <= -(int64_t)b.n || offset >= (int64_t)a.n)
		return;
	fit = lay(a, b, offset, MAX_COMPARED);
	if (fit.n_agreed && (!best->n_agreed || fit__weight(&fit) > fit__weight(best)))
		*best = fit;
}

/*
 * One frame whose function alone agrees says little: it must be the only one that can be meant, and
 * not much can have happened.
 */
static bool is_enough(struct held_stack a, struct held_stack b, struct fit *fit,
		      enum boundary boundary)
{
	const struct function *function;

	if (!fit->n_agreed)
		return false;
	function = b.v[fit->first].function;
	fit->is_certain = fit->n_agreed > 1 || held__is_outermost(&b.v[fit->first]);
	if (fit->is_certain)
		return true;
	/*
	 * The innermost frame that can take an exception takes it; a stack that waited goes on in
	 * its innermost frame.
	 */
	if ((boundary == BOUNDARY_UNWIND || boundary == BOUNDARY_WAIT) && fit->offset >= 0)
		return true;
	if (boundary == BOUNDARY_SETTLED)
		return true;
	return boundary != BOUNDARY_LONG && count(a, function) == 1 && count(b, function) == 1;
}

bool held_stack__fits(struct held_stack a, struct held_stack b, enum boundary boundary,
		      struct fit *best)
{
	int64_t level = (int64_t)a.n - (int64_t)b.n, most = (int64_t)(a.n < b.n ? a.n : b.n);

	*best = (struct fit){0};
	/* Tries equal tops first: at least as many frames have changed as the tops are apart. */
	for (int64_t apart = 0; a.n && b.n && apart < (int64_t)(a.n + b.n); apart++) {
		if (best->n_agreed && most - apart <= fit__weight(best))
			break;
		try_at(a, b, level - apart, best);
		if (apart)
			try_at(a, b, level + apart, best);
	}
	if (best->n_agreed >= MAX_COMPARED)
		*best = lay(a, b, best->offset, SIZE_MAX);
	return is_enough(a, b, best, boundary);
}

/* Finds the run that a segment continues. */

/* The boundary between this end and a segment that begins after such a boundary. */
static enum boundary boundary_to(const struct stitched *end, enum boundary boundary)
{
	return end->is_old ? BOUNDARY_LONG : boundary;
}

/*
 * True if on another level of a recursion fewer frames have changed than on this one, and `more`.
 * As many frames have changed at least as the tops are apart, so that only near levels are tried.
 */
static bool has_rival(struct held_stack a, struct held_stack b, const struct fit *best, size_t more)
{
	const int64_t most = (int64_t)(best->n_changed + more), even = (int64_t)a.n - (int64_t)b.n;

	for (int64_t offset = even - most + 1; offset < even + most; offset++) {
		struct fit fit = {0};

		if (offset != best->offset)
			try_at(a, b, offset, &fit);
		if (fit.n_agreed && (int64_t)fit.n_changed < most)
			return true;
	}
	return false;
}

/*
 * True if the match does not tell the level of a recursion, so that the callers that the segment
 * shows later should: a single frame agrees, of a function that calls itself; or no more frames
 * agree than have changed, and on another level as few have. If no more evidence will come, a
 * single frame does not tell it if another level is close and the innermost frame is of another
 * function.
 * `running`: frames that are not yet among the ends.
 */
static bool is_level_open(const struct stitcher *stitcher, struct held_stack a, struct held_stack b,
			  enum boundary boundary, const struct fit *fit, struct held_stack running)
{
	const struct function *function = b.v[fit->first].function;
	bool recurs = count(running, function) > 1;

	if (boundary == BOUNDARY_SETTLED)
		return !fit->is_certain && a.v[a.n - 1].function != function &&
		       has_rival(a, b, fit, CLOSE_RIVAL);
	if (boundary != BOUNDARY_GAP)
		return false;
	for (size_t i = 0; i < stitcher->n_ends && !recurs; i++)
		recurs = count(held_vec__all(&stitcher->ends[i].stack), function) > 1;
	return (recurs && !fit->is_certain && fit->n_changed) ||
	       (fit__weight(fit) <= 0 && has_rival(a, b, fit, 1));
}

/*
 * The run with the most evidence, counted from 1; 0: none, or the evidence is too weak. If it is
 * not the last run, the frames of the later ones have ended.
 */
static size_t find_likeliest(const struct stitcher *stitcher, const struct beginning *begin,
			     struct fit *best)
{
	size_t found = 0, n_ended = 0;

	*best = (struct fit){0};
	for (size_t i = stitcher->n_ends; begin->frames.n && i-- > 0;) {
		const struct stitched *end = &stitcher->ends[i];
		enum boundary boundary = boundary_to(end, begin->boundary);
		struct held_stack a = held_vec__all(&end->stack);
		struct fit fit;
		bool fits = held_stack__fits(a, begin->frames, boundary, &fit);

		/* A waiting run takes one of the ends. If half are used, the likeliest is taken. */
		if (fits && stitcher->n_ends <= STITCHED_MAX / 2)
			fits = !is_level_open(stitcher, a, begin->frames, boundary, &fit,
					      begin->end);
		fit.n_changed += n_ended;
		/* The lowest frame may be one of an earlier run's; the others are on top of that.
		 */
		n_ended += end->stack.n ? end->stack.n - 1 : 0;
		if (!fits && (boundary != BOUNDARY_GAP || !fit.n_agreed))
			continue;
		if (best->n_agreed && fit__weight(&fit) <= fit__weight(best))
			continue;
		*best = fit;
		found = fits ? i + 1 : 0;
	}
	return found;
}

/*
 * The index in stitcher->ends, counted from 1, of the run that a segment with this beginning
 * continues, and how it matches. 0: none, or it may be one of several.
 */
static size_t search(const struct stitcher *stitcher, const struct beginning *begin,
		     struct fit *fit)
{
	struct waiting catcher = begin->catcher;

	/*
	 * The run of the frame that the unwind was to, unless the frames below that frame show that
	 * it was another one.
	 */
	if (catcher.end < stitcher->n_ends && begin->n_roots < begin->frames.n) {
		*fit = lay(held_vec__all(&stitcher->ends[catcher.end].stack), begin->frames,
			   (int64_t)catcher.at - (int64_t)begin->n_roots, SIZE_MAX);
		fit->is_certain = true;
		if (fit->first + fit->n_agreed > begin->n_roots)
			return catcher.end + 1;
	}
	/* Several runs may have thrown the exception: its landing will tell which. */
	if (begin->is_unwinding && begin->boundary == BOUNDARY_GAP)
		return 0;
	return find_likeliest(stitcher, begin, fit);
}

struct held_stack stitcher__below(const struct stitcher *stitcher, const struct beginning *begin)
{
	struct fit fit;
	size_t found = search(stitcher, begin, &fit);

	if (!found || fit.offset <= 0)
		return (struct held_stack){0};
	return (struct held_stack){stitcher->ends[found - 1].stack.v, (size_t)fit.offset};
}

struct waiting stitcher__reach(const struct stitcher *stitcher, size_t distance)
{
	const struct placement *last = &stitcher->placements.v[stitcher->placements.n - 1];

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

		for (size_t k = end->stack.n; k-- > 0;)
			if (takes(ctx, end->stack.v[k].function, stitched__left_at(end, k)))
				return (struct waiting){.end = (uint32_t)i, .at = (uint32_t)k};
	}
	return WAITING_NONE;
}

/*
 * An exception comes to every frame with a landing pad in turn. If one was on its way during a gap,
 * it is not known which level of a recursion it had reached: the innermost is assumed. If it leaves
 * the recursion while levels remain that it should have passed, it had left these in the gap: it
 * was that many frames further down.
 */

/* `begin` is of the last placement's segment; found: what search() returned for it. */
static void follow_unwinding(struct stitcher *stitcher, const struct beginning *begin, size_t found)
{
	struct unwinding *unwinding = &stitcher->unwinding;
	/* Nothing but the landing is known. */
	bool is_landing =
		begin->boundary == BOUNDARY_UNWIND && begin->frames.n == 1 && !begin->n_roots;

	if (begin->is_unwinding && begin->boundary == BOUNDARY_GAP)
		*unwinding = (struct unwinding){.is_followed = true,
						.placement = (uint32_t)(stitcher->placements.n - 1),
						.run = (uint32_t)stitcher->runs.n};
	else if (unwinding->is_followed && is_landing)
		unwinding->pad = found ? begin->frames.v[0].entry_ip : 0;
	else
		unwinding->is_followed = false;
}

uint64_t stitcher__last_pad(const struct stitcher *stitcher, uint32_t end)
{
	const struct stitched *last = &stitcher->ends[end];
	const struct placement *placement = &stitcher->placements.v[stitcher->placements.n - 1];

	if (!stitcher->unwinding.is_followed || placement->run != last->run ||
	    placement->base != last->base + (int64_t)last->stack.n)
		return 0;
	return stitcher->unwinding.pad;
}

void stitcher__sink(struct stitcher *stitcher, uint32_t end, size_t n)
{
	struct stitched *last = &stitcher->ends[end];

	for (size_t i = stitcher->unwinding.placement + 1; i < stitcher->placements.n; i++)
		if (stitcher->placements.v[i].run == last->run)
			stitcher->placements.v[i].base -= (int64_t)n;
	stitcher->runs.v[stitcher->unwinding.run].base -= (int64_t)n;
	/* The frame further up has been left: this is another call. */
	stitcher->placements.v[stitcher->unwinding.placement].n_joined = 0;
	last->stack.n -= n;
	last->left_ip = last->stack.v[last->stack.n].return_ip;
}

/*
 * Takes the return of the first frame from elsewhere: a segment does not know it of its own first
 * frame.
 */
static void inherit_return(struct held *held, const struct held *from)
{
	if (held->return_ip)
		return;
	held->return_ip = from->return_ip;
	held->slack = from->slack;
}

/* The run's lowest frame, as it was first seen; NULL: it lacks frames. */
static struct held *lowest_of(const struct run *run)
{
	if (run->below.n)
		return &run->below.v[run->below.n - 1];
	return run->begun.n ? run->begun.v : NULL;
}

/*
 * A segment of the run has shown callers below all of its frames; the innermost of them has called
 * `first`.
 */
static void learn_callers(struct stitcher *stitcher, struct run *run, struct held_stack callers,
			  const struct held *first)
{
	struct held *lowest = lowest_of(run);

	if (!callers.n)
		return;
	if (lowest && lowest->function == first->function)
		inherit_return(lowest, first);
	for (size_t k = callers.n; k-- > 0;)
		stitcher->failed |= VEC_ADD(&run->below, callers.v[k]) != 0;
}

/* Lists everything that is known of the stack with which the run began. */
static struct held_stack look(struct stitcher *stitcher, const struct run *run)
{
	stitcher->view.n = 0;
	for (size_t i = run->below.n; i-- > 0;)
		stitcher->failed |= VEC_ADD(&stitcher->view, run->below.v[i]) != 0;
	stitcher->failed |= VEC_ADD_ALL(&stitcher->view, &run->begun) != 0;
	return held_vec__all(&stitcher->view);
}

/*
 * The run's first n_joined frames, callers included, are frames of the run `outer`; the lowest of
 * them is at `depth` there.
 */
static void place_run(struct stitcher *stitcher, struct run *run, uint32_t outer, int64_t depth,
		      size_t n_joined)
{
	struct placement *first = &stitcher->placements.v[run->placement];
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
		       enum boundary boundary, struct fit *on)
{
	struct held_stack begun = look(stitcher, run);
	const size_t limit = begun.n < ENOUGH_COMPARED ? begun.n : ENOUGH_COMPARED;

	if (boundary == BOUNDARY_UNWIND)
		return held_stack__fits(stack, begun, boundary, on) && on->offset >= 0;
	/* The lowest of the places at which the most frames agree. */
	*on = (struct fit){0};
	for (size_t at = 0; at < stack.n && on->n_agreed < limit; at++) {
		struct fit fit = lay(stack, begun, (int64_t)at, limit);

		if (fit.n_agreed > on->n_agreed)
			*on = fit;
	}
	if (on->n_agreed)
		*on = lay(stack, begun, on->offset, SIZE_MAX);
	return is_enough(stack, begun, on, boundary);
}

/*
 * A segment continues frames of an end. The first `left` frames of its stack ran all the time, so
 * runs since then are on top of these, or of others above them. After an unwind they are on the
 * innermost, since the unwind left it. A run that is on none of the end's frames may be on frames
 * that the segment began with, above those: these are `shown`. Returns how many of them ran before
 * the segment.
 */
static size_t place_runs_since(struct stitcher *stitcher, const struct placement *placement,
			       const struct stitched *end, size_t left, enum boundary boundary,
			       struct held_stack shown)
{
	size_t n = stitcher->loose.n, n_shown = 0;
	/* The last that ran all the time, and those above it, which may have. */
	size_t last = left ? left - 1 : 0;
	struct held_stack above = {0};
	int64_t depth = end->base + (int64_t)left;

	if (left)
		above = (struct held_stack){end->stack.v + last, end->stack.n - last};
	while (n && stitcher->loose.v[n - 1] > placement->run)
		n--;
	for (size_t i = n; i < stitcher->loose.n; i++) {
		struct run *run = &stitcher->runs.v[stitcher->loose.v[i]];
		int64_t at = depth + (int64_t)n_shown; /* if nothing else tells */
		size_t n_joined = 0;
		struct fit on;

		if (run->outer != RUN_NONE)
			continue;
		if (above.n && fits_since(stitcher, above, run, boundary, &on)) {
			above.n = (size_t)on.offset + on.n_agreed;
			at = depth - 1 + on.offset;
			n_joined = on.n_agreed;
		} else if (boundary == BOUNDARY_SETTLED && left &&
			   fits_since(stitcher, shown, run, boundary, &on) &&
			   (size_t)on.offset + on.n_agreed >= n_shown) {
			/* The first n_shown of these have been placed below an earlier run. */
			const struct held *lowest = &shown.v[on.offset];
			size_t offset = (size_t)on.offset;

			above.n = 0;
			if (offset < n_shown) {
				at = depth + on.offset;
				n_joined = n_shown - offset;
			} else {
				learn_callers(
					stitcher, run,
					(struct held_stack){shown.v + n_shown, offset - n_shown},
					lowest);
			}
			/* The lowest of the run's own frames, if it had not ended with the run.
			 */
			n_shown = offset + (run->lowest && run->lowest == lowest->function);
		} else {
			above.n = above.n ? 1 : 0;
		}
		place_run(stitcher, run, placement->run, at, n_joined);
	}
	stitcher->loose.n = n;
	return n_shown;
}

/*
 * An exception left n frames between the run and the stack's frame `catcher`, in which it landed,
 * or frames above the catcher that it passed. Adds them, if the edges that exceptions have passed
 * tell what they are; otherwise their functions stay unknown.
 */
static void add_hidden(struct stitcher *stitcher, struct run *run, struct held_stack stack,
		       size_t catcher, size_t n)
{
	size_t above = stack.n - 1 - catcher < n ? stack.n - 1 - catcher : n;
	const struct held *lowest = lowest_of(run);
	struct held between[BETWEEN_MAX];

	for (size_t i = above + 1; lowest && i-- > 0;)
		if (call_edges__pass(&stitcher->edges, stack.v[catcher + i].function, !i,
				     lowest->function, between, n - i)) {
			learn_callers(stitcher, run, (struct held_stack){between, n - i}, lowest);
			return;
		}
	for (size_t i = 0; i < n; i++)
		stitcher->failed |= VEC_ADD(&run->below, (struct held){0}) != 0;
}

/*
 * The last segment but one ended by an unwind to the frame `distance` frames below all that it had
 * shown. Places its run, if nothing else places it, at that distance above the stack's frame
 * `catcher`, which has this depth.
 */
static void place_at_distance(struct stitcher *stitcher, const struct placement *placement,
			      int64_t depth, struct held_stack stack, size_t catcher,
			      size_t distance)
{
	const struct placement *left = &stitcher->placements.v[stitcher->placements.n - 2];
	struct run *run = &stitcher->runs.v[left->run];
	int64_t n = (int64_t)distance - left->base - (int64_t)run->below.n - 1;
	struct held_stack begun;
	struct fit fit = {0};

	if (left->run == placement->run || run->outer != RUN_NONE || n < 0)
		return;
	begun = look(stitcher, run);
	if (catcher + (size_t)n + 1 < stack.n && begun.n)
		fit = lay(stack, begun, (int64_t)catcher + n + 1, SIZE_MAX);
	if (!fit.n_agreed)
		add_hidden(stitcher, run, stack, catcher, (size_t)n);
	n = (int64_t)distance - left->base - (int64_t)run->below.n - 1;
	place_run(stitcher, run, placement->run, depth + n + 1, fit.n_agreed);
}

void stitcher__fini(struct stitcher *stitcher)
{
	for (size_t i = 0; i < stitcher->runs.n; i++) {
		VEC_FINI(&stitcher->runs.v[i].below);
		VEC_FINI(&stitcher->runs.v[i].begun);
	}
	for (size_t i = 0; i < STITCHED_MAX; i++)
		VEC_FINI(&stitcher->ends[i].stack);
	VEC_FINI(&stitcher->placements);
	VEC_FINI(&stitcher->runs);
	VEC_FINI(&stitcher->loose);
	VEC_FINI(&stitcher->view);
	VEC_FINI(&stitcher->shown);
	call_edges__fini(&stitcher->edges);
}

/* Keeps the first n known frames, and puts the others on top of them. */
static void set_stack(struct stitcher *stitcher, struct stitched *end, size_t n,
		      struct held_stack others)
{
	end->is_old = false;
	end->left_ip = 0;
	if (!others.n && n < end->stack.n)
		end->left_ip = end->stack.v[n].return_ip;
	end->stack.n = n;
	stitcher->failed |= VEC_ADD_ALL(&end->stack, &others) != 0;
	stitcher->runs.v[end->owner].lowest = end->stack.n ? end->stack.v[0].function : NULL;
}

/* The last placement's segment, which begins so, is the first of a new run. */
static void begin_run(struct stitcher *stitcher, struct held_stack begin, struct held_stack stack,
		      struct placement *placement)
{
	struct stitched *ends = stitcher->ends, *end, first = ends[0];
	const uint32_t index = (uint32_t)stitcher->runs.n;
	struct run *run = VEC_PUSH(&stitcher->runs);

	if (!run) {
		stitcher->failed = true;
		return;
	}
	*run = (struct run){.outer = RUN_NONE, .placement = (uint32_t)(stitcher->placements.n - 1)};
	stitcher->failed |= VEC_ADD(&stitcher->loose, index) != 0;
	stitcher->failed |= VEC_ADD_ALL(&run->begun, &begin) != 0;
	*placement = (struct placement){.run = index};
	/* If all ends are taken, the oldest is dropped. */
	if (stitcher->n_ends == STITCHED_MAX) {
		memmove(ends, ends + 1, (STITCHED_MAX - 1) * sizeof(*ends));
		ends[--stitcher->n_ends] = first;
	}
	end = &ends[stitcher->n_ends++];
	end->run = end->owner = index;
	end->base = 0;
	set_stack(stitcher, end, 0, stack);
}

/* The end that the last run, with all of its known callers, is on; NULL: none. */
static struct stitched *find_outer(struct stitcher *stitcher, enum boundary boundary,
				   struct fit *on)
{
	const struct stitched *last = &stitcher->ends[stitcher->n_ends - 1];
	const struct run *run = &stitcher->runs.v[last->owner];
	bool is_unsure = false;

	if (run->outer != RUN_NONE)
		return NULL;
	for (size_t i = stitcher->n_ends - 1; i-- > 0;) {
		struct stitched *end = &stitcher->ends[i];
		enum boundary to = boundary_to(end, boundary);
		struct held_stack a = held_vec__all(&end->stack), b = look(stitcher, run);
		/* The run began on frames of that end, or has shown callers of these. */
		bool fits = held_stack__fits(a, b, to, on) && on->first <= run->below.n &&
			    !is_level_open(stitcher, a, b, to, on, (struct held_stack){0});

		/* If it may be on a later one, an earlier one needs more evidence. */
		if (fits && (on->is_certain || !is_unsure))
			return end;
		is_unsure |= on->n_agreed && !fits;
	}
	return NULL;
}

/* The last run is on frames of `outer`, and continues as both. */
static void lie_on(struct stitcher *stitcher, struct stitched *outer, const struct fit *on)
{
	const struct stitched *last = &stitcher->ends[stitcher->n_ends - 1];
	struct run *run = &stitcher->runs.v[last->owner];
	size_t below = on->offset > 0 ? (size_t)on->offset : 0;
	const struct placement placement = {.run = outer->run,
					    .n_joined = (uint32_t)on->n_agreed,
					    .base = outer->base + (int64_t)below};
	struct held first = outer->stack.v[below];
	struct held_stack begun, shown;
	size_t n_shown;

	/* The outermost callers that are known of it are those of `outer`: view is look(run). */
	run->below.n -= on->first;
	learn_callers(stitcher, &stitcher->runs.v[outer->owner],
		      (struct held_stack){stitcher->view.v, on->first},
		      &stitcher->view.v[on->first]);
	stitcher->shown.n = 0;
	begun = look(stitcher, run);
	stitcher->failed |= VEC_ADD_ALL(&stitcher->shown, &begun) != 0;
	shown = held_vec__all(&stitcher->shown);
	shown.v += shown.n < on->n_agreed ? shown.n : on->n_agreed;
	shown.n -= (size_t)(shown.v - stitcher->shown.v);
	run->outer = outer->run;
	n_shown = place_runs_since(stitcher, &placement, outer, below + on->n_agreed,
				   boundary_to(outer, BOUNDARY_SETTLED), shown);
	place_run(stitcher, run, placement.run, placement.base, placement.n_joined + n_shown);
	outer->run = last->run;
	outer->base = last->base - (int64_t)below;
	stitcher->n_ends = (size_t)(outer - stitcher->ends) + 1;
	set_stack(stitcher, outer, below, held_vec__all(&last->stack));
	if (!on->first && outer->stack.n > below)
		inherit_return(&outer->stack.v[below], &first);
}

/* The last run has shown callers, which may be those of an earlier one, or of callers of that. */
static void find_place(struct stitcher *stitcher, enum boundary boundary)
{
	struct stitched *outer;
	struct fit on;

	while ((outer = find_outer(stitcher, boundary, &on)))
		lie_on(stitcher, outer, &on);
}

/* The segment continues the last end. */
static void go_on(struct stitcher *stitcher, const struct beginning *from, struct held_stack stack,
		  const struct fit *fit, struct placement *placement)
{
	struct stitched *end = &stitcher->ends[stitcher->n_ends - 1];
	struct held_stack callers = {from->frames.v, fit->first}, shown = from->frames;
	size_t below = fit->offset > 0 ? (size_t)fit->offset : 0;
	struct held first = end->stack.n ? end->stack.v[below] : (struct held){0};
	int64_t catcher = fit->offset + (int64_t)from->n_roots;
	size_t n_joined = fit->first + fit->n_agreed;
	enum boundary boundary =
		from->boundary == BOUNDARY_UNWIND ? BOUNDARY_UNWIND : BOUNDARY_SETTLED;

	*placement = (struct placement){.run = end->run,
					.joins = true,
					.n_joined = (uint32_t)n_joined,
					.base = end->base + fit->offset};
	if (from->distance && catcher >= 0 && catcher < (int64_t)end->stack.n)
		place_at_distance(stitcher, placement, end->base + catcher,
				  held_vec__all(&end->stack), (size_t)catcher, from->distance);
	/*
	 * Runs since the end are on its frames that have been there all the time, or above these.
	 * Frames above those may have been placed below such a run.
	 */
	shown.v += n_joined;
	shown.n -= n_joined;
	placement->n_joined += (uint32_t)place_runs_since(stitcher, placement, end,
							  (size_t)(fit->offset + (int64_t)n_joined),
							  boundary_to(end, boundary), shown);
	learn_callers(stitcher, &stitcher->runs.v[end->owner], callers,
		      fit->first < from->frames.n ? &from->frames.v[fit->first] : &first);
	set_stack(stitcher, end, below, stack);
	if (fit->offset < 0)
		end->base += fit->offset;
	else if (end->stack.n > below)
		inherit_return(&end->stack.v[below], &first);
	if (callers.n)
		find_place(stitcher, BOUNDARY_GAP);
}

/* The segment began with frames below the run before it. */
static void go_around(struct stitcher *stitcher, const struct beginning *begin,
		      struct held_stack stack, struct placement *placement)
{
	const struct fit fit = {.offset = -(int64_t)begin->frames.n, .first = begin->frames.n};
	struct stitched *end = &stitcher->ends[stitcher->n_ends - 1];
	int64_t n = 0;

	/* The frames between all that the last run has shown and the target of the unwind. */
	if (stitcher->placements.n > 1 && begin->distance &&
	    begin->n_roots + 1 == begin->frames.n) {
		const struct placement *left = &stitcher->placements.v[stitcher->placements.n - 2];

		n = left->run == end->run ? end->base - left->base + begin->distance - 1 : 0;
	}
	if (n > 0) {
		const struct held_stack catcher = {&begin->frames.v[begin->n_roots], 1};

		add_hidden(stitcher, &stitcher->runs.v[end->owner], catcher, 0, (size_t)n);
		end->base -= n;
	}
	go_on(stitcher, begin, stack, &fit, placement);
}

void stitcher__add(struct stitcher *stitcher, const struct beginning *begin)
{
	const struct held_stack end = begin->end;
	struct placement *placement = VEC_PUSH(&stitcher->placements);
	bool is_unwind = begin->boundary == BOUNDARY_UNWIND;
	size_t found, n = stitcher->n_ends;
	const struct stitched *last;
	struct fit fit;

	if (!placement) {
		stitcher->failed = true;
		return;
	}
	for (size_t i = 0; begin->boundary == BOUNDARY_LONG && i < n; i++)
		stitcher->ends[i].is_old = true;
	found = search(stitcher, begin, &fit);
	follow_unwinding(stitcher, begin, found);
	last = n ? &stitcher->ends[n - 1] : NULL;
	if (is_unwind && found && found != n && fit.offset >= 0 &&
	    fit.first + fit.n_agreed <= begin->n_roots &&
	    stitcher->runs.v[last->owner].outer == RUN_NONE) {
		/*
		 * The frames agree with an earlier run's, but only this segment shows the unwind's
		 * target: it, and all frames in between, are on those, and below the last run.
		 */
		go_around(stitcher, begin, end, placement);
		/* go_around() may have placed the run already. */
		if (stitcher->n_ends == n)
			lie_on(stitcher, &stitcher->ends[found - 1], &fit);
	} else if (found) {
		/* It becomes the last one: the ends after it are over. */
		stitcher->n_ends = found;
		go_on(stitcher, begin, end, &fit, placement);
	} else if (is_unwind && last && (!last->stack.n || !held__is_outermost(last->stack.v))) {
		/* The last run may have callers that no segment has shown. */
		go_around(stitcher, begin, end, placement);
	} else {
		begin_run(stitcher, begin->frames, end, placement);
	}
}

bool stitcher__settle(struct stitcher *stitcher)
{
	size_t n = stitcher->n_ends;

	if (n < 2)
		return false;
	find_place(stitcher, BOUNDARY_SETTLED);
	if (stitcher->n_ends < n)
		return true;
	/* It stays apart: runs before it are not below it. */
	while (stitcher->loose.n &&
	       stitcher->loose.v[stitcher->loose.n - 1] >= stitcher->ends[n - 1].owner)
		stitcher->loose.n--;
	stitcher->n_ends--;
	return true;
}

void stitcher__finish(struct stitcher *stitcher)
{
	while (stitcher__settle(stitcher))
		;
	stitcher->n_ends = stitcher->loose.n = 0;
}

const struct held *stitcher__lowest(const struct stitcher *stitcher, size_t end)
{
	const struct stitched *stitched = &stitcher->ends[end];

	if (end >= stitcher->n_ends || !stitched->stack.n)
		return NULL;
	return lowest_of(&stitcher->runs.v[stitched->owner]) ?: stitched->stack.v;
}

void stitcher__anchor(struct stitcher *stitcher, size_t index, struct held_stack taken)
{
	/* index may be SIZE_MAX: checked below. */
	struct stitched *end = &stitcher->ends[index % STITCHED_MAX];
	struct held_stack callers;
	struct fit fit;
	struct held *v;

	if (index >= stitcher->n_ends || !taken.n ||
	    !held_stack__fits(held_vec__all(&end->stack), taken, BOUNDARY_GAP, &fit) ||
	    fit.offset >= 0)
		return;
	callers = (struct held_stack){taken.v, fit.first};
	learn_callers(stitcher, &stitcher->runs.v[end->owner], callers, &taken.v[fit.first]);
	end->stack.v[0].return_ip = taken.v[fit.first].return_ip;
	if (VEC_ADD_ALL(&end->stack, &callers)) {
		stitcher->failed = true;
		return;
	}
	v = end->stack.v;
	memmove(v + callers.n, v, (end->stack.n - callers.n) * sizeof(*v));
	memcpy(v, callers.v, callers.n * sizeof(*v));
	stitcher->runs.v[end->owner].lowest = v[0].function;
	end->base += fit.offset;
	if (index == stitcher->n_ends - 1)
		find_place(stitcher, BOUNDARY_GAP);
}
