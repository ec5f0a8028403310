// SPDX-License-Identifier: MIT
/*
 * The stacks that one thread runs on in turn, and the switches from one to another: swapcontext()
 * and the like, and functions whose code loads the stack pointer. Frames that are switched out stay
 * open, and wait at the address to which their switch would have returned: a branch to that address
 * continues them. If several wait at one address, only the stack pointer, which no packet tells,
 * could distinguish them. The one left last is taken; of goroutines that queue, the first. A later
 * return may correct that.
 */
#include "stack/rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void coroutines__init(struct coroutines *coroutines, struct frames *own_frames)
{
	*coroutines = (struct coroutines){.own_frames = own_frames,
					  .own.state = COROUTINE_RUNS,
					  .max = COROUTINES_MAX,
					  .system_index = UINT32_MAX};
	coroutines->running = &coroutines->own;
}

void coroutines__fini(struct coroutines *coroutines)
{
	for (size_t i = 0; i < coroutines->others.n; i++) {
		frames__fini(&coroutines->others.v[i]->frames);
		VEC_FINI(&coroutines->others.v[i]->pending);
		free(coroutines->others.v[i]);
	}
	VEC_FINI(&coroutines->others);
	VEC_FINI(&coroutines->own.pending);
	VEC_FINI(&coroutines->system_base);
	frames_mark__fini(&coroutines->mark);
}

static struct coroutine *later(struct coroutine *best, struct coroutine *coroutine)
{
	return !best || coroutine->since > best->since ? coroutine : best;
}

static bool waits_at(const struct coroutine *coroutine, uint64_t ip, enum coroutine_state state)
{
	return coroutine->state == state && coroutine->waits_at &&
	       ip - coroutine->waits_at <= coroutine->slack;
}

bool coroutines__has_parked(const struct coroutines *coroutines, uint64_t ip)
{
	for (size_t i = 0; i < coroutines__count(coroutines); i++) {
		const struct coroutine *coroutine = coroutines__at(coroutines, i);

		if (ip ? waits_at(coroutine, ip, COROUTINE_PARKED)
		       : coroutine->state == COROUTINE_PARKED)
			return true;
	}
	return false;
}

struct coroutine *coroutines__find_waiting(const struct coroutines *coroutines, uint64_t ip,
					   bool is_first)
{
	struct coroutine *best = NULL;

	for (size_t i = 0; ip && i < coroutines__count(coroutines); i++) {
		struct coroutine *coroutine = coroutines__at(coroutines, i);

		if (waits_at(coroutine, ip, COROUTINE_WAITS) &&
		    (!best || (coroutine->since < best->since) == is_first))
			best = coroutine;
	}
	return best;
}

/*
 * Finds, of the coroutines in that state that wait where the running one did, the last one left
 * whose frames fit: see frames_mark__fits().
 */
static struct coroutine *find_other(const struct coroutines *coroutines, uint64_t return_ip,
				    enum coroutine_state state)
{
	struct coroutine *running = coroutines->running, *best = NULL;
	struct frames *frames = coroutines__frames_of(coroutines, running);

	for (size_t i = 0; i < coroutines__count(coroutines); i++) {
		struct coroutine *coroutine = coroutines__at(coroutines, i);

		if (waits_at(coroutine, coroutines->mark.waits_at, state) &&
		    frames_mark__fits(&coroutines->mark, frames,
				      coroutines__frames_of(coroutines, coroutine), return_ip))
			best = later(best, coroutine);
	}
	return best;
}

static bool is_free(const struct coroutine *coroutine, bool is_loose)
{
	return coroutine->state == COROUTINE_OVER && !coroutine->is_loose &&
	       (!is_loose || !coroutine->frames.parts.n);
}

/* Clears everything about the coroutine that was there before, except its track. */
static struct coroutine *use_again(struct coroutines *coroutines, struct coroutine *coroutine)
{
	if (coroutines->system == coroutine)
		coroutines->system = NULL;
	if (coroutines->lost_system == coroutine)
		coroutines->lost_system = NULL;
	frames__forget(&coroutine->frames);
	coroutine->frames.landings.n = 0;
	coroutine->is_fiber = coroutine->is_rootless = false;
	coroutine->parent = coroutine->child = coroutine->performed = NULL;
	return coroutine;
}

