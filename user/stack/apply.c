// SPDX-License-Identifier: MIT
/* Applies events to the frames, by a handful of operations. */
#include "stack/rules.h"

#include <string.h>

#include "kernel/kernel.h"
#include "stack/stack.h"

/* Operations on the frames that run. */

void stack__push(struct stack *s, const struct frame *frame)
{
	struct call call = frame->call;
	struct frame *top;
	bool is_entry;

	if (call.function && stack__function_at(s, call.entry_ip, &is_entry) && !is_entry)
		call.flags |= CALL_INSIDE;
	top = frames__push(s->frames, &call);
	if (!top)
		return;
	top->return_ip = frame->return_ip;
	top->resume_ip = frame->resume_ip;
	top->slack = frame->slack;
	top->role = frame->role;
}

void stack__push_first(struct stack *s, uint64_t ip)
{
	struct call call = {
		.start_ns = s->frames->start_ns, .entry_ip = ip, .flags = CALL_INFERRED_START};
	bool is_entry;

	call.function = stack__function_at(s, ip, &is_entry);
	frames__push(s->frames, &call);
	frames__note_lowest(s->frames, unwinder__throws(call.function));
}

void stack__push_call(struct stack *s, const struct branch *b, const struct function *function)
{
	stack__push(s, &(struct frame){.call = branch__call(b, function, CALL_FUNCTION),
				       .return_ip = branch__return_ip(b),
				       .slack = branch__return_slack(b)});
}

void stack__replace_top(struct stack *s, const struct branch *b, const struct function *function)
{
	const struct frame *top = frames__top(s->frames);
	struct frame next = {.call = branch__call(b, function, top->call.kind),
			     .return_ip = top->role ? top->resume_ip : top->return_ip,
			     .resume_ip = top->role ? 0 : top->resume_ip,
			     .slack = top->slack};

	next.call.flags = CALL_BY_JUMP;
	frames__learn_edge(s->frames, top, false);
	frames__pop(s->frames, b->time_ns, 0);
	stack__push(s, &next);
	stack__take_role(s, stack__role_at(s, b->to));
}

void stack__take_role(struct stack *s, enum function_role role)
{
	struct frame *top = frames__top(s->frames);

	if (!function_role__switches(role) || !top || top->role)
		return;
	/* return_ip is cleared, so that the rules examine its return, which may switch stacks. */
	top->role = (uint8_t)role;
	top->resume_ip = top->return_ip;
	top->return_ip = 0;
}

void stack__give_back(struct frame *frame)
{
	frame->role = ROLE_NONE;
	frame->return_ip = frame->resume_ip;
	frame->resume_ip = 0;
}

void stack__make_switch(struct stack *s, const struct branch *b, struct frame *longjmp)
{
	const struct landing *own;
	struct frame *top;

	if (!longjmp)
		return;
	frames__cut_to(s->frames, longjmp, b->time_ns, LEFT_BY_LONGJMP);
	own = unwinding__find_longjmp(s->frames, &top);
	top->role = ROLE_SWITCH;
	top->return_ip = 0;
	top->resume_ip = own->ip;
	top->slack = own->slack;
}

/* Nothing known explains the branch's target (another stack): all known frames end. */
static void break_segment(struct stack *s, const struct branch *b)
{
	frames__pop_to(s->frames, NULL, b->time_ns, CALL_CUT_SHORT);
	frames__begin_segment(s->frames, b->time_ns);
	stack__push_first(s, b->to);
}

/* Puts the function below all frames of the segment: all of them have ended. */
static struct frame *put_below_all(struct stack *s, const struct branch *b,
				   const struct function *function)
{
	if (!(s->passes_off & PASS_ROOTS)) {
		frames__note_lowest(s->frames, unwinder__throws(function));
		return frames__emplace_root(s->frames, function, b->to);
	}
	frames__begin_segment(s->frames, b->time_ns);
	stack__push_first(s, b->to);
	return frames__top(s->frames);
}

