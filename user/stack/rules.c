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
	 "A CALL goes to the address after itself: this is how code reads the instruction "
	 "pointer.",
	 "SDM vol. 2, CALL", calls_next, .is_common = true},
	{"goroutine leaves",
	 "`mcall` or `morestack` executes a CALL: the function that it calls runs on the "
	 "scheduler's stack and does not return.",
	 "Go: src/runtime/asm_amd64.s", calls_by_mcall, .apply = event__go_mcall},
	{"fiber ends by a call",
	 "`caml_runstack`, as the outermost frame of a fiber, executes a CALL: the fiber has "
	 "ended and its parent continues.",
	 "OCaml 5: runtime/amd64.S", leaves_fiber, .apply = event__fiber_end},
	{"fiber of an unknown parent ends by a call",
	 "The same, but a gap hides which stack is the fiber's parent.", "OCaml 5: runtime/amd64.S",
	 leaves_fiber_for_unknown, .apply = event__fiber_end_unknown},
	{"fiber begins",
	 "`caml_runstack` executes a CALL: the function that it calls runs on a new fiber.",
	 "OCaml 5: runtime/amd64.S", calls_from_runstack, .apply = event__fiber_begin},
	{"call", "A near CALL: its RET will go to the address after the CALL.", "SDM vol. 2, CALL",
	 always, .apply = event__call, .is_common = true},
};

/* Jumps that end no frame. */

static const struct rule jumps[] = {
	{"jump to unknown code",
	 "The code at the target is not known, or it is the RET to which all returns of the "
	 "kernel jump.",
	 "arch/x86/lib/retpoline.S", goes_nowhere_known, .is_common = true},
	{"raise within a function",
	 "OCaml's raise (`pop`, `pop`, `jmp *`) goes to a handler of the function that raises. "
	 "The innermost frame whose pending call or raise has this handler as its innermost one "
	 "takes the exception.",
	 "OCaml: amd64 emit, Lraise", raises_in_function, .apply = event__landing},
	{"jump within a function", "The function at the target is the one that runs.",
	 "the symbol table", stays_in_function, .is_common = true},
	{"stub",
	 "A PLT stub, or the resolver of the dynamic linker, jumps to the function: stub and "
	 "function are one frame, which gets the function's name.",
	 "psABI, 5.2; glibc: dl-trampoline.h", leaves_stub, .apply = event__resolved,
	 .is_common = true},
};

/* Returns that go where their call said. */

static const struct rule returns[] = {
	{"return", "The RET goes to the address after the CALL that began the top frame.",
	 "SDM vol. 2, RET", returns_to_caller, .apply = event__return, .is_common = true},
	{"return from a call that a handler made",
	 "A preempted goroutine returns to the address at which the signal interrupted it.",
	 "Go: src/runtime/signal_amd64.go, pushCall()", returns_from_preemption, event__return,
	 .is_common = true},
};

/* Switches of stacks. */