/*
 * Ends the stack that has waited longest: another one can have its track. If the thread goes back
 * to it later, the callers there are unknown. NULL: no stack waits.
 */
static struct coroutine *forget_oldest(struct stack *s, uint64_t time_ns)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *oldest = NULL;

	for (size_t i = 0; i < coroutines->others.n; i++) {
		struct coroutine *coroutine = coroutines->others.v[i];

		if ((coroutine->state == COROUTINE_WAITS || coroutine->state == COROUTINE_PARKED) &&
		    coroutine != coroutines->system && coroutine != coroutines->lost_system &&
		    (!oldest || coroutine->since < oldest->since))
			oldest = coroutine;
	}
	if (!oldest)
		return NULL;
	stack__end_wait(s, oldest, time_ns, false);
	oldest->state = COROUTINE_OVER;
	oldest->is_loose = false;
	oldest->pending.n = 0;
	if (coroutines->recovering == oldest)
		coroutines->recovering = NULL;
	if (coroutines->performer == oldest)
		coroutines->performer = NULL;
	if (coroutines->resumer == oldest)
		coroutines->resumer = NULL;
	for (size_t i = 0; i < coroutines__count(coroutines); i++) {
		struct coroutine *coroutine = coroutines__at(coroutines, i);

		if (coroutine->performed == oldest)
			coroutine->performed = NULL;
	}
	return oldest;
}

struct coroutine *stack__add_coroutine(struct stack *s, uint64_t time_ns, bool is_loose)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine **place, *coroutine;

	/*
	 * From here on, calls that were taken for the thread's own may turn out to be another
	 * stack's.
	 */
	coroutines->own_frames->consumer = NULL;
	for (size_t i = 0; i < coroutines->others.n; i++)
		if (is_free(coroutines->others.v[i], is_loose))
			return use_again(coroutines, coroutines->others.v[i]);
	if (coroutines->others.n >= coroutines->max) {
		/* A track with calls is shared rather than a stack forgotten that may still run. */
		for (size_t i = 0; is_loose && i < coroutines->others.n; i++)
			if (is_free(coroutines->others.v[i], false))
				return use_again(coroutines, coroutines->others.v[i]);
		coroutine = forget_oldest(s, time_ns);
		return coroutine ? use_again(coroutines, coroutine) : NULL;
	}
	coroutine = calloc(1, sizeof(*coroutine));
	place = coroutine ? VEC_PUSH(&coroutines->others) : NULL;
	if (!place) {
		free(coroutine);
		return NULL;
	}
	*place = coroutine;
	frames__init(&coroutine->frames);
	coroutine->number = (uint32_t)coroutines->others.n;
	return coroutine;
}

struct coroutine *coroutines__take_next(struct coroutines *coroutines)
{
	while (coroutines->n_taken < coroutines->others.n) {
		struct coroutine *coroutine = coroutines->others.v[coroutines->n_taken++];

		if (coroutine->frames.parts.n)
			return coroutine;
	}
	return NULL;
}

void coroutines__name(const struct coroutines *coroutines, const struct coroutine *coroutine,
		      char *buf, size_t size)
{
	const char *kind = coroutine->is_goroutine ? "goroutine"
			   : coroutine->is_fiber   ? "fiber"
						   : "coroutine";

	if (coroutine == coroutines->system)
		snprintf(buf, size, "g0");
	else
		snprintf(buf, size, "%s %" PRIu32, kind, coroutine->number);
}

/*
 * Goroutines (Go's src/runtime/asm_amd64.s, proc.go). Each thread has a stack for the scheduler,
 * g0's. mcall() and morestack() leave a goroutine by calling a function on that stack, which does
 * not return. The scheduler goes to a goroutine by gogo(): it jumps to the address after that one's
 * call of mcall() or morestack(), or to its first function. systemstack() calls functions on that
 * stack, too, but they return like any call, and are shown as calls.
 */