/* Switches from one of the thread's stacks to another. */

void stack__switch_to(struct stack *s, struct coroutine *coroutine)
{
	struct coroutines *coroutines = &s->coroutines;

	coroutine->state = COROUTINE_RUNS;
	coroutines->running = coroutine;
	coroutines->has_mark = false;
	coroutines->resumer = NULL;
	s->steps.n = 0;
	s->frames = coroutines__frames_of(coroutines, coroutine);
}

void stack__resume(struct stack *s, uint64_t time_ns, struct coroutine *coroutine)
{
	stack__switch_to(s, coroutine);
	frames__pop(s->frames, time_ns, 0); /* the slice of the time switched out */
}

void stack__suspend(struct stack *s, uint64_t time_ns, uint64_t waits_at)
{
	const struct frame *top = frames__top(s->frames);
	struct coroutine *coroutine = s->coroutines.running;

	coroutine->state = COROUTINE_WAITS;
	coroutine->waits_at = waits_at;
	coroutine->slack = waits_at && top ? top->slack : 0;
	coroutine->since = ++s->coroutines.n_switches;
	stack__push(s, &(struct frame){.call = {.start_ns = time_ns, .kind = CALL_SWITCHED}});
}

void stack__end(struct stack *s, uint64_t time_ns, uint8_t flags)
{
	frames__pop_to(s->frames, NULL, time_ns, flags);
	s->coroutines.running->state = COROUTINE_OVER;
}

void stack__begin(struct stack *s, uint64_t time_ns, struct coroutine *coroutine)
{
	coroutine->generation = ++s->coroutines.n_begun;
	stack__switch_to(s, coroutine);
	frames__begin_segment(s->frames, time_ns);
}

void stack__begin_at(struct stack *s, uint64_t time_ns, struct coroutine *coroutine, uint64_t ip)
{
	struct call call = {.start_ns = time_ns, .entry_ip = ip};
	bool is_entry;

	stack__begin(s, time_ns, coroutine);
	call.function = stack__function_at(s, ip, &is_entry);
	if (is_entry)
		stack__push(s, &(struct frame){.call = call});
	else
		stack__push_first(s, ip);
	coroutine->is_loose = coroutine->is_rootless = false;
	if (!is_entry)
		coroutine__may_join(coroutine);
	coroutine->began_at = ip;
}

/* A gap begins. After it, passes.c begins a segment. */

void stack__open_gap(struct stack *s, const struct branch *b)
{
	struct frame *top = frames__top(s->frames);

	if (s->in_gap)
		return;
	if (top && !s->outside)
		top->call.self_insns += b->n_insns;
	frames__pop_to(s->frames, NULL, b->time_ns, CALL_INFERRED_END);
	s->in_segment = false;
	s->in_gap = true;
	s->gap_ns = b->time_ns;
	s->gap_reason = b->reason;
}

/* Calls and returns. */

void event__call(struct stack *s, const struct branch *b, struct event *e)
{
	enum function_role role = stack__role_at(s, b->to);

	if (role && role <= ROLE_GETCONTEXT)
		unwinding__note_setjmp(s, b, role);
	if (role == ROLE_FIND_FDE)
		unwinding__note_step(s);
	stack__push_call(s, b, e->function);
	stack__take_role(s, role);
}

static void return_from(struct stack *s, const struct branch *b, const struct frame *frame)
{
	frames__cut_to(s->frames, frame, b->time_ns, LEFT_BY_UNKNOWN);
	frames__pop(s->frames, b->time_ns, 0);
}

/* After a context switch: finds the frame from before it that runs that function. */
static struct frame *find_below(struct stack *s, const struct function *function)
{
	struct frame *frame = function ? frames__below(s->frames) : NULL;

	while (frame && frame->call.function != function)
		frame = frames__caller(s->frames, frame);
	return frame;
}

