// SPDX-License-Identifier: MIT
/* Where the kernel is traced: into it, through its interrupts and context switches, and back. */
#include "stack/stack_internal.h"

#include <string.h>

#include "kernel/address.h"

void stack__on_enter(struct stack *s, const struct branch *b)
{
	const struct function *function;
	struct frame *frame;
	bool is_entry;

	function = stack__function_at(s, b->to, &is_entry);
	stack__push(s, b, function, CALL_KERNEL, 0, 0);
	frame = frames__top(s->frames);
	if (!frame)
		return;
	frame->resume_ip = b->from + b->len;
	if (!address__is_kernel(b->from))
		s->in_sigreturn = b->len && stack__is_sigreturn(s, b->from);
}

/* The newest entry whose interrupted code goes on at ip, or NULL. */
static struct frame *find_waiting(struct stack *s, uint64_t ip)
{
	struct frame *frame = frames__top(s->frames);

	while (frame && (frame->call.kind != CALL_KERNEL || frame->resume_ip != ip))
		frame = frames__parent(s->frames, frame);
	return frame;
}

static struct frame *find_newest(struct stack *s)
{
	struct frame *frame = frames__top(s->frames);

	while (frame && frame->call.kind != CALL_KERNEL)
		frame = frames__parent(s->frames, frame);
	return frame;
}

/* The one out of user code: others lie on top of it. */
static struct frame *find_outermost(struct stack *s)
{
	struct frame *found = NULL, *frame = frames__top(s->frames);

	for (; frame; frame = frames__parent(s->frames, frame))
		if (frame->call.kind == CALL_KERNEL)
			found = frame;
	return found;
}

/* The entry is over; without one the segment began in the kernel, and all of it is over. */
static void end_entry(struct stack *s, const struct branch *b, struct frame *entry)
{
	const struct function *function;
	bool is_entry;

	if (entry) {
		frames__unwind_to(s->frames, entry, b->time_ns, 0);
		frames__pop(s->frames, b->time_ns, 0);
	} else {
		frames__close_all(s->frames, b->time_ns, 0);
	}
	if (frames__top(s->frames))
		return;
	function = stack__function_at(s, b->to, &is_entry);
	frames__emplace_root(s->frames, function, b->to);
}

static void leave_to_kernel(struct stack *s, const struct branch *b)
{
	struct frame *entry = find_waiting(s, b->to), *top = frames__top(s->frames), *caller;
	const struct function *function;
	bool is_entry;

	function = stack__function_at(s, b->to, &is_entry);
	/* An iret that is no return, but makes the CPU forget what it has read ahead: sync_core().
	 */
	if (!entry && top && function == top->call.function)
		return;
	end_entry(s, b, entry ? entry : find_newest(s));
	top = frames__top(s->frames);
	if (entry || !top || function == top->call.function)
		return;
	/* Elsewhere: behind a fault that is expected (the exception table), a kprobe's emulation.
	 */
	caller = stack__find_caller(s, function);
	if (caller)
		frames__cut_to(s->frames, caller, b->time_ns, LEFT_BY_UNKNOWN);
	else
		stack__replace_top(s, b, function);
}

static void leave_to_user(struct stack *s, const struct branch *b)
{
	struct frame *entry = find_outermost(s);
	uint64_t resume_ip = entry ? entry->resume_ip : b->to;

	end_entry(s, b, entry);
	if (entry)
		stack__back_in_user(s, b, resume_ip);
}

void stack__on_leave(struct stack *s, const struct branch *b)
{
	if (address__is_kernel(b->to))
		leave_to_kernel(s, b);
	else
		leave_to_user(s, b);
}

/*
 * kernel/sched/core.c: the one function that switches threads. It runs on when its thread comes
 * back, while what perf called to stop the trace is not returned from in it.
 */
static struct frame *find_switch(struct stack *s)
{
	struct frame *frame = frames__top(s->frames);

	for (; frame; frame = frames__parent(s->frames, frame)) {
		if (frame->call.function && !strcmp(frame->call.function->name, "__schedule"))
			return frame;
		if (frame->call.kind == CALL_KERNEL)
			return NULL;
	}
	return NULL;
}

void stack__on_kernel_stop(struct stack *s, const struct branch *b)
{
	struct frame *frame = find_switch(s);

	if (frame)
		frames__unwind_to(s->frames, frame, b->time_ns, CALL_INFERRED_END);
	stack__go_outside(s, b, CALL_UNTRACED, 0);
	s->stopped_in_kernel = true;
}

void stack__resume_in_kernel(struct stack *s, const struct branch *b)
{
	struct call call = {
		.start_ns = b->time_ns, .entry_ip = b->to, .flags = CALL_INFERRED_START};
	bool is_entry;

	s->stopped_in_kernel = false;
	if (!address__is_kernel(b->to)) {
		leave_to_user(s, b);
		return;
	}
	frames__begin_nested(s->frames, b->time_ns);
	call.function = stack__function_at(s, b->to, &is_entry);
	frames__push(s->frames, &call);
}

/* sysret, sysexit or iret. A virtual machine is entered by another one. */
bool stack__returns_to_user(struct stack *s, uint64_t ip)
{
	uint8_t code[3] = {0}, *op = code;

	if (!address__is_kernel(ip) || !code_map__read(s->map, ip, code, sizeof(code)))
		return false;
	op += code[0] == 0x48; /* REX.W */
	return op[0] == 0xcf || (op[0] == 0x0f && (op[1] == 0x07 || op[1] == 0x35));
}

/*
 * User code is not traced: what ran in the kernel has all returned, and the next that is seen
 * enters it anew.
 */
void stack__leave_for_user(struct stack *s, const struct branch *b)
{
	frames__close_all(s->frames, b->time_ns, 0);
	frames__begin_segment(s->frames, b->time_ns);
	stack__go_outside(s, b, CALL_UNTRACED, 0);
	s->is_in_user = true;
}

void stack__enter_from_user(struct stack *s, const struct branch *b)
{
	const struct function *function;
	bool is_entry;

	s->is_in_user = false;
	function = stack__function_at(s, b->to, &is_entry);
	stack__push(s, b, function, CALL_KERNEL, 0, 0);
}

bool stack__is_return_thunk(const struct function *function, uint64_t ip)
{
	static const char suffix[] = "return_thunk";
	size_t len;

	if (!function || !address__is_kernel(ip))
		return false;
	len = strlen(function->name);
	return len >= sizeof(suffix) - 1 &&
	       !strcmp(function->name + len - (sizeof(suffix) - 1), suffix);
}