static const struct rule switches[] = {
	{"step of a switch",
	 "`runtime.gogo`, if its code is not known, goes to `gogo`, which makes the switch.",
	 "Go: src/runtime/asm_amd64.s", goes_to_gogo, .apply = event__no_switch},
	{"switch",
	 "A function that switches stacks, or the outermost frame of a stack, goes to an "
	 "address where another stack of this thread waits. If several wait there, mtbpf takes "
	 "the one that was left last; of goroutines in a queue, the first.",
	 "the names and the code of switches", goes_to_waiting, .apply = event__switch},
	{"switch that comes back", "A switch goes to the address after its own call.",
	 "the names and the code of switches", comes_back, .apply = event__switch_back},
	{"setcontext",
	 "A switch goes to the address after a `setjmp` or `getcontext` of the running stack.",
	 "POSIX.1-2001, setcontext", switches_to_setjmp, .apply = event__landing},
	{"setcontext of another stack",
	 "A switch goes to the address after a `setjmp` or `getcontext` of a stack that waits.",
	 "POSIX.1-2001, setcontext", switches_to_others_setjmp, .apply = event__switch_landing},
	{"recovery",
	 "The scheduler resumes the goroutine that has called `recovery`, in the innermost "
	 "frame of the function that had deferred the call.",
	 "Go: src/runtime/panic.go", recovers, .apply = event__go_recovery},
	{"no switch",
	 "Code that may switch goes into the function of a caller, to a landing pad, or to "
	 "unknown code: it has unwound its own stack.",
	 "the code of switches", may_have_unwound, .apply = event__no_switch},
	{"receiver of a builtin longjmp",
	 "Code that may switch goes to an address to which no call returns, at which no "
	 "function begins, and where no known stack waits.",
	 "GCC: __builtin_setjmp", is_receiver, .apply = event__receiver},
	{"new stack",
	 "A switch goes to an address where no known stack waits. For code that only may "
	 "switch, one of these must also hold: the address is the first instruction of a "
	 "function; the code has switched before; the code was called right before the address; "
	 "a stack waited at the address before a gap.",
	 "the names and the code of switches", goes_to_new_stack, .apply = event__switch_new},
	{"unknown stack",
	 "Nothing shows whether code that may switch has switched: the callers are not known.",
	 "the code of switches", may_switch_anywhere, .apply = event__lost},
};

static const struct rule effects[] = {
	{"effect", "`caml_perform` jumps to the handler, which runs on the parent's stack.",
	 "OCaml 5: runtime/amd64.S", performs, .apply = event__fiber_perform},
	{"effect passed on", "`caml_reperform` jumps into `caml_perform`.",
	 "OCaml 5: runtime/amd64.S", performs_again, .apply = event__fiber_reperform},
	{"fiber resumed",
	 "`caml_resume` jumps to code that returns instead of `caml_perform`: the address of "
	 "that return tells which fiber continues.",
	 "OCaml 5: runtime/amd64.S", resumes_fiber, .apply = event__fiber_resume},
};

/* Other returns. */

static const struct rule late_returns[] = {
	{"another stack ran",
	 "Several stacks waited where the last switch went, and a RET goes to an address to which "
	 "only one of these returns: this one has run since the switch.",
	 "the stacks that wait", another_ran, .apply = event__other_stack},
};

static const struct rule outer_returns[] = {
	{"landing pad after a call",
	 "The landing pad of an outer frame is the instruction after a call that does not "
	 "return.",
	 "DWARF exception tables (.gcc_except_table)", lands_behind_call, .apply = event__landing},
	{"return to an outer frame",
	 "The RET goes to the address after the CALL that began an outer frame: the frames "
	 "above it have ended.",
	 "SDM vol. 2, RET", returns_from_outer, .apply = event__return, .is_common = true},
};

static const struct rule unmatched_returns[] = {
	{"return probe",
	 "With a return probe, the function returns to the kernel's trampoline, which replaces "
	 "the function's frame until it goes to the caller: by a RET or, before Linux 6.11, by "
	 "a trap.",
	 "arch/x86/kernel/uprobes.c", returns_to_trampoline, .apply = event__tail_call,
	 .is_common = true},
	{"kernel entry in pieces",
	 "A RET out of the code of a kernel entry goes to the next piece of this code.",
	 "arch/x86/entry/entry_64.S", returns_in_pieces, .apply = event__tail_call,
	 .is_common = true},
	{"return of a handler",
	 "A RET leaves the frame of a signal handler, or goes to code that calls `rt_sigreturn`.",
	 "sigreturn(2); glibc: __restore_rt", returns_to_restorer, .apply = event__handler_return},
	{"return out of what is known",
	 "The outermost frame, whose caller was not known, returns: its caller is the function "
	 "at the target, which has run since the segment began.",
	 "SDM vol. 2, RET", returns_out, .apply = event__return_out},
};

