/* SPDX-License-Identifier: MIT */
/* The state of a thread's stacks, and what its files do for each other. */
#ifndef MTBPF_STACK_STACK_INTERNAL_H
#define MTBPF_STACK_STACK_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/branch.h"
#include "stack/frames.h"
#include "stack/functions.h"
#include "util/vec.h"

struct event;
struct departure;
struct ocaml_traps;

/*
 * The stacks that one thread runs on in turn: its own, and those of coroutines. A waiting one is
 * found by the address at which it will continue.
 */

/* If there are more, the one that has waited longest is forgotten. */
#define COROUTINES_MAX 16384

enum coroutine_state {
	COROUTINE_OVER, /* its frames have ended: another may take its place */
	COROUTINE_RUNS,
	COROUTINE_WAITS,
	COROUTINE_PARKED, /* it is from before a gap: what it has done since is not known */
};

/* A stack of the thread: its own, or a coroutine's. */
struct coroutine {
	struct frames frames;
	uint64_t waits_at; /* where it will continue; 0: not known */
	uint64_t since;	   /* number of the switch (n_switches) since which it waits */
	uint32_t number;   /* 0: the thread's own */
	uint8_t state;	   /* enum coroutine_state */
	uint8_t slack;	   /* it may also go on up to this many bytes after waits_at */
	bool is_goroutine;
	size_t n_bare; /* Go's scheduler: frames.parts.n when leave_system() last began a segment */
	/* OCaml's: coroutines.c. */
	bool is_fiber;
	/* The coroutine that waits for this one; NULL while a handler keeps this fiber. */
	struct coroutine *parent;
	struct coroutine *child; /* the coroutine that this one waits for */
	/* The fiber that was suspended last for an effect that this one handles. */
	struct coroutine *performed;
	/*
	 * It runs after a gap, and it is not known which coroutine it is. It began at began_at;
	 * 0: it ran when the gap ended.
	 */
	bool is_loose;
	bool is_rootless; /* no coroutine was found for it: its outer callers are unknown */
	uint64_t began_at;
	unsigned int generation; /* numbers the stacks as they begin; only tests read it */
	/* If it is parked, that is, from before a gap: */
	held_vec pending; /* its frames at the gap, with the callers that earlier segments showed */
	uint64_t left_ns; /* if no frame is open: when it was last seen */
};

struct coroutines {
	struct coroutine own; /* the thread's */
	struct coroutine *running;
	VEC(struct coroutine *) others; /* by number */
	size_t max;			/* of others: COROUTINES_MAX, in tests less */
	uint64_t n_switches;
	unsigned int n_begun;
	/* Go's: the scheduler's stack, and a goroutine that recovers from a panic; or NULL. */
	struct coroutine *system, *recovering;
	struct coroutine *lost_system; /* the scheduler's, if it ran when a gap began */
	size_t system_depth; /* of the scheduler's permanent frame, if its index is system_index */
	uint32_t system_index;
	held_vec system_base; /* that frame and those below it */
	/* OCaml's: the fiber that performed last, and the one that resumed the running one; or NULL
	 */
	struct coroutine *performer, *resumer;
	const struct function *switched_by; /* the function that made the last switch */
	uint64_t n_before_gap;		    /* n_switches when coroutines were last parked */
	uint64_t n_at_gap;		    /* n_switches at the last gap */
	bool is_lost;			    /* which one runs when the gap ends is not known */
	bool has_mark;
	struct frames_mark mark; /* the running one's frames at its last switch */
	size_t n_taken;
};

/* A function whose code may switch stacks, and what it has done so far. */
struct switcher {
	const struct function *function;
	bool has_switched, has_unwound;
	/*
	 * The return address of its last call that ended at an unexplained target (event__lost());
	 * 0: none.
	 */
	uint64_t left_at;
};

/* A stack taken at a trigger. */
struct anchor {
	uint64_t time_ns;
	size_t first, n; /* in stack.anchor_ips */
};

/* Limits: the number of groups, and of rules in one group. */
#define RULE_GROUPS_MAX 24
#define GROUP_RULES_MAX 16

