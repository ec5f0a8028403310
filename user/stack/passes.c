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

/* How well a parked coroutine matches. */
struct likeness {
	struct coroutine *coroutine; /* NULL: none, or several that are different below */
	struct fit fit;
	bool has_waited; /* it waits where it was left, and has not run since */
};

static int compare_parked(const void *a, const void *b)
{
	const struct coroutine *x = *(struct coroutine *const *)a,
			       *y = *(struct coroutine *const *)b;

	if (x->since != y->since)
		return x->since < y->since ? 1 : -1;
	return (x->number > y->number) - (x->number < y->number);
}

/* Lists the coroutines from before the gap; the one that was left last comes first. 0 or -ENOMEM.
 */
static int list_parked(coroutine_vec *parked, struct coroutines *coroutines)
{
	for (size_t i = 0; i < coroutines__count(coroutines); i++) {
		struct coroutine *coroutine = coroutines__at(coroutines, i);

		if (coroutine->state == COROUTINE_PARKED && VEC_ADD(parked, coroutine))
			return -ENOMEM;
	}
	VEC_SORT(parked, compare_parked);
	return 0;
}

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

/* True if it has shown only the frame in which it continued: the caller of the switch. */
static bool is_below_switch(struct held_stack a, struct held_stack b)
{
	return b.n == 1 && a.n > 1 && b.v[0].function && a.v[a.n - 2].function == b.v[0].function;
}

static bool fits(struct coroutine *coroutine, struct held_stack begin, uint64_t began_at,
		 struct likeness *like)
{
	struct held_stack pending = held_vec__all(&coroutine->pending);

	*like = (struct likeness){.coroutine = coroutine};
	/* It has been joined already. */
	if (coroutine->state != COROUTINE_PARKED)
		return false;
	if (held_stack__fits(pending, begin, BOUNDARY_GAP, &like->fit)) {
		like->has_waited = has_waited(coroutine, begin, began_at, &like->fit);
		return true;
	}
	like->fit = (struct fit){.offset = (int64_t)pending.n - 2, .n_agreed = 1};
	like->has_waited = is_below_switch(pending, begin) &&
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

static bool is_better(const struct likeness *a, const struct likeness *b)
{
	int compared = compare_evidence(a, b);

	return compared ? compared > 0 : a->fit.distance < b->fit.distance;
}

/*
 * True if another stack, already joined or not, had the only function that agrees on other frames.
 */
static bool has_another(const coroutine_vec *parked, const struct likeness *best)
{
	struct held_stack a = held_vec__all(&best->coroutine->pending);
	const struct function *function = a.v[best->fit.offset].function;

	for (size_t i = 0; i < parked->n; i++) {
		struct held_stack b = held_vec__all(&parked->v[i]->pending);

		for (size_t k = 0; k < b.n; k++)
			if (b.v[k].function == function &&
			    !is_alike_below(a, best->fit.offset, b, (int64_t)k))
				return true;
	}
	return false;
}

/* True if another one fits as well, and is different below. */
static bool is_unsure(const coroutine_vec *parked, const struct likeness *best,
		      struct held_stack begin, uint64_t began_at)
{
	struct likeness other;

	if (is_rootless(best))
		return false;
	if (!best->fit.is_certain && !best->has_waited && has_another(parked, best))
		return true;
	for (size_t i = 0; i < parked->n; i++)
		if (parked->v[i] != best->coroutine &&
		    fits(parked->v[i], begin, began_at, &other) &&
		    !compare_evidence(&other, best) &&
		    !is_alike_below(held_vec__all(&best->coroutine->pending), best->fit.offset,
				    held_vec__all(&parked->v[i]->pending), other.fit.offset))
			return true;
	return false;
}

/*
 * Finds the parked coroutine that is continued by a stack that began with these frames. began_at:
 * where the switch to it went; 0: it ran when the gap ended.
 */
static struct likeness find_parked(const coroutine_vec *parked, struct held_stack begin,
				   uint64_t began_at)
{
	struct likeness best = {0}, like;

	for (size_t i = 0; i < parked->n; i++)
		if (fits(parked->v[i], begin, began_at, &like) &&
		    (!best.coroutine || is_better(&like, &best)))
			best = like;
	if (best.coroutine && is_unsure(parked, &best, begin, began_at))
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
	struct frames *frames = coroutines__frames_of(&s->coroutines, coroutine);

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
	struct frames *to = coroutines__frames_of(coroutines, coroutine), *from = &loose->frames;

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
	if (coroutines->running == loose)
		coroutines->running = coroutine;
	coroutines->has_mark = false;
	s->frames = coroutines__frames_of(coroutines, coroutines->running);
}

struct ranked {
	struct coroutine *loose;
	size_t n_agreed;
};
typedef VEC(struct ranked) ranked_vec;

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->n_agreed != y->n_agreed)
		return x->n_agreed < y->n_agreed ? 1 : -1;
	return (x->loose->number > y->loose->number) - (x->loose->number < y->loose->number);
}

