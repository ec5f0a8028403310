/* SPDX-License-Identifier: MIT */
/*
 * Classifies branches. The rules are tried in order of precedence: the first one whose condition
 * holds names the event. Nothing is changed here: the event is a function, which changes the
 * frames.
 */
#ifndef MTBPF_STACK_RULES_H
#define MTBPF_STACK_RULES_H

#include "stack/stack_internal.h"
#include "stack/unwinding.h"

struct rule;
struct rule_group;

struct event {
	const struct rule *rule;
	const struct rule_group *group; /* of the rule; NULL: no rule has been tried */
	/* At branch.to. */
	const struct function *function; /* NULL: no code is known */
	bool is_entry;			 /* branch.to is its first instruction */
	struct frame *outer;		 /* the frame to whose call a RET returns */
	/* Set by rule.holds() if the event needs them. */
	struct frame *frame;
	struct coroutine *coroutine;
	struct departure by;
	/*
	 * The event only corrected the state: the rules after this one classify the branch again.
	 */
	bool again;
};

typedef void event_fn(struct stack *s, const struct branch *b, struct event *e);

/* Within user code, or within the kernel's: stack.c. */
event_fn event__call;
event_fn event__return;		/* from event.frame; frames above it end without a return */
event_fn event__return_out;	/* to a caller that no branch has shown before */
event_fn event__tail_call;	/* another function takes the place of the top frame */
event_fn event__resolved;	/* a stub's frame becomes that of its function */
event_fn event__handler_return; /* of a signal, to the code that calls rt_sigreturn */
event_fn event__landing;	/* in event.frame, left by event.by */
event_fn event__receiver;	/* at a __builtin_setjmp() whose frame is not known */
event_fn event__cut;		/* to event.frame, for an unknown reason */
event_fn event__lost;		/* no rule explains the target: the segment ends */

/* Stacks of one thread: coroutines.c. With an event.frame longjmp(), in that frame, switches. */
event_fn event__switch;		/* to event.coroutine, where it waits */
event_fn event__switch_back;	/* to the stack that runs */
event_fn event__switch_landing; /* to a frame of event.coroutine that called setjmp() */
event_fn event__switch_new;	/* to a stack that begins */
event_fn event__no_switch;	/* the function is like any other this time */
event_fn event__other_stack;	/* event.coroutine has run since the last switch; NULL: unknown */
event_fn event__go_mcall;	/* a goroutine leaves for Go's scheduler */
event_fn event__go_recovery;	/* a goroutine that recovers from a panic continues */
event_fn event__fiber_begin;
event_fn event__fiber_end;
event_fn event__fiber_end_unknown; /* its parent is from before a gap */
event_fn event__fiber_perform;
event_fn event__fiber_reperform;
event_fn event__fiber_resume;

/* Out of user code, and back: stack.c. */
event_fn event__syscall;
event_fn event__interrupt;
event_fn event__signal;	    /* a handler is entered */
event_fn event__signal_end; /* by rt_sigreturn */
event_fn event__trap_return;
event_fn event__abort; /* of a restartable sequence */
event_fn event__kernel_entry;
event_fn event__kernel_exit;	    /* to user code */
event_fn event__kernel_return;	    /* within the kernel, from event.frame */
event_fn event__kernel_fixup;	    /* the same, to elsewhere */
event_fn event__kernel_stop;	    /* tracing stops within it */
event_fn event__kernel_resume;	    /* and goes on */
event_fn event__kernel_exit_alone;  /* only the kernel is traced: to user code */
event_fn event__kernel_entry_alone; /* and from there */

struct rule {
	const char *name;
	const char *evidence;
	const char *source;
	bool (*holds)(const struct stack *s, const struct branch *b, struct event *e);
	event_fn *apply; /* what it does to the frames; NULL: nothing */
	bool is_common;	 /* -v does not print it */
};

/* Rules that are tried together, and the condition for that. */
struct rule_group {
	const struct rule *rules;
	size_t n;
	uint16_t branches; /* a bit for each enum branch_kind */
	/* NULL: for all of these branches. */
	bool (*holds)(const struct stack *s, const struct branch *b, struct event *e);
};

/* In the order of precedence. */
extern const struct rule_group rule_groups[];
extern const size_t n_rule_groups;

/*
 * Finds the event of `b`, classified as the kind `as`. If e->group is not NULL, *e is an event that
 * only corrected the state, and the search goes on with the rule after it. Returns false if no
 * condition holds.
 */
bool rules__classify(const struct stack *s, const struct branch *b, enum branch_kind as,
		     struct event *e);

/* "landing pad: 0x1020 to 0x4010, of the frame at depth 7". */
#define EVENT_TEXT_SIZE 160
void event__format(const struct event *e, const struct stack *s, const struct branch *b,
		   char text[static EVENT_TEXT_SIZE]);

#endif