bool stack__is_preemption(const struct function *function)
{
	return function__is_named(function, "runtime.asyncPreempt") ||
	       function__is_named(function, "runtime.asyncPreempt.abi0");
}

static struct frame *find_frame(const struct frames *frames, const char *name)
{
	struct frame *frame = frames__top(frames);

	while (frame && !function__is_named(frame->call.function, name))
		frame = frames__parent(frames, frame);
	return frame;
}

/*
 * Ends the goroutine. Its last frame is goexit1()'s, which is called by Goexit() or by the function
 * that every goroutine returns to.
 */
static void end_goroutine(struct stack *s, const struct branch *b)
{
	bool by_goexit = find_frame(s->frames, "runtime.Goexit");

	frames__cut_to(s->frames, NULL, b->time_ns, by_goexit ? LEFT_BY_GOEXIT : LEFT_BY_UNKNOWN);
	if (s->coroutines.running == &s->coroutines.own)
		stack__suspend(s, b->time_ns, 0);
	else
		stack__end(s, b->time_ns, 0);
}

static void leave_goroutine(struct stack *s, const struct branch *b,
			    const struct function *function)
{
	struct coroutine *coroutine = s->coroutines.running;

	coroutine->is_goroutine = true;
	if (function__is_named(function, "runtime.goexit0"))
		end_goroutine(s, b);
	else
		stack__suspend(s, b->time_ns, frames__top(s->frames)->resume_ip);
	if (function__is_named(function, "runtime.recovery"))
		s->coroutines.recovering = coroutine;
}

/*
 * Starts a new segment on the scheduler's permanent frames: it runs other functions in them each
 * time. If these frames are not known, the segment has no callers: all that the scheduler ran on
 * them before a gap has ended.
 */
static void begin_system(struct stack *s, uint64_t time_ns)
{
	const held_vec *base = &s->coroutines.system_base;

	if (!base->n)
		frames__forget(s->frames);
	frames__begin_with(s->frames, time_ns, held_vec__all(base), CALL_INSIDE);
	if (base->n && frames__top(s->frames)) {
		s->coroutines.system_depth = s->frames->open.n - 1;
		s->coroutines.system_index = frames__top(s->frames)->index;
	}
}

/*
 * Finds the scheduler's permanent frames, the callers of mstart1(), among those that ran before a
 * gap. Segments since then may have shown only what was called on top of them.
 */
static void find_earlier_base(struct stack *s, const struct frames *frames)
{
	held_vec *base = &s->coroutines.system_base;

	for (size_t end = frames->stitcher.n_ends; end-- > 0 && !base->n;) {
		struct held_stack stack = held_vec__all(&frames->stitcher.ends[end].stack);

		while (stack.n &&
		       !function__is_named(stack.v[--stack.n].function, "runtime.mstart1"))
			;
		s->frames->failed |= VEC_ADD_ALL(base, &stack) != 0;
	}
}

/* Finds a scheduler that ran when a gap began, and was left in the gap. */
static void find_system(struct stack *s, const struct branch *b)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *system = coroutines->lost_system;

	coroutines->lost_system = NULL;
	if (!system || system->state != COROUTINE_PARKED)
		return;
	stack__end_wait(s, system, b->time_ns, false);
	coroutines->system = system;
}

void event__go_mcall(struct stack *s, const struct branch *b, struct event *e)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *system;

	if (!coroutines->system)
		find_system(s, b);
	system = coroutines->system;
	if (!system)
		system = stack__add_coroutine(s, b->time_ns, false);
	if (!system || system == coroutines->running) {
		stack__push_call(s, b, e->function);
		return;
	}
	leave_goroutine(s, b, e->function);
	if (system != coroutines->system) {
		coroutines->system = system;
		find_earlier_base(s, coroutines->own_frames);
		if (!coroutines->system_base.n) {
			stack__begin_at(s, b->time_ns, system, b->to);
			return;
		}
		system->generation = ++coroutines->n_begun;
	}
	if (system->state == COROUTINE_WAITS) {
		stack__resume(s, b->time_ns, system);
	} else {
		stack__switch_to(s, system);
		begin_system(s, b->time_ns);
	}
	stack__push(s, &(struct frame){.call = branch__call(b, e->function, CALL_FUNCTION)});
}