/* True for the first frame of a coroutine whose creator put a function's address on the stack. */
static bool is_made_by_hand(const struct frame *frame)
{
	return !frame->call.call_ip && !(frame->call.flags & (CALL_INFERRED_START | CALL_BY_JUMP));
}

void event__return(struct stack *s, const struct branch *b, struct event *e)
{
	return_from(s, b, e->frame);
}

void event__return_out(struct stack *s, const struct branch *b, struct event *e)
{
	const struct function *function = e->function;
	bool is_entry = e->is_entry && !is_made_by_hand(frames__top(s->frames));
	struct frame *below;

	frames__pop(s->frames, b->time_ns, 0);
	if (frames__top(s->frames))
		return;
	/* In assembly a label may follow the call: the caller is the function before it. */
	if (is_entry)
		function = stack__function_at(s, b->to - 1, &is_entry);
	below = find_below(s, function);
	if (below)
		frames__pop_to(s->frames, below, b->time_ns, CALL_INFERRED_END);
	else if (put_below_all(s, b, function) && function__is_named(function, "caml_runstack"))
		frames__top(s->frames)->role = ROLE_FIBER;
}

void event__tail_call(struct stack *s, const struct branch *b, struct event *e)
{
	stack__replace_top(s, b, e->function);
}

void stack__resolve(struct stack *s, const struct branch *b, const struct function *function,
		    bool is_entry)
{
	enum function_role role = stack__role_at(s, b->to);
	struct frame *frame = frames__top(s->frames);

	frame->is_resolving = role == ROLE_RESOLVER || role == ROLE_LINKER;
	frame->call.function = function;
	frame->call.entry_ip = b->to;
	frame->call.flags &= (uint8_t)~CALL_INSIDE;
	frame->call.flags |= is_entry ? 0 : CALL_INSIDE;
	stack__take_role(s, role);
}

void event__resolved(struct stack *s, const struct branch *b, struct event *e)
{
	stack__resolve(s, b, e->function, e->is_entry);
}

void event__cut(struct stack *s, const struct branch *b, struct event *e)
{
	frames__cut_to(s->frames, e->frame, b->time_ns, LEFT_BY_UNKNOWN);
}

void event__lost(struct stack *s, const struct branch *b, struct event *e)
{
	if (frames__top(s->frames))
		stack__note_switcher(
			s, (struct switcher){.left_at = frames__top(s->frames)->resume_ip});
	break_segment(s, b);
}

/* Landings. */

/* The frame that took the exception is below all frames that the segment has shown. */
static struct frame *begin_below(struct stack *s, const struct branch *b,
				 const struct departure *by, uint32_t distance)
{
	frames__end_segment(s->frames);
	frames__begin_below(s->frames, b->time_ns, unwinding__find_waiting(s, b, by, distance),
			    distance);
	stack__push_first(s, b->to);
	return frames__top(s->frames);
}

/* Finds the earlier part of this unwinding, which stopped at a clean-up; NULL: it starts here. */
static struct unwind *find_earlier(struct stack *s, const struct departure *by)
{
	struct frame *clean_up = by->resuming ? frames__parent(s->frames, by->resuming) : NULL;

	return clean_up ? frames__unwind_into(s->frames, clean_up) : NULL;
}

static void begin_at(struct unwind *unwind, const struct frame *from)
{
	unwind->start_ns = from->call.start_ns;
	unwind->from = from->index;
}

