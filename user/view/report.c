// SPDX-License-Identifier: MIT
#include "view/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decode/branch.h"
#include "mtbpf_shared.h"
#include "view/report_internal.h"

static int add_period(struct report *r, uint64_t start_ns, uint64_t end_ns)
{
	return VEC_ADD(&r->periods, (struct period){.start_ns = start_ns, .end_ns = end_ns});
}

/* True for a call of the trigger's function whose start was seen, at or before the hit. */
static bool is_entry(const struct call *call, const struct hit_mark *hit)
{
	return call->function && call->function == hit->function &&
	       !(call->flags & CALL_INFERRED_START) && call->start_ns <= hit->time_ns;
}

/* True if the call is recursive: part of an iteration, not the next one. of_unseen: also within a
 * call whose start is not known. */
static bool is_in_call(const struct call_tree *tree, const struct call *call, bool of_unseen)
{
	for (uint32_t i = call->parent; i != CALL_NO_PARENT; i = tree->calls.v[i].parent)
		if (tree->calls.v[i].function == call->function &&
		    (of_unseen || !(tree->calls.v[i].flags & CALL_INFERRED_START)))
			return true;
	return false;
}

/* The call whose start is nearest to the start of the hit's duration; *off_ns is the distance.
 * NULL: none. */
static const struct call *find_measured(const struct call_tree *tree, const struct hit_mark *hit,
					uint64_t *off_ns)
{
	uint64_t start_ns = hit->time_ns - hit->value_ns;
	const struct call *found = NULL;

	*off_ns = UINT64_MAX;
	VEC_EACH(&tree->calls, call) {
		uint64_t ns = call->start_ns > start_ns ? call->start_ns - start_ns
							: start_ns - call->start_ns;

		if (is_entry(call, hit) && ns < *off_ns) {
			found = call;
			*off_ns = ns;
		}
	}
	return found;
}

/*
 * True if the iterations are calls inside a call of the same function that began before the probe
 * was set, and the trigger measured one of them: for example an interpreter's main loop that calls
 * itself.
 */
static bool counts_in_unseen(const struct call_tree *tree, const struct hit_mark *hit)
{
	const struct call *measured;
	uint64_t off_ns;

	if (hit->reason != MT_HIT_DURATION)
		return false;
	measured = find_measured(tree, hit, &off_ns);
	return measured && off_ns < hit->value_ns / 10 && !is_in_call(tree, measured, false);
}

/*
 * When the activation that began with calls[i] returned, including the tail calls that replaced it,
 * but not the return probe's trampoline at the end.
 */
static uint64_t returned_ns(const struct call_tree *tree, size_t i)
{
	const struct call *call = &tree->calls.v[i], *next;
	uint64_t end = call->end_ns;

	for (i++; i < tree->calls.n && tree->calls.v[i].depth >= call->depth; i++) {
		next = &tree->calls.v[i];
		if (next->depth > call->depth)
			continue;
		if (!(next->flags & CALL_BY_JUMP) || !next->function ||
		    !strcmp(next->function->module, "[uprobes]"))
			break;
		end = next->end_ns;
	}
	return end;
}

/*
 * Moves the start of the slow iteration to the program's mark; it ends at the hit (last_ns, 0: not
 * seen). The marks of other iterations are not known: those go from one hit to the next.
 */
static int start_at_mark(struct report *r, const struct hit_mark *hit, uint64_t last_ns)
{
	struct period *slow = r->periods.n ? &r->periods.v[r->periods.n - 1] : NULL;
	uint64_t mark = last_ns > hit->value_ns ? last_ns - hit->value_ns : 0;

	if (slow && slow->start_ns < mark)
		slow->start_ns = mark;
	if (slow || !mark || !r->tree->calls.n || mark < r->tree->calls.v[0].start_ns)
		return 0;
	return add_period(r, mark, last_ns);
}

/* The stalled iteration is not over: it goes from its begin, seen or not, to the hit. */
static int end_at_stall(struct report *r, const struct hit_mark *hit)
{
	uint64_t start_ns = hit->time_ns - hit->value_ns;

	while (r->periods.n && r->periods.v[r->periods.n - 1].end_ns > start_ns)
		r->periods.n--;
	return add_period(r, start_ns, hit->time_ns);
}