/*
 * Passes over segments that have ended, in this order, find what is known only later (passes.c).
 * Passes over several threads: tree_passes.h.
 */
enum stack_pass {
	PASS_ROOTS = 1 << 0,	  /* callers from before the segment, shown by its returns */
	PASS_COROUTINES = 1 << 1, /* which coroutine from before a gap goes on after it */
	PASS_STITCHING = 1 << 2,  /* frames on both sides of a gap are the same */
	PASS_HIT_STACKS = 1 << 3, /* stack__anchor(): callers that no branch shows */
	/* Callers that no branch shows, found in the code; only at the end of the trace. */
	PASS_CALLERS = 1 << 4,
};

struct stack {
	struct frames *frames; /* of the logical stack that runs */
	struct coroutines coroutines;
	struct function_cache functions;
	struct code_map *map;
	const struct ocaml_traps *traps; /* or NULL */
	VEC(struct switcher) switchers;
	pid_t pid, tid;
	char comm[16];
	unsigned int passes_off; /* enum stack_pass: those that tests switch off */
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
		uint32_t frame; /* its index in the file's order */
		const struct function *handler;
	} aborted;
	/* unwinding.c: the running phase of unwinding, as in _Unwind_RaiseException_Phase2(). */
	struct {
		/* Indices of the phase's frame, and of its caller's. */
		uint32_t phase, unwinder;
		uint32_t n; /* how many frames the phase has looked at; 0: no phase runs */
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

/* The running frame; NULL: none is known. */
static inline struct frame *stack__top(const struct stack *s)
{
	return frames__top(s->frames);
}

/* rules.c: what the code tells. */

/*
 * The function at ip; NULL where no code is known. *is_entry, unless is_entry is NULL: ip is its
 * first instruction.
 */
static inline const struct function *stack__function_at(const struct stack *s, uint64_t ip,
							bool *is_entry)
{
	/* The cache is not state: a search changes nothing else. */
	return function_cache__find((struct function_cache *)&s->functions, ip, is_entry);
}

/*
 * The role of the function that begins at ip; ROLE_NONE unless stack__function_at() has just looked
 * there.
 */
static inline enum function_role stack__role_at(const struct stack *s, uint64_t ip)
{
	const struct cached_function *place =
		function_cache__place((struct function_cache *)&s->functions, ip);

	return place->ip == ip ? (enum function_role)place->role : ROLE_NONE;
}

/* The innermost frame below the top that runs `function`; NULL: none, up to a kernel entry. */
struct frame *stack__find_caller(const struct stack *s, const struct function *function);
/* True if the branch pops its target from the stack, as OCaml does to raise an exception. */
bool stack__is_raise(const struct stack *s, const struct branch *b);
/* True if the syscall instruction at ip makes the call rt_sigreturn. */
bool stack__is_sigreturn(const struct stack *s, uint64_t ip);
/*
 * If the kernel's returns are jumps to one RET (mitigations: arch/x86/lib/retpoline.S): true if
 * this is that RET's function, and ip is an address of the kernel.
 */
bool stack__is_return_thunk(const struct function *function, uint64_t ip);
/* True if Event Trace reported the event by which `b` leaves the code (stack.interruption). */
bool stack__is_interrupted(const struct stack *s, const struct branch *b);

/* stack.c: operations on the running frames, beside those of frames.h on one stack. */

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

/*
 * Pushes a new frame with this call, return_ip, resume_ip, slack and role; sets CALL_INSIDE if
 * needed.
 */
void stack__push(struct stack *s, const struct frame *frame);
/* Pushes the frame of the call `b`, with the return address that follows from `b`. */
void stack__push_call(struct stack *s, const struct branch *b, const struct function *function);
/* Pushes the frame that runs at the start of a segment; its caller may show later. */
void stack__push_first(struct stack *s, uint64_t ip);
/* A tail call: replaces the top frame by one that will return to the same caller. */
void stack__replace_top(struct stack *s, const struct branch *b, const struct function *function);
/*
 * Ends the frames above `frame` without a return; `by` says what began that. NULL: ends all that
 * the segment has shown; the target of `b` is below it.
 */
void stack__land(struct stack *s, const struct branch *b, struct frame *frame, struct departure by);

/* Marks the running frame as that of a function that switches stacks, if this is such a role. */
void stack__take_role(struct stack *s, enum function_role role);
/*
 * Treats longjmp() as a switch: its outermost frame, `longjmp`, waits as swapcontext()'s would.
 * NULL: does nothing.
 */
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

/* coroutines.c: the stacks of one thread, and the switches between them. */

/* The thread's own stack is the running one. */
void coroutines__init(struct coroutines *coroutines);
void coroutines__fini(struct coroutines *coroutines);

/* The stack after `last`, or the first one if that is NULL: the thread's own. NULL: no more. */
static inline struct coroutine *coroutines__next(const struct coroutines *coroutines,
						 const struct coroutine *last)
{
	if (!last)
		return (struct coroutine *)&coroutines->own;
	return last->number < coroutines->others.n ? coroutines->others.v[last->number] : NULL;
}

#define COROUTINES_EACH(coroutines, each)                                                          \
	for (struct coroutine *each = coroutines__next(coroutines, NULL); each;                    \
	     each = coroutines__next(coroutines, each))

/* OCaml: the stack that waits for the fiber; NULL: not known. */
static inline struct coroutine *coroutines__parent_of(const struct coroutine *fiber)
{
	struct coroutine *parent = fiber->parent;

	return parent && parent->child == fiber && parent->state == COROUTINE_WAITS ? parent : NULL;
}

/*
 * True if there is a coroutine from before a gap that has not been seen since, and waited at ip (0:
 * anywhere).
 */
bool coroutines__has_parked(const struct coroutines *coroutines, uint64_t ip);

/* The coroutine waiting at ip that began to wait last, or first if is_first; or NULL. */
struct coroutine *coroutines__find_waiting(const struct coroutines *coroutines, uint64_t ip,
					   bool is_first);

/*
 * Adds a coroutine, which does not run yet. It may take the track of one that has ended, but a
 * loose one only if that lacks calls. If as many others live as there may be, it takes the track
 * of the one that has waited longest, whose frames end at time_ns. NULL: no memory, or none waits.
 */
struct coroutine *stack__add_coroutine(struct stack *s, uint64_t time_ns, bool is_loose);

/*
 * Its first segment has begun with frames that may be those of an earlier stack: a pass after the
 * next gap may join the two. With calls of another stack on its track it stays apart.
 */
static inline void coroutine__may_join(struct coroutine *coroutine)
{
	coroutine->is_loose = coroutine->frames.parts.n == 1;
	coroutine->is_rootless = !coroutine->is_loose;
}

/* The facts about the function's switches; NULL: nothing is known yet. */
const struct switcher *stack__find_switcher(const struct stack *s, const struct function *function);
/*
 * Adds `did` to what is known of the top frame's function, if its code may switch stacks. left_at 0
 * keeps the earlier one.
 */
void stack__note_switcher(struct stack *s, struct switcher did);

/*
 * The top frame returns to an address that is not its own: true if another stack may have run since
 * the last switch. *other is that stack, or NULL if it is not a known one.
 */
bool stack__find_other(const struct stack *s, const struct branch *b, struct coroutine **other);

/* Go: if the scheduler runs after a gap, it is identified with the one from before. */
void stack__settle_system(struct stack *s);
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

/*
 * Ends the last segment of a parked coroutine. has_waited: the switch in which it waits returns
 * now.
 */
void stack__end_wait(struct stack *s, struct coroutine *coroutine, uint64_t time_ns,
		     bool has_waited);
/*
 * The loose coroutine turns out to be `coroutine`, from before a gap, and is appended to it.
 * has_waited: that one has not run in between.
 */
void stack__join(struct stack *s, struct coroutine *loose, struct coroutine *coroutine,
		 bool has_waited);

#endif
