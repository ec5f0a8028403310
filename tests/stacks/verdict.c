// SPDX-License-Identifier: MIT
#include "verdict.h"

#include <stdio.h>
#include <stdlib.h>

#include "shown.h"

#define SOON	    100
#define ROUNDING_NS 100

struct verdict {
	struct counts *counts;
	struct mistakes *mistakes;
	seen_vec *seen;
	struct truth_log *truth;
	struct shown shown;
	VEC(const struct function *) known_frames; /* of those that run: what a branch shows */
	walk_vec *walks;
	const struct walk *walk;
	struct known {
		bool is_known;
		long missing; /* frames that ran before the first event, which nothing shows */
	} * known;	      /* of each stack */
};

/* Where the events of a segment are in the log, from `from` on. False: nowhere. */
static bool find_segment(const struct truth_log *truth, const struct seen *seen, size_t n,
			 size_t from, size_t *at)
{
	for (; from + n <= truth->events.n; from++) {
		size_t i = 0;

		/* The trace's time is that of the last packet before, rounded. */
		if (truth->events.v[from].time_ns + ROUNDING_NS < seen->time_ns)
			continue;
		while (i < n && truth->events.v[from + i].to == seen[i].to &&
		       truth->events.v[from + i].is_call == seen[i].is_call)
			i++;
		if (i == n) {
			*at = from;
			return true;
		}
	}
	return false;
}

static void count(struct counts *c, const struct seen *seen, size_t right, size_t all, size_t since)
{
	c->calls++;
	c->right += right == all;
	c->is_end_wrong = right != all;
	if (!seen->segment)
		return;
	*(since < SOON ? &c->soon : &c->later) += all;
	*(since < SOON ? &c->soon_right : &c->later_right) += right;
}

static size_t count_same(struct true_frames truth, const struct walk *walk)
{
	size_t same = 0;

	for (size_t i = 0; i < truth.n && i < walk->frames.n; i++)
		same += is_same_function(truth.v[i], walk->frames.v[i]);
	return same;
}

/* True if the outermost callers are missing, and all frames above these are right. */
static bool lacks_only_callers(struct true_frames truth, const struct walk *walk)
{
	size_t missing = truth.n - walk->frames.n;

	if (truth.n <= walk->frames.n)
		return false;
	for (size_t i = 0; i < walk->frames.n; i++)
		if (!is_same_function(truth.v[missing + i], walk->frames.v[i]))
			return false;
	return true;
}

static bool is_known(struct verdict *v, size_t event, long depth, const struct function *truth,
		     bool by_chance)
{
	size_t at = v->known_frames.n;

	return shown__is(&v->shown, v->truth, event, depth) ||
	       (by_chance && at < v->walk->frames.n &&
		is_same_function(truth, v->walk->frames.v[at]));
}

/* What can be known of them; by_chance: and what cannot, where it is right. */
static struct true_frames drop_unshown(struct verdict *v, struct true_frames truth, size_t event,
				       bool by_chance)
{
	long depth = v->truth->events.v[event].depth - (long)truth.n + 1;

	v->known_frames.n = 0;
	for (size_t i = 0; i < truth.n; i++, depth++) {
		const struct function **frame;

		if (!is_known(v, event, depth, truth.v[i], by_chance))
			continue;
		frame = VEC_PUSH(&v->known_frames);
		if (!frame)
			abort();
		*frame = truth.v[i];
	}
	return (struct true_frames){v->known_frames.v, v->known_frames.n};
}

static size_t more_of(struct true_frames truth, const struct walk *walk)
{
	return truth.n > walk->frames.n ? truth.n : walk->frames.n;
}

static struct true_frames find_known(struct verdict *v, struct true_frames truth, size_t event)
{
	struct true_frames known;
	size_t wrong;

	shown__go_to(&v->shown, v->truth, event);
	known = drop_unshown(v, truth, event, true);
	wrong = more_of(known, v->walk) - count_same(known, v->walk);
	if (!wrong)
		return known;
	known = drop_unshown(v, truth, event, false);
	if (more_of(known, v->walk) - count_same(known, v->walk) <= wrong)
		return known;
	return drop_unshown(v, truth, event, true);
}

static void count_known(struct counts *c, const struct seen *seen, struct true_frames known,
			const struct walk *walk, size_t since)
{
	if (!seen->segment || since >= SOON)
		return;
	c->known += more_of(known, walk);
	c->known_right += count_same(known, walk);
}

