// SPDX-License-Identifier: MIT
/* Near transfers: calls, returns, jumps that are tail calls, PLT stubs. */
#include "stack/stack_internal.h"

#include <string.h>

#include "kernel/address.h"
#include "util/insn.h"

/* E8, which reads the IP where it calls what follows it. */
#define CALL_DIRECT_LEN 5

/* "call next; pop" enters nothing. Where nobody says how long it is, a function may begin there. */
static bool enters_nothing(const struct branch *b, bool is_entry)
{
	if (b->len)
		return b->to == b->from + b->len;
	return b->to == b->from + CALL_DIRECT_LEN && !is_entry;
}

void stack__push_call(struct stack *s, const struct branch *b, const struct function *function)
{
	struct frame *top;

	stack__push(s, b, function, CALL_FUNCTION, 0, branch__return_ip(b));
	top = b->len ? NULL : frames__top(s->frames);
	if (top)
		top->slack = branch__return_slack(b);
}

void stack__on_call(struct stack *s, const struct branch *b)
{
	const struct frame *caller = frames__top(s->frames);
	const struct function *function;
	enum function_role role;
	bool is_entry;

	function = stack__function_at(s, b->to, &is_entry);
	if (enters_nothing(b, is_entry))
		return;
	if (caller && caller->role == ROLE_MCALL) {
		stack__on_mcall(s, b, function);
		return;
	}
	if (caller && (caller->role == ROLE_RUNSTACK || caller->role == ROLE_FIBER))
		stack__on_fiber_call(s, b);
	role = function_cache__role(&s->functions, b->to);
	if (role && role <= ROLE_GETCONTEXT)
		stack__on_setjmp(s, b, role);
	if (role == ROLE_FIND_FDE)
		stack__on_step(s);
	stack__push_call(s, b, function);
	if (function_role__switches(role))
		stack__take_role(s, role);
}

static struct frame *find_return(struct stack *s, uint64_t ip)
{
	struct frame *frame = ip ? frames__top(s->frames) : NULL;

	for (; frame; frame = frames__parent(s->frames, frame)) {
		if (frame__returns_to(frame, ip))
			return frame;
		/* A RET does not leave an interrupt or a syscall. */
		if (frame->call.kind == CALL_KERNEL)
			return NULL;
	}
	return NULL;
}

/* Behind a context switch: the frame that was there before it, and runs that function. */
static struct frame *find_below(struct stack *s, const struct function *function)
{
	struct frame *frame = function ? frames__below(s->frames) : NULL;

	for (; frame; frame = frames__parent(s->frames, frame)) {
		if (frame->call.function == function)
			return frame;
		if (frame->call.kind == CALL_KERNEL)
			return NULL;
	}
	return NULL;
}

/* The first frame of a coroutine: who set up its stack put a function's first address there. */
static bool is_made_by_hand(const struct frame *frame)
{
	return !frame->call.call_ip && !(frame->call.flags & (CALL_INFERRED_START | CALL_BY_JUMP));
}

/* The RET of a frame whose caller is not known: a root of the segment, or a signal handler. */
static void return_to_unknown(struct stack *s, const struct branch *b, struct frame *top,
			      const struct function *function, bool is_entry)
{
	struct frame *below;

	/* Its code is one in pieces, between which it may use anything to get on. */
	if (top->call.kind == CALL_KERNEL) {
		stack__replace_top(s, b, function);
		return;
	}
	if (top->call.kind == CALL_SIGNAL || stack__is_restorer(s, b->to)) {
		/* Into the restorer, which calls rt_sigreturn: still the signal's frame. */
		top->call.kind = CALL_SIGNAL;
		s->restorer_ip = b->to;
		stack__replace_top(s, b, function);
		return;
	}
	is_entry &= !is_made_by_hand(top);
	frames__pop(s->frames, b->time_ns, 0);
	if (frames__top(s->frames))
		return;
	/* A label of assembly may stand behind the call: what is returned to is what called. */
	if (is_entry)
		function = stack__function_at(s, b->to - 1, &is_entry);
	below = find_below(s, function);
	if (below)
		frames__unwind_to(s->frames, below, b->time_ns, CALL_INFERRED_END);
	else if (frames__emplace_root(s->frames, function, b->to))
		stack__note_fiber_base(s);
}

/*
 * No handler, but a call that a handler put in: in a recursion its caller may return there, too. A
 * handler that has interrupted the end of another one, which is the restorer, returns to its own.
 */