/*
 * The frame on which the scheduler starts each time: mstart1()'s caller. That call is seen only
 * once.
 */
static struct frame *find_base(struct stack *s)
{
	struct coroutines *coroutines = &s->coroutines;
	struct frames *frames = s->frames;
	struct frame *first = find_frame(frames, "runtime.mstart1");
	struct frame *base = first ? frames__parent(frames, first) : NULL;

	if (base) {
		coroutines->system_depth = (size_t)(base - frames->open.v);
		coroutines->system_index = base->index;
		coroutines->system_base.n = 0;
		frames__list_open(frames, coroutines->system_depth + 1, &coroutines->system_base);
		return base;
	}
	if (coroutines->system_depth >= frames->open.n)
		return NULL;
	base = &frames->open.v[coroutines->system_depth];
	return base->index == coroutines->system_index ? base : NULL;
}

/* The scheduler runs and has not been recognised since the gap: it is the one from before. */
static void join_system(struct stack *s)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *system = coroutines->system;

	if (!system && coroutines->lost_system &&
	    coroutines->lost_system->state == COROUTINE_PARKED)
		system = coroutines->lost_system;
	if (!system || system == coroutines->running || !coroutines->running->is_loose)
		return;
	if (system->since > coroutines->n_before_gap || system->state == COROUTINE_OVER)
		return;
	stack__join(s, coroutines->running, system, false);
	coroutines->system = system;
	coroutines->lost_system = NULL;
}

void stack__settle_system(struct stack *s)
{
	struct held_stack begin;

	if (!s->coroutines.running->is_loose)
		return;
	begin = frames__show_begin(s->frames);
	for (size_t i = 0; i < begin.n; i++)
		if (function__is_named(begin.v[i].function, "runtime.schedule")) {
			join_system(s);
			return;
		}
}

static void leave_system(struct stack *s, const struct branch *b)
{
	struct coroutines *coroutines = &s->coroutines;
	struct frame *base;

	join_system(s);
	base = find_base(s);
	if (!base)
		find_earlier_base(s, s->frames);
	frames__pop_to(s->frames, base, b->time_ns, 0);
	coroutines->system = coroutines->running;
	/* Without permanent frames, one new segment after each gap is enough. */
	if (!base &&
	    (coroutines->system_base.n || coroutines->system->n_bare != s->frames->parts.n)) {
		begin_system(s, b->time_ns);
		coroutines->system->n_bare = s->frames->parts.n;
	}
	stack__suspend(s, b->time_ns, 0);
}

/*
 * False for newstack(), which returns to the goroutine whose stack has grown, and for a goroutine
 * that parked: the one that made it ready has put it first in the queue.
 */
bool stack__is_queued(const struct stack *s, const struct branch *b)
{
	bool is_entry;

	return frames__top(s->frames)->role == ROLE_GOGO &&
	       find_frame(s->frames, "runtime.execute") &&
	       !function__is_named(stack__function_at(s, b->to, &is_entry), "runtime.gopark");
}

/*
 * recovery() makes the goroutine return again from the function that deferred the recovering call.
 */
void event__go_recovery(struct stack *s, const struct branch *b, struct event *e)
{
	struct coroutine *coroutine = s->coroutines.recovering;
	struct frame *frame;

	leave_system(s, b);
	stack__resume(s, b->time_ns, coroutine);
	s->coroutines.recovering = NULL;
	frame = stack__find_caller(s, e->function);
	if (frame)
		frames__cut_to(s->frames, frame, b->time_ns, LEFT_BY_PANIC);
	else
		stack__land(s, b, NULL, unwinding__departure_to(s, NULL, LEFT_BY_PANIC));
}

/*
 * Marks the moment when the running frames, without the top n_above, continued at waits_at. If it
 * turns out that another stack continued there, stack__find_other() starts from the mark.
 */
