// SPDX-License-Identifier: MIT
/*
 * Segments end at gaps and begin after them. In between, passes over the ended segments find what
 * is known only later. They use the calls, and the stacks that each segment shows at its two ends.
 */
#include "stack/stack_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "stack/stack.h"
#include "target/elf/elf_callers.h"

/* The coroutines pass. */

/*
 * Identifies stacks that run after a gap with stacks from before it, by the functions and the
 * return addresses of the frames that they show.
 */

typedef VEC(struct coroutine *) coroutine_vec;

/* Tells how well a parked coroutine matches. */
struct likeness {
	struct coroutine *coroutine; /* NULL: none matches, or several with different callers do */
	struct fit fit;
	bool has_waited; /* it waits where it was left, and has not run since */
};

/* The one that was left last comes first. */
ORDER(by_last_left, struct coroutine *,
      COMPARE((*y)->since, (*x)->since) ?: COMPARE((*x)->number, (*y)->number))

/* True if all that it shows is as it was when the stack was left. */
static bool has_waited(const struct coroutine *coroutine, struct held_stack begin,
		       uint64_t began_at, const struct fit *fit)
{
	/* + 1: the top frame of `pending`, the function that switched, has ended since. */
	return began_at && coroutine->waits_at &&
	       began_at - coroutine->waits_at <= coroutine->slack &&
	       fit->first + fit->n_agreed == begin.n &&
	       (size_t)(fit->offset + (int64_t)begin.n) + 1 == coroutine->pending.n;
}

static bool fits(struct coroutine *coroutine, struct held_stack begin, uint64_t began_at,
		 struct likeness *like)
{
	struct held_stack pending = held_vec__all(&coroutine->pending);
	size_t n = pending.n;

	*like = (struct likeness){.coroutine = coroutine};
	/* It has been joined already. */
	if (coroutine->state != COROUTINE_PARKED)
		return false;
	if (held_stack__fits(pending, begin, BOUNDARY_GAP, &like->fit)) {
		like->has_waited = has_waited(coroutine, begin, began_at, &like->fit);
		return true;
	}
	/* It may have shown only the frame in which it continued: the caller of the switch. */
	like->fit = (struct fit){.offset = (int64_t)n - 2, .n_agreed = 1};
	like->has_waited = begin.n == 1 && n > 1 && begin.v[0].function &&
			   pending.v[n - 2].function == begin.v[0].function &&
			   has_waited(coroutine, begin, began_at, &like->fit);
	return like->has_waited;
}

/* True if the frames below in_b in b have the functions of those below in_a in a. */
static bool is_alike_below(struct held_stack a, int64_t in_a, struct held_stack b, int64_t in_b)
{
	if (in_a != in_b)
		return false;
	for (int64_t i = 0; i < in_a; i++)
		if (a.v[i].function != b.v[i].function)
			return false;
	return true;
}

/* True if the frames below are not known, so that it may be the same as others. */
static bool is_rootless(const struct likeness *like)
{
	return like->fit.offset < 0 || (!like->fit.offset && like->coroutine->is_rootless);
}

/* Above 0: more says that it is a. */
static int compare_evidence(const struct likeness *a, const struct likeness *b)
{
	if (a->fit.n_agreed != b->fit.n_agreed)
		return a->fit.n_agreed > b->fit.n_agreed ? 1 : -1;
	if (is_rootless(a) != is_rootless(b))
		return is_rootless(b) ? 1 : -1;
	return a->has_waited - b->has_waited;
}

/* True if another one fits as well, and is different below. */
static bool is_unsure(const coroutine_vec *parked, const struct likeness *best,
		      struct held_stack begin, uint64_t began_at)
{
	struct held_stack a = held_vec__all(&best->coroutine->pending);
	bool is_weak = !best->fit.is_certain && !best->has_waited;
	struct likeness like;

	if (is_rootless(best))
		return false;
	VEC_EACH(parked, other) {
		struct held_stack b = held_vec__all(&(*other)->pending);

		/*
		 * The only function that agrees: a stack, already joined or not, may have had it on
		 * other frames.
		 */
		for (size_t k = 0; is_weak && k < b.n; k++)
			if (b.v[k].function == a.v[best->fit.offset].function &&
			    !is_alike_below(a, best->fit.offset, b, (int64_t)k))
				return true;
		if (*other != best->coroutine && fits(*other, begin, began_at, &like) &&
		    !compare_evidence(&like, best) &&
		    !is_alike_below(a, best->fit.offset, b, like.fit.offset))
			return true;
	}
	return false;
}