static struct likeness choose(const coroutine_vec *parked, struct coroutine *loose)
{
	return find_parked(parked, frames__show_begin(&loose->frames), loose->began_at);
}

/* Sorts by evidence, the best first: the last ones may then have only one candidate left. */
static int rank(struct coroutines *coroutines, const coroutine_vec *parked, ranked_vec *all)
{
	for (size_t i = 0; i < coroutines->others.n; i++) {
		struct coroutine *loose = coroutines->others.v[i];

		if (loose->is_loose &&
		    VEC_ADD(all, (struct ranked){loose, choose(parked, loose).fit.n_agreed}))
			return -ENOMEM;
	}
	VEC_SORT(all, compare_ranked);
	return 0;
}

static void find_coroutines(struct stack *s)
{
	struct coroutines *coroutines = &s->coroutines;
	coroutine_vec parked = {0};
	ranked_vec all = {0};

	stack__settle_system(s);
	if (list_parked(&parked, coroutines) || rank(coroutines, &parked, &all))
		s->frames->failed = true;
	for (size_t i = 0; i < all.n; i++) {
		struct likeness like = choose(&parked, all.v[i].loose);

		if (like.coroutine)
			stack__join(s, all.v[i].loose, like.coroutine, like.has_waited);
	}
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

/* A return address may be the first one after the function that called. */
static const struct function *function_of(struct stack *s, const uint64_t *ips, size_t i)
{
	bool is_entry;

	return stack__function_at(s, i ? ips[i] - 1 : ips[i], &is_entry);
}

/* Counts the addresses before the first one that is not code: those after it cannot be trusted. */
static size_t count_known(struct stack *s, const uint64_t *ips, size_t n)
{
	size_t i = 0;

	while (i < n && ips[i] && function_of(s, ips, i))
		i++;
	return i;
}

static void use_stack(struct stack *s, const uint64_t *ips, size_t n)
{
	struct held *held;

	n = count_known(s, ips, n);
	held = calloc(n + 1, sizeof(*held));
	if (!held) {
		s->frames->failed = true;
		return;
	}
	for (size_t i = 0; i < n; i++)
		held[n - 1 - i] = (struct held){
			.function = function_of(s, ips, i),
			.return_ip = i + 1 < n ? ips[i + 1] : 0,
			.entry_ip = ips[i],
		};
	frames__take_stack(s->frames, s->frames->stitcher.n_ends - 1, (struct held_stack){held, n});
	free(held);
}

static void use_anchors(struct stack *s, uint64_t before_ns)
{
	while (s->next_anchor < s->anchors.n && s->anchors.v[s->next_anchor].time_ns < before_ns) {
		const struct anchor *anchor = &s->anchors.v[s->next_anchor++];

		use_stack(s, &s->anchor_ips.v[anchor->first], anchor->n);
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
	size_t n_found, found; /* shortest ways to what ran before the gap; end of the last */
	size_t end;	       /* whose callers they are: in stitcher.ends */
};

/* It ran before that end's run, and may go on. */
static bool ran_before(const struct stitcher *stitcher, size_t end, const struct function *function)
{
	for (size_t i = 0; i < end; i++)
		for (size_t k = 0; k < stitcher->ends[i].stack.n; k++)
			if (stitcher->ends[i].stack.v[k].function == function)
				return true;
	return false;
}

static size_t find_function(const struct callers *callers, const struct function *function)
{
	size_t i = 0;

	while (i < callers->n && callers->frames[i].function != function)
		i++;
	return i;
}

static void add_caller(struct stack *s, struct callers *callers, size_t above, uint64_t behind)
{
	bool is_entry;
	const struct function *function = stack__function_at(s, behind - 1, &is_entry);
	size_t at = function ? find_function(callers, function) : MAX_FRAMES;

	if (at == MAX_FRAMES)
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

/* With debug symbols, it has the second name, from libc's own code. */
static bool starts_main(const struct function *function)
{
	return function__is_named(function, "__libc_start_main") ||
	       function__is_named(function, "__libc_start_main_impl");
}

static const struct held *find_start_main(const struct stitcher *stitcher, size_t end)
{
	for (size_t i = end; i-- > 0;)
		for (size_t k = 0; k < stitcher->ends[i].stack.n; k++)
			if (starts_main(stitcher->ends[i].stack.v[k].function))
				return &stitcher->ends[i].stack.v[k];
	return NULL;
}

static void add_caller_of_main(struct stack *s, struct callers *callers, size_t above)
{
	const struct held *start = find_start_main(&s->frames->stitcher, callers->end);
	uint64_t behind = start ? elf_main__behind_call(start->function) : 0;
	struct code_place place;

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

/*
 * A frame is called where the one below it goes on. The uppermost frame may have become another
 * function's since, by a jump.
 */
static void take_callers(struct stack *s, const struct callers *callers,
			 const struct function *became)
{
	struct held stack[MAX_FRAMES];
	size_t at = callers->found, n = callers->depth[at] + 1;

	for (size_t i = 0; i < n; i++, at = callers->above[at]) {
		stack[i] = callers->frames[at];
		stack[i].return_ip = i ? stack[i - 1].entry_ip : 0;
	}
	stack[n - 1].function = became;
	frames__take_stack(s->frames, callers->end, (struct held_stack){stack, n});
}

static void find_callers_of(struct stack *s, size_t end)
{
	struct stitcher *stitcher = &s->frames->stitcher;
	const struct held *lowest = stitcher__lowest(stitcher, end);
	struct callers callers = {.n = 1, .end = end};

	if (!lowest || !lowest->function)
		return;
	callers.frames[0] = *lowest;
	for (size_t i = 0; i < callers.n; i++) {
		if (callers.n_found && callers.depth[i] == callers.depth[callers.found])
			break;
		add_callers(s, &callers, i);
	}
	if (callers.n_found == 1)
		take_callers(s, &callers, stitcher->ends[end].stack.v->function);
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
	for (size_t i = 0; i < coroutines__count(coroutines); i++) {
		const struct coroutine *coroutine = coroutines__at(coroutines, i);

		if (coroutine != coroutines->running && coroutine->state != COROUTINE_OVER)
			return true;
	}
	return false;
}

static void park_all(struct stack *s)
{
	struct coroutines *coroutines = &s->coroutines;

	for (size_t i = 0; i < coroutines__count(coroutines); i++) {
		struct coroutine *coroutine = coroutines__at(coroutines, i);

		if (coroutine->state == COROUTINE_OVER)
			coroutine->pending.n = 0;
		if (coroutine->state != COROUTINE_RUNS && coroutine->state != COROUTINE_WAITS)
			continue;
		/* The scheduler starts from the same frames each time. */
		if (coroutine == coroutines->system && coroutine->state == COROUTINE_WAITS)
			continue;
		frames__list_pending(coroutines__frames_of(coroutines, coroutine),
				     &coroutine->pending);
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
	for (size_t i = 0; i < coroutines__count(coroutines); i++) {
		struct coroutine *coroutine = coroutines__at(coroutines, i);
		struct frames *frames = coroutines__frames_of(coroutines, coroutine);

		if (coroutine->state == COROUTINE_WAITS || coroutine->state == COROUTINE_PARKED)
			frames__pop_to(frames, NULL, time_ns, CALL_INFERRED_END);
		coroutine->state = COROUTINE_OVER;
		coroutine->is_loose = false;
		/* Another coroutine with the same functions is not the same one. */
		if (i)
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
	frames__pop_to(&s->own_frames, NULL, s->last_ns, CALL_INFERRED_END);
}