/*
 * True if at most the first tenth of the iteration is missing in the tree, such as the time of the
 * start probe.
 */
static bool has_whole(const struct call_tree *tree, uint64_t start_ns, uint64_t value_ns)
{
	return tree->calls.n && tree->calls.v[0].start_ns <= start_ns + value_ns / 10;
}

/*
 * Finds the regions, which are between gaps, since nothing else was recorded. The first one may be
 * incomplete, and is left out unless it is the slow one.
 */
static int find_regions(struct report *r, const struct hit_mark *hit)
{
	uint64_t start = 0, slow = hit->time_ns - hit->value_ns;
	int err = 0;

	VEC_EACH_WHILE(&r->tree->calls, call, !err) {
		if (call->kind != CALL_GAP || call->end_ns > hit->time_ns)
			continue;
		if (call->reason == GAP_OUTSIDE && start)
			err = add_period(r, start, call->start_ns);
		if (call->reason == GAP_BETWEEN)
			r->periods.n = 0;
		if (call->reason == GAP_OUTSIDE || call->reason == GAP_BETWEEN)
			start = call->end_ns;
	}
	/* With samples, missing time counts as not recorded. */
	if (err || (!start && !r->sampled && !has_whole(r->tree, slow, hit->value_ns)))
		return err;
	/*
	 * Without a gap before the region in this snapshot, `start` is the begin of the snapshot,
	 * or 0: long before the region.
	 */
	return add_period(r, start > slow ? start : slow, hit->time_ns);
}

/* The clocks of a hit, and of the entry that the same program noted, differ by less than this. */
#define SAME_HIT_NS 100000

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/*
 * A hit in the kernel has the function in which the program was. Calls of that function are hits
 * only if it makes that system call, and no other function does.
 */
static int settle_in_kernel(struct report *r, const struct hit_mark *hit)
{
	struct period *slow = r->periods.n ? &r->periods.v[r->periods.n - 1] : NULL;
	uint64_t start_ns = hit->time_ns - hit->value_ns;
	bool is_between_hits = false;

	if (hit->reason != MT_HIT_DELAY && hit->is_syscall)
		return 0;
	/*
	 * The period may go from the last hit to this one. Samples come with the exact times of
	 * hits; calls in a trace begin before the hit that they lead to.
	 */
	if (slow && r->sampled)
		is_between_hits = distance(slow->start_ns, start_ns) <= SAME_HIT_NS &&
				  distance(slow->end_ns, hit->time_ns) <= SAME_HIT_NS;
	else if (slow)
		is_between_hits = distance(slow->end_ns - slow->start_ns, hit->value_ns) <=
				  hit->value_ns / 10;
	if (hit->reason == MT_HIT_DELAY && is_between_hits) {
		if (r->sampled)
			*slow = (struct period){.start_ns = start_ns, .end_ns = hit->time_ns};
		return 0;
	}
	r->periods.n = 0;
	if (hit->reason == MT_HIT_EVERY || hit->reason == MT_HIT_LAST ||
	    !has_whole(r->tree, start_ns, hit->value_ns))
		return 0;
	return add_period(r, start_ns, hit->time_ns);
}

static int find_periods(struct report *r, const struct hit_mark *hit)
{
	bool by_call = hit->reason == MT_HIT_DURATION || hit->stall_from == MT_STALL_CALL;
	bool of_unseen = !counts_in_unseen(r->tree, hit);
	/* Times of a trace begin at 0, so `last` needs a flag. */
	bool has_last = false;
	uint64_t last = 0;
	int err = 0;

	/*
	 * For a request with a key, the time is known, but not which of the thread's work in it was
	 * for this request. So it is not compared with others.
	 */
	if (hit->since_tid) {
		uint64_t start_ns = hit->time_ns - hit->value_ns;

		if (!r->tree->calls.n ||
		    (!r->sampled && !has_whole(r->tree, start_ns, hit->value_ns)))
			return 0;
		return add_period(r, start_ns, hit->time_ns);
	}
	if (hit->reason == MT_HIT_REGION)
		return find_regions(r, hit);
	/* Earlier regions end at gaps; the stalled one has not ended. */
	if (hit->stall_from == MT_STALL_REGION) {
		err = find_regions(r, hit);
		return err ? err : end_at_stall(r, hit);
	}
	for (size_t i = 0; i < r->tree->calls.n && !err; i++) {
		const struct call *call = &r->tree->calls.v[i];

		/* Iterations of earlier snapshots, or across two, are not compared. */
		if (call->kind == CALL_GAP && call->reason == GAP_BETWEEN &&
		    call->end_ns <= hit->time_ns) {
			r->periods.n = 0;
			has_last = false;
		}
		if (!is_entry(call, hit) || is_in_call(r->tree, call, of_unseen))
			continue;
		if (by_call)
			err = add_period(r, call->start_ns, returned_ns(r->tree, i));
		else if (has_last)
			err = add_period(r, last, call->start_ns);
		last = call->start_ns;
		has_last = true;
	}
	if (!err && hit->reason == MT_HIT_STALL)
		err = end_at_stall(r, hit);
	if (!err && hit->reason == MT_HIT_MARK)
		err = start_at_mark(r, hit, has_last ? last : 0);
	if (!err && hit->in_kernel)
		err = settle_in_kernel(r, hit);
	return err;
}

