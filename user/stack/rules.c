// SPDX-License-Identifier: MIT
#include "stack/rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernel/kernel.h"
#include "target/unwind/unwind.h"
#include "util/insn.h"

/* Questions about the code. */

struct frame *stack__find_caller(const struct stack *s, const struct function *function)
{
	struct frame *top = stack__top(s);

	return top && function ? frames__find(s->frames, frames__caller(s->frames, top), function)
			       : NULL;
}

bool stack__is_raise(const struct stack *s, const struct branch *b)
{
	uint8_t code[JUMP_TO_POPPED_LEN];

	return code_map__read(s->map, b->from - JUMP_TO_POPPED_BEFORE, code, sizeof(code)) ==
		       sizeof(code) &&
	       insn__jumps_to_popped(code);
}

/*
 * The code at ip calls rt_sigreturn: what a signal handler returns to. The number in rax is in no
 * packet, but in the code.
 */
static bool is_restorer(const struct stack *s, uint64_t ip)
{
	uint8_t code[RESTORER_MAX_LEN] = {0};

	code_map__read(s->map, ip, code, sizeof(code));
	return insn__is_restorer(code);
}

bool stack__is_sigreturn(const struct stack *s, uint64_t ip)
{
	return is_restorer(s, ip - 7) || is_restorer(s, ip - 5);
}

