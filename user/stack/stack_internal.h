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

/* Limits: the number of groups, and of rules in one group. */
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
	/* The next interrupt, as Event Trace has announced it. event 0: none is announced. */
	struct {
		uint8_t event; /* pt_event__of() */
		uint64_t ip, address;
	} interruption;
	bool in_sigreturn;	/* outside, in rt_sigreturn */
	uint64_t resume_ip;	/* where the thread goes on unless the kernel sends it elsewhere */
	bool stopped_in_kernel; /* outside, since tracing stopped in kernel code */
	bool is_in_user;	/* outside, in user code that is not traced */
	/* The last frame whose restartable sequence was aborted; its code includes the handler. */
	struct {
		uint32_t frame; /* its frame__id() */
		const struct function *handler;
	} aborted;
	/* unwinding.c: frames that an unwinding has looked at since it was called. */
	struct {
		uint32_t phase, unwinder; /* the two that look, the latter outermost: frame__id() */
		uint32_t n;		  /* 0: none */
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

/* Classifies a branch that is not a common one as the kind `as`, and applies the event. */
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

/* The innermost frame below the top that runs `function`; NULL: none, up to a kernel entry. */
struct frame *stack__find_caller(const struct stack *s, const struct function *function);
/* True if the branch pops its target from the stack, as OCaml does to raise an exception. */
bool stack__is_raise(const struct stack *s, const struct branch *b);
/* True if the syscall instruction at ip makes the call rt_sigreturn. */
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
 * Operations on the running frames, beside those of frames.h on one stack. Only these, and the
 * common case in stack.c, change frames.
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

/* Pushes a copy of the frame: set its call, except for the end, and where it continues. */
void stack__push(struct stack *s, const struct frame *frame);
/* Pushes the frame of the call `b`, with the return address that follows from `b`. */
void stack__push_call(struct stack *s, const struct branch *b, const struct function *function);
/* Pushes the frame that runs at the start of a segment; its caller may show later. */
void stack__push_first(struct stack *s, uint64_t ip);
/* A tail call: replaces the top frame by one that will return to the same caller. */
void stack__replace_top(struct stack *s, const struct branch *b, const struct function *function);
/*
 * The top frame, a stub's, becomes that of `function`, which the caller called. With lazy binding
 * (sysdeps/x86_64/dl-trampoline.h) it is the resolver's in between.
 */
void stack__resolve(struct stack *s, const struct branch *b, const struct function *function,
		    bool is_entry);
/*
 * Ends the frames above `frame` without a return; `by` says what began that. NULL: ends all that
 * the segment has shown; the target of `b` is below it.
 */
void stack__land(struct stack *s, const struct branch *b, struct frame *frame, struct departure by);

/* Marks the running frame as that of a function that switches stacks. */
void stack__take_role(struct stack *s, enum function_role role);
/* Treats longjmp() as a switch: its outermost frame waits, as swapcontext()'s would. */
void stack__make_switch(struct stack *s, const struct branch *b, struct frame *longjmp);
/* Undoes stack__take_role(): the function does not switch stacks this time. */
void stack__give_back(struct frame *frame);

/* Makes the coroutine the running one. */
void stack__switch_to(struct stack *s, struct coroutine *coroutine);
/* Does the same, and ends the slice of the time switched out. */
void stack__resume(struct stack *s, uint64_t time_ns, struct coroutine *coroutine);
/* The running coroutine begins to wait, and will continue at waits_at; 0: not known. */
void stack__suspend(struct stack *s, uint64_t time_ns, uint64_t waits_at);
/* Ends the running coroutine, and all its frames with these flags. */
void stack__end(struct stack *s, uint64_t time_ns, uint8_t flags);
/* Begins a coroutine without frames, in a new segment. */
void stack__begin(struct stack *s, uint64_t time_ns, struct coroutine *coroutine);
/* The same, at ip: in a function, or in the middle of one that has run before. */
void stack__begin_at(struct stack *s, uint64_t time_ns, struct coroutine *coroutine, uint64_t ip);

/* Ends all running frames at a gap; they may continue after it. */
void stack__open_gap(struct stack *s, const struct branch *b);

/* coroutines.c: stacks of one thread. */

/* As event__apply(), for the events of stack switches. */
bool stack__apply_switch(struct stack *s, const struct branch *b, const struct event *e);
/*
 * The top frame returns to an address that is not its own: true if another stack may have run since
 * the last switch. *other is that stack, or NULL if it is not a known one.
 */
bool stack__find_other(const struct stack *s, const struct branch *b, struct coroutine **other);

/* Go: if the scheduler runs after a gap, it is identified with the one from before. */
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

/* passes.c: segments begin and end. */

void stack__start_segment(struct stack *s, const struct branch *b);
/* Ends all segments: there are no more branches. */
void stack__end_segments(struct stack *s);

/* Ends the last segment of a coroutine from before a gap, and, if it has_waited, its switch. */
void stack__end_wait(struct stack *s, struct coroutine *coroutine, uint64_t time_ns,
		     bool has_waited);
/*
 * The loose coroutine turns out to be `coroutine`, from before a gap, and is appended to it.
 * has_waited: that one has not run in between.
 */
void stack__join(struct stack *s, struct coroutine *loose, struct coroutine *coroutine,
		 bool has_waited);

#endif
