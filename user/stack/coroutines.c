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

#include <stdlib.h>

void coroutines__init(struct coroutines *coroutines)
{
	*coroutines = (struct coroutines){
		.own.state = COROUTINE_RUNS, .max = COROUTINES_MAX, .system_index = UINT32_MAX};
	frames__init(&coroutines->own.frames);
	coroutines->running = &coroutines->own;
}

void coroutines__fini(struct coroutines *coroutines)
{
	VEC_EACH(&coroutines->others, other) {
		frames__fini(&(*other)->frames);
		VEC_FINI(&(*other)->pending);
		free(*other);
	}
	VEC_FINI(&coroutines->others);
	frames__fini(&coroutines->own.frames);
	VEC_FINI(&coroutines->own.pending);
	VEC_FINI(&coroutines->system_base);
	frames_mark__fini(&coroutines->mark);
}

static bool waits_at(const struct coroutine *coroutine, uint64_t ip, enum coroutine_state state)
{
	return coroutine->state == state && coroutine->waits_at &&
	       ip - coroutine->waits_at <= coroutine->slack;
}

bool coroutines__has_parked(const struct coroutines *coroutines, uint64_t ip)
{
	COROUTINES_EACH(coroutines, coroutine)
		if (ip ? waits_at(coroutine, ip, COROUTINE_PARKED)
		       : coroutine->state == COROUTINE_PARKED)
			return true;
	return false;
}

struct coroutine *coroutines__find_waiting(const struct coroutines *coroutines, uint64_t ip,
					   bool is_first)
{
	struct coroutine *best = NULL;

	if (!ip)
		return NULL;
	COROUTINES_EACH(coroutines, coroutine)
		if (waits_at(coroutine, ip, COROUTINE_WAITS) &&
		    (!best || (coroutine->since < best->since) == is_first))
			best = coroutine;
	return best;
}

/*
 * Finds, of the coroutines in that state that wait where the running one did, the last one left
 * whose frames fit: see frames_mark__fits().
 */
static struct coroutine *find_other(const struct coroutines *coroutines, uint64_t return_ip,
				    enum coroutine_state state)
{
	const struct frames_mark *mark = &coroutines->mark;
	struct coroutine *best = NULL;

	COROUTINES_EACH(coroutines, coroutine)
		if (waits_at(coroutine, mark->waits_at, state) &&
		    frames_mark__fits(mark, &coroutines->running->frames, &coroutine->frames,
				      return_ip) &&
		    (!best || coroutine->since > best->since))
			best = coroutine;
	return best;
}

/* The first track that another stack may take; NULL: none. */
static struct coroutine *find_free(const struct coroutines *coroutines, bool is_loose)
{
	VEC_EACH(&coroutines->others, other)
		if ((*other)->state == COROUTINE_OVER && !(*other)->is_loose &&
		    (!is_loose || !(*other)->frames.parts.n))
			return *other;
	return NULL;
}

/*
 * Ends the stack that has waited longest: another one can have its track. If the thread goes back
 * to it later, the callers there are unknown. NULL: no stack waits.
 */