void stack__land(struct stack *s, const struct branch *b, struct frame *frame, struct departure by)
{
	struct unwind *earlier = find_earlier(s, &by);
	struct unwind unwind = {.end_ns = b->time_ns};

	if (earlier && by.resumes)
		by.left_by = earlier->left_by;
	unwind.left_by = by.left_by;
	if (by.frame) {
		frames__name(s->frames, by.frame);
		begin_at(&unwind, by.frame);
	}
	/*
	 * The clean-up may have been in a function that began the unwinding: a panic goes through
	 * several.
	 */
	if (earlier && !by.resumes) {
		earlier->left_by = by.left_by;
		begin_at(earlier, by.frame);
	}
	if (frame) {
		frames__cut_to(s->frames, frame, b->time_ns, by.left_by);
	} else {
		uint32_t distance = unwinding__count_below(s);

		frames__cut_to(s->frames, NULL, b->time_ns, by.left_by);
		frame = begin_below(s, b, &by, distance);
	}
	if (frame && earlier)
		frames__move_unwind(s->frames, earlier, frame, b->time_ns);
	else if (frame && by.frame)
		frames__add_unwind(s->frames, &unwind, frame);
}

void event__landing(struct stack *s, const struct branch *b, struct event *e)
{
	unwinding__note_landing(s, b->to);
	stack__land(s, b, e->frame, e->by);
}

void event__receiver(struct stack *s, const struct branch *b, struct event *e)
{
	stack__give_back(frames__top(s->frames));
	stack__land(s, b, NULL, e->by);
}

/* Out of user code and back, by what is not traced. */

/* Pushes a new slice of this kind, which lasts until the thread continues. */
static void go_outside(struct stack *s, const struct branch *b, uint8_t kind, uint64_t resume_ip)
{
	struct frame frame = {.call = branch__call(b, NULL, kind)};

	if (stack__is_interrupted(s, b)) {
		frame.call.kind = CALL_UNTRACED;
		frame.call.reason = s->interruption.event;
		frame.call.entry_ip = s->interruption.address;
	}
	s->interruption.event = 0;
	s->interruption.address = 0;
	stack__push(s, &frame);
	s->outside = true;
	s->resume_ip = resume_ip;
}

/*
 * For code that cannot be read: true if a handler has returned to code that leads to this syscall.
 */
static bool is_in_restorer(const struct stack *s, uint64_t ip)
{
	return s->restorer_ip && (ip - s->restorer_ip == 7 || ip - s->restorer_ip == 5);
}

void event__syscall(struct stack *s, const struct branch *b, struct event *e)
{
	go_outside(s, b, CALL_SYSCALL, b->from + b->len);
	s->in_sigreturn = stack__is_sigreturn(s, b->from) || is_in_restorer(s, b->from);
}

void event__interrupt(struct stack *s, const struct branch *b, struct event *e)
{
	go_outside(s, b, CALL_UNTRACED, b->from);
	s->in_sigreturn = false;
}

/* The handler may be anywhere. It is part of the function whose sequence it ends. */
void event__abort(struct stack *s, const struct branch *b, struct event *e)
{
	s->aborted.frame = frames__top(s->frames)->index;
	s->aborted.handler = e->function;
}

void event__trap_return(struct stack *s, const struct branch *b, struct event *e)
{
	stack__on_event(s, b, BRANCH_RETURN);
}

void event__signal(struct stack *s, const struct branch *b, struct event *e)
{
	struct frame frame = {.call = {.start_ns = b->time_ns,
				       .entry_ip = b->to,
				       .function = e->function,
				       .kind = CALL_SIGNAL},
			      .resume_ip = s->resume_ip};

	if (stack__is_preemption(e->function))
		frame.return_ip = frame.call.call_ip = s->resume_ip;
	stack__push(s, &frame);
}

/* Into the restorer, which calls rt_sigreturn: this is still the signal's frame. */
void event__handler_return(struct stack *s, const struct branch *b, struct event *e)
{
	frames__top(s->frames)->call.kind = CALL_SIGNAL;
	s->restorer_ip = b->to;
	stack__replace_top(s, b, e->function);
}

/*
 * The thread continues where the signal came, unless another handler is next, or this one changed
 * its context. If the signal's frame was not known, the interrupted one now is.
 */