/* Finds the parked coroutine that the loose one continues. */
static struct likeness find_parked(const coroutine_vec *parked, struct coroutine *loose)
{
	struct held_stack begin = frames__show_begin(&loose->frames);
	struct likeness best = {0}, like;

	VEC_EACH(parked, coroutine) {
		int compared;

		if (!fits(*coroutine, begin, loose->began_at, &like))
			continue;
		compared = best.coroutine ? compare_evidence(&like, &best) : 1;
		if (compared > 0 || (!compared && like.fit.distance < best.fit.distance))
			best = like;
	}
	if (best.coroutine && is_unsure(parked, &best, begin, loose->began_at))
		best.coroutine = NULL;
	return best;
}

/*
 * After a gap it is not known which of a thread's stacks runs, nor what the others have done in it.
 * So everything that runs until the next gap is kept apart: each stack as if the trace began there.
 * Then the new stacks are joined to the ones from before whose frames and return addresses they
 * have shown. A stack that has shown too little stays apart.
 */

void stack__end_wait(struct stack *s, struct coroutine *coroutine, uint64_t time_ns,
		     bool has_waited)
{
	struct frames *frames = &coroutine->frames;

	if (!frames->open.n) {
		if (time_ns > coroutine->left_ns)
			frames__add_wait(frames, coroutine->left_ns, time_ns);
		return;
	}
	if (has_waited) {
		frames__pop(frames, time_ns, 0); /* the slice of the time switched out */
		frames__pop(frames, time_ns, 0);
	}
	frames__pop_to(frames, NULL, time_ns, CALL_INFERRED_END);
	frames__end_segment(frames);
}

void stack__join(struct stack *s, struct coroutine *loose, struct coroutine *coroutine,
		 bool has_waited)
{
	struct coroutines *coroutines = &s->coroutines;
	struct frames *to = &coroutine->frames, *from = &loose->frames;

	stack__end_wait(s, coroutine, from->parts.v[0].start_ns, has_waited);
	to->failed |= frames__append(to, from, has_waited ? BOUNDARY_WAIT : BOUNDARY_GAP) != 0;
	coroutine->state = loose->state;
	coroutine->waits_at = loose->waits_at;
	coroutine->slack = loose->slack;
	coroutine->since = loose->since;
	coroutine->generation = loose->generation;
	coroutine->is_goroutine |= loose->is_goroutine;
	coroutine->is_fiber |= loose->is_fiber;
	loose->state = COROUTINE_OVER;
	loose->is_loose = false;
	/* Its frames are empty now. */
	loose->n_bare = 0;
	if (coroutines->system == loose)
		coroutines->system = coroutine;
	if (coroutines->running == loose)
		coroutines->running = coroutine;
	coroutines->has_mark = false;
	s->frames = &coroutines->running->frames;
}

struct ranked {
	struct coroutine *loose;
	size_t n_agreed;
};

/* The best evidence comes first: the last ones may then have only one candidate left. */
ORDER(by_evidence, struct ranked,
      COMPARE(y->n_agreed, x->n_agreed) ?: COMPARE(x->loose->number, y->loose->number))

static void find_coroutines(struct stack *s)
{
	struct coroutines *coroutines = &s->coroutines;
	VEC(struct ranked) all = {0};
	coroutine_vec parked = {0};
	bool failed = false;

	stack__settle_system(s);
	COROUTINES_EACH(coroutines, coroutine)
		if (coroutine->state == COROUTINE_PARKED)
			failed |= VEC_ADD(&parked, coroutine) != 0;
	VEC_SORT(&parked, by_last_left);
	VEC_EACH(&coroutines->others, other)
		if ((*other)->is_loose)
			failed |= VEC_ADD(&all,
					  (struct ranked){
						  *other,
						  find_parked(&parked, *other).fit.n_agreed}) != 0;
	VEC_SORT(&all, by_evidence);
	VEC_EACH(&all, ranked) {
		struct likeness like = find_parked(&parked, ranked->loose);

		if (like.coroutine)
			stack__join(s, ranked->loose, like.coroutine, like.has_waited);
	}
	s->frames->failed |= failed;
	VEC_FINI(&all);
	VEC_FINI(&parked);
}