static bool is_below(const struct period *p, uint64_t threshold_ns)
{
	return p->end_ns - p->start_ns < threshold_ns;
}

/*
 * Leaves out iterations that have passed the threshold: they are not ordinary. If all have passed
 * it (a low threshold, or a stepped target), keeps all, since only they are left to compare with,
 * unless these took as long as a threshold that is not low: the difference would then hide why all
 * are slow.
 * Does nothing with marks: iterations then go from hit to hit, but the threshold is for the time
 * since the mark.
 */
static void leave_out_slow(struct report *r, const struct hit_mark *hit)
{
	size_t n = 0, last = r->periods.n ? r->periods.n - 1 : 0;
	uint64_t sum = 0;

	/* -cpu-thresh and -off-cpu-thresh cannot be compared with an iteration's length. */
	if (!hit->threshold_ns || hit->reason == MT_HIT_MARK || hit->cpu_measure)
		return;
	for (size_t i = 0; i < last; i++) {
		n += is_below(&r->periods.v[i], hit->threshold_ns);
		sum += r->periods.v[i].end_ns - r->periods.v[i].start_ns;
	}
	if (n == last || (!n && hit->threshold_ns < report__slow_ns(r) / 2) ||
	    (!n && sum / last < report__slow_ns(r) / 4 * 3))
		return;
	r->n_left_out = last - n;
	n = 0;
	for (size_t i = 0; i <= last; i++)
		if (i == last || is_below(&r->periods.v[i], hit->threshold_ns))
			r->periods.v[n++] = r->periods.v[i];
	r->periods.n = n;
}

/* An ordinary iteration may lack stacks for at most 1/UNSEEN_SHARE of its time. */
#define UNSEEN_SHARE 10

/* Leaves out iterations without stacks: their length is known, but not what they did. */
static void leave_out_unseen(struct report *r)
{
	size_t n = 0, last = r->periods.n ? r->periods.n - 1 : 0;

	/* Unseen time is outside of calls, or in CALL_NOT_RECORDED. */
	for (size_t i = 0; i < r->periods.n; i++)
		r->periods.v[i].unseen_ns = r->periods.v[i].end_ns - r->periods.v[i].start_ns;
	VEC_EACH(&r->tree->calls, call) {
		bool is_seen = call->kind != CALL_NOT_RECORDED;
		size_t i = VEC_PARTITION_POINT(&r->periods, p, p->end_ns <= call->start_ns);

		if (is_seen != !call->depth)
			continue;
		for (; i < r->periods.n && r->periods.v[i].start_ns < call->end_ns; i++) {
			struct period *p = &r->periods.v[i];
			uint64_t from = call->start_ns > p->start_ns ? call->start_ns : p->start_ns;
			uint64_t to = call->end_ns < p->end_ns ? call->end_ns : p->end_ns;

			p->unseen_ns += is_seen ? from - to : to - from;
		}
	}
	for (size_t i = 0; i < r->periods.n; i++) {
		const struct period *p = &r->periods.v[i];

		if (i == last || p->unseen_ns <= (p->end_ns - p->start_ns) / UNSEEN_SHARE)
			r->periods.v[n++] = *p;
	}
	r->n_unseen = r->periods.n - n;
	r->periods.n = n;
}