static void set_mark(struct stack *s, uint64_t time_ns, uint64_t waits_at, size_t n_above)
{
	s->coroutines.has_mark = true;
	s->own_frames.consumer = NULL;
	s->frames->failed |=
		frames_mark__set(&s->coroutines.mark, s->frames, time_ns, waits_at, n_above) != 0;
}

/*
 * OCaml 5's effects (its runtime/amd64.S). Code under a handler runs on a fiber: caml_runstack()
 * makes one, calls a function there, and goes back when that has returned or raised. The fiber's
 * parent is the stack that waits for it. caml_perform() goes to the parent, by a jump to the
 * handler, which takes the place of the parent's top frame, and keeps the fiber; caml_reperform()
 * goes on to the parent's parent and keeps both. caml_resume() goes back to a kept fiber, by a jump
 * to a function that returns for caml_perform(): only that return tells which fiber it is.
 */

/* The outermost of the fibers that were kept together with this one. */
static struct coroutine *last_of(struct coroutine *fiber)
{
	for (struct coroutine *parent; (parent = coroutines__parent_of(fiber));)
		fiber = parent;
	return fiber;
}

static void wait_for(struct coroutine *parent, struct coroutine *fiber)
{
	fiber->parent = parent;
	parent->child = fiber;
}

/* is_loose: an earlier fiber that has not been identified. */
static struct coroutine *add_fiber(struct stack *s, uint64_t time_ns, bool is_loose)
{
	struct coroutine *fiber = stack__add_coroutine(s, time_ns, is_loose);

	if (!fiber)
		return NULL;
	fiber->is_fiber = true;
	return fiber;
}

/* caml_runstack() has a frame on both stacks: the function that is called here returns to it. */
void event__fiber_begin(struct stack *s, const struct branch *b, struct event *e)
{
	struct coroutine *fiber = add_fiber(s, b->time_ns, false);
	const struct frame base = {.call = {.start_ns = b->time_ns,
					    .entry_ip = b->from,
					    .function = frames__top(s->frames)->call.function},
				   .role = ROLE_FIBER};

	e->again = true;
	if (!fiber)
		return;
	wait_for(s->coroutines.running, fiber);
	stack__suspend(s, b->time_ns, 0);
	stack__begin(s, b->time_ns, fiber);
	stack__push(s, &base);
}

/* The parent is a stack from before a gap: it is identified when it returns. */
void event__fiber_end_unknown(struct stack *s, const struct branch *b, struct event *e)
{
	struct coroutine *parent = add_fiber(s, b->time_ns, true);

	e->again = true;
	if (!parent)
		return;
	stack__end(s, b->time_ns, 0);
	stack__begin_at(s, b->time_ns, parent, b->from);
	parent->began_at = 0;
}

/*
 * The frame at the fiber's base continues on the parent's stack, in place of the frame that waited
 * there.
 */
void event__fiber_end(struct stack *s, const struct branch *b, struct event *e)
{
	const struct function *runner = frames__top(s->frames)->call.function;
	struct coroutine *parent = coroutines__parent_of(s->coroutines.running);
	struct frame *top;

	e->again = true;
	stack__end(s, b->time_ns, 0);
	stack__resume(s, b->time_ns, parent);
	top = frames__top(s->frames);
	if (top && top->call.function == runner)
		stack__give_back(top);
	else
		stack__replace_top(s, &(struct branch){.time_ns = b->time_ns, .to = b->from},
				   runner);
}

/* No handler is left for the effect: the runtime returns to the fiber that performed it, which
 * raises. */
static void go_unhandled(struct stack *s, const struct branch *b)
{
	struct coroutine *performer = s->coroutines.performer;

	if (frames__top(s->frames)->role != ROLE_REPERFORM || !performer)
		return;
	stack__suspend(s, b->time_ns, 0);
	stack__resume(s, b->time_ns, performer);
}

/* Goes to the handler's stack, which a fiber from before the trace has not shown. */
static bool go_to_unknown(struct stack *s, const struct branch *b, uint64_t waits_at)
{
	struct coroutine *running = s->coroutines.running, *parent = add_fiber(s, b->time_ns, true);

	if (!parent)
		return false;
	stack__suspend(s, b->time_ns, waits_at);
	stack__begin_at(s, b->time_ns, parent, b->to);
	coroutine__may_join(parent);
	parent->performed = running;
	return true;
}

