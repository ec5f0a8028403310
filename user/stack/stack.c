// SPDX-License-Identifier: MIT
#include "stack/stack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "stack/frames.h"

struct stack {
	struct frames frames;
	struct code_map *map;
	pid_t pid, tid;
	char comm[16];
	bool in_segment;
	uint64_t last_ns;
	/* Between an END and its BEGIN. */
	bool outside;
	uint64_t resume_ip; /* where the thread goes on unless the kernel sends it elsewhere */
	/* Between a GAP and the BEGIN behind it. */
	bool in_gap;
	uint8_t gap_reason;
	uint64_t gap_ns;
};

struct stack *stack__new(pid_t pid, pid_t tid, const char *comm, struct code_map *map)
{
	struct stack *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	frames__init(&s->frames);
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
	frames__fini(&s->frames);
	free(s);
}

/* The function at ip; NULL where no code is known. *is_entry: ip is its first instruction. */
static const struct function *function_at(struct stack *s, uint64_t ip, bool *is_entry)
{
	struct code_place place;

	*is_entry = false;
	if (!code_map__find(s->map, ip, &place))
		return NULL;
	*is_entry = place.entry == ip;
	return place.function;
}

static void push(struct stack *s, const struct branch *b, const struct function *function,
		 uint8_t kind, uint8_t flags, uint64_t return_ip)
{
	struct call call = {.start_ns = b->time_ns,
			    .entry_ip = b->to,
			    .call_ip = b->from,
			    .function = function,
			    .kind = kind,
			    .flags = flags};
	struct frame *frame = frames__push(&s->frames, &call);

	if (frame)
		frame->return_ip = return_ip;
}

/* The frame that runs at the start of a segment; who called it may show later. */
static void push_first(struct stack *s, uint64_t ip)
{
	struct call call = {
		.start_ns = s->frames.start_ns, .entry_ip = ip, .flags = CALL_INFERRED_START};
	bool is_entry;

	call.function = function_at(s, ip, &is_entry);
	frames__push(&s->frames, &call);
	s->frames.level = 0;
}

/* A tail call: the new frame takes the place of the old one, and will return to its caller. */
static void replace_top(struct stack *s, const struct branch *b, const struct function *function)
{
	struct frame *top = frames__top(&s->frames);
	uint64_t return_ip = top->return_ip, resume_ip = top->resume_ip;
	uint8_t kind = top->call.kind;

	frames__pop(&s->frames, b->time_ns, 0);
	push(s, b, function, kind, CALL_BY_JUMP, return_ip);
	top = frames__top(&s->frames);
	if (top)
		top->resume_ip = resume_ip;
}

/*
 * The branch came out of the function at `from`: is that what runs on top? It is not where one
 * function falls through into the next (assembler).
 */
static void reconcile(struct stack *s, const struct branch *b)
{
	struct frame *top = frames__top(&s->frames);
	const struct function *function;
	bool is_entry;

	if (!top) {
		push_first(s, b->from);
		return;
	}
	function = function_at(s, b->from, &is_entry);
	if (!function || function == top->call.function)
		return;
	if (!top->call.function)
		top->call.function = function;
	else
		replace_top(s, &(struct branch){.time_ns = b->time_ns, .to = b->from}, function);
}

static void on_call(struct stack *s, const struct branch *b)
{
	uint64_t next = b->from + b->len;
	const struct function *function;
	bool is_entry;

	/* "call next; pop": reads the IP, enters nothing. */
	if (b->to == next)
		return;
	function = function_at(s, b->to, &is_entry);
	push(s, b, function, CALL_FUNCTION, 0, next);
}

static struct frame *find_return(struct stack *s, uint64_t ip)
{
	struct frame *frame = frames__top(&s->frames);

	for (; frame; frame = frames__parent(&s->frames, frame))
		if (frame->return_ip == ip)
			return frame;
	return NULL;
}

/* A caller on the stack that runs `function`; the top itself is not meant. */
static struct frame *find_caller(struct stack *s, const struct function *function)
{
	struct frame *frame = frames__top(&s->frames);

	if (!frame || !function)
		return NULL;
	while ((frame = frames__parent(&s->frames, frame)))
		if (frame->call.function == function)
			return frame;
	return NULL;
}

