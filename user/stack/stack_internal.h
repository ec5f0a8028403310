/* SPDX-License-Identifier: MIT */
/* Between the rules: the state of a thread's stack, and what several rules do. */
#ifndef MTBPF_STACK_STACK_INTERNAL_H
#define MTBPF_STACK_STACK_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/branch.h"
#include "stack/frames/frames.h"
#include "stack/function_cache.h"
#include "stack/stack.h"
#include "stack/strands.h"
#include "util/vec.h"

/* A stack taken at a trigger. */
struct anchor {
	uint64_t time_ns;
	size_t first, n; /* in stack.anchor_ips */
};

struct stack {
	struct frames *frames; /* of the logical stack that runs */
	struct frames own_frames;
	struct strands strands;
	struct function_cache functions;
	struct code_map *map;
	const struct ocaml_traps *traps; /* or NULL */
	pid_t pid, tid;
	char comm[16];
	bool in_segment;
	uint64_t last_ns;
	/* Between an END and its BEGIN. */
	bool outside;
	uint64_t restorer_ip;	/* where a handler returned to last; 0: none has */
	bool in_sigreturn;	/* it is rt_sigreturn that it is outside for */
	uint64_t resume_ip;	/* where the thread goes on unless the kernel sends it elsewhere */
	bool stopped_in_kernel; /* it is kernel code that it is outside of */
	bool is_in_user;	/* outside, in user code: that is not traced */
	/* The last frame whose restartable sequence was aborted, and whose code the handler is. */
	struct {
		uint32_t frame; /* its frame__id() */
		const struct function *handler;
	} aborted;
	/* rules/steps.c: frames that an unwinding has looked at since it was called. */
	struct {
		uint32_t phase, unwinder; /* the two that look, the latter outermost: frame__id() */
		uint32_t n;		  /* 0: nobody has */
	} steps;
	/* OCaml: caml_resume() has jumped to the function that returns in its fiber. */
	bool is_resuming;
	struct branch resumes;
	/* Between a GAP and the BEGIN behind it. */
	bool in_gap;
	uint8_t gap_reason;
	uint64_t gap_ns;
	VEC(struct anchor) anchors;
	VEC(uint64_t) anchor_ips;
	size_t next_anchor;
};

/* The function at ip; NULL where no code is known. *is_entry: ip is its first instruction. */
const struct function *stack__function_at(struct stack *s, uint64_t ip, bool *is_entry);

/* rules/anchor.c: a segment has ended, and the next one begins at before_ns. */
void stack__use_anchors(struct stack *s, uint64_t before_ns);

/* rules/callers.c: the last segment has ended, and there are no more. */
void stack__find_callers(struct stack *s);

/* A call, however made: `b` says when, from where, and where to. */
void stack__push(struct stack *s, const struct branch *b, const struct function *function,
		 uint8_t kind, uint8_t flags, uint64_t return_ip);
/* The frame that runs at the start of a segment; who called it may show later. */
void stack__push_first(struct stack *s, uint64_t ip);
/* A tail call: the new frame takes the place of the top one, and will return to its caller. */
void stack__replace_top(struct stack *s, const struct branch *b, const struct function *function);
/* A caller on the stack that runs `function`, or NULL; the top itself is not meant. */
struct frame *stack__find_caller(struct stack *s, const struct function *function);
/*
 * rules/land.c: `b` went into the middle of `function`, and was no return: the frame of an
 * exception's handler, of a setjmp(). It becomes the top. False where no frame can be meant.
 */
bool stack__land(struct stack *s, const struct branch *b, const struct function *function);
/* The same, if it is a landing pad of exceptions that `b` went to. */
bool stack__catch(struct stack *s, const struct branch *b);
/* That frame is the one that `b` went to: a leap, by this unless it is seen to be by another way.
 */
void stack__leap_to(struct stack *s, const struct branch *b, struct frame *taker,
		    enum left_by left_by);
/*
 * The thread is somewhere that nothing known leads to (another stack): what was known ends here.
 */
void stack__break_segment(struct stack *s, const struct branch *b);

/* The code at ip calls rt_sigreturn: what a signal handler returns to. */
bool stack__is_restorer(struct stack *s, uint64_t ip);
/* The syscall instruction at ip is that call. */
bool stack__is_sigreturn(struct stack *s, uint64_t ip);
/*
 * Where the kernel's returns are jumps to one RET (mitigations: arch/x86/lib/retpoline.S): this is
 * its function, at ip.
 */
bool stack__is_return_thunk(const struct function *function, uint64_t ip);

/* rules/steps.c: how many frames an unwinding has left. */
/* The running frame asks for the unwind table's entry of the next frame. */
void stack__on_step(struct stack *s);
/*
 * The frame that the running one has unwound to lies so many below it; 0: not known. Good at the
 * moment when it goes there.
 */
size_t stack__count_steps(const struct stack *s);

/* rules/call.c: near transfers. */
/*
 * A return probe has put its trampoline's address where the return address was. The function has
 * returned, but its frame's place is the trampoline's until that goes to the caller: by a RET, or
 * before Linux 6.11 by a trap, from which the kernel goes there (arch/x86/kernel/uprobes.c).
 */
bool stack__is_uretprobe(const struct function *function);

/* The frame of a call that `b` is; stack__push() with what that tells of its return. */
void stack__push_call(struct stack *s, const struct branch *b, const struct function *function);
void stack__on_call(struct stack *s, const struct branch *b);
void stack__on_return(struct stack *s, const struct branch *b);
void stack__on_jump(struct stack *s, const struct branch *b);

