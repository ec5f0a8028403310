// SPDX-License-Identifier: MIT
/*
 * How much of the decoded stacks of a recording is true: after each call and return that was
 * decoded, all frames of the finished tree, from the root on, against the log of the stack pointer.
 *
 *   judge RECORDING TRUTH
 *
 * With VERBOSE=SEGMENT the first wrong stack of each segment from that one on is on stderr, and
 * what is wrong with how many others of it.
 *
 * Prints "calls N", "right N" (calls and returns, and those after which the whole stack is true),
 * "gaps N", "soon N of M" (frames within 100 calls after a gap), "later N of M", "end ok|wrong".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "capture/recording/recording.h"
#include "decode/threads.h"
#include "mistakes.h"
#include "stack/stack.h"
#include "tree_walk.h"
#include "truth_read.h"

#define SOON	    100
#define ROUNDING_NS 100
/* Each branch has a time of its own, so that the tree tells what ran behind each. */
#define STEP 10

struct seen {
	uint64_t time_ns, to;
	uint64_t step; /* time in the tree */
	uint32_t segment;
	bool is_call;
	const struct function *from; /* of a call */
	/* A handler's first call: what it interrupted, as jumps had left it. */
	const struct function *interrupted;
};

struct counts {
	uint64_t calls, right, gaps;
	uint64_t soon, soon_right, later, later_right;
	bool is_end_wrong;
};

struct judge {
	const char *truth;
	struct counts counts;
	struct mistakes mistakes;
	/* The thread that is judged. */
	pid_t tid;
	struct stack *stack;
	struct code_map *map;
	uint64_t step;
	uint32_t segment;
	const struct function *interrupted, *handler; /* that runs, and has called nothing */
	VEC(struct seen) seen;
};

static int begin_thread(void *ctx, pid_t pid, pid_t tid, struct code_map *map)
{
	struct judge *j = ctx;

	j->tid = tid;
	j->map = map;
	j->step = 0;
	j->segment = 0;
	j->seen.n = 0;
	j->interrupted = j->handler = NULL;
	j->stack = stack__new(pid, tid, "", map);
	return j->stack ? 0 : -1;
}

/* A jump behind the last call, and before the signal, is in no line of the log. */
static void note_signal(struct judge *j, const struct branch *b)
{
	if (b->kind == BRANCH_END_ASYNC)
		j->interrupted = truth_log__function(j->map, b->from, false);
	else if (b->kind == BRANCH_BEGIN)
		j->handler = truth_log__function(j->map, b->to, false);
	else if (b->kind != BRANCH_JUMP && b->kind != BRANCH_COND)
		j->interrupted = j->handler = NULL;
}

static int see(struct judge *j, const struct branch *b, uint64_t step)
{
	struct seen *seen;

	if (b->kind == BRANCH_GAP)
		j->segment++;
	if ((b->kind != BRANCH_CALL && b->kind != BRANCH_RETURN) ||
	    (b->kind == BRANCH_CALL && b->to == b->from + b->len))
		return 0;
	seen = VEC_PUSH(&j->seen);
	if (!seen)
		return -1;
	*seen = (struct seen){.time_ns = b->time_ns,
			      .to = b->to,
			      .step = step,
			      .segment = j->segment,
			      .is_call = b->kind == BRANCH_CALL};
	if (seen->is_call)
		seen->from = truth_log__function(j->map, b->from, false);
	if (seen->from && seen->from == j->handler && j->handler != j->interrupted)
		seen->interrupted = j->interrupted;
	return 0;
}

static int take_branch(void *ctx, const struct branch *b)
{
	struct judge *j = ctx;
	struct branch own = *b;

	own.time_ns = j->step += STEP;
	if (stack__branch(j->stack, &own) || see(j, b, own.time_ns))
		return -1;
	note_signal(j, b);
	return 0;
}

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

struct verdict {
	struct judge *judge;
	struct truth_log *truth;
	walk_vec walks;
	const struct walk *walk;
	struct known {
		bool is_known;
		long missing; /* frames that ran before the first event, which nothing shows */
	} * known;	      /* of each stack */
};

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

static size_t count_same(const struct function **truth, size_t n, const struct walk *walk)
{
	size_t same = 0;

	for (size_t i = 0; i < n && i < walk->frames.n; i++)
		same += is_same_function(truth[i], walk->frames.v[i]);
	return same;
}