/*
 * The hit stacks pass. The stack at a trigger is known whole, while the branches before it may
 * lead back no further than to frames that returned: the callers below these come from that stack.
 */

int stack__anchor(struct stack *s, uint64_t time_ns, const uint64_t *ips, size_t n)
{
	const struct anchor anchor = {.time_ns = time_ns, .first = s->anchor_ips.n, .n = n};

	for (size_t i = 0; i < n; i++)
		if (VEC_ADD(&s->anchor_ips, ips[i]))
			return -ENOMEM;
	return VEC_ADD(&s->anchors, anchor);
}

static void use_anchors(struct stack *s, uint64_t before_ns)
{
	while (s->next_anchor < s->anchors.n && s->anchors.v[s->next_anchor].time_ns < before_ns) {
		const struct anchor *anchor = &s->anchors.v[s->next_anchor++];
		const uint64_t *ips = &s->anchor_ips.v[anchor->first];
		struct held *all = calloc(anchor->n + 1, sizeof(*all)), *lowest;
		size_t n = 0;

		if (!all) {
			s->frames->failed = true;
			return;
		}
		lowest = all + anchor->n;
		for (; n < anchor->n && ips[n]; n++) {
			/* A return address may be the first one after the function that called. */
			const struct function *function =
				stack__function_at(s, n ? ips[n] - 1 : ips[n], NULL);

			/* The addresses after one that is not code cannot be trusted. */
			if (!function)
				break;
			if (n)
				lowest->return_ip = ips[n];
			*--lowest = (struct held){.function = function, .entry_ip = ips[n]};
		}
		frames__take_stack(s->frames, s->frames->stitcher.n_ends - 1,
				   (struct held_stack){lowest, n});
		free(all);
	}
}

/*
 * The callers pass. Frames that were called in a gap and run to the end of the trace never return,
 * so no branch shows their callers. The code may tell: if a function is referred to by calls only,
 * one of these has called it, and so on, down to a frame that ran before the gap. The path with the
 * fewest calls is taken if it is the only one. main() is called by its address: libc's code tells
 * where.
 */

#define MAX_FRAMES 32

/*
 * Functions that may have called the lowest frame, with the addresses after their calls. `above`:
 * the index of the function called, which comes earlier.
 */
struct callers {
	struct held frames[MAX_FRAMES];
	size_t above[MAX_FRAMES], depth[MAX_FRAMES];
	size_t n;
	/*
	 * n_found: number of shortest paths to functions that ran before the gap; found: index of
	 * the last of these functions.
	 */
	size_t n_found, found;
	size_t end; /* index in stitcher.ends: the stack whose callers are searched */
};

/* True if an earlier end has a frame of this function, which may still be running. */
static bool ran_before(const struct stitcher *stitcher, size_t end, const struct function *function)
{
	for (size_t i = 0; i < end; i++)
		for (size_t k = 0; k < stitcher->ends[i].stack.n; k++)
			if (stitcher->ends[i].stack.v[k].function == function)
				return true;
	return false;
}

static void add_caller(struct stack *s, struct callers *callers, size_t above, uint64_t behind)
{
	const struct function *function = stack__function_at(s, behind - 1, NULL);
	size_t at = 0;

	while (at < callers->n && callers->frames[at].function != function)
		at++;
	if (!function || at == MAX_FRAMES)
		return;
	if (at < callers->n) {
		callers->n_found +=
			callers->n_found && at == callers->found && callers->above[at] != above;
		return;
	}
	callers->frames[at] = (struct held){.function = function, .entry_ip = behind};
	callers->above[at] = above;
	callers->depth[at] = callers->depth[above] + 1;
	callers->n++;
	if (!ran_before(&s->frames->stitcher, callers->end, function))
		return;
	callers->found = at;
	callers->n_found++;
}

