// SPDX-License-Identifier: MIT
#include "stack/stack.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "decode/pt_note.h"
#include "kernel/kernel.h"
#include "stack/rules.h"
#include "util/log.h"

struct stack *stack__new(pid_t pid, pid_t tid, const char *comm, struct code_map *map)
{
	struct stack *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	frames__init(&s->own_frames);
	coroutines__init(&s->coroutines, &s->own_frames);
	s->frames = &s->own_frames;
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
	frames__fini(&s->own_frames);
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
	s->own_frames.consumer = consumer;
}

/* True if `function` is the abort handler of the frame, a part of its code placed elsewhere. */
static bool is_aborting(const struct stack *s, const struct frame *top,
			const struct function *function)
{
	return function == s->aborted.handler && top->index == s->aborted.frame;
}

/*
 * Makes the function at `from` the top frame's if another one is there: in assembly, one function
 * may fall through into the next.
 */
static void reconcile(struct stack *s, const struct branch *b)
{
	struct frame *top = frames__top(s->frames);
	const struct function *function;
	bool is_entry;

	if (!top) {
		stack__push_first(s, b->from);
		return;
	}
	function = stack__function_at(s, b->from, &is_entry);
	if (!function || function == top->call.function ||
	    stack__is_return_thunk(function, b->from) || is_aborting(s, top, function))
		return;
	if (!top->call.function)
		top->call.function = function;
	else
		stack__replace_top(s, &(struct branch){.time_ns = b->time_ns, .to = b->from},
				   function);
}

/* -v prints this many events per rule. */
#define EVENTS_TOLD 3

static void count(struct stack *s, const struct branch *b, const struct event *e)
{
	uint32_t *n = &s->n_events[e->group - rule_groups][e->rule - e->group->rules];
	char text[EVENT_TEXT_SIZE];

	if (++*n > EVENTS_TOLD || log__level() < LOG_VERBOSE || e->rule->is_common)
		return;
	event__format(e, s, b, text);
	log__debug("thread %d at %" PRIu64 " ns: %s%s", s->tid, b->time_ns, text,
		   *n == EVENTS_TOLD ? " (no more of these are shown)" : "");
}

/* After an event that only corrected the state, the branch is classified again. */
void stack__on_event(struct stack *s, const struct branch *b, enum branch_kind as)
{
	struct event e = {.group = NULL};

	do {
		e.again = false;
		if (!rules__classify(s, b, as, &e))
			return;
		count(s, b, &e);
		if (e.rule->apply)
			e.rule->apply(s, b, &e);
	} while (e.again);
}

/*
 * The common case: a plain call, a return to the address that its call pushed, a jump within a
 * function, a jump out of a stub, and a tail call. rules.c classifies everything else.
 */

static void on_call(struct stack *s, const struct branch *b)
{
	const struct frame *caller = frames__top(s->frames);
	const struct function *function;
	struct frame *frame;
	bool is_entry;

	function = stack__function_at(s, b->to, &is_entry);
	if (!is_entry || caller->role || !b->len || b->to == b->from + b->len ||
	    stack__role_at(s, b->to)) {
		stack__on_event(s, b, BRANCH_CALL);
		return;
	}
	frame = frames__push(s->frames, &(struct call){.start_ns = b->time_ns,
						       .entry_ip = b->to,
						       .call_ip = b->from,
						       .function = function});
	if (frame)
		frame->return_ip = branch__return_ip(b);
}

static void on_return(struct stack *s, const struct branch *b)
{
	const struct frame *top = frames__top(s->frames);

	if (b->to && frame__returns_to(top, b->to))
		frames__pop(s->frames, b->time_ns, 0);
	else
		stack__on_event(s, b, BRANCH_RETURN);
}

static void on_jump(struct stack *s, const struct branch *b)
{
	const struct frame *top = frames__top(s->frames);
	const struct function *function;
	bool is_entry;

	function = stack__function_at(s, b->to, &is_entry);
	if (frame__is_stub(top) && is_entry)
		stack__resolve(s, b, function, is_entry);
	else if (is_entry && function != top->call.function && !top->role &&
		 !address__is_kernel(b->to))
		stack__replace_top(s, b, function);
	else if (!function || function != top->call.function || stack__is_raise(s, b))
		stack__on_event(s, b, BRANCH_JUMP);
}

static void on_branch(struct stack *s, const struct branch *b)
{
	struct frame *top;

	reconcile(s, b);
	top = frames__top(s->frames);
	if (!top)
		return;
	top->call.self_insns += b->n_insns;
	if (b->kind == BRANCH_CALL)
		on_call(s, b);
	else if (b->kind == BRANCH_RETURN)
		on_return(s, b);
	else if (b->kind == BRANCH_JUMP || b->kind == BRANCH_COND)
		on_jump(s, b);
	else
		stack__on_event(s, b, (enum branch_kind)b->kind);
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
		stack__on_event(s, b, BRANCH_BEGIN);
	}
}

static void take(struct stack *s, const struct branch *b)
{
	if (s->is_resuming)
		stack__settle_resume(s, b);
	s->last_ns = b->time_ns;
	if (b->kind == BRANCH_BEGIN)
		on_begin(s, b);
	else if (b->kind == BRANCH_GAP)
		stack__open_gap(s, b);
	else if (s->in_segment && !s->outside)
		on_branch(s, b);
}

/* The CPU reports an interrupt before the branch out of the interrupted code. */
static void on_note(struct stack *s, const struct pt_note *note)
{
	if (note->kind == PT_NOTE_PFA)
		s->interruption.address = note->value;
	if (note->kind != PT_NOTE_CFE)
		return;
	s->interruption.event = pt_event__of(note->value);
	s->interruption.ip = note->ip;
	if (s->interruption.event != PT_EVENT_PAGE_FAULT)
		s->interruption.address = 0;
}

static void take_entry(struct stack *s, const struct branch *entry)
{
	struct pt_note note = branch__note(entry, s->pid, s->tid);

	if (entry->kind == ENTRY_NOTE)
		on_note(s, &note);
}

int stack__take(struct stack *s, const struct branch *v, size_t n)
{
	function_cache__follow(&s->functions);
	for (size_t i = 0; i < n && !s->frames->failed; i++)
		if (branch__is_entry(&v[i]))
			take_entry(s, &v[i]);
		else
			take(s, &v[i]);
	return s->frames->failed ? -ENOMEM : 0;
}

/* Drops an empty slice at the end: it is the freeze itself that leaves user code there. */
static void drop_empty_end(struct stack *s)
{
	struct frame *top = frames__top(s->frames);

	if (s->outside && frames__is_last(s->frames) && top->call.kind == CALL_UNTRACED &&
	    top->call.start_ns == s->last_ns)
		frames__drop_last(s->frames);
}

static void begin_tree(const struct stack *s, struct call_tree *tree)
{
	*tree = (struct call_tree){.pid = s->pid, .tid = s->tid};
	snprintf(tree->comm, sizeof(tree->comm), "%s", s->comm);
}

int stack__finish(struct stack *s, struct call_tree *tree)
{
	begin_tree(s, tree);
	drop_empty_end(s);
	stack__end_segments(s);
	return frames__finish(&s->own_frames, tree);
}

int stack__finish_next(struct stack *s, struct call_tree *tree)
{
	struct coroutine *coroutine = coroutines__take_next(&s->coroutines);

	if (!coroutine)
		return 0;
	begin_tree(s, tree);
	tree->coroutine = coroutine->number;
	coroutines__name(&s->coroutines, coroutine, tree->coroutine_name,
			 sizeof(tree->coroutine_name));
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