void event__signal_end(struct stack *s, const struct branch *b, struct event *e)
{
	struct frame *signal = frames__top(s->frames);

	while (signal && signal->call.kind != CALL_SIGNAL)
		signal = frames__parent(s->frames, signal);
	s->resume_ip = signal ? signal->resume_ip : 0;
	if (signal)
		return_from(s, b, signal);
	else
		frames__pop_to(s->frames, NULL, b->time_ns, 0);
	e->again = frames__top(s->frames);
	if (!e->again)
		put_below_all(s, b, e->function);
}

/* Kernel code, if it is traced. */

void event__kernel_entry(struct stack *s, const struct branch *b, struct event *e)
{
	s->interruption.event = 0;
	stack__push(s, &(struct frame){.call = branch__call(b, e->function, CALL_KERNEL),
				       .resume_ip = b->from + b->len});
	if (!address__is_kernel(b->from))
		s->in_sigreturn = b->len && stack__is_sigreturn(s, b->from);
}

/* Ends the entry. Without an entry the segment began in the kernel, and all of its frames end. */
static void end_entry(struct stack *s, const struct branch *b, const struct event *e,
		      struct frame *entry)
{
	frames__pop_to(s->frames, entry, b->time_ns, 0);
	if (entry)
		frames__pop(s->frames, b->time_ns, 0);
	if (!frames__top(s->frames))
		put_below_all(s, b, e->function);
}

/* Ends the entry from user code, with the entries on top of it. */
void event__kernel_exit(struct stack *s, const struct branch *b, struct event *e)
{
	struct frame *entry = NULL, *frame = frames__top(s->frames);

	for (; frame; frame = frames__parent(s->frames, frame))
		if (frame->call.kind == CALL_KERNEL)
			entry = frame;
	s->stopped_in_kernel = false;
	s->resume_ip = entry ? entry->resume_ip : b->to;
	end_entry(s, b, e, entry);
	e->again = entry;
}

void event__kernel_return(struct stack *s, const struct branch *b, struct event *e)
{
	end_entry(s, b, e, e->frame);
}

void event__kernel_fixup(struct stack *s, const struct branch *b, struct event *e)
{
	const struct frame *top;

	end_entry(s, b, e, e->frame);
	top = frames__top(s->frames);
	e->again = top && e->function != top->call.function;
}

/*
 * kernel/sched/core.c: the only function that switches threads. It continues when its thread runs
 * again; the functions that perf called in it to stop the trace show no return.
 */
static struct frame *find_schedule(struct stack *s)
{
	struct frame *frame = frames__top(s->frames);

	while (frame &&
	       !(frame->call.function && !strcmp(frame->call.function->name, "__schedule")))
		frame = frames__caller(s->frames, frame);
	return frame;
}

void event__kernel_stop(struct stack *s, const struct branch *b, struct event *e)
{
	struct frame *frame = find_schedule(s);

	if (frame)
		frames__pop_to(s->frames, frame, b->time_ns, CALL_INFERRED_END);
	go_outside(s, b, CALL_UNTRACED, 0);
	s->stopped_in_kernel = true;
}

void event__kernel_resume(struct stack *s, const struct branch *b, struct event *e)
{
	s->stopped_in_kernel = false;
	frames__begin_nested(s->frames, b->time_ns);
	frames__push(s->frames, &(struct call){.start_ns = b->time_ns,
					       .entry_ip = b->to,
					       .function = e->function,
					       .flags = CALL_INFERRED_START});
}

/*
 * Ends all frames, if user code is not traced: the next code that is seen enters the kernel again.
 */
void event__kernel_exit_alone(struct stack *s, const struct branch *b, struct event *e)
{
	frames__pop_to(s->frames, NULL, b->time_ns, 0);
	frames__begin_segment(s->frames, b->time_ns);
	go_outside(s, b, CALL_UNTRACED, 0);
	s->is_in_user = true;
}

void event__kernel_entry_alone(struct stack *s, const struct branch *b, struct event *e)
{
	s->is_in_user = false;
	stack__push(s, &(struct frame){.call = branch__call(b, e->function, CALL_KERNEL)});
}