static bool is_put_in(struct stack *s, const struct frame *frame, uint64_t ip)
{
	return frame->call.kind == CALL_SIGNAL && frame->resume_ip && frame->resume_ip == ip &&
	       !stack__is_restorer(s, ip);
}

bool stack__is_uretprobe(const struct function *function)
{
	return function && !strcmp(function->module, "[uprobes]");
}

/* As OCaml does: in one activation of a function, maybe, for another. */
static bool is_raise(struct stack *s, const struct branch *b)
{
	uint8_t code[JUMP_TO_POPPED_LEN];

	return code_map__read(s->map, b->from - JUMP_TO_POPPED_BEFORE, code, sizeof(code)) ==
		       sizeof(code) &&
	       insn__jumps_to_popped(code);
}

/* The same from 5.0 on: pop slot(%r14); ret (runtime/amd64.S, RESTORE_EXN_HANDLER_OCAML). */
static bool is_raise_by_return(struct stack *s, const struct branch *b)
{
	static const uint8_t pop_slot[] = {0x41, 0x8f, 0x46};
	uint8_t code[sizeof(pop_slot) + 1];

	return code_map__read(s->map, b->from - sizeof(code), code, sizeof(code)) == sizeof(code) &&
	       !memcmp(code, pop_slot, sizeof(pop_slot));
}

void stack__on_return(struct stack *s, const struct branch *b)
{
	struct frame *top = frames__top(s->frames), *frame;
	const struct function *function;
	bool is_entry;

	if (!top)
		return;
	if ((frame__returns_to(top, b->to) && b->to) || is_put_in(s, top, b->to)) {
		frames__pop(s->frames, b->time_ns, 0);
		return;
	}
	if (!top->return_ip && stack__switch(s, b))
		return;
	function = stack__function_at(s, b->to, &is_entry);
	if (!stack__is_uretprobe(function) && !is_raise_by_return(s, b) && stack__reconsider(s, b))
		top = frames__top(s->frames);
	frame = find_return(s, b->to);
	/* A landing pad may lie right behind a call that never returns. */
	if (frame && frame != top && stack__catch(s, b))
		return;
	if (frame) {
		frames__cut_to(s->frames, frame, b->time_ns, LEFT_BY_UNKNOWN);
		frames__pop(s->frames, b->time_ns, 0);
		return;
	}
	if (stack__is_uretprobe(function)) {
		stack__replace_top(s, b, function);
		return;
	}
	if (!top->return_ip) {
		return_to_unknown(s, b, top, function, is_entry);
		return;
	}
	/* A RET that was no return: a jump made of "push; ret", or a stack cut back by hand. */
	if (stack__land(s, b, function))
		return;
	if (is_entry || address__is_kernel(b->to))
		stack__replace_top(s, b, function);
	else
		stack__break_segment(s, b);
}

/* A stub, or the resolver that it has gone through: neither is what was called. */
static bool is_on_its_way(const struct frame *frame)
{
	return frame->is_resolving ||
	       (frame->call.function && frame->call.function->kind == FUNCTION_PLT);
}

/*
 * The stub's frame becomes the function's: the caller called that. Where it is bound lazily
 * (sysdeps/x86_64/dl-trampoline.h), it is the resolver's in between.
 */
static void become(struct stack *s, const struct branch *b, struct frame *frame,
		   const struct function *function, bool is_entry)
{
	enum function_role role = function_cache__role(&s->functions, b->to);

	frame->is_resolving = role == ROLE_RESOLVER || role == ROLE_LINKER;
	frame->call.function = function;
	frame->call.entry_ip = b->to;
	frame->call.flags &= (uint8_t)~CALL_INSIDE;
	frame->call.flags |= is_entry ? 0 : CALL_INSIDE;
	if (function_role__switches(role))
		stack__take_role(s, role);
}

void stack__on_jump(struct stack *s, const struct branch *b)
{
	struct frame *top = frames__top(s->frames);
	const struct function *function;
	bool is_entry;

	function = stack__function_at(s, b->to, &is_entry);
	if (!top || !function || stack__is_return_thunk(function, b->to))
		return;
	if (function == top->call.function) {
		if (is_raise(s, b))
			stack__catch(s, b);
		return;
	}
	if (is_on_its_way(top)) {
		become(s, b, top, function, is_entry);
		return;
	}
	if (top->role && stack__switch(s, b))
		return;
	if (is_entry || !stack__land(s, b, function))
		stack__replace_top(s, b, function);
}
