// SPDX-License-Identifier: MIT
/*
 * Takes branches, handles the common ones, and applies the events of all others to the frames, by a
 * handful of operations.
 */
#include "stack/stack.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/pt_note.h"
#include "kernel/kernel.h"
#include "stack/rules.h"
#include "util/log.h"

struct stack *stack__new(pid_t pid, pid_t tid, const char *comm, struct code_map *map)
{
	struct stack *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	coroutines__init(&s->coroutines);
	s->frames = &s->coroutines.own.frames;
	function_cache__init(&s->functions, map);
	s->map = map;
	s->pid = pid;
	s->tid = tid;
	snprintf(s->comm, sizeof(s->comm), "%s", comm);
	return s;
}

void stack__free(struct stack *s)
{
	if (!s)
		return;
	coroutines__fini(&s->coroutines);
	VEC_FINI(&s->anchors);
	VEC_FINI(&s->anchor_ips);
	VEC_FINI(&s->switchers);
	free(s);
}

void stack__set_traps(struct stack *s, const struct ocaml_traps *traps)
{
	s->traps = traps;
}

void stack__set_consumer(struct stack *s, const struct call_consumer *consumer)
{
	s->coroutines.own.frames.consumer = consumer;
}

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
	const struct function *function = stack__function_at(s, ip, NULL);

	frames__push(s->frames, &(struct call){.start_ns = s->frames->start_ns,
					       .entry_ip = ip,
					       .function = function,
					       .flags = CALL_INFERRED_START});
	frames__note_lowest(s->frames, unwinder__throws(function));
}

void stack__push_call(struct stack *s, const struct branch *b, const struct function *function)
{
	stack__push(s, &(struct frame){.call = branch__call(b, function, CALL_FUNCTION),
				       .return_ip = branch__return_ip(b),
				       .slack = branch__return_slack(b)});
}

void stack__replace_top(struct stack *s, const struct branch *b, const struct function *function)
{
	const struct frame *top = stack__top(s);
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
	struct frame *top = stack__top(s);

	if (role < ROLE_MAY_SWITCH || !top || top->role)
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
	return stack__top(s);
}

void stack__land(struct stack *s, const struct branch *b, struct frame *frame, struct departure by)
{
	struct frame *clean_up = by.resuming ? frames__parent(s->frames, by.resuming) : NULL;
	/* The first part of the same unwinding, which stopped at a clean-up. */
	struct unwind *earlier = clean_up ? frames__unwind_into(s->frames, clean_up) : NULL;
	struct unwind unwind = {.end_ns = b->time_ns};

	if (earlier && by.resumes)
		by.left_by = earlier->left_by;
	unwind.left_by = by.left_by;
	if (by.frame) {
		frames__name(s->frames, by.frame);
		unwind.start_ns = by.frame->call.start_ns;
		unwind.from = by.frame->index;
	}
	/*
	 * The clean-up may have been in a function that began the unwinding: a panic goes through
	 * several.
	 */
	if (earlier && !by.resumes) {
		earlier->left_by = by.left_by;
		earlier->start_ns = unwind.start_ns;
		earlier->from = unwind.from;
	}
	if (frame) {
		frames__cut_to(s->frames, frame, b->time_ns, by.left_by);
	} else {
		/* The frame is below all that the segment has shown. */
		uint32_t distance = unwinding__count_below(s);

		frames__cut_to(s->frames, NULL, b->time_ns, by.left_by);
		frames__end_segment(s->frames);
		frames__begin_below(s->frames, b->time_ns,
				    unwinding__find_waiting(s, b, &by, distance), distance);
		stack__push_first(s, b->to);
		frame = stack__top(s);
	}
	if (frame && earlier)
		frames__move_unwind(s->frames, earlier, frame, b->time_ns);
	else if (frame && by.frame)
		frames__add_unwind(s->frames, &unwind, frame);
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
	s->frames = &coroutine->frames;
}