/* Into the middle of a function. */

static const struct rule landings[] = {
	{"switch by longjmp",
	 "A function that has called `setjmp` calls `longjmp`, which goes to an address where "
	 "another stack waits that was left in the same way.",
	 "QEMU: util/coroutine-ucontext.c; libcoro", longjmps_to_waiting, .apply = event__switch},
	{"switch by longjmp that comes back",
	 "`longjmp` goes to the address after the `setjmp` of its own caller: the stack that "
	 "left there last continues, or one that is not known yet.",
	 "QEMU: util/coroutine-ucontext.c; libcoro", longjmps_to_itself,
	 .apply = event__switch_back},
	{"switch by longjmp to a setjmp",
	 "`longjmp` goes to the address after a `setjmp` of a stack that was left in another "
	 "way.",
	 "QEMU: util/coroutine-ucontext.c; libcoro", longjmps_to_others_setjmp,
	 .apply = event__switch_landing},
	{"longjmp",
	 "The target is the address after a `setjmp` that a living frame has called. If several "
	 "have, mtbpf takes the innermost one.",
	 "POSIX.1, longjmp", lands_at_setjmp, .apply = event__landing},
	{"switch by longjmp to an unknown stack",
	 "A function calls `setjmp` and, before anything has come back there, `longjmp`. The "
	 "target is the address after a call of `setjmp` in another function, and no known frame "
	 "has made that call; or a stack waited there before a gap.",
	 "QEMU: util/coroutine-ucontext.c; libcoro", longjmps_to_unknown,
	 .apply = event__switch_new},
	{"landing pad",
	 "The target is a landing pad, or a handler of OCaml's exceptions. The innermost frame "
	 "whose pending call or raise has this pad or handler as its innermost one takes the "
	 "exception.",
	 "DWARF exception tables (.gcc_except_table); OCaml: amd64 emit; .note.ocaml_eh; "
	 "-ocaml-traps",
	 lands_at_pad, .apply = event__landing},
	{"landing in a caller",
	 "The target is in the middle of the function of an outer frame: `__builtin_longjmp`, a "
	 "raise out of an OCaml fiber (into `caml_runstack`), and others that no table "
	 "describes.",
	 "the frames", lands_in_caller, .apply = event__landing},
	{"landing below all frames",
	 "An unwinder goes into the middle of a function that no known frame belongs to.",
	 "the unwinders' names", lands_below_all, .apply = event__landing},
};

static const struct rule transfers[] = {
	{"tail call",
	 "A jump to another function, or a RET to the first instruction of a function.",
	 "SDM vol. 2, JMP", is_tail_call, .apply = event__tail_call, .is_common = true},
	{"lost", "A RET goes to an address that nothing explains.", "SDM vol. 2, RET", always,
	 .apply = event__lost},
};

/* Out of user code. */

static const struct rule entries[] = {
	{"kernel entry",
	 "A system call, an interrupt or an exception enters the kernel, and the kernel is "
	 "traced.",
	 "SDM vol. 3, 6.12", always, .apply = event__kernel_entry},
};

static const struct rule syscalls[] = {
	{"exit from a traced kernel",
	 "Tracing ends at a sysret, sysexit or iret: user code is not traced.",
	 "SDM vol. 2, SYSRET, IRET", returns_to_user, .apply = event__kernel_exit_alone},
	{"syscall", "Tracing ends at a syscall instruction.", "SDM vol. 3, TIP.PGD packet", always,
	 .apply = event__syscall, .is_common = true},
};

static const struct rule stops[] = {
	{"stop within the kernel",
	 "Tracing ends in the kernel: the thread was switched out, or mtbpf is reading the "
	 "trace.",
	 "kernel/sched/core.c, __schedule()", from_kernel, .apply = event__kernel_stop},
	{"interrupt", "Tracing ends between two instructions.", "SDM vol. 3, TIP.PGD packet",
	 is_interrupt, .apply = event__interrupt, .is_common = true},
};