static void go_to_handler(struct stack *s, const struct branch *b, struct coroutine *parent,
			  uint64_t waits_at, const struct function *function)
{
	struct coroutine *running = s->coroutines.running;

	stack__suspend(s, b->time_ns, waits_at);
	running->parent = NULL;
	parent->performed = running;
	stack__resume(s, b->time_ns, parent);
	stack__replace_top(s, b, function);
}

void event__fiber_perform(struct stack *s, const struct branch *b, struct event *e)
{
	const struct frame *top = frames__top(s->frames);
	struct coroutine *parent = coroutines__parent_of(s->coroutines.running);
	/*
	 * A fiber that performs again is not resumed there, but through the fiber that it waits
	 * for.
	 */
	bool is_first = top->role == ROLE_PERFORM;
	uint64_t waits_at = is_first ? top->resume_ip : 0;

	if (function__is_named(e->function, "caml_c_call")) {
		go_unhandled(s, b);
		stack__replace_top(s, b, e->function);
		return;
	}
	if (is_first)
		s->coroutines.performer = s->coroutines.running;
	if (parent)
		go_to_handler(s, b, parent, waits_at, e->function);
	else
		e->again = !go_to_unknown(s, b, waits_at);
}

/* caml_reperform() jumps into the middle of caml_perform(). */
void event__fiber_reperform(struct stack *s, const struct branch *b, struct event *e)
{
	struct coroutine *running = s->coroutines.running, *last = running->performed;

	if (last)
		wait_for(running, last);
	stack__replace_top(s, b, e->function);
	stack__take_role(s, ROLE_REPERFORM);
}

/* The fiber that performed last, of those that are kept. */
static struct coroutine *find_latest(struct stack *s)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *latest = NULL;

	for (size_t i = 0; i < coroutines__count(coroutines); i++) {
		struct coroutine *coroutine = coroutines__at(coroutines, i);

		if (coroutine->state == COROUTINE_WAITS && coroutine->waits_at)
			latest = later(latest, coroutine);
	}
	return latest;
}

/* The function takes the place of caml_perform()'s frame. */
static void resume_fiber(struct stack *s, const struct branch *b, struct coroutine *fiber)
{
	struct coroutine *resumer = s->coroutines.running;
	struct frame frame = {
		.call = {.start_ns = b->time_ns, .entry_ip = b->to, .flags = CALL_BY_JUMP},
		.return_ip = fiber->waits_at,
		.slack = fiber->slack};
	bool is_entry;

	wait_for(resumer, last_of(fiber));
	stack__suspend(s, b->time_ns, 0);
	stack__switch_to(s, fiber);
	s->coroutines.resumer = resumer;
	set_mark(s, b->time_ns, fiber->waits_at, 2);
	frames__pop(s->frames, b->time_ns, 0);
	frames__pop(s->frames, b->time_ns, 0);
	frame.call.function = stack__function_at(s, b->to, &is_entry);
	stack__push(s, &frame);
}

void stack__settle_resume(struct stack *s, const struct branch *next)
{
	struct branch *b = &s->resumes;
	struct coroutine *running = s->coroutines.running, *fiber;

	s->is_resuming = false;
	if (next->kind == BRANCH_GAP)
		return;
	fiber = next->kind == BRANCH_RETURN
			? coroutines__find_waiting(&s->coroutines, next->to, false)
			: find_latest(s);
	if (fiber) {
		resume_fiber(s, b, fiber);
		return;
	}
	/* The fiber was kept before the trace began. */
	fiber = add_fiber(s, b->time_ns, true);
	if (!fiber)
		return;
	wait_for(running, fiber);
	stack__suspend(s, b->time_ns, 0);
	stack__begin_at(s, b->time_ns, fiber, b->to);
	coroutine__may_join(fiber);
}

/* The next branch tells which fiber it is. */
void event__fiber_resume(struct stack *s, const struct branch *b, struct event *e)
{
	s->resumes = *b;
	s->is_resuming = true;
}