/* rules/longjmp.c */
/* `b` calls a setjmp() of that role: its frame may be come back to. */
void stack__on_setjmp(struct stack *s, const struct branch *b, enum function_role role);
/* `b` went behind a setjmp(): the innermost frame that called it there is the top. Else false. */
bool stack__longjmp(struct stack *s, const struct branch *b);
/* One of those frames called it there. */
bool stack__can_land(const struct frames *frames, uint64_t ip);

/* rules/switch.c: stacks of one thread. */
/* The running frame is that of a function that switches stacks. */
void stack__take_role(struct stack *s, enum function_role role);
/* It switches no stacks this time. */
void stack__give_back(struct frame *frame);
/*
 * The frames that run, but for n_above of them, went on at waits_at: should others turn out to have
 * done, stack__reconsider() begins there.
 */
void stack__mark(struct stack *s, uint64_t time_ns, uint64_t waits_at, size_t n_above);
/*
 * `b` leaves the top frame, which switches stacks, or which nobody is known to have called: true
 * where it went to another stack, or came back. False: it is like any other return or jump.
 */
bool stack__switch(struct stack *s, const struct branch *b);
/*
 * The top frame returns to where it does not: true where it turns out that another stack has run
 * all the time since the last switch, which now does instead, and to which that return belongs.
 */
bool stack__reconsider(struct stack *s, const struct branch *b);
/* The strand's frames are those that run. */
void stack__run_strand(struct stack *s, struct strand *strand);
/* The running strand waits, to go on at waits_at. */
void stack__wait(struct stack *s, const struct branch *b, uint64_t waits_at);
/* A strand without frames begins to run at b->to. */
void stack__begin_strand(struct stack *s, const struct branch *b, struct strand *strand);
/* Much may have happened meanwhile. The running frames have ended. */
void stack__forget_strands(struct stack *s, uint64_t time_ns);

/* rules/gap.c: the trace breaks off, and goes on. */
void stack__on_gap(struct stack *s, const struct branch *b);
void stack__start_segment(struct stack *s, const struct branch *b);
/* Those that have gone on since the last gap are found among those from before it. */
void stack__settle_strands(struct stack *s);
/* The strand, from before a gap, goes on in a new segment; if it has_waited, the switch is over. */
void stack__end_wait(struct stack *s, struct strand *strand, uint64_t time_ns, bool has_waited);
/*
 * One that is loose turns out to be a strand from before the gap, which has_waited, and has not
 * moved: what it has done is that one's.
 */
void stack__join(struct stack *s, struct strand *loose, struct strand *strand, bool has_waited);

/* rules/go.c: its scheduler runs on a stack of its own, and switches goroutines. */
/* `b` is the call that the running frame's role is about, to `function`. */
void stack__on_mcall(struct stack *s, const struct branch *b, const struct function *function);
/* The scheduler goes to a goroutine: its frames begin anew the next time. */
void stack__leave_system(struct stack *s, const struct branch *b);
/* Behind a gap the scheduler may run: it is the one from before. */
void stack__settle_system(struct stack *s);
/* The call that a handler puts in where it has interrupted a goroutine: it returns to there. */
bool stack__is_preemption(const struct function *function);
/* `b` goes to a goroutine for the scheduler, which takes those first that have waited longest. */
bool stack__is_queued(struct stack *s, const struct branch *b);
/* `b` goes to the frame that recovers from a panic, of the goroutine that does. Else false. */
bool stack__recover(struct stack *s, const struct branch *b);

/* rules/effects.c: OCaml's fibers. */
/* The top frame, which is caml_runstack()'s, calls: the strand that runs may be another then. */
void stack__on_fiber_call(struct stack *s, const struct branch *b);
/* `b` leaves the top frame, whose role is about effects, by a jump. False: it is like any other. */
bool stack__on_effect(struct stack *s, const struct branch *b);
/* s->resumes was a resumption: of which fiber, what comes next tells. */
void stack__settle_resume(struct stack *s, const struct branch *next);
/* It was this one that was resumed last. */
void stack__resume_other(struct stack *s, struct strand *fiber);
/* A root was found: it may be what the running fiber ends in. */
void stack__note_fiber_base(struct stack *s);

/* rules/kernel.c: out of user code and back, wherever the kernel sends the thread. */
void stack__on_begin(struct stack *s, const struct branch *b);
void stack__on_end_syscall(struct stack *s, const struct branch *b);
void stack__on_end_async(struct stack *s, const struct branch *b);
/* The thread leaves what is traced: a slice of that kind until it goes on. */
void stack__go_outside(struct stack *s, const struct branch *b, uint8_t kind, uint64_t resume_ip);
/* The thread is in user code again, which it left with resume_ip to go on at. */
void stack__back_in_user(struct stack *s, const struct branch *b, uint64_t resume_ip);

/* rules/entry.c: the kernel itself is traced. */
void stack__on_enter(struct stack *s, const struct branch *b);
void stack__on_leave(struct stack *s, const struct branch *b);
/* Tracing ends, and goes on, within the kernel: the thread sleeps between, mostly. */
void stack__on_kernel_stop(struct stack *s, const struct branch *b);
void stack__resume_in_kernel(struct stack *s, const struct branch *b);
/* Only the kernel is traced: an END that its instruction at ip made, for user code, and back. */
bool stack__returns_to_user(struct stack *s, uint64_t ip);
void stack__leave_for_user(struct stack *s, const struct branch *b);
void stack__enter_from_user(struct stack *s, const struct branch *b);

#endif