static void add_caller_of_main(struct stack *s, struct callers *callers, size_t above)
{
	const struct held *start = NULL;
	struct code_place place;
	uint64_t behind;

	for (size_t i = callers->end; i-- > 0 && !start;)
		VEC_EACH(&s->frames->stitcher.ends[i].stack, held)
			/* With debug symbols, it has the second name, from libc's own code. */
			if (function__is_named(held->function, "__libc_start_main") ||
			    function__is_named(held->function, "__libc_start_main_impl")) {
				start = held;
				break;
			}
	behind = start ? elf_main__behind_call(start->function) : 0;
	if (behind && code_map__find(s->map, start->entry_ip, &place))
		add_caller(s, callers, above, start->entry_ip - place.vaddr + behind);
}

static void add_callers(struct stack *s, struct callers *callers, size_t above)
{
	uint64_t ip = callers->frames[above].entry_ip;
	struct elf_callers calls;
	struct code_place place;

	if (!code_map__find(s->map, ip, &place))
		return;
	calls = elf_callers__of(place.function);
	if (calls.exported_as && code_map__others_name(s->map, place.image, calls.exported_as))
		calls.n = 0;
	for (size_t i = 0; i < calls.n; i++)
		add_caller(s, callers, above, ip - place.vaddr + calls.behind[i]);
	if (function__is_named(place.function, "main"))
		add_caller_of_main(s, callers, above);
}

static void find_callers_of(struct stack *s, size_t end)
{
	struct stitcher *stitcher = &s->frames->stitcher;
	const struct held *lowest = stitcher__lowest(stitcher, end);
	struct callers callers = {.n = 1, .end = end};
	struct held stack[MAX_FRAMES];
	size_t n, at;

	if (!lowest || !lowest->function)
		return;
	callers.frames[0] = *lowest;
	for (size_t i = 0; i < callers.n; i++) {
		if (callers.n_found && callers.depth[i] == callers.depth[callers.found])
			break;
		add_callers(s, &callers, i);
	}
	if (callers.n_found != 1)
		return;
	/* A frame is called where the one below it goes on. */
	at = callers.found;
	n = callers.depth[at] + 1;
	for (size_t i = 0; i < n; i++, at = callers.above[at]) {
		stack[i] = callers.frames[at];
		stack[i].return_ip = i ? stack[i - 1].entry_ip : 0;
	}
	/* The uppermost frame may have become another function's since, by a jump. */
	stack[n - 1].function = stitcher->ends[end].stack.v->function;
	frames__take_stack(s->frames, end, (struct held_stack){stack, n});
}

/*
 * Runs may be on one another: the last is placed before the callers of the one below it matter.
 * Where that is, is where all runs since are, so that these need their callers before.
 */
static void find_callers(struct stack *s)
{
	struct stitcher *stitcher = &s->frames->stitcher;

	for (size_t end = 1; end + 1 < stitcher->n_ends; end++)
		find_callers_of(s, end);
	do
		if (stitcher->n_ends > 1)
			find_callers_of(s, stitcher->n_ends - 1);
	while (stitcher__settle(stitcher));
}

/* The end of a segment, and the next one. */

/* Without others, the only stack continues after the gap, unless another began meanwhile. */
static bool has_others(struct coroutines *coroutines)
{
	if (coroutines->n_switches != coroutines->n_at_gap)
		return true;
	COROUTINES_EACH(coroutines, coroutine)
		if (coroutine != coroutines->running && coroutine->state != COROUTINE_OVER)
			return true;
	return false;
}

static void park_all(struct stack *s)
{
	struct coroutines *coroutines = &s->coroutines;

	COROUTINES_EACH(coroutines, coroutine) {
		if (coroutine->state == COROUTINE_OVER)
			coroutine->pending.n = 0;
		if (coroutine->state != COROUTINE_RUNS && coroutine->state != COROUTINE_WAITS)
			continue;
		/* The scheduler starts from the same frames each time. */
		if (coroutine == coroutines->system && coroutine->state == COROUTINE_WAITS)
			continue;
		frames__list_pending(&coroutine->frames, &coroutine->pending);
		if (coroutine->state == COROUTINE_RUNS) {
			coroutine->waits_at = 0;
			coroutine->since = ++coroutines->n_switches;
		}
		coroutine->parent = coroutine->child = coroutine->performed = NULL;
		coroutine->state = COROUTINE_PARKED;
	}
	if (coroutines->system && coroutines->system->state == COROUTINE_PARKED) {
		coroutines->lost_system = coroutines->system;
		coroutines->system = NULL;
	}
	coroutines->recovering = NULL;
	coroutines->performer = coroutines->resumer = NULL;
	coroutines->is_lost = true;
	coroutines->n_before_gap = coroutines->n_switches;
}