/* Switches. */

const struct switcher *stack__find_switcher(const struct stack *s, const struct function *function)
{
	for (size_t i = 0; i < s->switchers.n; i++)
		if (s->switchers.v[i].function == function)
			return &s->switchers.v[i];
	return NULL;
}

void stack__note_switcher(struct stack *s, struct switcher did)
{
	const struct frame *top = frames__top(s->frames);
	struct switcher *switcher;

	if (!top || top->role != ROLE_MAY_SWITCH)
		return;
	did.function = top->call.function;
	switcher = (struct switcher *)stack__find_switcher(s, did.function);
	if (!switcher) {
		s->frames->failed |= VEC_ADD(&s->switchers, did) != 0;
		return;
	}
	switcher->has_switched |= did.has_switched;
	switcher->has_unwound |= did.has_unwound;
	switcher->left_at = did.left_at ?: switcher->left_at;
}

/*
 * Leaves the running stack. It waits if its switch returns, if it is the thread's own, or if
 * something may still go to a setjmp() or getcontext() of it; otherwise it ends.
 */
static void leave(struct stack *s, const struct branch *b)
{
	struct coroutine *coroutine = s->coroutines.running;
	const struct frame *top = frames__top(s->frames);
	bool comes_back = top->role == ROLE_SWITCH || top->role == ROLE_MAY_SWITCH;

	if (top->role == ROLE_GOGO) {
		leave_system(s, b);
		return;
	}
	if (comes_back || coroutine == &s->coroutines.own || s->frames->landings.n)
		stack__suspend(s, b->time_ns, comes_back ? top->resume_ip : 0);
	else
		stack__end(s, b->time_ns, CALL_CUT_SHORT);
}

/*
 * A switch to the running stack itself, or to an unknown one that waits at the same address. A
 * function that only looks like a switch does not discard what is known of a real one.
 */
void event__switch_back(struct stack *s, const struct branch *b, struct event *e)
{
	const struct frame *top;

	stack__make_switch(s, b, e->frame);
	top = frames__top(s->frames);
	if (top->role == ROLE_SWITCH || !s->coroutines.has_mark ||
	    s->coroutines.switched_by == top->call.function) {
		s->coroutines.switched_by = top->call.function;
		s->coroutines.running->waits_at = top->resume_ip;
		s->coroutines.running->slack = top->slack;
		set_mark(s, b->time_ns, b->to, 1);
	}
	frames__pop(s->frames, b->time_ns, 0);
	if (e->frame)
		unwinding__note_landing(s, b->to);
}

/*
 * Goes to the waiting stack, whose switch has returned. Returns may show later that it was another
 * one that waits there.
 */
void event__switch(struct stack *s, const struct branch *b, struct event *e)
{
	stack__make_switch(s, b, e->frame);
	stack__note_switcher(s, (struct switcher){.has_switched = true});
	leave(s, b);
	stack__switch_to(s, e->coroutine);
	set_mark(s, b->time_ns, b->to, 2);
	frames__pop(s->frames, b->time_ns, 0); /* the slice of the time switched out */
	s->coroutines.switched_by = frames__top(s->frames)->call.function;
	frames__pop(s->frames, b->time_ns, 0);
	if (e->frame)
		unwinding__note_landing(s, b->to);
}

/* Goes to the frame of another coroutine that has called getcontext() or setjmp(). */
void event__switch_landing(struct stack *s, const struct branch *b, struct event *e)
{
	struct departure by;
	struct frame *frame;

	stack__make_switch(s, b, e->frame);
	leave(s, b);
	stack__switch_to(s, e->coroutine);
	if (unwinding__find_setjmp(s, b, &frame, &by))
		stack__land(s, b, frame, by);
}

void event__switch_new(struct stack *s, const struct branch *b, struct event *e)
{
	struct coroutine *coroutine;

	stack__make_switch(s, b, e->frame);
	coroutine = stack__add_coroutine(s, b->time_ns, !e->is_entry);
	e->again = !coroutine;
	if (!coroutine)
		return;
	coroutine->is_goroutine = frames__top(s->frames)->role == ROLE_GOGO;
	leave(s, b);
	stack__begin_at(s, b->time_ns, coroutine, b->to);
}