static struct coroutine *forget_oldest(struct stack *s, uint64_t time_ns)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *oldest = NULL;

	COROUTINES_EACH(coroutines, coroutine)
		if (coroutine != &coroutines->own &&
		    (coroutine->state == COROUTINE_WAITS || coroutine->state == COROUTINE_PARKED) &&
		    coroutine != coroutines->system && coroutine != coroutines->lost_system &&
		    (!oldest || coroutine->since < oldest->since))
			oldest = coroutine;
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
	COROUTINES_EACH(coroutines, coroutine)
		if (coroutine->performed == oldest)
			coroutine->performed = NULL;
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
	coroutines->own.frames.consumer = NULL;
	coroutine = find_free(coroutines, is_loose);
	if (!coroutine && coroutines->others.n >= coroutines->max) {
		/* A track with calls is shared rather than a stack forgotten that may still run. */
		coroutine = find_free(coroutines, false) ?: forget_oldest(s, time_ns);
		if (!coroutine)
			return NULL;
	}
	if (coroutine) {
		/* Only the track stays of the stack that was there before. */
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

/*
 * Goroutines (Go's src/runtime/asm_amd64.s, proc.go). Each thread has a stack for the scheduler,
 * g0's. mcall() and morestack() leave a goroutine by calling a function on that stack, which does
 * not return. The scheduler goes to a goroutine by gogo(): it jumps to the address after that one's
 * call of mcall() or morestack(), or to its first function. systemstack() calls functions on that
 * stack, too, but they return like any call, and are shown as calls.
 */

static struct frame *find_frame(const struct frames *frames, const char *name)
{
	struct frame *frame = frames__top(frames);

	while (frame && !function__is_named(frame->call.function, name))
		frame = frames__parent(frames, frame);
	return frame;
}

static void leave_goroutine(struct stack *s, const struct branch *b,
			    const struct function *function)
{
	struct coroutine *coroutine = s->coroutines.running;

	coroutine->is_goroutine = true;
	if (!function__is_named(function, "runtime.goexit0")) {
		stack__suspend(s, b->time_ns, stack__top(s)->resume_ip);
	} else {
		/*
		 * The goroutine ends. Its last frame is goexit1()'s, which is called by Goexit() or
		 * by the function that every goroutine returns to.
		 */
		frames__cut_to(s->frames, NULL, b->time_ns,
			       find_frame(s->frames, "runtime.Goexit") ? LEFT_BY_GOEXIT
								       : LEFT_BY_UNKNOWN);
		if (coroutine == &s->coroutines.own)
			stack__suspend(s, b->time_ns, 0);
		else
			stack__end(s, b->time_ns, 0);
	}
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
	if (base->n && stack__top(s)) {
		s->coroutines.system_depth = s->frames->open.n - 1;
		s->coroutines.system_index = stack__top(s)->index;
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

void event__go_mcall(struct stack *s, const struct branch *b, struct event *e)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *system;

	if (!coroutines->system) {
		/* The scheduler may have run when a gap began, and been left in the gap. */
		system = coroutines->lost_system;
		coroutines->lost_system = NULL;
		if (system && system->state == COROUTINE_PARKED) {
			stack__end_wait(s, system, b->time_ns, false);
			coroutines->system = system;
		}
	}
	system = coroutines->system ?: stack__add_coroutine(s, b->time_ns, false);
	if (!system || system == coroutines->running) {
		stack__push_call(s, b, e->function);
		return;
	}
	leave_goroutine(s, b, e->function);
	if (system != coroutines->system) {
		coroutines->system = system;
		find_earlier_base(s, &coroutines->own.frames);
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

/* The scheduler runs and has not been recognised since the gap: it is the one from before. */
static void join_system(struct stack *s)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *running = coroutines->running;
	struct coroutine *system = coroutines->system, *lost = coroutines->lost_system;

	if (!system && lost && lost->state == COROUTINE_PARKED)
		system = lost;
	if (!system || system == running || !running->is_loose ||
	    system->since > coroutines->n_before_gap || system->state == COROUTINE_OVER)
		return;
	stack__join(s, running, system, false);
	coroutines->system = system;
	coroutines->lost_system = NULL;
}

void stack__settle_system(struct stack *s)
{
	struct held_stack begin = {0};

	if (s->coroutines.running->is_loose)
		begin = frames__show_begin(s->frames);
	VEC_EACH(&begin, held)
		if (function__is_named(held->function, "runtime.schedule")) {
			join_system(s);
			return;
		}
}

static void leave_system(struct stack *s, const struct branch *b)
{
	struct coroutines *coroutines = &s->coroutines;
	struct frame *first, *base = NULL;
	struct frames *frames;

	join_system(s);
	frames = s->frames;
	/*
	 * The scheduler starts on one frame each time: mstart1()'s caller. That call is seen only
	 * once.
	 */
	first = find_frame(frames, "runtime.mstart1");
	if (first)
		base = frames__parent(frames, first);
	if (base) {
		coroutines->system_depth = (size_t)(base - frames->open.v);
		coroutines->system_index = base->index;
		coroutines->system_base.n = 0;
		frames__list_open(frames, coroutines->system_depth + 1, &coroutines->system_base);
	} else if (coroutines->system_depth < frames->open.n &&
		   frames->open.v[coroutines->system_depth].index == coroutines->system_index) {
		base = &frames->open.v[coroutines->system_depth];
	}
	if (!base)
		find_earlier_base(s, frames);
	frames__pop_to(frames, base, b->time_ns, 0);
	coroutines->system = coroutines->running;
	/* Without permanent frames, one new segment after each gap is enough. */
	if (!base && (coroutines->system_base.n || coroutines->system->n_bare != frames->parts.n)) {
		begin_system(s, b->time_ns);
		coroutines->system->n_bare = frames->parts.n;
	}
	stack__suspend(s, b->time_ns, 0);
}

/*
 * False for newstack(), which returns to the goroutine whose stack has grown, and for a goroutine
 * that parked: the one that made it ready has put it first in the queue.
 */
bool stack__is_queued(const struct stack *s, const struct branch *b)
{
	return stack__top(s)->role == ROLE_GOGO && find_frame(s->frames, "runtime.execute") &&
	       !function__is_named(stack__function_at(s, b->to, NULL), "runtime.gopark");
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
	s->coroutines.own.frames.consumer = NULL;
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
					    .function = stack__top(s)->call.function},
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
	const struct function *runner = stack__top(s)->call.function;
	struct coroutine *parent = coroutines__parent_of(s->coroutines.running);
	struct frame *top;

	e->again = true;
	stack__end(s, b->time_ns, 0);
	stack__resume(s, b->time_ns, parent);
	top = stack__top(s);
	if (top && top->call.function == runner)
		stack__give_back(top);
	else
		stack__replace_top(s, &(struct branch){.time_ns = b->time_ns, .to = b->from},
				   runner);
}

void event__fiber_perform(struct stack *s, const struct branch *b, struct event *e)
{
	struct coroutine *running = s->coroutines.running, *performer = s->coroutines.performer;
	struct coroutine *parent = coroutines__parent_of(running);
	const struct frame *top = stack__top(s);
	/*
	 * A fiber that performs again is not resumed there, but through the fiber that it waits
	 * for.
	 */
	bool is_first = top->role == ROLE_PERFORM;
	uint64_t waits_at = is_first ? top->resume_ip : 0;

	if (function__is_named(e->function, "caml_c_call")) {
		/*
		 * No handler is left for the effect: the runtime returns to the fiber that
		 * performed it, which raises.
		 */
		if (top->role == ROLE_REPERFORM && performer) {
			stack__suspend(s, b->time_ns, 0);
			stack__resume(s, b->time_ns, performer);
		}
		stack__replace_top(s, b, e->function);
		return;
	}
	if (is_first)
		s->coroutines.performer = running;
	if (parent) {
		stack__suspend(s, b->time_ns, waits_at);
		running->parent = NULL;
		parent->performed = running;
		stack__resume(s, b->time_ns, parent);
		stack__replace_top(s, b, e->function);
		return;
	}
	/* A fiber from before the trace has not shown the stack of its handler. */
	parent = add_fiber(s, b->time_ns, true);
	e->again = !parent;
	if (!parent)
		return;
	stack__suspend(s, b->time_ns, waits_at);
	stack__begin_at(s, b->time_ns, parent, b->to);
	coroutine__may_join(parent);
	parent->performed = running;
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

/* The function takes the place of caml_perform()'s frame. */
static void resume_fiber(struct stack *s, const struct branch *b, struct coroutine *fiber)
{
	struct coroutine *resumer = s->coroutines.running;

	wait_for(resumer, last_of(fiber));
	stack__suspend(s, b->time_ns, 0);
	stack__switch_to(s, fiber);
	s->coroutines.resumer = resumer;
	set_mark(s, b->time_ns, fiber->waits_at, 2);
	frames__pop(s->frames, b->time_ns, 0);
	frames__pop(s->frames, b->time_ns, 0);
	stack__push(s, &(struct frame){.call = {.start_ns = b->time_ns,
						.entry_ip = b->to,
						.function = stack__function_at(s, b->to, NULL),
						.flags = CALL_BY_JUMP},
				       .return_ip = fiber->waits_at,
				       .slack = fiber->slack});
}

void stack__settle_resume(struct stack *s, const struct branch *next)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *running = coroutines->running, *fiber = NULL;
	const struct branch *b = &s->resumes;

	s->is_resuming = false;
	if (next->kind == BRANCH_GAP)
		return;
	if (next->kind == BRANCH_RETURN) {
		fiber = coroutines__find_waiting(coroutines, next->to, false);
	} else {
		/* discontinue() raises: of those that are kept, the fiber that performed last. */
		COROUTINES_EACH(coroutines, kept)
			if (kept->state == COROUTINE_WAITS && kept->waits_at &&
			    (!fiber || kept->since > fiber->since))
				fiber = kept;
	}
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
	const struct frame *top = stack__top(s);
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
	const struct frame *top = stack__top(s);
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
	top = stack__top(s);
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
	s->coroutines.switched_by = stack__top(s)->call.function;
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
	coroutine->is_goroutine = stack__top(s)->role == ROLE_GOGO;
	leave(s, b);
	stack__begin_at(s, b->time_ns, coroutine, b->to);
}

/* The function is like any other this time. */
void event__no_switch(struct stack *s, const struct branch *b, struct event *e)
{
	stack__note_switcher(s, (struct switcher){.has_unwound = e->function});
	stack__give_back(stack__top(s));
	e->again = true;
}

/*
 * Finds the waiting stack that returns there, or one whose caller is not known. If the caller of
 * the running stack is not known either, it may be a stack that has waited since before a gap and
 * returns there.
 */
bool stack__find_other(const struct stack *s, const struct branch *b, struct coroutine **other)
{
	const struct coroutines *coroutines = &s->coroutines;
	bool has_caller = stack__top(s)->return_ip;

	*other = find_other(coroutines, b->to, COROUTINE_WAITS);
	if (!*other && has_caller)
		*other = find_other(coroutines, 0, COROUTINE_WAITS);
	if (!*other && !has_caller && (*other = find_other(coroutines, b->to, COROUTINE_PARKED))) {
		/* Unless that one may be the running stack. */
		struct held_stack begin = frames__show_begin(s->frames);

		VEC_EACH(&(*other)->pending, held)
			if (begin.n && held->function == begin.v[0].function) {
				*other = NULL;
				break;
			}
	}
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
	if (is_known)
		s->frames->failed |=
			frames_mark__set(&as_it_waited, s->frames, coroutines->mark.time_ns,
					 coroutines->mark.waits_at, 2) != 0;
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