/*
 * Between two snapshots much may have happened: ends all stacks, and goes on with the thread's own.
 */
static void forget_all(struct stack *s, uint64_t time_ns)
{
	struct coroutines *coroutines = &s->coroutines;

	coroutines->system = coroutines->lost_system = coroutines->recovering = NULL;
	COROUTINES_EACH(coroutines, coroutine) {
		struct frames *frames = &coroutine->frames;

		if (coroutine->state == COROUTINE_WAITS || coroutine->state == COROUTINE_PARKED)
			frames__pop_to(frames, NULL, time_ns, CALL_INFERRED_END);
		coroutine->state = COROUTINE_OVER;
		coroutine->is_loose = false;
		/* Another coroutine with the same functions is not the same one. */
		if (coroutine != &coroutines->own)
			frames->held.n = 0;
	}
	stack__switch_to(s, &coroutines->own);
}

/*
 * A stack that the coroutines pass has not recognised may be any, and it is not known which of them
 * runs after the gap.
 */
static void park(struct stack *s)
{
	struct coroutines *coroutines = &s->coroutines;

	coroutines->has_mark = false;
	for (size_t i = 0; i < coroutines->others.n; i++) {
		struct coroutine *coroutine = coroutines->others.v[i];

		coroutine->is_rootless |= coroutine->is_loose;
		coroutine->is_loose = false;
	}
	if (!s->in_gap)
		return;
	if (s->gap_reason == GAP_BETWEEN)
		forget_all(s, s->gap_ns);
	else if (has_others(coroutines))
		park_all(s);
	coroutines->n_at_gap = coroutines->n_switches;
}

/* before_ns: the begin of the next segment; UINT64_MAX: this was the last. */
static void run_passes(struct stack *s, uint64_t before_ns)
{
	if (!(s->passes_off & PASS_COROUTINES))
		find_coroutines(s);
	park(s);
	frames__end_segment(s->frames);
	if (!(s->passes_off & PASS_HIT_STACKS))
		use_anchors(s, before_ns);
	if (!(s->passes_off & PASS_CALLERS) && before_ns == UINT64_MAX)
		find_callers(s);
	if (s->passes_off & PASS_STITCHING)
		s->frames->stitcher.n_ends = 0;
}

/* Keeps the stack that runs now apart, until the coroutines pass identifies it. */
static void begin_loose(struct stack *s, const struct branch *b)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *coroutine;

	coroutines->is_lost = false;
	coroutines->running->left_ns = b->time_ns;
	coroutine = stack__add_coroutine(s, b->time_ns, true);
	if (!coroutine) {
		coroutines->running->state = COROUTINE_RUNS;
		return;
	}
	coroutine->generation = ++coroutines->n_begun;
	coroutine->is_loose = !coroutine->frames.parts.n;
	coroutine->is_rootless = !coroutine->is_loose;
	coroutine->began_at = 0;
	stack__switch_to(s, coroutine);
}

void stack__start_segment(struct stack *s, const struct branch *b)
{
	run_passes(s, b->time_ns);
	if (s->in_gap)
		frames__add_gap(s->frames, s->gap_ns, b->time_ns, s->gap_reason);
	if (s->coroutines.is_lost)
		begin_loose(s, b);
	s->in_gap = false;
	s->in_segment = true;
	s->outside = s->stopped_in_kernel = s->in_sigreturn = s->is_in_user = false;
	frames__begin_segment(s->frames, b->time_ns);
	stack__push_first(s, b->to);
}

void stack__end_segments(struct stack *s)
{
	if (!s->in_gap)
		frames__pop_to(s->frames, NULL, s->last_ns, CALL_INFERRED_END);
	run_passes(s, UINT64_MAX);
	if (s->in_gap)
		frames__add_gap(s->frames, s->gap_ns, s->last_ns, s->gap_reason);
	frames__pop_to(&s->coroutines.own.frames, NULL, s->last_ns, CALL_INFERRED_END);
}