/* Back, or within the kernel. */

static const struct rule begins[] = {
	{"entry into a traced kernel",
	 "Tracing begins in the kernel, because user code is not traced.",
	 "SDM vol. 3, TIP.PGE packet", enters_from_user, .apply = event__kernel_entry_alone},
	{"wake-up in user code",
	 "Tracing had stopped in the kernel and continues in user code: all kernel frames have "
	 "ended.",
	 "SDM vol. 3, TIP.PGE packet", wakes_in_user, .apply = event__kernel_exit},
	{"wake-up in the kernel",
	 "Tracing had stopped in the kernel and continues there, with the same frames.",
	 "kernel/sched/core.c, __schedule()", wakes_in_kernel, .apply = event__kernel_resume},
};

static const struct rule kernel_exits[] = {
	{"kernel exit", "An iret or sysret goes to user code: the outermost kernel entry ends.",
	 "SDM vol. 2, SYSRET, IRET", always, .apply = event__kernel_exit},
};

static const struct rule irets[] = {
	{"return of an interrupt",
	 "An iret goes to the address that an entry has interrupted: this entry ends.",
	 "SDM vol. 2, IRET", returns_in_kernel, .apply = event__kernel_return},
	{"iret that synchronizes",
	 "An iret goes to the function that executes it: the kernel uses this to make the CPU "
	 "discard the instructions that it has prefetched.",
	 "arch/x86/include/asm/sync_core.h", synchronizes, .is_common = true},
	{"iret to elsewhere", "An iret goes to any other address: the newest entry ends.",
	 "arch/x86/mm/extable.c", leaves_to_kernel, .apply = event__kernel_fixup},
	{"fixup in a caller",
	 "After an expected fault the kernel continues in the function of an outer frame.",
	 "arch/x86/mm/extable.c", goes_to_caller, .apply = event__cut},
	{"fixup", "After an expected fault the kernel continues in a function for this purpose.",
	 "arch/x86/mm/extable.c", always, .apply = event__tail_call, .is_common = true},
};

static const struct rule resumptions[] = {
	{"rt_sigreturn",
	 "The last system call was `rt_sigreturn`: the frame of the newest signal ends.",
	 "sigreturn(2)", is_sigreturn_over, .apply = event__signal_end},
	{"return from the kernel",
	 "The thread continues where it entered the kernel, or executes the system call again.",
	 "signal(7), SA_RESTART", goes_on, .is_common = true},
	{"return that was stepped",
	 "A probe is on the RET: the kernel has single-stepped a copy of it.",
	 "kernel/events/uprobes.c", was_stepped, .apply = event__return, .is_common = true},
	{"aborted sequence",
	 "The signature of abort handlers precedes the target: the handler is part of the "
	 "interrupted frame.",
	 "rseq(2)", aborts_sequence, .apply = event__abort},
	{"return by a trap",
	 "The trampoline of a return probe returns by a trap (before Linux 6.11).",
	 "arch/x86/kernel/uprobes.c", trapped_in_trampoline, .apply = event__trap_return},
	{"emulated instruction",
	 "The thread continues at another address of the function that runs: the kernel has "
	 "emulated a probed instruction.",
	 "kernel/events/uprobes.c", was_emulated, .is_common = true},
	{"exec",
	 "The thread continues at the first instruction of a program or of the dynamic linker.",
	 "execve(2); psABI, 3.4.1", begins_program, .apply = event__lost},
	{"signal", "The thread continues at the first instruction of a function.", "sigaction(2)",
	 enters_function, .apply = event__signal},
	{"sent to a caller", "The thread continues in the function of an outer frame.",
	 "ptrace(2); sigaction(2), ucontext", goes_to_caller, .apply = event__cut},
	{"sent elsewhere", "The thread continues at an address that nothing explains.",
	 "the frames", always, .apply = event__lost},
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
