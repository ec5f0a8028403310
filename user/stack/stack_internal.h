/* SPDX-License-Identifier: MIT */
/* The state of a thread's stacks, and what its files do for each other. */
#ifndef MTBPF_STACK_STACK_INTERNAL_H
#define MTBPF_STACK_STACK_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/branch.h"
#include "stack/frames.h"
#include "stack/functions.h"
#include "stack/stack.h"
#include "stack/coroutines.h"
#include "util/vec.h"

struct event;
struct departure;

/* A stack taken at a trigger. */
struct anchor {
	uint64_t time_ns;
	size_t first, n; /* in stack.anchor_ips */
};

/* More than there are, and than one has. */
#define RULE_GROUPS_MAX 24
#define GROUP_RULES_MAX 16

struct stack {
	struct frames *frames; /* of the logical stack that runs */
	struct frames own_frames;
	struct coroutines coroutines;
	struct function_cache functions;
	struct code_map *map;
	const struct ocaml_traps *traps; /* or NULL */
	pid_t pid, tid;
	char comm[16];
	unsigned int passes; /* enum stack_pass: those that run */
	bool in_segment;
	uint64_t last_ns;
	/* Between an END and its BEGIN. */
	bool outside;
	uint64_t restorer_ip; /* where a handler returned to last; 0: none has */
	/* What Event Trace told of the interrupt that comes next. event 0: nothing. */
	struct {
		uint8_t event; /* pt_event__of() */
		uint64_t ip, address;
	} interruption;
	bool in_sigreturn;	/* it is rt_sigreturn that it is outside for */
	uint64_t resume_ip;	/* where the thread goes on unless the kernel sends it elsewhere */
	bool stopped_in_kernel; /* it is kernel code that it is outside of */
	bool is_in_user;	/* outside, in user code: that is not traced */
	/* The last frame whose restartable sequence was aborted, and whose code the handler is. */
	struct {
		uint32_t frame; /* its frame__id() */
		const struct function *handler;
	} aborted;
	/* unwinding.c: frames that an unwinding has looked at since it was called. */
	struct {
		uint32_t phase, unwinder; /* the two that look, the latter outermost: frame__id() */
		uint32_t n;		  /* 0: nobody has */
	} steps;
	/* OCaml: caml_resume() has jumped to the function that returns in its fiber. */
	bool is_resuming;
	struct branch resumes;
	/* Between a GAP and the BEGIN after it. */
	bool in_gap;
	uint8_t gap_reason;
	uint64_t gap_ns;
	VEC(struct anchor) anchors;
	VEC(uint64_t) anchor_ips;
	size_t next_anchor;
	uint32_t n_events[RULE_GROUPS_MAX][GROUP_RULES_MAX]; /* by group and rule */
};

/* stack.c */

/* Off the common path: classifies `b` as a branch of that kind, and applies the event. */
void stack__on_event(struct stack *s, const struct branch *b, enum branch_kind as);

/* rules.c: what the code tells. */

/* The function at ip; NULL where no code is known. *is_entry: ip is its first instruction. */
static inline const struct function *stack__function_at(const struct stack *s, uint64_t ip,
							bool *is_entry)
{
	/* The cache is not state: a search changes nothing else. */
	return function_cache__find((struct function_cache *)&s->functions, ip, is_entry);
}

/* The role of the function that begins at ip, by the last search there. */
static inline enum function_role stack__role_at(const struct stack *s, uint64_t ip)
{
	return function_cache__role((struct function_cache *)&s->functions, ip);
}

/* A caller on the stack that runs `function`, or NULL; the top itself is not meant. */
struct frame *stack__find_caller(const struct stack *s, const struct function *function);
/* As OCaml does: in one activation of a function, maybe, for another. */
bool stack__is_raise(const struct stack *s, const struct branch *b);
/* The syscall instruction at ip is that call. */
bool stack__is_sigreturn(const struct stack *s, uint64_t ip);
/*
 * If the kernel's returns are jumps to one RET (mitigations: arch/x86/lib/retpoline.S): true if
 * this is that RET's function, and ip is in it.
 */
bool stack__is_return_thunk(const struct function *function, uint64_t ip);
/* The CPU told what took the thread out of its code at `b`: stack.interruption. */
bool stack__is_interrupted(const struct stack *s, const struct branch *b);

/*
 * apply.c: applies an event. Returns true if that only corrected the state, so that the branch has
 * to be classified again, by the rules after this one.
 */
bool event__apply(struct stack *s, const struct branch *b, const struct event *e);