static void compare(struct verdict *v, const struct seen *seen, size_t event, size_t since_gap)
{
	const struct true_event *e = &v->truth->events.v[event];
	struct true_stack *stack = truth_log__go_to(v->truth, event);
	struct known *known = &v->known[e->stack];
	struct true_frames truth = {stack->frames.v, (size_t)(e->depth - stack->lowest + 1)};
	struct true_frames known_frames;

	v->walk = walks__find_running(v->walks, seen->step + STEP / 2);
	/* Go's scheduler is called from another stack. */
	if (seen->from && event && v->truth->events.v[event - 1].stack == e->stack)
		*true_stack__frame(stack, e->depth - 1) = seen->from;
	if (seen->interrupted && e->depth - 2 >= stack->lowest)
		*true_stack__frame(stack, e->depth - 2) = seen->interrupted;
	if (walk__is_goexit(*truth.v)) {
		truth.v++;
		truth.n--;
	}
	/* It has left everything that was known: an exception, out of frames from before. */
	if (!known->is_known || (long)truth.n <= known->missing)
		*known = (struct known){true, (long)truth.n - (long)v->walk->frames.n};
	if (known->missing > 0) {
		truth.v += known->missing;
		truth.n = truth.n > (size_t)known->missing ? truth.n - (size_t)known->missing : 0;
	}
	known_frames = find_known(v, truth, event);
	mistakes__add(v->mistakes, v->mistakes->of_all ? truth : known_frames,
		      (struct true_frames){v->walk->frames.v, v->walk->frames.n}, seen->is_call,
		      seen->to);
	count(v->counts, seen, count_same(truth, v->walk), more_of(truth, v->walk), since_gap);
	v->counts->without_callers += lacks_only_callers(truth, v->walk);
	count_known(v->counts, seen, known_frames, v->walk, since_gap);
}

/* How often there were so many frames more than were decoded. */
struct difference {
	long missing;
	uint64_t n;
};
typedef VEC(struct difference) difference_vec;

static void add_difference(difference_vec *all, long missing)
{
	struct difference *found;

	for (size_t i = 0; i < all->n; i++) {
		found = &all->v[i];
		if (found->missing == missing) {
			found->n++;
			return;
		}
	}
	found = VEC_PUSH(all);
	if (!found)
		abort();
	*found = (struct difference){missing, 1};
}

static long most_often(const difference_vec *all)
{
	struct difference best = {0};

	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].n > best.n)
			best = all->v[i];
	return best.missing;
}

/*
 * What ran below all that a trace from the middle of a ring shows is the same all the time: as many
 * frames as are missing most often in its first segment. What is wrong at its start shifts nothing.
 * Of the stack that runs first: others begin anew.
 */
static void find_missing(struct verdict *v, const struct seen *seen, size_t n, size_t event)
{
	const struct true_event *first = &v->truth->events.v[event];
	const struct true_stack *stack = &v->truth->stacks.v[first->stack];
	long lowest = stack->lowest + walk__is_goexit(*stack->frames.v);
	difference_vec all = {0};

	for (size_t i = 0; i < n; i++) {
		const struct walk *walk = walks__find_running(v->walks, seen[i].step + STEP / 2);

		if (first[i].stack == first->stack)
			add_difference(&all, first[i].depth - lowest + 1 - (long)walk->frames.n);
	}
	v->known[first->stack] = (struct known){true, most_often(&all)};
	walks__rewind(v->walks);
	VEC_FINI(&all);
}

/* Where each segment is in the log: its first event. */
static void place_segments(struct verdict *v)
{
	size_t at = 0;

	for (size_t i = 0, n; i < v->seen->n; i += n) {
		struct seen *seen = &v->seen->v[i];

		for (n = 1; i + n < v->seen->n && seen[n].segment == seen->segment; n++)
			;
		seen->n = n;
		seen->is_placed = find_segment(v->truth, seen, n, at, &at);
		/* A thread may be ended between what it does last and the log's line of that. */
		if (!seen->is_placed && i + n == v->seen->n && n > 1 &&
		    find_segment(v->truth, seen, n - 1, at, &at)) {
			seen->is_placed = true;
			seen->n = --n;
			v->seen->n--;
		}
		seen->event = at;
		for (size_t k = 0; seen->is_placed && k < n; k++)
			shown__decoded(&v->shown, at++);
	}
	shown__look(&v->shown, v->truth);
}

static void judge_segment(struct verdict *v, const struct seen *seen, pid_t tid)
{
	if (!seen->is_placed) {
		v->counts->calls += seen->n;
		fprintf(stderr, "tid %d: segment %u is not in the log\n", tid, seen->segment);
		return;
	}
	if (seen == v->seen->v)
		find_missing(v, seen, seen->n, seen->event);
	mistakes__begin(v->mistakes, tid, seen->segment);
	for (size_t k = 0; k < seen->n; k++)
		compare(v, &seen[k], seen->event + k, k);
	mistakes__begin(v->mistakes, 0, 0);
}

void judge_thread(struct counts *counts, struct mistakes *mistakes, pid_t tid, seen_vec *seen,
		  struct truth_log *truth, walk_vec *walks)
{
	struct verdict v = {.counts = counts,
			    .mistakes = mistakes,
			    .seen = seen,
			    .truth = truth,
			    .walks = walks,
			    .known = calloc(truth->stacks.n + 1, sizeof(*v.known))};

	if (!v.known)
		abort();
	shown__init(&v.shown, truth);
	place_segments(&v);
	for (size_t i = 0; i < seen->n; i += seen->v[i].n)
		judge_segment(&v, &seen->v[i], tid);
	shown__fini(&v.shown);
	VEC_FINI(&v.known_frames);
	free(v.known);
}