void stack__resume(struct stack *s, uint64_t time_ns, struct coroutine *coroutine)
{
	stack__switch_to(s, coroutine);
	frames__pop(s->frames, time_ns, 0); /* the slice of the time switched out */
}

void stack__suspend(struct stack *s, uint64_t time_ns, uint64_t waits_at)
{
	const struct frame *top = stack__top(s);
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

/* Events: calls, returns and landings. */

/* -v prints this many events per rule. */
#define EVENTS_TOLD 3

/* After an event that only corrected the state, the branch is classified again. */
static void on_event(struct stack *s, const struct branch *b, enum branch_kind as)
{
	struct event e = {.group = NULL};

	do {
		uint32_t *n;

		e.again = false;
		if (!rules__classify(s, b, as, &e))
			return;
		n = &s->n_events[e.group - rule_groups][e.rule - e.group->rules];
		if (++*n <= EVENTS_TOLD && log__level() >= LOG_VERBOSE && !e.rule->is_common) {
			char text[EVENT_TEXT_SIZE];

			event__format(&e, s, b, text);
			log__debug("thread %d at %" PRIu64 " ns: %s%s", s->tid, b->time_ns, text,
				   *n == EVENTS_TOLD ? " (no more of these are shown)" : "");
		}
		if (e.rule->apply)
			e.rule->apply(s, b, &e);
	} while (e.again);
}

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

void event__return(struct stack *s, const struct branch *b, struct event *e)
{
	frames__cut_to(s->frames, e->frame, b->time_ns, LEFT_BY_UNKNOWN);
	frames__pop(s->frames, b->time_ns, 0);
}

void event__return_out(struct stack *s, const struct branch *b, struct event *e)
{
	const uint8_t by_jump_or_inferred = CALL_INFERRED_START | CALL_BY_JUMP;
	const struct call *call = &stack__top(s)->call;
	/* A coroutine's first frame returns to a function whose address its creator has stored. */
	bool is_made_by_hand = !call->call_ip && !(call->flags & by_jump_or_inferred);
	const struct function *function = e->function;
	struct frame *below;

	frames__pop(s->frames, b->time_ns, 0);
	if (stack__top(s))
		return;
	/* In assembly a label may follow the call: the caller is the function before it. */
	if (e->is_entry && !is_made_by_hand)
		function = stack__function_at(s, b->to - 1, NULL);
	/* After a context switch, the frame that runs the function may be from before it. */
	below = function ? frames__find(s->frames, frames__below(s->frames), function) : NULL;
	if (below)
		frames__pop_to(s->frames, below, b->time_ns, CALL_INFERRED_END);
	else if (put_below_all(s, b, function) && function__is_named(function, "caml_runstack"))
		stack__top(s)->role = ROLE_FIBER;
}

void event__tail_call(struct stack *s, const struct branch *b, struct event *e)
{
	stack__replace_top(s, b, e->function);
}

/*
 * The top frame, a stub's, becomes that of `function`, which the caller called. With lazy binding
 * (sysdeps/x86_64/dl-trampoline.h) it is the resolver's in between.
 */
static void resolve(struct stack *s, const struct branch *b, const struct function *function,
		    bool is_entry)
{
	enum function_role role = stack__role_at(s, b->to);
	struct frame *frame = stack__top(s);

	frame->is_resolving = role == ROLE_RESOLVER || role == ROLE_LINKER;
	frame->call.function = function;
	frame->call.entry_ip = b->to;
	frame->call.flags &= (uint8_t)~CALL_INSIDE;
	frame->call.flags |= is_entry ? 0 : CALL_INSIDE;
	stack__take_role(s, role);
}

void event__resolved(struct stack *s, const struct branch *b, struct event *e)
{
	resolve(s, b, e->function, e->is_entry);
}

void event__cut(struct stack *s, const struct branch *b, struct event *e)
{
	frames__cut_to(s->frames, e->frame, b->time_ns, LEFT_BY_UNKNOWN);
}

void event__lost(struct stack *s, const struct branch *b, struct event *e)
{
	if (stack__top(s))
		stack__note_switcher(s, (struct switcher){.left_at = stack__top(s)->resume_ip});
	frames__pop_to(s->frames, NULL, b->time_ns, CALL_CUT_SHORT);
	frames__begin_segment(s->frames, b->time_ns);
	stack__push_first(s, b->to);
}

void event__landing(struct stack *s, const struct branch *b, struct event *e)
{
	unwinding__note_landing(s, b->to);
	stack__land(s, b, e->frame, e->by);
}

void event__receiver(struct stack *s, const struct branch *b, struct event *e)
{
	stack__give_back(stack__top(s));
	stack__land(s, b, NULL, e->by);
}

/* Events: out of user code and back, by what is not traced. */

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

void event__syscall(struct stack *s, const struct branch *b, struct event *e)
{
	go_outside(s, b, CALL_SYSCALL, b->from + b->len);
	/* Code that cannot be read calls rt_sigreturn if a handler has returned just before it. */
	s->in_sigreturn = stack__is_sigreturn(s, b->from) ||
			  (s->restorer_ip &&
			   (b->from - s->restorer_ip == 7 || b->from - s->restorer_ip == 5));
}

void event__interrupt(struct stack *s, const struct branch *b, struct event *e)
{
	go_outside(s, b, CALL_UNTRACED, b->from);
	s->in_sigreturn = false;
}

/* The handler may be anywhere. It is part of the function whose sequence it ends. */
void event__abort(struct stack *s, const struct branch *b, struct event *e)
{
	s->aborted.frame = stack__top(s)->index;
	s->aborted.handler = e->function;
}

void event__trap_return(struct stack *s, const struct branch *b, struct event *e)
{
	on_event(s, b, BRANCH_RETURN);
}

void event__signal(struct stack *s, const struct branch *b, struct event *e)
{
	struct frame frame = {.call = {.start_ns = b->time_ns,
				       .entry_ip = b->to,
				       .function = e->function,
				       .kind = CALL_SIGNAL},
			      .resume_ip = s->resume_ip};

	/* Go: a signal handler inserts this call at the instruction that it has interrupted. */
	if (function__is_named(e->function, "runtime.asyncPreempt") ||
	    function__is_named(e->function, "runtime.asyncPreempt.abi0"))
		frame.return_ip = frame.call.call_ip = s->resume_ip;
	stack__push(s, &frame);
}

/* Into the restorer, which calls rt_sigreturn: this is still the signal's frame. */
void event__handler_return(struct stack *s, const struct branch *b, struct event *e)
{
	stack__top(s)->call.kind = CALL_SIGNAL;
	s->restorer_ip = b->to;
	stack__replace_top(s, b, e->function);
}

/*
 * The thread continues where the signal came, unless another handler is next, or this one changed
 * its context. If the signal's frame was not known, the interrupted one now is.
 */
void event__signal_end(struct stack *s, const struct branch *b, struct event *e)
{
	struct frame *signal = stack__top(s);

	while (signal && signal->call.kind != CALL_SIGNAL)
		signal = frames__parent(s->frames, signal);
	s->resume_ip = signal ? signal->resume_ip : 0;
	if (signal) {
		frames__cut_to(s->frames, signal, b->time_ns, LEFT_BY_UNKNOWN);
		frames__pop(s->frames, b->time_ns, 0);
	} else {
		frames__pop_to(s->frames, NULL, b->time_ns, 0);
	}
	e->again = stack__top(s);
	if (!e->again)
		put_below_all(s, b, e->function);
}

/* Events: kernel code, if it is traced. */

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
	if (!stack__top(s))
		put_below_all(s, b, e->function);
}