/*
 * The operations on the frames that run, beside those of frames.h on one stack: nothing else
 * changes frames, but for the common case in stack.c.
 */

/* A call made by `b`, whatever kind of branch that is. */
static inline struct call branch__call(const struct branch *b, const struct function *function,
				       uint8_t kind)
{
	return (struct call){.start_ns = b->time_ns,
			     .entry_ip = b->to,
			     .call_ip = b->from,
			     .function = function,
			     .kind = kind};
}

/* A frame like that: of its call all but the end, and where it goes on. */
void stack__push(struct stack *s, const struct frame *frame);
/* The frame of a call that `b` is; stack__push() with what that tells of its return. */
void stack__push_call(struct stack *s, const struct branch *b, const struct function *function);
/* The frame that runs at the start of a segment; who called it may show later. */
void stack__push_first(struct stack *s, uint64_t ip);
/* A tail call: the new frame takes the place of the top one, and will return to its caller. */
void stack__replace_top(struct stack *s, const struct branch *b, const struct function *function);
/*
 * The top frame, a stub's, becomes the function's: the caller called that. Where it is bound lazily
 * (sysdeps/x86_64/dl-trampoline.h), it is the resolver's in between.
 */
void stack__resolve(struct stack *s, const struct branch *b, const struct function *function,
		    bool is_entry);
/*
 * The frames above `frame` end without a return; `by` says what began that. NULL: everything that
 * the segment has shown ends, and the target of `b` is below it.
 */
void stack__land(struct stack *s, const struct branch *b, struct frame *frame, struct departure by);

/* The running frame is that of a function that switches stacks. */
void stack__take_role(struct stack *s, enum function_role role);
/* longjmp() as a switch: its outermost frame waits, as swapcontext()'s frame would. */
void stack__make_switch(struct stack *s, const struct branch *b, struct frame *longjmp);
/* It does not switch stacks this time. */
void stack__give_back(struct frame *frame);

/* The coroutine's frames are those that run. */
void stack__switch_to(struct stack *s, struct coroutine *coroutine);
/* The same, and the slice of the time switched out ends. */
void stack__resume(struct stack *s, uint64_t time_ns, struct coroutine *coroutine);
/* The running coroutine waits, to go on at waits_at; 0: not known. */
void stack__suspend(struct stack *s, uint64_t time_ns, uint64_t waits_at);
/* All frames of the running coroutine end with these flags, and it is over. */
void stack__end(struct stack *s, uint64_t time_ns, uint8_t flags);
/* A coroutine without frames begins to run, in a segment of its own. */
void stack__begin(struct stack *s, uint64_t time_ns, struct coroutine *coroutine);
/* The same, at ip: in a function, or in the middle of one that has run before. */
void stack__begin_at(struct stack *s, uint64_t time_ns, struct coroutine *coroutine, uint64_t ip);

/* The trace breaks off: all running frames end, and may go on after the gap. */
void stack__open_gap(struct stack *s, const struct branch *b);

/* coroutines.c: stacks of one thread. */

/* True as event__apply(), of the events that are about them. */
bool stack__apply_switch(struct stack *s, const struct branch *b, const struct event *e);
/*
 * The top frame returns to where it does not: true where another stack may have run all the time
 * since the last switch. *other is NULL if that is one that is not known.
 */
bool stack__find_other(const struct stack *s, const struct branch *b, struct coroutine **other);

/* Go: after a gap the scheduler may run: it is the one from before. */
void stack__settle_system(struct stack *s);
/*
 * Go: true for the function whose call a signal handler inserts at the instruction that it has
 * interrupted.
 */
bool stack__is_preemption(const struct function *function);
/*
 * Go: true if the scheduler goes to a goroutine from its queue. The goroutine that has waited
 * longest is first.
 */
bool stack__is_queued(const struct stack *s, const struct branch *b);
/* OCaml: s->resumes resumed a fiber; the next branch tells which one. */
void stack__settle_resume(struct stack *s, const struct branch *next);

/* passes.c: the trace goes on. */

void stack__start_segment(struct stack *s, const struct branch *b);
/* There are no more branches. */
void stack__end_segments(struct stack *s);

/* The coroutine, from before a gap, goes on in a new segment; if it has_waited, the switch is over.
 */
void stack__end_wait(struct stack *s, struct coroutine *coroutine, uint64_t time_ns,
		     bool has_waited);
/*
 * One that is loose turns out to be a coroutine from before the gap, which has_waited, and has not
 * moved: what it has done is that one's.
 */
void stack__join(struct stack *s, struct coroutine *loose, struct coroutine *coroutine,
		 bool has_waited);

#endif