/* The function is like any other this time. */
void event__no_switch(struct stack *s, const struct branch *b, struct event *e)
{
	stack__note_switcher(s, (struct switcher){.has_unwound = e->function});
	stack__give_back(frames__top(s->frames));
	e->again = true;
}

/* Finds the stack that has waited since before a gap, unless it may be the running one. */
static struct coroutine *find_parked(const struct stack *s, const struct branch *b)
{
	struct coroutine *coroutine = find_other(&s->coroutines, b->to, COROUTINE_PARKED);
	struct held_stack begin;

	if (!coroutine)
		return NULL;
	begin = frames__show_begin(s->frames);
	for (size_t i = 0; i < coroutine->pending.n; i++)
		if (begin.n && coroutine->pending.v[i].function == begin.v[0].function)
			return NULL;
	return coroutine;
}

/*
 * Finds the waiting stack that returns there, or one whose caller is not known. If the caller of
 * the running stack is not known either, it may be a stack that has waited since before a gap and
 * returns there.
 */
bool stack__find_other(const struct stack *s, const struct branch *b, struct coroutine **other)
{
	const struct coroutines *coroutines = &s->coroutines;
	bool has_caller = frames__top(s->frames)->return_ip;

	*other = find_other(coroutines, b->to, COROUTINE_WAITS);
	if (!*other && has_caller)
		*other = find_other(coroutines, 0, COROUTINE_WAITS);
	if (!*other && !has_caller)
		*other = find_parked(s, b);
	/* It may be a stack that has waited since before the trace began. */
	return *other || (has_caller && frames_mark__is_whole(&coroutines->mark, s->frames));
}

/* Adds a new stack, which has waited since before the trace began. NULL: no memory, or too many. */
static struct coroutine *add_unknown(struct stack *s)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *coroutine = stack__add_coroutine(s, coroutines->mark.time_ns, true);

	if (!coroutine ||
	    !frames_mark__begin_like(&coroutines->mark, s->frames, &coroutine->frames))
		return NULL;
	coroutine->is_goroutine = coroutines->running->is_goroutine;
	coroutine->is_fiber = coroutines->running->is_fiber;
	coroutine->generation = ++coroutines->n_begun;
	coroutine->waits_at = coroutine->began_at = coroutines->mark.waits_at;
	coroutine__may_join(coroutine);
	return coroutine;
}

/*
 * The top frame returns to an address that is not its own: another stack has run since the last
 * switch. What has been done since is moved to that one, which becomes the running stack.
 */
void event__other_stack(struct stack *s, const struct branch *b, struct event *e)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *other = e->coroutine, *running = coroutines->running;
	struct coroutine *resumer = coroutines->resumer;
	struct frames *frames = s->frames;
	struct frames_mark as_it_waited = {0};
	bool is_known = other;

	e->again = true;
	if (!is_known)
		other = add_unknown(s);
	if (!other)
		return;
	/* add_unknown() may have forgotten the resumer: `other` has its track then. */
	if (!coroutines->resumer)
		resumer = NULL;
	if (resumer)
		wait_for(resumer, last_of(other));
	stack__switch_to(s, other);
	if (is_known) {
		s->frames->failed |=
			frames_mark__set(&as_it_waited, s->frames, coroutines->mark.time_ns,
					 coroutines->mark.waits_at, 2) != 0;
		frames_mark__go_on(&coroutines->mark, s->frames);
	}
	s->frames->failed |= frames_mark__move(&coroutines->mark, frames, s->frames) != 0;
	running->state = COROUTINE_WAITS;
	if (coroutines->mark.n_above == 1)
		frames__push(frames, &(struct call){.start_ns = coroutines->mark.time_ns,
						    .kind = CALL_SWITCHED});
	if (!is_known)
		return;
	/* Later returns may show that it was yet another one. */
	frames_mark__fini(&coroutines->mark);
	coroutines->mark = as_it_waited;
	coroutines->has_mark = true;
	coroutines->resumer = resumer;
}