/*
 * Computes the mean length of the ordinary iterations. If none has stacks, the mean of all of them,
 * computed before, remains.
 */
static void take_ordinary(struct report *r)
{
	uint64_t sum = 0;

	if (r->periods.n < 2)
		return;
	r->n_ordinary = r->periods.n - 1;
	for (size_t i = 0; i < r->n_ordinary; i++)
		sum += r->periods.v[i].end_ns - r->periods.v[i].start_ns;
	r->ordinary_ns = sum / r->n_ordinary;
}

/*
 * Counts the iterations of other threads that were not slow, so that the report of one thread of a
 * pool says what it leaves out.
 */
static int count_others(struct report *r)
{
	struct hit_mark hit = r->hit;
	uint64_t sum = 0;
	int err = 0;

	if (hit.since_tid || hit.cpu_measure ||
	    (hit.reason != MT_HIT_REGION &&
	     (hit.in_kernel || (hit.reason != MT_HIT_DURATION && hit.reason != MT_HIT_DELAY))))
		return 0;
	for (size_t i = 0; i < r->n_trees && !err; i++) {
		struct report other = {.tree = &r->trees[i], .sampled = r->sampled};

		if (other.tree == r->tree || !other.tree->calls.n)
			continue;
		err = find_periods(&other, &hit);
		/* The last region is the one that is open at the hit, or ended before it. */
		if (hit.reason == MT_HIT_REGION && other.periods.n)
			other.periods.n--;
		VEC_EACH(&other.periods, p) {
			if (p->end_ns >= hit.time_ns ||
			    (hit.threshold_ns && !is_below(p, hit.threshold_ns)))
				continue;
			sum += p->end_ns - p->start_ns;
			r->n_others++;
		}
		VEC_FINI(&other.periods);
	}
	r->others_ns = r->n_others ? sum / r->n_others : 0;
	return err;
}

/*
 * Finds the tree of the stack that the function was called on: the thread's that triggered, or a
 * coroutine's that ran on other threads before. Of several, the one whose call took as long as the
 * hit says.
 */
static const struct call_tree *find_tree(const struct report_input *input)
{
	const struct call_tree *found = NULL, *any = NULL;
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < input->n_trees; i++) {
		const struct call_tree *tree = &input->trees[i];
		bool is_its = tree->tid == (input->tid ? input->tid : input->hit->tid);
		uint64_t ns = !is_its, off_ns;

		if (is_its && !any)
			any = tree;
		/*
		 * A request's calls may be in any tree of the thread: takes the first, its own
		 * stack's.
		 */
		if (input->hit->since_tid)
			continue;
		if (!(is_its || (tree->coroutine && tree->pid == (pid_t)input->hit->pid)) ||
		    !find_measured(tree, input->hit, &off_ns))
			continue;
		if (input->hit->reason == MT_HIT_DURATION)
			ns = off_ns;
		if (ns < least) {
			found = tree;
			least = ns;
		}
	}
	return found ? found : any;
}

static int fill(struct report *r, const struct report_input *input)
{
	int err;

	if (!r->tree || !input->hit->function)
		return -ENODATA;
	r->trees = input->trees;
	r->n_trees = input->n_trees;
	r->hit = *input->hit;
	r->sampled = input->sampled;
	r->is_of_several = input->is_of_several;
	r->ring_bytes = input->ring_bytes;
	err = find_periods(r, input->hit);
	if (!err)
		err = count_others(r);
	if (err)
		return err;
	leave_out_slow(r, input->hit);
	take_ordinary(r);
	r->all_ordinary_ns = r->ordinary_ns;
	r->n_all_ordinary = r->n_ordinary;
	if (r->sampled)
		leave_out_unseen(r);
	take_ordinary(r);
	return r->periods.n ? report__fill_rows(r) : -ENODATA;
}

struct report *report__new(const struct report_input *input)
{
	struct report *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (r) {
		r->tree = find_tree(input);
		err = fill(r, input);
	}
	if (!err)
		return r;
	report__free(r);
	errno = -err;
	return NULL;
}

void report__free(struct report *r)
{
	if (!r)
		return;
	VEC_FINI(&r->periods);
	VEC_FINI(&r->rows);
	VEC_FINI(&r->paths);
	VEC_FINI(&r->path_at);
	hash_index__fini(&r->by_key);
	free(r);
}
