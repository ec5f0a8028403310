// SPDX-License-Identifier: MIT
/*
 * How much of the decoded stacks of a recording is true: after each call and return that was
 * decoded, all frames of the finished tree, from the root on, against the log of the stack pointer.
 *
 *   judge RECORDING TRUTH
 *
 * With VERBOSE=SEGMENT the first wrong stack of each segment from that one on is on stderr, and
 * what is wrong with how many others of it; frames that no branch shows may be missing, unless
 * OF_ALL is set.
 *
 * With WITHOUT_RULE=NAME that rule is not in the table, and the names of the rules that have named
 * an event are appended to the file RULES_TRIED.
 *
 * Prints "calls N", "right N" (calls and returns, and those after which the whole stack is true),
 * "gaps N", "soon N of M" (frames within 100 calls after a gap), "later N of M", "end ok|wrong",
 * "known N of M": as soon, of the frames that a branch shows (shown.h). Last comes "uncalled N":
 * stacks that are not right, but say nothing false: the outermost callers are missing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../each_branch.h"
#include "../rules_tried.h"
#include "../stack_state.h"
#include "capture/recording/recording.h"
#include "decode/decode.h"
#include "stack/stack.h"
#include "verdict.h"

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
	seen_vec seen;
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
	struct code_place place;

	if (b->kind == BRANCH_END_ASYNC || b->kind == BRANCH_END_SYSCALL) {
		j->interrupted = truth_log__function(j->map, b->from, false);
		/* The next signal comes before anything has run: the log knows what that one had.
		 */
		if (j->interrupted && truth_log__is_restorer(j->interrupted))
			j->interrupted = NULL;
	} else if (b->kind == BRANCH_BEGIN) {
		j->handler = code_map__find(j->map, b->to, &place) && place.entry == b->to
				     ? place.function
				     : NULL;
	} else if (b->kind != BRANCH_JUMP && b->kind != BRANCH_COND) {
		j->interrupted = j->handler = NULL;
	}
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
	if (take_one(j->stack, &own) || see(j, b, own.time_ns))
		return -1;
	note_signal(j, b);
	return 0;
}

TAKE_EACH(take_branches, take_branch)

static int end_thread(void *ctx)
{
	struct judge *j = ctx;
	struct truth_log truth;
	walk_vec walks = {0};
	int err = walks__init(&walks, j->stack);

	tell_rules(j->stack);
	stack__free(j->stack);
	j->stack = NULL;
	if (err || !truth_log__read(&truth, j->truth, j->tid, j->map))
		return -1;
	judge_thread(&j->counts, &j->mistakes, j->tid, &j->seen, &truth, &walks);
	j->counts.gaps += j->segment;
	walks__fini(&walks);
	truth_log__fini(&truth);
	return 0;
}

int main(int argc, char **argv)
{
	struct judge j = {.truth = argc == 3 ? argv[2] : NULL};
	struct branch_receiver receiver = {
		.begin = begin_thread, .take = take_branches, .end = end_thread, .ctx = &j};
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
	err = images ? decode__threads(&rec, images, false, &receiver, &totals) : -1;
	if (err)
		fprintf(stderr, "judge: cannot decode or read the log: %d\n", err);
	printf("calls %" PRIu64 "\nright %" PRIu64 "\ngaps %" PRIu64 "\nsoon %" PRIu64
	       " of %" PRIu64 "\nlater %" PRIu64 " of %" PRIu64 "\nend %s\nknown %" PRIu64
	       " of %" PRIu64 "\nuncalled %" PRIu64 "\n",
	       j.counts.calls, j.counts.right, j.counts.gaps, j.counts.soon_right, j.counts.soon,
	       j.counts.later_right, j.counts.later, j.counts.is_end_wrong ? "wrong" : "ok",
	       j.counts.known_right, j.counts.known, j.counts.without_callers);
	images__free(images);
	recording__fini(&rec);
	VEC_FINI(&j.seen);
	return err ? 1 : 0;
}
