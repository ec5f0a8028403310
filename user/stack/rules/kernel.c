// SPDX-License-Identifier: MIT
/* Out of user code and back: syscalls, interrupts, signals and the return from them. */
#include "stack/stack_internal.h"

#include <string.h>

#include "kernel/address.h"
#include "kernel/rseq.h"
#include "util/insn.h"

#define SYSCALL_LEN 2

/* The kernel may set a thread back to the syscall that it left by. */
static bool goes_on(uint64_t to, uint64_t resume_ip)
{
	return to == resume_ip || to + SYSCALL_LEN == resume_ip;
}

/* The newest signal frame, or NULL. */
static struct frame *find_signal(struct stack *s)
{
	struct frame *frame = frames__top(s->frames);

	while (frame && frame->call.kind != CALL_SIGNAL)
		frame = frames__parent(s->frames, frame);
	return frame;
}

static void enter_signal(struct stack *s, const struct branch *b, const struct function *function,
			 uint64_t resume_ip)
{
	struct branch entry = {.time_ns = b->time_ns, .to = b->to};
	struct frame *frame;

	stack__push(s, &entry, function, CALL_SIGNAL, 0, 0);
	frame = frames__top(s->frames);
	if (!frame)
		return;
	frame->resume_ip = resume_ip;
	if (stack__is_preemption(function))
		frame->return_ip = frame->call.call_ip = resume_ip;
}

/* execve(): of the old stack nothing is left. No signal handler is there. */
static bool begins_program(struct stack *s, uint64_t ip)
{
	enum function_role role = function_cache__role(&s->functions, ip);

	return role == ROLE_START || role == ROLE_LINKER;
}

static bool is_abort_handler(struct stack *s, uint64_t ip)
{
	uint32_t signature;

	return code_map__read(s->map, ip - sizeof(signature), (uint8_t *)&signature,
			      sizeof(signature)) == sizeof(signature) &&
	       signature == RSEQ_SIGNATURE;
}

/* It may lie anywhere, and is part of the function whose sequence it ends. */
static void abort_sequence(struct stack *s, const struct frame *top, const struct function *handler)
{
	s->aborted.frame = frame__id(top);
	s->aborted.handler = handler;
}

/* Back from outside, but not where it left: the kernel sent the thread elsewhere. */
static void resume_elsewhere(struct stack *s, const struct branch *b, uint64_t resume_ip)
{
	struct frame *top = frames__top(s->frames), *caller;
	const struct function *function;
	bool is_entry;

	function = stack__function_at(s, b->to, &is_entry);
	/* A probe on the RET: the kernel stepped a copy of it. */
	if (top && top->return_ip && frame__returns_to(top, b->to)) {
		frames__pop(s->frames, b->time_ns, 0);
		return;
	}
	if (top && is_abort_handler(s, b->to)) {
		abort_sequence(s, top, function);
		return;
	}
	if (top && stack__is_uretprobe(top->call.function)) {
		stack__on_return(s, b);
		return;
	}
	/* An instruction that the kernel did (a probe's): the same activation. */
	if (function && top && top->call.function == function && !is_entry)
		return;
	if (is_entry && begins_program(s, b->to)) {
		stack__break_segment(s, b);
		return;
	}
	if (is_entry) {
		enter_signal(s, b, function, resume_ip);
		return;
	}
	caller = stack__find_caller(s, function);
	if (caller)
		frames__cut_to(s->frames, caller, b->time_ns, LEFT_BY_UNKNOWN);
	else
		stack__break_segment(s, b);
}

/*
 * The handler is over. The thread goes on where it was interrupted, unless another handler is next,
 * or the first one changed its context.
 */
static void leave_signal(struct stack *s, const struct branch *b)
{
	struct frame *signal = find_signal(s);
	uint64_t resume_ip = signal ? signal->resume_ip : 0;
	const struct function *function;
	bool is_entry;

	if (signal) {
		frames__cut_to(s->frames, signal, b->time_ns, LEFT_BY_UNKNOWN);
		frames__pop(s->frames, b->time_ns, 0);
	} else {
		frames__close_all(s->frames, b->time_ns, 0);
	}
	if (!frames__top(s->frames)) {
		/* The handler was running when the segment began: this is what it interrupted. */
		function = stack__function_at(s, b->to, &is_entry);
		frames__emplace_root(s->frames, function, b->to);
	} else if (!goes_on(b->to, resume_ip)) {
		resume_elsewhere(s, b, resume_ip);
	}
}

void stack__on_begin(struct stack *s, const struct branch *b)
{
	if (!s->in_segment) {
		stack__start_segment(s, b);
		return;
	}
	if (!s->outside)
		return;
	s->outside = false;
	frames__pop(s->frames, b->time_ns, 0); /* the slice of the time outside */
	if (s->is_in_user)
		stack__enter_from_user(s, b);
	else if (s->stopped_in_kernel || address__is_kernel(b->to))
		stack__resume_in_kernel(s, b);
	else
		stack__back_in_user(s, b, s->resume_ip);
}

void stack__back_in_user(struct stack *s, const struct branch *b, uint64_t resume_ip)
{
	if (s->in_sigreturn)
		leave_signal(s, b);
	else if (!goes_on(b->to, resume_ip))
		resume_elsewhere(s, b, resume_ip);
}

void stack__go_outside(struct stack *s, const struct branch *b, uint8_t kind, uint64_t resume_ip)
{
	stack__push(s, b, NULL, kind, 0, 0);
	s->outside = true;
	s->resume_ip = resume_ip;
}

/* The number in rax is in no packet, but in the code. */
bool stack__is_restorer(struct stack *s, uint64_t ip)
{
	uint8_t code[RESTORER_MAX_LEN] = {0};

	code_map__read(s->map, ip, code, sizeof(code));
	return insn__is_restorer(code);
}

bool stack__is_sigreturn(struct stack *s, uint64_t ip)
{
	return stack__is_restorer(s, ip - 7) || stack__is_restorer(s, ip - 5);
}

/* The same where its code cannot be read: a handler has returned to what comes to its syscall so.
 */
static bool is_in_restorer(const struct stack *s, uint64_t ip)
{
	return s->restorer_ip && (ip - s->restorer_ip == 7 || ip - s->restorer_ip == 5);
}

void stack__on_end_syscall(struct stack *s, const struct branch *b)
{
	bool is_sigreturn = stack__is_sigreturn(s, b->from) || is_in_restorer(s, b->from);

	if (stack__returns_to_user(s, b->from)) {
		stack__leave_for_user(s, b);
		return;
	}
	stack__go_outside(s, b, CALL_SYSCALL, b->from + b->len);
	s->in_sigreturn = is_sigreturn;
}

void stack__on_end_async(struct stack *s, const struct branch *b)
{
	stack__go_outside(s, b, CALL_UNTRACED, b->from);
	s->in_sigreturn = false;
}