/* The kernel's trampoline, which a return probe has put where the return address was. */
static bool is_uretprobe(const struct function *function)
{
	return function && !strcmp(function->module, "[uprobes]");
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

/* Without Event Trace an int3, for example, ends tracing like a syscall instruction. */
bool stack__is_interrupted(const struct stack *s, const struct branch *b)
{
	return s->interruption.event && s->interruption.ip && s->interruption.ip == b->from;
}

/* Conditions of rules: true if the rule applies to `b`. They set in *e what the event is about. */
#define ARGS const struct stack *s, const struct branch *b, struct event *e

static bool has_role(const struct stack *s, enum function_role role)
{
	const struct frame *top = stack__top(s);

	return top && top->role == role;
}

static bool always(ARGS)
{
	return true;
}

/* Calls. */

/* Length of E8, with which code calls the next instruction to read the instruction pointer. */
#define CALL_DIRECT_LEN 5

/* If the length of the call is not known, the next address may be the start of a function. */
static bool calls_next(ARGS)
{
	if (b->len)
		return b->to == b->from + b->len;
	return b->to == b->from + CALL_DIRECT_LEN && !e->is_entry;
}

static bool calls_by_mcall(ARGS)
{
	return has_role(s, ROLE_MCALL);
}

static bool calls_from_runstack(ARGS)
{
	return has_role(s, ROLE_RUNSTACK);
}

/* Jumps within a function, and through stubs. */

static bool goes_nowhere_known(ARGS)
{
	return !e->function || !stack__top(s) || stack__is_return_thunk(e->function, b->to);
}

static bool stays_in_function(ARGS)
{
	return e->function == stack__top(s)->call.function;
}

static bool raises_in_function(ARGS)
{
	return stays_in_function(s, b, e) && stack__is_raise(s, b) &&
	       unwinding__find_pad(s, b, &e->frame, &e->by);
}

static bool leaves_stub(ARGS)
{
	return frame__is_stub(stack__top(s));
}

/* Switches from one stack of the thread to another. */

/*
 * In newer versions of Go runtime.gogo() only jumps to gogo(), which switches. It has the role only
 * if its code is not known.
 */
static bool goes_to_gogo(ARGS)
{
	const struct frame *top = stack__top(s);

	return top->role == ROLE_GOGO && e->is_entry && e->function != top->call.function &&
	       function__is_named(e->function, "gogo");
}

static bool goes_to_waiting(ARGS)
{
	e->coroutine = coroutines__find_waiting(&s->coroutines, b->to, stack__is_queued(s, b));
	return e->coroutine;
}

static bool comes_back(ARGS)
{
	const struct frame *top = stack__top(s);

	return top->role && b->to - top->resume_ip <= top->slack;
}

static bool switches_to_setjmp(ARGS)
{
	return stack__top(s)->role && unwinding__find_setjmp(s, b, &e->frame, &e->by);
}

static bool find_others_setjmp(ARGS)
{
	COROUTINES_EACH(&s->coroutines, coroutine) {
		e->coroutine = coroutine;
		if (coroutine->state == COROUTINE_WAITS &&
		    unwinding__has_setjmp(&coroutine->frames, b->to))
			return true;
	}
	return false;
}

static bool switches_to_others_setjmp(ARGS)
{
	return stack__top(s)->role && find_others_setjmp(s, b, e);
}

static bool recovers(ARGS)
{
	const struct coroutine *coroutine = s->coroutines.recovering;

	return coroutine && coroutine->state == COROUTINE_WAITS && has_role(s, ROLE_GOGO);
}

/* Only its code suggests a switch: it may as well have unwound its own stack, as a throw does. */
static bool may_have_unwound(ARGS)
{
	if (!has_role(s, ROLE_MAY_SWITCH))
		return false;
	return !e->function || (!e->is_entry && (stack__find_caller(s, e->function) ||
						 unwinding__find_pad(s, b, &e->frame, &e->by)));
}

/*
 * A switch that is made of setjmp() and longjmp(): the function that calls longjmp() has called
 * setjmp() itself, for the way back.
 */

static bool longjmps_to_waiting(ARGS)
{
	e->coroutine = unwinding__find_longjmp(s->frames, &e->frame)
			       ? coroutines__find_waiting(&s->coroutines, b->to, false)
			       : NULL;
	return e->coroutine;
}

static bool longjmps_to_itself(ARGS)
{
	const struct landing *own = unwinding__find_longjmp(s->frames, &e->frame);

	return own && b->to - own->ip <= own->slack;
}

static bool longjmps_to_others_setjmp(ARGS)
{
	return unwinding__find_longjmp(s->frames, &e->frame) &&
	       !unwinding__has_setjmp(s->frames, b->to) && find_others_setjmp(s, b, e);
}

static bool longjmps_to_unknown(ARGS)
{
	const struct landing *own;
	enum function_role role;
	uint64_t called;
	bool is_entry;

	if (!e->function || e->is_entry)
		return false;
	own = unwinding__find_longjmp(s->frames, &e->frame);
	if (!own || coroutines__has_parked(&s->coroutines, b->to))
		return own;
	if (own->is_taken || frames__parent(s->frames, e->frame)->call.function == e->function)
		return false;
	/* If the code does not tell what it calls, any call may be one of setjmp(). */
	called = unwind__called_before(s->map, b->to);
	if (!called || !stack__function_at(s, called, &is_entry) || !is_entry)
		return unwind__is_behind_call(s->map, b->to);
	role = stack__role_at(s, called);
	return role && role <= ROLE_GETCONTEXT;
}

/* No call returns there, no function begins there, and no known coroutine waits there. */
static bool is_receiver(ARGS)
{
	if (!has_role(s, ROLE_MAY_SWITCH) || !e->function || e->is_entry ||
	    !elf_image__has_code(e->function->image) || unwind__is_behind_call(s->map, b->to))
		return false;
	e->by = unwinding__departure_to(s, NULL, LEFT_BY_LONGJMP);
	return true;
}

static bool goes_to_new_stack(ARGS)
{
	const struct frame *top = stack__top(s);
	const struct switcher *switcher;
	uint64_t called;

	if (!has_role(s, ROLE_MAY_SWITCH))
		return top->role;
	/* In the middle of a function there must be evidence that the code switches. */
	if (e->is_entry || coroutines__has_parked(&s->coroutines, b->to))
		return true;
	called = unwind__called_before(s->map, b->to);
	if (called && (called == top->call.entry_ip ||
		       called == unwind__called_before(s->map, top->resume_ip)))
		return true;
	switcher = stack__find_switcher(s, top->call.function);
	return switcher &&
	       ((switcher->has_switched && !switcher->has_unwound) || switcher->left_at == b->to);
}

static bool may_switch_anywhere(ARGS)
{
	return has_role(s, ROLE_MAY_SWITCH);
}

static bool leaves_fiber(ARGS)
{
	return has_role(s, ROLE_FIBER) && coroutines__parent_of(s->coroutines.running);
}

static bool leaves_fiber_for_unknown(ARGS)
{
	return has_role(s, ROLE_FIBER) && s->coroutines.running->is_loose &&
	       coroutines__has_parked(&s->coroutines, 0);
}

static bool performs(ARGS)
{
	return has_role(s, ROLE_PERFORM) ||
	       (has_role(s, ROLE_REPERFORM) && !function__is_named(e->function, "caml_perform"));
}

static bool performs_again(ARGS)
{
	return has_role(s, ROLE_REPERFORM);
}

static bool resumes_fiber(ARGS)
{
	return has_role(s, ROLE_RESUME) && !function__is_named(e->function, "caml_c_call");
}

/* Returns. */

static bool returns_to_caller(ARGS)
{
	e->frame = stack__top(s);
	return b->to && frame__returns_to(e->frame, b->to);
}

/*
 * Precedes the rules for outer frames: in a recursion one of them may return to the same address. A
 * handler that interrupted another one's restorer at its first instruction returns to its own
 * restorer, which is at the same address.
 */
static bool returns_from_preemption(ARGS)
{
	e->frame = stack__top(s);
	return e->frame->call.kind == CALL_SIGNAL && e->frame->resume_ip &&
	       e->frame->resume_ip == b->to && !is_restorer(s, b->to);
}

static bool another_ran(ARGS)
{
	/* pop slot(%r14); ret: this is OCaml's raise. */
	static const uint8_t pop_slot[] = {0x41, 0x8f, 0x46};
	uint8_t code[sizeof(pop_slot) + 1];

	if (!s->coroutines.has_mark || is_uretprobe(e->function))
		return false;
	if (code_map__read(s->map, b->from - sizeof(code), code, sizeof(code)) == sizeof(code) &&
	    !memcmp(code, pop_slot, sizeof(pop_slot)))
		return false;
	return stack__find_other(s, b, &e->coroutine);
}

static bool lands_behind_call(ARGS)
{
	return e->outer != stack__top(s) && unwinding__find_pad(s, b, &e->frame, &e->by);
}

static bool returns_from_outer(ARGS)
{
	e->frame = e->outer;
	return true;
}

static bool returns_to_trampoline(ARGS)
{
	return is_uretprobe(e->function);
}

static bool returns_in_pieces(ARGS)
{
	return !stack__top(s)->return_ip && stack__top(s)->call.kind == CALL_KERNEL;
}

static bool returns_to_restorer(ARGS)
{
	const struct frame *top = stack__top(s);

	return !top->return_ip && (top->call.kind == CALL_SIGNAL || is_restorer(s, b->to));
}

static bool returns_out(ARGS)
{
	return !stack__top(s)->return_ip;
}

/* Landings: transfers into the middle of a function that are neither calls nor returns. */

static bool lands_at_setjmp(ARGS)
{
	return unwinding__find_setjmp(s, b, &e->frame, &e->by);
}

static bool lands_at_pad(ARGS)
{
	return unwinding__find_pad(s, b, &e->frame, &e->by);
}

static bool lands_in_caller(ARGS)
{
	e->frame = stack__find_caller(s, e->function);
	if (!e->frame)
		return false;
	/* OCaml: only a raise leaves a fiber in this way. */
	e->by = e->frame->role == ROLE_FIBER ? unwinding__departure_to(s, e->frame, LEFT_BY_RAISE)
					     : departure__find(s->frames, e->frame);
	return true;
}

static bool lands_below_all(ARGS)
{
	if (!departure__is_near(s->frames))
		return false;
	e->by = departure__find(s->frames, NULL);
	return true;
}

static bool is_tail_call(ARGS)
{
	return b->kind != BRANCH_RETURN || e->is_entry || address__is_kernel(b->to);
}

/* Out of user code. */

static bool from_kernel(ARGS)
{
	return address__is_kernel(b->from);
}

static bool is_interrupt(ARGS)
{
	return b->kind == BRANCH_END_ASYNC || stack__is_interrupted(s, b);
}

/* At sysret, sysexit or iret. A kernel that enters a virtual machine leaves by another one. */
static bool returns_to_user(ARGS)
{
	uint8_t code[3] = {0}, *op = code;

	if (!address__is_kernel(b->from) || !code_map__read(s->map, b->from, code, sizeof(code)))
		return false;
	op += code[0] == 0x48; /* REX.W */
	return op[0] == 0xcf || (op[0] == 0x0f && (op[1] == 0x07 || op[1] == 0x35));
}

/* And back. */

static bool goes_to_kernel(ARGS)
{
	return address__is_kernel(b->to);
}

static bool enters_from_user(ARGS)
{
	return s->is_in_user;
}

static bool wakes_in_user(ARGS)
{
	return s->stopped_in_kernel && !goes_to_kernel(s, b, e);
}

static bool wakes_in_kernel(ARGS)
{
	return s->stopped_in_kernel || goes_to_kernel(s, b, e);
}

static bool leaves_kernel(ARGS)
{
	return !goes_to_kernel(s, b, e);
}

/* Finds the last kernel entry whose interrupted code continues there. */
static bool returns_in_kernel(ARGS)
{
	e->frame = stack__top(s);
	while (e->frame && (e->frame->call.kind != CALL_KERNEL || e->frame->resume_ip != b->to))
		e->frame = frames__parent(s->frames, e->frame);
	return e->frame;
}

static bool synchronizes(ARGS)
{
	return stack__top(s) && stays_in_function(s, b, e);
}

static bool leaves_to_kernel(ARGS)
{
	e->frame = stack__top(s);
	while (e->frame && e->frame->call.kind != CALL_KERNEL)
		e->frame = frames__parent(s->frames, e->frame);
	return true;
}

static bool is_sigreturn_over(ARGS)
{
	return s->in_sigreturn;
}

/* The kernel may set a thread back to the syscall that it left by. */
#define SYSCALL_LEN 2

static bool goes_on(ARGS)
{
	return b->to == s->resume_ip || b->to + SYSCALL_LEN == s->resume_ip;
}

static bool was_stepped(ARGS)
{
	e->frame = stack__top(s);
	return e->frame && e->frame->return_ip && frame__returns_to(e->frame, b->to);
}

static bool aborts_sequence(ARGS)
{
	uint32_t signature;

	return stack__top(s) &&
	       code_map__read(s->map, b->to - sizeof(signature), (uint8_t *)&signature,
			      sizeof(signature)) == sizeof(signature) &&
	       signature == RSEQ_SIGNATURE;
}

static bool trapped_in_trampoline(ARGS)
{
	return stack__top(s) && is_uretprobe(stack__top(s)->call.function);
}

static bool was_emulated(ARGS)
{
	return e->function && stack__top(s) && stays_in_function(s, b, e) && !e->is_entry;
}

/* True at a program's or the dynamic linker's first instruction, where no signal handler begins. */
static bool begins_program(ARGS)
{
	enum function_role role = stack__role_at(s, b->to);

	return e->is_entry && (role == ROLE_START || role == ROLE_LINKER);
}

static bool enters_function(ARGS)
{
	return e->is_entry;
}

static bool goes_to_caller(ARGS)
{
	e->frame = stack__find_caller(s, e->function);
	return e->frame;
}

/* Calls. */

static const struct rule calls[] = {
	{"call of the next instruction",
	 "a call to the address after it, which reads the instruction pointer", "SDM vol. 2, CALL",
	 calls_next, .is_common = true},
	{"goroutine leaves",
	 "a call out of `mcall` or `morestack`: what is called runs on the scheduler's stack, "
	 "and does not return",
	 "Go: src/runtime/asm_amd64.s", calls_by_mcall, .apply = event__go_mcall},
	{"fiber ends by a call",
	 "`caml_runstack`, at a fiber's base, calls: the fiber's parent goes on",
	 "OCaml 5: runtime/amd64.S", leaves_fiber, .apply = event__fiber_end},
	{"fiber of an unknown parent ends by a call",
	 "`caml_runstack`, at the base of a fiber, calls, and a gap has hidden who "
	 "waits for the fiber",
	 "OCaml 5: runtime/amd64.S", leaves_fiber_for_unknown, .apply = event__fiber_end_unknown},
	{"fiber begins", "a call out of `caml_runstack`: what is called runs on a fiber of its own",
	 "OCaml 5: runtime/amd64.S", calls_from_runstack, .apply = event__fiber_begin},
	{"call", "a near call: its RET will go to the address after it", "SDM vol. 2, CALL", always,
	 .apply = event__call, .is_common = true},
};

/* Jumps that end no frame. */

static const struct rule jumps[] = {
	{"jump to unknown code",
	 "no code is known there, or it is the RET that all of the kernel's returns jump to",
	 "arch/x86/lib/retpoline.S", goes_nowhere_known, .is_common = true},
	{"raise within a function",
	 "OCaml's raise (`pop`, `pop`, `jmp *`) to a handler of its own function; it is "
	 "taken by the innermost frame whose pending call or raise has this handler as "
	 "its innermost one",
	 "OCaml: amd64 emit, Lraise", raises_in_function, .apply = event__landing},
	{"jump within a function", "the function at the target is the one that runs",
	 "the symbol table", stays_in_function, .is_common = true},
	{"stub",
	 "a jump out of a PLT stub, or out of the dynamic linker's resolver: one frame, which "
	 "takes the function's name",
	 "psABI, 5.2; glibc: dl-trampoline.h", leaves_stub, .apply = event__resolved,
	 .is_common = true},
};

/* Returns that go where their call said. */

static const struct rule returns[] = {
	{"return", "it goes to the address that the call of the top frame has left",
	 "SDM vol. 2, RET", returns_to_caller, .apply = event__return, .is_common = true},
	{"return from a call that a handler made",
	 "a goroutine that was preempted returns to where the signal had come",
	 "Go: src/runtime/signal_amd64.go, pushCall()", returns_from_preemption, event__return,
	 .is_common = true},
};

/* Switches of stacks. */

static const struct rule switches[] = {
	{"step of a switch",
	 "`runtime.gogo`, whose code is not known, goes to `gogo`, which switches",
	 "Go: src/runtime/asm_amd64.s", goes_to_gogo, .apply = event__no_switch},
	{"switch",
	 "out of a function that switches stacks, or off the end of one, to where a stack of "
	 "the thread waits: of several the one that was left last; goroutines that queue, "
	 "first",
	 "the names and the code of switches", goes_to_waiting, .apply = event__switch},
	{"switch that comes back", "a switch goes to the address after its own call",
	 "the names and the code of switches", comes_back, .apply = event__switch_back},
	{"setcontext",
	 "out of a switch to the address after a `setjmp` or `getcontext` of the running stack",
	 "POSIX.1-2001, setcontext", switches_to_setjmp, .apply = event__landing},
	{"setcontext of another stack",
	 "out of a switch to the address after a `setjmp` or `getcontext` of a stack "
	 "that waits",
	 "POSIX.1-2001, setcontext", switches_to_others_setjmp, .apply = event__switch_landing},
	{"recovery",
	 "the scheduler goes to a goroutine that has called `recovery`: to the innermost frame"
	 " of the function that had deferred the call",
	 "Go: src/runtime/panic.go", recovers, .apply = event__go_recovery},
	{"no switch",
	 "code that may switch goes to a caller, or to nothing known: it unwinds its own stack",
	 "the code of switches", may_have_unwound, .apply = event__no_switch},
	{"receiver of a builtin longjmp",
	 "out of code that may switch to where no call returns and no function begins",
	 "GCC: __builtin_setjmp", is_receiver, .apply = event__receiver},
	{"new stack",
	 "out of a switch to where nobody is known to wait; out of code that may switch: to a "
	 "function's first instruction, or if it has switched before, or has been called where it "
	 "goes, or a stack has waited there before a gap",
	 "the names and the code of switches", goes_to_new_stack, .apply = event__switch_new},
	{"unknown stack",
	 "nothing tells whether code that may switch does: the callers are not known",
	 "the code of switches", may_switch_anywhere, .apply = event__lost},
};

static const struct rule effects[] = {
	{"effect", "`caml_perform` jumps to the handler, on the parent's stack",
	 "OCaml 5: runtime/amd64.S", performs, .apply = event__fiber_perform},
	{"effect passed on", "`caml_reperform` goes on in `caml_perform`",
	 "OCaml 5: runtime/amd64.S", performs_again, .apply = event__fiber_reperform},
	{"fiber resumed",
	 "`caml_resume` jumps to a function that returns for `caml_perform`: that return tells"
	 " which fiber it is",
	 "OCaml 5: runtime/amd64.S", resumes_fiber, .apply = event__fiber_resume},
};

/* Other returns. */

static const struct rule late_returns[] = {
	{"another stack ran",
	 "a return to where only one of the other stacks returns that waited where the last "
	 "switch went: that one has run since",
	 "the stacks that wait", another_ran, .apply = event__other_stack},
};

static const struct rule outer_returns[] = {
	{"landing pad after a call",
	 "the pad of an outer frame is right after a call that does not return",
	 "DWARF exception tables (.gcc_except_table)", lands_behind_call, .apply = event__landing},
	{"return to an outer frame",
	 "it goes where an outer frame's call said: those above it have ended", "SDM vol. 2, RET",
	 returns_from_outer, .apply = event__return, .is_common = true},
};

static const struct rule unmatched_returns[] = {
	{"return probe",
	 "to the kernel's trampoline, which has the function's place until it goes to the "
	 "caller: by a RET or, before Linux 6.11, by a trap",
	 "arch/x86/kernel/uprobes.c", returns_to_trampoline, .apply = event__tail_call,
	 .is_common = true},
	{"kernel entry in pieces", "a RET out of an entry's code goes on with it",
	 "arch/x86/entry/entry_64.S", returns_in_pieces, .apply = event__tail_call,
	 .is_common = true},
	{"return of a handler", "out of a signal's frame, or to code that calls `rt_sigreturn`",
	 "sigreturn(2); glibc: __restore_rt", returns_to_restorer, .apply = event__handler_return},
	{"return out of what is known",
	 "the caller of the outermost frame was not known: now it is, and it has run since the"
	 " segment began",
	 "SDM vol. 2, RET", returns_out, .apply = event__return_out},
};

/* Into the middle of a function. */

static const struct rule landings[] = {
	{"switch by longjmp",
	 "`longjmp` goes to where another stack waits that was left in the same way; "
	 "the function that calls `longjmp` has called `setjmp` before",
	 "QEMU: util/coroutine-ucontext.c; libcoro", longjmps_to_waiting, .apply = event__switch},
	{"switch by longjmp that comes back",
	 "`longjmp` goes to the address after the `setjmp` of its own caller: that stack "
	 "goes on, or one that is not known yet",
	 "QEMU: util/coroutine-ucontext.c; libcoro", longjmps_to_itself,
	 .apply = event__switch_back},
	{"switch by longjmp to a setjmp",
	 "`longjmp` goes to the address after a `setjmp` of a stack that was left in "
	 "another way",
	 "QEMU: util/coroutine-ucontext.c; libcoro", longjmps_to_others_setjmp,
	 .apply = event__switch_landing},
	{"longjmp",
	 "the address after a `setjmp` that a frame which still lives has called: of several the "
	 "innermost",
	 "POSIX.1, longjmp", lands_at_setjmp, .apply = event__landing},
	{"switch by longjmp to an unknown stack",
	 "the function that calls `longjmp` has just called `setjmp`, and nothing has come back "
	 "there; it goes behind another function's `setjmp`, which no known frame has called, or "
	 "to where a stack has waited before a gap",
	 "QEMU: util/coroutine-ucontext.c; libcoro", longjmps_to_unknown,
	 .apply = event__switch_new},
	{"landing pad",
	 "the target is a landing pad or a handler of OCaml's exceptions; it is taken "
	 "by the innermost frame whose pending call or raise has this pad or handler as "
	 "its innermost one",
	 "DWARF exception tables (.gcc_except_table); OCaml: amd64 emit; .note.ocaml_eh; "
	 "-ocaml-traps",
	 lands_at_pad, .apply = event__landing},
	{"landing in a caller",
	 "into the middle of the function of one of the outer frames: "
	 "`__builtin_longjmp`, a raise out of an OCaml fiber (into `caml_runstack`), "
	 "and others that no table tells of",
	 "the frames", lands_in_caller, .apply = event__landing},
	{"landing below all frames",
	 "out of an unwinder into the middle of a function, and no outer frame of that "
	 "function is known",
	 "the unwinders' names", lands_below_all, .apply = event__landing},
};

static const struct rule transfers[] = {
	{"tail call", "a jump to another function, or a RET to a function's first instruction",
	 "SDM vol. 2, JMP", is_tail_call, .apply = event__tail_call, .is_common = true},
	{"lost", "a RET to where nothing known leads", "SDM vol. 2, RET", always,
	 .apply = event__lost},
};

/* Out of user code. */

static const struct rule entries[] = {
	{"kernel entry", "a syscall, an interrupt or an exception: the kernel is traced",
	 "SDM vol. 3, 6.12", always, .apply = event__kernel_entry},
};

static const struct rule syscalls[] = {
	{"exit from a traced kernel",
	 "tracing ends at a sysret, sysexit or iret: user code is not traced",
	 "SDM vol. 2, SYSRET, IRET", returns_to_user, .apply = event__kernel_exit_alone},
	{"syscall", "tracing ends at a syscall instruction", "SDM vol. 3, TIP.PGD packet", always,
	 .apply = event__syscall, .is_common = true},
};

static const struct rule stops[] = {
	{"stop within the kernel",
	 "tracing ends in the kernel: the thread has been switched out, or the trace is "
	 "read",
	 "kernel/sched/core.c, __schedule()", from_kernel, .apply = event__kernel_stop},
	{"interrupt", "tracing ends between two instructions", "SDM vol. 3, TIP.PGD packet",
	 is_interrupt, .apply = event__interrupt, .is_common = true},
};

/* Back, or within the kernel. */

static const struct rule begins[] = {
	{"entry into a traced kernel", "user code is not traced, so tracing goes on in the kernel",
	 "SDM vol. 3, TIP.PGE packet", enters_from_user, .apply = event__kernel_entry_alone},
	{"wake-up in user code",
	 "tracing had stopped within the kernel, and goes on in user code: all kernel "
	 "frames have ended",
	 "SDM vol. 3, TIP.PGE packet", wakes_in_user, .apply = event__kernel_exit},
	{"wake-up in the kernel",
	 "tracing goes on in the kernel, with the frames with which it had stopped "
	 "there",
	 "kernel/sched/core.c, __schedule()", wakes_in_kernel, .apply = event__kernel_resume},
};

static const struct rule kernel_exits[] = {
	{"kernel exit", "an iret or sysret to user code ends the outermost entry",
	 "SDM vol. 2, SYSRET, IRET", always, .apply = event__kernel_exit},
};

static const struct rule irets[] = {
	{"return of an interrupt", "an iret to where an entry had come: that one ends",
	 "SDM vol. 2, IRET", returns_in_kernel, .apply = event__kernel_return},
	{"iret that synchronizes",
	 "an iret to the function that runs: it makes the CPU forget what it has read ahead",
	 "arch/x86/include/asm/sync_core.h", synchronizes, .is_common = true},
	{"iret to elsewhere", "an iret to any other address ends the newest entry",
	 "arch/x86/mm/extable.c", leaves_to_kernel, .apply = event__kernel_fixup},
	{"fixup in a caller",
	 "after a fault that is expected, into the function of one of the outer frames",
	 "arch/x86/mm/extable.c", goes_to_caller, .apply = event__cut},
	{"fixup", "after a fault that is expected, into a function of its own",
	 "arch/x86/mm/extable.c", always, .apply = event__tail_call, .is_common = true},
};

static const struct rule resumptions[] = {
	{"rt_sigreturn", "the syscall before was `rt_sigreturn`: the newest signal's frame ends",
	 "sigreturn(2)", is_sigreturn_over, .apply = event__signal_end},
	{"return from the kernel", "control comes back where it left, or at the syscall once more",
	 "signal(7), SA_RESTART", goes_on, .is_common = true},
	{"return that was stepped", "a probe is on the RET: the kernel has stepped a copy of it",
	 "kernel/events/uprobes.c", was_stepped, .apply = event__return, .is_common = true},
	{"aborted sequence",
	 "the signature of abort handlers lies before the target: it is a part of the frame "
	 "that was interrupted",
	 "rseq(2)", aborts_sequence, .apply = event__abort},
	{"return by a trap", "a return probe's trampoline returns by a trap, before Linux 6.11",
	 "arch/x86/kernel/uprobes.c", trapped_in_trampoline, .apply = event__trap_return},
	{"emulated instruction",
	 "control comes back elsewhere in the function that runs: the kernel has "
	 "emulated a probed instruction",
	 "kernel/events/uprobes.c", was_emulated, .is_common = true},
	{"exec", "control comes back at a program's, or the dynamic linker's, first instruction",
	 "execve(2); psABI, 3.4.1", begins_program, .apply = event__lost},
	{"signal", "control comes back at a function's first instruction", "sigaction(2)",
	 enters_function, .apply = event__signal},
	{"sent to a caller", "control comes back in the function of one of the outer frames",
	 "ptrace(2); sigaction(2), ucontext", goes_to_caller, .apply = event__cut},
	{"sent elsewhere", "control comes back where nothing known leads", "the frames", always,
	 .apply = event__lost},
};

/* Finds the frame whose call would return there. */
static bool goes_where_called(ARGS)
{
	struct frame *frame = b->to ? stack__top(s) : NULL;

	while (frame && !frame__returns_to(frame, b->to))
		frame = frames__caller(s->frames, frame);
	e->outer = frame;
	return frame;
}

/*
 * A function that switches stacks, or does so at times, is left by a jump; or a frame whose caller
 * is not known returns: it may be another stack's.
 */
static bool may_go_elsewhere(const struct stack *s, const struct branch *b)
{
	const struct frame *top = stack__top(s);

	if (top->call.kind != CALL_FUNCTION)
		return false;
	return b->kind == BRANCH_RETURN ? !top->return_ip : top->role;
}

static bool may_switch(ARGS)
{
	return may_go_elsewhere(s, b) && !function_role__is_effect(stack__top(s)->role);
}

static bool may_be_effect(ARGS)
{
	return may_go_elsewhere(s, b) && function_role__is_effect(stack__top(s)->role);
}

/*
 * True if the branch may be a landing. Code that leaves frames takes its target from a register or
 * from the stack. A direct jump into the middle of a function stays within one function whose
 * second part lacks a symbol.
 */
static bool may_land(ARGS)
{
	const uint8_t bnd = 0xf2, jmp_rel32 = 0xe9, jmp_rel8 = 0xeb;
	uint8_t code[2] = {0};

	if (b->kind != BRANCH_JUMP)
		return b->kind == BRANCH_RETURN;
	if (e->is_entry)
		return false;
	code_map__read(s->map, b->from, code, sizeof(code));
	if (code[0] == bnd)
		code[0] = code[1];
	return code[0] != jmp_rel32 && code[0] != jmp_rel8;
}

#define ON(kind) (1u << BRANCH_##kind)
#define ON_JUMP	 (ON(JUMP) | ON(COND))
#define ON_LEAVE (ON_JUMP | ON(RETURN))

#define GROUP(rules, branches, holds)                                                              \
	{                                                                                          \
		rules, sizeof(rules) / sizeof(*(rules)), branches, holds                           \
	}

const struct rule_group rule_groups[] = {
	GROUP(calls, ON(CALL), NULL),
	GROUP(jumps, ON_JUMP, NULL),
	GROUP(returns, ON(RETURN), NULL),
	GROUP(switches, ON_LEAVE, may_switch),
	GROUP(effects, ON_LEAVE, may_be_effect),
	GROUP(late_returns, ON(RETURN), NULL),
	GROUP(outer_returns, ON(RETURN), goes_where_called),
	GROUP(unmatched_returns, ON(RETURN), NULL),
	GROUP(landings, ON_LEAVE, may_land),
	GROUP(transfers, ON_LEAVE, NULL),
	GROUP(entries, ON(ENTER), NULL),
	GROUP(syscalls, ON(END_SYSCALL), NULL),
	GROUP(stops, ON(END) | ON(END_ASYNC), NULL),
	GROUP(begins, ON(BEGIN), NULL),
	GROUP(kernel_exits, ON(LEAVE), leaves_kernel),
	GROUP(irets, ON(LEAVE), goes_to_kernel),
	GROUP(resumptions, ON(BEGIN) | ON(LEAVE), leaves_kernel),
};
const size_t n_rule_groups = sizeof(rule_groups) / sizeof(rule_groups[0]);
_Static_assert(sizeof(rule_groups) / sizeof(rule_groups[0]) <= RULE_GROUPS_MAX, "stack.n_events");

bool rules__classify(const struct stack *s, const struct branch *b, enum branch_kind as,
		     struct event *e)
{
	const struct rule_group *group = e->group ? e->group : rule_groups;
	const struct rule *rule = e->group ? e->rule + 1 : NULL;

	e->function = stack__function_at(s, b->to, &e->is_entry);
	for (; group < rule_groups + n_rule_groups; group++, rule = NULL) {
		if (!(group->branches >> as & 1) || (group->holds && !group->holds(s, b, e)))
			continue;
		for (rule = rule ?: group->rules; rule < group->rules + group->n; rule++) {
			e->frame = NULL;
			e->coroutine = NULL;
			if (!rule->holds(s, b, e))
				continue;
			e->group = group;
			e->rule = rule;
			return true;
		}
	}
	return false;
}

void event__format(const struct event *e, const struct stack *s, const struct branch *b,
		   char text[static EVENT_TEXT_SIZE])
{
	int n = snprintf(text, EVENT_TEXT_SIZE, "%s: 0x%" PRIx64 " to 0x%" PRIx64, e->rule->name,
			 b->from, b->to);

	if (e->frame && n < EVENT_TEXT_SIZE)
		snprintf(text + n, (size_t)(EVENT_TEXT_SIZE - n), ", of the frame at depth %zu",
			 (size_t)(e->frame - s->frames->open.v));
}