static void compare(struct verdict *v, const struct seen *seen, size_t event, size_t since_gap)
{
	const struct true_event *e = &v->truth->events.v[event];
	struct true_stack *stack = truth_log__go_to(v->truth, event);
	struct known *known = &v->known[e->stack];
	size_t n = (size_t)(e->depth - stack->lowest + 1), right, all;
	const struct function **truth = stack->frames.v;

	v->walk = walks__find_running(&v->walks, seen->step + STEP / 2);
	/* Go's scheduler is called from another stack. */
	if (seen->from && event && v->truth->events.v[event - 1].stack == e->stack)
		*true_stack__frame(stack, e->depth - 1) = seen->from;
	if (seen->interrupted && e->depth - 2 >= stack->lowest)
		*true_stack__frame(stack, e->depth - 2) = seen->interrupted;
	if (walk__is_goexit(*truth)) {
		truth++;
		n--;
	}
	/* It has left everything that was known: an exception, out of frames from before. */
	if (!known->is_known || (long)n <= known->missing)
		*known = (struct known){true, (long)n - (long)v->walk->frames.n};
	if (known->missing > 0) {
		truth += known->missing;
		n = n > (size_t)known->missing ? n - (size_t)known->missing : 0;
	}
	right = count_same(truth, n, v->walk);
	all = n > v->walk->frames.n ? n : v->walk->frames.n;
	mistakes__add(&v->judge->mistakes, (struct true_frames){truth, n},
		      (struct true_frames){v->walk->frames.v, v->walk->frames.n}, seen->is_call,
		      seen->to);
	count(&v->judge->counts, seen, right, all, since_gap);
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
		const struct walk *walk = walks__find_running(&v->walks, seen[i].step + STEP / 2);

		if (first[i].stack == first->stack)
			add_difference(&all, first[i].depth - lowest + 1 - (long)walk->frames.n);
	}
	v->known[first->stack] = (struct known){true, most_often(&all)};
	walks__rewind(&v->walks);
	VEC_FINI(&all);
}

static void judge_thread(struct judge *j, struct verdict *v)
{
	size_t at = 0;

	for (size_t i = 0, n; i < j->seen.n; i += n) {
		const struct seen *seen = &j->seen.v[i];

		for (n = 1; i + n < j->seen.n && seen[n].segment == seen->segment; n++)
			;
		if (!find_segment(v->truth, seen, n, at, &at)) {
			j->counts.calls += n;
			fprintf(stderr, "tid %d: segment %u is not in the log\n", j->tid,
				seen->segment);
			continue;
		}
		if (!i)
			find_missing(v, seen, n, at);
		mistakes__begin(&j->mistakes, j->tid, seen->segment);
		for (size_t k = 0; k < n; k++)
			compare(v, &seen[k], at++, k);
	}
	mistakes__begin(&j->mistakes, 0, 0);
	j->counts.gaps += j->segment;
}

static int end_thread(void *ctx)
{
	struct judge *j = ctx;
	struct truth_log truth;
	struct verdict v = {.judge = j, .truth = &truth};
	int err = walks__init(&v.walks, j->stack);

	stack__free(j->stack);
	j->stack = NULL;
	if (err || !truth_log__read(&truth, j->truth, j->tid, j->map))
		return -1;
	v.known = calloc(truth.stacks.n, sizeof(*v.known));
	if (!v.known)
		return -1;
	judge_thread(j, &v);
	free(v.known);
	walks__fini(&v.walks);
	truth_log__fini(&truth);
	return 0;
}

int main(int argc, char **argv)
{
	struct judge j = {.truth = argc == 3 ? argv[2] : NULL};
	struct thread_taker taker = {
		.begin = begin_thread, .branch = take_branch, .end = end_thread, .ctx = &j};
	struct decode_totals totals = {0};
	struct recording rec;
	struct images *images;
	int err;

	if (argc != 3) {
		fprintf(stderr, "usage: judge RECORDING TRUTH\n");
		return 1;
	}
	mistakes__init(&j.mistakes);
	recording__init(&rec);
	if (recording__read(&rec, argv[1]))
		return 1;
	images = images__new(&rec);
	err = images ? decode__threads(&rec, images, false, &taker, &totals) : -1;
	if (err)
		fprintf(stderr, "judge: cannot decode or read the log: %d\n", err);
	printf("calls %" PRIu64 "\nright %" PRIu64 "\ngaps %" PRIu64 "\nsoon %" PRIu64
	       " of %" PRIu64 "\nlater %" PRIu64 " of %" PRIu64 "\nend %s\n",
	       j.counts.calls, j.counts.right, j.counts.gaps, j.counts.soon_right, j.counts.soon,
	       j.counts.later_right, j.counts.later, j.counts.is_end_wrong ? "wrong" : "ok");
	images__free(images);
	recording__fini(&rec);
	VEC_FINI(&j.seen);
	return err ? 1 : 0;
}