/* The thread is somewhere that nothing known leads to (another stack): what was known ends here. */
static void break_segment(struct stack *s, const struct branch *b)
{
	frames__close_all(&s->frames, b->time_ns, CALL_CUT_SHORT);
	frames__begin_segment(&s->frames, b->time_ns);
	push_first(s, b->to);
}

/* The RET of a frame whose caller is not known: a root of the segment, or a signal handler. */
static void return_to_unknown(struct stack *s, const struct branch *b, struct frame *top,
			      const struct function *function)
{
	if (top->call.kind == CALL_SIGNAL) {
		/* Into the restorer, which calls rt_sigreturn: still the signal's frame. */
		replace_top(s, b, function);
		return;
	}
	frames__pop(&s->frames, b->time_ns, 0);
	if (!frames__top(&s->frames))
		frames__emplace_root(&s->frames, function, b->to);
}

static void on_return(struct stack *s, const struct branch *b)
{
	struct frame *top = frames__top(&s->frames), *frame;
	const struct function *function;
	bool is_entry;

	if (!top)
		return;
	function = function_at(s, b->to, &is_entry);
	frame = find_return(s, b->to);
	if (frame) {
		frames__pop_to(&s->frames, frame, b->time_ns);
		frames__pop(&s->frames, b->time_ns, 0);
		return;
	}
	if (!top->return_ip) {
		return_to_unknown(s, b, top, function);
		return;
	}
	/* A RET that was no return: a jump made of "push; ret", or a stack cut back by hand. */
	frame = find_caller(s, function);
	if (frame)
		frames__pop_to(&s->frames, frame, b->time_ns);
	else if (is_entry)
		replace_top(s, b, function);
	else
		break_segment(s, b);
}

static void on_jump(struct stack *s, const struct branch *b)
{
	struct frame *top = frames__top(&s->frames), *caller;
	const struct function *function;
	bool is_entry;

	function = function_at(s, b->to, &is_entry);
	if (!top || !function || function == top->call.function)
		return;
	if (top->call.function && top->call.function->kind == FUNCTION_PLT) {
		/* The stub's frame becomes the function's: the caller called that. */
		top->call.function = function;
		top->call.entry_ip = b->to;
		return;
	}
	/* Into the middle of a caller: longjmp. */
	caller = is_entry ? NULL : find_caller(s, function);
	if (caller)
		frames__pop_to(&s->frames, caller, b->time_ns);
	else
		replace_top(s, b, function);
}

static struct frame *find_signal(struct stack *s)
{
	struct frame *frame = frames__top(&s->frames);

	while (frame && frame->call.kind != CALL_SIGNAL)
		frame = frames__parent(&s->frames, frame);
	return frame;
}

/* rt_sigreturn went back to what the handler had interrupted. */
static bool leave_signal(struct stack *s, const struct branch *b, const struct function *function)
{
	struct frame *signal = find_signal(s), *below;

	if (!signal)
		return false;
	below = frames__parent(&s->frames, signal);
	if (b->to != signal->resume_ip && (!below || below->call.function != function))
		return false;
	frames__pop_to(&s->frames, signal, b->time_ns);
	frames__pop(&s->frames, b->time_ns, 0);
	return true;
}

static void enter_signal(struct stack *s, const struct branch *b, const struct function *function)
{
	struct branch entry = {.time_ns = b->time_ns, .to = b->to};
	struct frame *frame;

	push(s, &entry, function, CALL_SIGNAL, 0, 0);
	frame = frames__top(&s->frames);
	if (frame)
		frame->resume_ip = s->resume_ip;
}

/* Back from outside, but not where it left: the kernel sent the thread elsewhere. */
static void resume_elsewhere(struct stack *s, const struct branch *b)
{
	struct frame *top = frames__top(&s->frames), *caller;
	const struct function *function;
	bool is_entry;

	function = function_at(s, b->to, &is_entry);
	/* An instruction that the kernel did (a probe's), an rseq abort: the same activation. */
	if (function && top && top->call.function == function && !is_entry)
		return;
	if (leave_signal(s, b, function))
		return;
	if (is_entry) {
		enter_signal(s, b, function);
		return;
	}
	caller = find_caller(s, function);
	if (caller)
		frames__pop_to(&s->frames, caller, b->time_ns);
	else
		break_segment(s, b);
}

