// SPDX-License-Identifier: MIT
/*
 * OCaml 5's effects (its runtime/amd64.S). What a handler is around runs on a fiber:
 * caml_runstack() makes one, calls a function there, and goes back when that has returned, or
 * raised. The fiber's parent is the stack that waits for it. caml_perform() goes to the parent, by
 * a jump to the handler that takes the place of what the parent waits in, and keeps the fiber, and
 * caml_reperform() goes on to the parent's parent and keeps both. caml_resume() goes back to what
 * was kept, by a jump to a function that returns for caml_perform(): not before that return is it
 * known which fiber it is.
 */
#include "stack/rules.h"

/* The one that the others, which were kept with it, have come to. */
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

/* is_loose: it has been there before, as one that is not known. */
static struct coroutine *add_fiber(struct stack *s, bool is_loose)
{
	struct coroutine *fiber = coroutines__add(&s->coroutines, is_loose);

	if (!fiber)
		return NULL;
	fiber->is_fiber = true;
	return fiber;
}

/* caml_runstack() stands on both stacks: what is called here returns to it. */
static void begin_fiber(struct stack *s, const struct branch *b, struct coroutine *fiber)
{
	const struct frame base = {.call = {.start_ns = b->time_ns,
					    .entry_ip = b->from,
					    .function = frames__top(s->frames)->call.function},
				   .role = ROLE_FIBER};

	wait_for(s->coroutines.running, fiber);
	stack__suspend(s, b->time_ns, 0);
	stack__begin(s, b->time_ns, fiber);
	stack__push(s, &base);
}

/* The parent is one from before a gap, which is not known before it returns. */
static void return_to_unknown(struct stack *s, const struct branch *b)
{
	struct coroutine *parent = add_fiber(s, true);

	if (!parent)
		return;
	stack__end(s, b->time_ns, 0);
	stack__begin_at(s, b->time_ns, parent, b->from);
	parent->began_at = 0;
}

/* Its base goes on on the parent's stack, in the place of what that waits in. */
static void end_fiber(struct stack *s, const struct branch *b, struct coroutine *parent)
{
	const struct function *runner = frames__top(s->frames)->call.function;
	struct frame *top;

	stack__end(s, b->time_ns, 0);
	stack__resume(s, b->time_ns, parent);
	top = frames__top(s->frames);
	if (top && top->call.function == runner)
		stack__give_back(top);
	else
		stack__replace_top(s, &(struct branch){.time_ns = b->time_ns, .to = b->from},
				   runner);
}

/* Of an effect that nobody handles: back to who performed it, which raises. */
static void go_unhandled(struct stack *s, const struct branch *b)
{
	struct coroutine *performer = s->coroutines.performer;

	if (frames__top(s->frames)->role != ROLE_REPERFORM || !performer)
		return;
	stack__suspend(s, b->time_ns, 0);
	stack__resume(s, b->time_ns, performer);
}

/* The handler's stack, which a fiber from before the trace has not told. */
static bool go_to_unknown(struct stack *s, const struct branch *b, uint64_t waits_at)
{
	struct coroutine *running = s->coroutines.running, *parent = add_fiber(s, true);

	if (!parent)
		return false;
	stack__suspend(s, b->time_ns, waits_at);
	stack__begin_at(s, b->time_ns, parent, b->to);
	parent->is_loose = true;
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

static bool perform(struct stack *s, const struct branch *b, const struct function *function)
{
	const struct frame *top = frames__top(s->frames);
	struct coroutine *parent = coroutines__parent_of(s->coroutines.running);
	/* What performs once more is not gone on with there, but by the fiber that it waits for. */
	bool is_first = top->role == ROLE_PERFORM;
	uint64_t waits_at = is_first ? top->resume_ip : 0;

	if (function__is_named(function, "caml_c_call")) {
		go_unhandled(s, b);
		stack__replace_top(s, b, function);
		return true;
	}
	if (is_first)
		s->coroutines.performer = s->coroutines.running;
	if (!parent)
		return go_to_unknown(s, b, waits_at);
	go_to_handler(s, b, parent, waits_at, function);
	return true;
}

/* Goes on in caml_perform(), which is shared. */
static void reperform(struct stack *s, const struct branch *b, const struct function *function)
{
	struct coroutine *running = s->coroutines.running, *last = running->performed;

	if (last)
		wait_for(running, last);
	stack__replace_top(s, b, function);
	stack__take_role(s, ROLE_REPERFORM);
}

/* The one that performed last, of those that are kept. */
static struct coroutine *find_latest(struct stack *s)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *latest = NULL;

	for (size_t i = 0; i < coroutines__count(coroutines); i++) {
		struct coroutine *coroutine = coroutines__at(coroutines, i);

		if (coroutine->state == COROUTINE_WAITS && coroutine->waits_at &&
		    (!latest || coroutine->since > latest->since))
			latest = coroutine;
	}
	return latest;
}

/* The function stands in the place of caml_perform()'s frame. */
static void resume(struct stack *s, const struct branch *b, struct coroutine *fiber)
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
	stack__mark(s, b->time_ns, fiber->waits_at, 2);
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
		resume(s, b, fiber);
		return;
	}
	/* It was kept before the trace began. */
	fiber = add_fiber(s, true);
	if (!fiber)
		return;
	wait_for(running, fiber);
	stack__suspend(s, b->time_ns, 0);
	stack__begin_at(s, b->time_ns, fiber, b->to);
	fiber->is_loose = true;
}

void stack__resume_other(struct stack *s, struct coroutine *fiber)
{
	struct coroutine *resumer = s->coroutines.resumer;

	if (resumer)
		wait_for(resumer, last_of(fiber));
}

bool stack__apply_effect(struct stack *s, const struct branch *b, const struct event *e)
{
	struct coroutine *parent = coroutines__parent_of(s->coroutines.running), *fiber;

	switch ((enum event_kind)e->rule->event) {
	case EVENT_FIBER_BEGIN:
		fiber = add_fiber(s, false);
		if (fiber)
			begin_fiber(s, b, fiber);
		return true;
	case EVENT_FIBER_END:
		end_fiber(s, b, parent);
		if (b->kind == BRANCH_CALL)
			return true;
		stack__replace_top(s, b, e->function);
		return false;
	case EVENT_FIBER_END_UNKNOWN:
		return_to_unknown(s, b);
		return true;
	case EVENT_FIBER_PERFORM:
		return !perform(s, b, e->function);
	case EVENT_FIBER_REPERFORM:
		reperform(s, b, e->function);
		return false;
	case EVENT_FIBER_RESUME:
		s->resumes = *b;
		s->is_resuming = true;
		return false;
	default:
		return false;
	}
}