/* Ends the entry from user code, with the entries on top of it. */
void event__kernel_exit(struct stack *s, const struct branch *b, struct event *e)
{
	struct frame *entry = NULL, *frame = stack__top(s);

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
	top = stack__top(s);
	e->again = top && e->function != top->call.function;
}

/*
 * kernel/sched/core.c: only __schedule() switches threads. It continues when its thread runs again;
 * the functions that perf called in it to stop the trace show no return.
 */
void event__kernel_stop(struct stack *s, const struct branch *b, struct event *e)
{
	struct frame *frame = stack__top(s);

	while (frame &&
	       !(frame->call.function && !strcmp(frame->call.function->name, "__schedule")))
		frame = frames__caller(s->frames, frame);
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

/* Branches. */

/*
 * Makes the function at `from` the top frame's if another one is there: in assembly, one function
 * may fall through into the next.
 */
static void reconcile(struct stack *s, const struct branch *b)
{
	struct frame *top = stack__top(s);
	const struct function *function;

	if (!top) {
		stack__push_first(s, b->from);
		return;
	}
	function = stack__function_at(s, b->from, NULL);
	if (!function || function == top->call.function ||
	    stack__is_return_thunk(function, b->from))
		return;
	/* An abort handler is a part of the function whose sequence it ends, placed elsewhere. */
	if (function == s->aborted.handler && top->index == s->aborted.frame)
		return;
	if (!top->call.function)
		top->call.function = function;
	else
		stack__replace_top(s, &(struct branch){.time_ns = b->time_ns, .to = b->from},
				   function);
}

/*
 * The common case: a plain call, a return to the address that its call pushed, a jump within a
 * function, a jump out of a stub, and a tail call. rules.c classifies everything else.
 */

static void on_call(struct stack *s, const struct branch *b)
{
	const struct frame *caller = stack__top(s);
	const struct function *function;
	struct frame *frame;
	bool is_entry;

	function = stack__function_at(s, b->to, &is_entry);
	if (!is_entry || caller->role || !b->len || b->to == b->from + b->len ||
	    stack__role_at(s, b->to)) {
		on_event(s, b, BRANCH_CALL);
		return;
	}
	frame = frames__push(s->frames, &(struct call){.start_ns = b->time_ns,
						       .entry_ip = b->to,
						       .call_ip = b->from,
						       .function = function});
	if (frame)
		frame->return_ip = branch__return_ip(b);
}

static void on_jump(struct stack *s, const struct branch *b)
{
	const struct frame *top = stack__top(s);
	const struct function *function;
	bool is_entry;

	function = stack__function_at(s, b->to, &is_entry);
	if (frame__is_stub(top) && is_entry)
		resolve(s, b, function, is_entry);
	else if (is_entry && function != top->call.function && !top->role &&
		 !address__is_kernel(b->to))
		stack__replace_top(s, b, function);
	else if (!function || function != top->call.function || stack__is_raise(s, b))
		on_event(s, b, BRANCH_JUMP);
}

static void on_branch(struct stack *s, const struct branch *b)
{
	struct frame *top;

	reconcile(s, b);
	top = stack__top(s);
	if (!top)
		return;
	top->call.self_insns += b->n_insns;
	if (b->kind == BRANCH_CALL)
		on_call(s, b);
	else if (b->kind == BRANCH_JUMP || b->kind == BRANCH_COND)
		on_jump(s, b);
	else if (b->kind == BRANCH_RETURN && b->to && frame__returns_to(top, b->to))
		frames__pop(s->frames, b->time_ns, 0);
	else
		on_event(s, b, (enum branch_kind)b->kind);
}

/* Tracing continues: in a new segment, or after the thread was outside of traced code. */
static void on_begin(struct stack *s, const struct branch *b)
{
	s->interruption.event = 0;
	if (!s->in_segment) {
		stack__start_segment(s, b);
	} else if (s->outside) {
		s->outside = false;
		frames__pop(s->frames, b->time_ns, 0); /* the slice of the time outside */
		on_event(s, b, BRANCH_BEGIN);
	}
}

/* A gap begins, and ends all running frames; they may continue after it, in a new segment. */
static void on_gap(struct stack *s, const struct branch *b)
{
	struct frame *top = stack__top(s);

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

static void take(struct stack *s, const struct branch *b)
{
	if (s->is_resuming)
		stack__settle_resume(s, b);
	s->last_ns = b->time_ns;
	if (b->kind == BRANCH_BEGIN)
		on_begin(s, b);
	else if (b->kind == BRANCH_GAP)
		on_gap(s, b);
	else if (s->in_segment && !s->outside)
		on_branch(s, b);
}

/* The CPU reports an interrupt before the branch out of the interrupted code. */
static void take_note(struct stack *s, const struct branch *entry)
{
	struct pt_note note = branch__note(entry, s->pid, s->tid);

	if (note.kind == PT_NOTE_PFA)
		s->interruption.address = note.value;
	if (note.kind != PT_NOTE_CFE)
		return;
	s->interruption.event = pt_event__of(note.value);
	s->interruption.ip = note.ip;
	if (s->interruption.event != PT_EVENT_PAGE_FAULT)
		s->interruption.address = 0;
}

int stack__take(struct stack *s, const struct branch *v, size_t n)
{
	function_cache__follow(&s->functions);
	for (size_t i = 0; i < n && !s->frames->failed; i++)
		if (!branch__is_entry(&v[i]))
			take(s, &v[i]);
		else if (v[i].kind == ENTRY_NOTE)
			take_note(s, &v[i]);
	return s->frames->failed ? -ENOMEM : 0;
}

static void begin_tree(const struct stack *s, struct call_tree *tree)
{
	*tree = (struct call_tree){.pid = s->pid, .tid = s->tid};
	snprintf(tree->comm, sizeof(tree->comm), "%s", s->comm);
}

int stack__finish(struct stack *s, struct call_tree *tree)
{
	const struct frame *top = stack__top(s);

	begin_tree(s, tree);
	/* An empty slice at the end is dropped: it is the freeze itself that left user code there.
	 */
	if (s->outside && frames__is_last(s->frames) && top->call.kind == CALL_UNTRACED &&
	    top->call.start_ns == s->last_ns)
		frames__drop_last(s->frames);
	stack__end_segments(s);
	return frames__finish(&s->coroutines.own.frames, tree);
}

int stack__finish_next(struct stack *s, struct call_tree *tree)
{
	struct coroutines *coroutines = &s->coroutines;
	struct coroutine *coroutine;
	const char *kind;

	do {
		if (coroutines->n_taken == coroutines->others.n)
			return 0;
		coroutine = coroutines->others.v[coroutines->n_taken++];
	} while (!coroutine->frames.parts.n);
	begin_tree(s, tree);
	tree->coroutine = coroutine->number;
	kind = coroutine->is_goroutine ? "goroutine" : coroutine->is_fiber ? "fiber" : "coroutine";
	if (coroutine == coroutines->system)
		snprintf(tree->coroutine_name, sizeof(tree->coroutine_name), "g0");
	else
		snprintf(tree->coroutine_name, sizeof(tree->coroutine_name), "%s %" PRIu32, kind,
			 coroutine->number);
	frames__pop_to(&coroutine->frames, NULL, s->last_ns, CALL_INFERRED_END);
	return frames__finish(&coroutine->frames, tree) ? -ENOMEM : 1;
}

void call_tree__fini(struct call_tree *tree)
{
	VEC_FINI(&tree->calls);
	call_sites__fini(&tree->sites);
	VEC_FINI(&tree->unwinds);
	VEC_FINI(&tree->done_by);
	VEC_FINI(&tree->waits);
	VEC_FINI(&tree->faults);
	VEC_FINI(&tree->interrupts);
}