static void start_segment(struct stack *s, const struct branch *b)
{
	if (s->in_gap)
		frames__add_gap(&s->frames, s->gap_ns, b->time_ns, s->gap_reason);
	s->in_gap = false;
	s->in_segment = true;
	s->outside = false;
	frames__begin_segment(&s->frames, b->time_ns);
	push_first(s, b->to);
}

static void on_begin(struct stack *s, const struct branch *b)
{
	if (!s->in_segment) {
		start_segment(s, b);
		return;
	}
	if (!s->outside)
		return;
	s->outside = false;
	frames__pop(&s->frames, b->time_ns, 0); /* the slice of the time outside */
	if (b->to != s->resume_ip)
		resume_elsewhere(s, b);
}

static void on_end(struct stack *s, const struct branch *b, uint8_t kind, uint64_t resume_ip)
{
	push(s, b, NULL, kind, 0, 0);
	s->outside = true;
	s->resume_ip = resume_ip;
}

static void on_gap(struct stack *s, const struct branch *b)
{
	frames__close_all(&s->frames, b->time_ns, CALL_INFERRED_END);
	s->in_segment = false;
	s->in_gap = true;
	s->gap_ns = b->time_ns;
	s->gap_reason = b->reason;
}

static void run_rule(struct stack *s, const struct branch *b)
{
	switch ((enum branch_kind)b->kind) {
	case BRANCH_CALL:
		on_call(s, b);
		break;
	case BRANCH_RETURN:
		on_return(s, b);
		break;
	case BRANCH_JUMP:
	case BRANCH_COND:
		on_jump(s, b);
		break;
	case BRANCH_END_SYSCALL:
		on_end(s, b, CALL_SYSCALL, b->from + b->len);
		break;
	case BRANCH_END_ASYNC:
		on_end(s, b, CALL_UNTRACED, b->from);
		break;
	case BRANCH_BEGIN:
	case BRANCH_END:
	case BRANCH_GAP:
		break;
	}
}

int stack__branch(void *stack, const struct branch *b)
{
	struct stack *s = stack;
	struct frame *top;

	s->last_ns = b->time_ns;
	if (b->kind == BRANCH_BEGIN) {
		on_begin(s, b);
	} else if (b->kind == BRANCH_GAP) {
		on_gap(s, b);
	} else if (s->in_segment) {
		reconcile(s, b);
		top = frames__top(&s->frames);
		if (top)
			top->call.self_insns += b->n_insns;
		run_rule(s, b);
	}
	return s->frames.failed ? -ENOMEM : 0;
}

/* The freeze itself leaves user code: nothing of it is the program's. */
static void drop_empty_end(struct stack *s)
{
	struct frame *top = frames__top(&s->frames);

	if (!s->outside || !top || top->call.kind != CALL_UNTRACED ||
	    top->call.start_ns != s->last_ns || s->frames.top != s->frames.nodes.n - 1)
		return;
	frames__pop(&s->frames, s->last_ns, 0);
	s->frames.nodes.n--;
}

int stack__finish(struct stack *s, struct call_tree *tree)
{
	*tree = (struct call_tree){.pid = s->pid, .tid = s->tid};
	snprintf(tree->comm, sizeof(tree->comm), "%s", s->comm);
	drop_empty_end(s);
	frames__close_all(&s->frames, s->last_ns, CALL_INFERRED_END);
	if (s->in_gap)
		frames__add_gap(&s->frames, s->gap_ns, s->last_ns, s->gap_reason);
	return frames__finish(&s->frames, tree);
}

void call_tree__fini(struct call_tree *tree)
{
	VEC_FINI(&tree->calls);
}

long stack__level(const struct stack *s)
{
	return s->frames.level - (s->outside ? 1 : 0);
}

const struct function *stack__top(const struct stack *s)
{
	const struct frame *top = frames__top(&s->frames);

	if (top && s->outside)
		top = frames__parent(&s->frames, top);
	return top ? top->call.function : NULL;
}
