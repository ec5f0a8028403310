// SPDX-License-Identifier: MIT
#include "stack/stack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "stack/stack_internal.h"
#include "kernel/address.h"

struct stack *stack__new(pid_t pid, pid_t tid, const char *comm, struct code_map *map)
{
	struct stack *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	frames__init(&s->own_frames);
	strands__init(&s->strands, &s->own_frames);
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
	strands__fini(&s->strands);
	frames__fini(&s->own_frames);
	VEC_FINI(&s->anchors);
	VEC_FINI(&s->anchor_ips);
	free(s);
}

void stack__set_traps(struct stack *s, const struct ocaml_traps *traps)
{
	s->traps = traps;
}

void stack__set_taker(struct stack *s, const struct call_taker *taker)
{
	s->own_frames.taker = taker;
}

const struct function *stack__function_at(struct stack *s, uint64_t ip, bool *is_entry)
{
	return function_cache__find(&s->functions, ip, is_entry);
}

void stack__push(struct stack *s, const struct branch *b, const struct function *function,
		 uint8_t kind, uint8_t flags, uint64_t return_ip)
{
	struct call call = {.start_ns = b->time_ns,
			    .entry_ip = b->to,
			    .call_ip = b->from,
			    .function = function,
			    .kind = kind,
			    .flags = flags};
	struct frame *frame;
	bool is_entry;

	if (function && function_cache__find(&s->functions, b->to, &is_entry) && !is_entry)
		call.flags |= CALL_INSIDE;
	frame = frames__push(s->frames, &call);
	if (frame)
		frame->return_ip = return_ip;
}

void stack__push_first(struct stack *s, uint64_t ip)
{
	struct call call = {
		.start_ns = s->frames->start_ns, .entry_ip = ip, .flags = CALL_INFERRED_START};
	bool is_entry;

	call.function = stack__function_at(s, ip, &is_entry);
	frames__push(s->frames, &call);
	s->frames->level = 0;
}

void stack__replace_top(struct stack *s, const struct branch *b, const struct function *function)
{
	struct frame *top = frames__top(s->frames);
	uint64_t return_ip = top->role ? top->resume_ip : top->return_ip;
	uint64_t resume_ip = top->role ? 0 : top->resume_ip;
	uint8_t kind = top->call.kind, slack = top->slack;
	enum function_role role;

	frames__learn_way(s->frames, top, false);
	frames__pop(s->frames, b->time_ns, 0);
	stack__push(s, b, function, kind, CALL_BY_JUMP, return_ip);
	top = frames__top(s->frames);
	if (top) {
		top->resume_ip = resume_ip;
		top->slack = slack;
	}
	role = function_cache__role(&s->functions, b->to);
	if (function_role__switches(role))
		stack__take_role(s, role);
}

/* A part of it that lies elsewhere. */
static bool is_aborting(const struct stack *s, const struct frame *top,
			const struct function *function)
{
	return function == s->aborted.handler && frame__id(top) == s->aborted.frame;
}

/*
 * The branch came out of the function at `from`: is that what runs on top? It is not where one
 * function falls through into the next (assembler).
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

struct frame *stack__find_caller(struct stack *s, const struct function *function)
{
	struct frame *frame = frames__top(s->frames);

	if (!frame || !function)
		return NULL;
	/* What an interrupt or a syscall lies on is no caller. */
	while (frame->call.kind != CALL_KERNEL) {
		frame = frames__parent(s->frames, frame);
		if (!frame || frame->call.function == function)
			return frame;
	}
	return NULL;
}

void stack__break_segment(struct stack *s, const struct branch *b)
{
	frames__close_all(s->frames, b->time_ns, CALL_CUT_SHORT);
	frames__begin_segment(s->frames, b->time_ns);
	stack__push_first(s, b->to);
}

static void run_rule(struct stack *s, const struct branch *b)
{
	switch ((enum branch_kind)b->kind) {
	case BRANCH_CALL:
		stack__on_call(s, b);
		break;
	case BRANCH_RETURN:
		stack__on_return(s, b);
		break;
	case BRANCH_JUMP:
	case BRANCH_COND:
		stack__on_jump(s, b);
		break;
	case BRANCH_ENTER:
		stack__on_enter(s, b);
		break;
	case BRANCH_LEAVE:
		stack__on_leave(s, b);
		break;
	case BRANCH_END_SYSCALL:
		stack__on_end_syscall(s, b);
		break;
	case BRANCH_END_ASYNC:
	case BRANCH_END:
		if (address__is_kernel(b->from))
			stack__on_kernel_stop(s, b);
		else if (b->kind == BRANCH_END_ASYNC)
			stack__on_end_async(s, b);
		break;
	case BRANCH_BEGIN:
	case BRANCH_GAP:
		break;
	}
}

int stack__branch(void *stack, const struct branch *b)
{
	struct stack *s = stack;
	struct frame *top;

	function_cache__follow(&s->functions);
	if (s->is_resuming)
		stack__settle_resume(s, b);
	s->last_ns = b->time_ns;
	if (b->kind == BRANCH_BEGIN) {
		stack__on_begin(s, b);
	} else if (b->kind == BRANCH_GAP) {
		stack__on_gap(s, b);
	} else if (s->in_segment && !s->outside) {
		reconcile(s, b);
		top = frames__top(s->frames);
		if (top)
			top->call.self_insns += b->n_insns;
		run_rule(s, b);
	}
	return s->frames->failed ? -ENOMEM : 0;
}

/* The freeze itself leaves user code: nothing of it is the program's. */
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
	stack__settle_strands(s);
	frames__close_all(s->frames, s->last_ns, CALL_INFERRED_END);
	stack__use_anchors(s, UINT64_MAX);
	stack__find_callers(s);
	if (s->in_gap)
		frames__add_gap(s->frames, s->gap_ns, s->last_ns, s->gap_reason);
	frames__close_all(&s->own_frames, s->last_ns, CALL_INFERRED_END);
	return frames__finish(&s->own_frames, tree);
}

int stack__finish_next(struct stack *s, struct call_tree *tree)
{
	struct strand *strand = strands__take_next(&s->strands);

	if (!strand)
		return 0;
	begin_tree(s, tree);
	tree->strand = strand->number;
	strands__name(&s->strands, strand, tree->strand_name, sizeof(tree->strand_name));
	frames__close_all(&strand->frames, s->last_ns, CALL_INFERRED_END);
	return frames__finish(&strand->frames, tree) ? -ENOMEM : 1;
}

void call_tree__fini(struct call_tree *tree)
{
	VEC_FINI(&tree->calls);
	call_sites__fini(&tree->sites);
	VEC_FINI(&tree->leaps);
	VEC_FINI(&tree->done_by);
	VEC_FINI(&tree->waits);
	VEC_FINI(&tree->faults);
	VEC_FINI(&tree->interrupts);
}

unsigned int stack__strand(const struct stack *s)
{
	return s->strands.running->generation;
}

long stack__level(const struct stack *s)
{
	return s->frames->level - (s->outside ? 1 : 0);
}

const struct function *stack__top(const struct stack *s)
{
	const struct frame *top = frames__top(s->frames);

	if (top && s->outside)
		top = frames__parent(s->frames, top);
	return top ? top->call.function : NULL;
}
