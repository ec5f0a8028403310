/* SPDX-License-Identifier: MIT */
/*
 * Classifies branches. The rules are tried in order of precedence: the first one whose condition
 * holds names the event. Nothing is changed here: apply.c turns the event into changes of frames.
 */
#ifndef MTBPF_STACK_RULES_H
#define MTBPF_STACK_RULES_H

#include "stack/stack_internal.h"
#include "stack/unwinding.h"

enum event_kind {
	EVENT_NONE, /* the frames stay as they are */

	/* Within user code, or within the kernel's. */
	EVENT_CALL,
	EVENT_RETURN,	      /* from event.frame; frames above it end without a return */
	EVENT_RETURN_OUT,     /* to a caller that no branch has shown before */
	EVENT_TAIL_CALL,      /* another function takes the place of the top frame */
	EVENT_RESOLVED,	      /* a stub's frame becomes that of its function */
	EVENT_HANDLER_RETURN, /* of a signal, to the code that calls rt_sigreturn */
	EVENT_LANDING,	      /* in event.frame, left by event.by */
	EVENT_RECEIVER,	      /* at a __builtin_setjmp() whose frame is not known */
	EVENT_LOST,	      /* no rule explains the target: the segment ends */

	/* Stacks of one thread. With an event.frame it is longjmp(), in that frame, that switches.
	 */
	EVENT_SWITCH,	      /* to event.coroutine, where it waits */
	EVENT_SWITCH_BACK,    /* to the stack that runs */
	EVENT_SWITCH_LANDING, /* to a frame of event.coroutine that called getcontext() or setjmp()
			       */
	EVENT_SWITCH_NEW,     /* to a stack that begins */
	EVENT_NO_SWITCH,      /* the function is like any other this time */
	EVENT_OTHER_STACK, /* event.coroutine has run since the last switch; NULL: one not known */
	EVENT_GO_MCALL,	   /* a goroutine leaves for Go's scheduler */
	EVENT_GO_RECOVERY, /* a goroutine that recovers from a panic continues */
	EVENT_FIBER_BEGIN,
	EVENT_FIBER_END,
	EVENT_FIBER_END_UNKNOWN, /* its parent is from before a gap */
	EVENT_FIBER_PERFORM,
	EVENT_FIBER_REPERFORM,
	EVENT_FIBER_RESUME,

	/* Out of user code, and back. */
	EVENT_SYSCALL,
	EVENT_INTERRUPT,
	EVENT_SIGNAL,	  /* a handler is entered */
	EVENT_SIGNAL_END, /* by rt_sigreturn */
	EVENT_TRAP_RETURN,
	EVENT_ABORT, /* of a restartable sequence */
	EVENT_CUT,   /* to event.frame, for an unknown reason */
	EVENT_KERNEL_ENTRY,
	EVENT_KERNEL_EXIT,	  /* to user code */
	EVENT_KERNEL_RETURN,	  /* within the kernel, from event.frame */
	EVENT_KERNEL_FIXUP,	  /* the same, to elsewhere */
	EVENT_KERNEL_STOP,	  /* tracing stops within it */
	EVENT_KERNEL_RESUME,	  /* and goes on */
	EVENT_KERNEL_EXIT_ALONE,  /* only the kernel is traced: to user code */
	EVENT_KERNEL_ENTRY_ALONE, /* and from there */
};

struct rule;
struct rule_group;

struct event {
	const struct rule *rule;
	const struct rule_group *group; /* of the rule; NULL: no rule has been tried */
	/* At branch.to. */
	const struct function *function; /* NULL: no code is known */
	bool is_entry;			 /* its first instruction */
	struct frame *outer;		 /* the frame to whose call a RET returns */
	/* Set by the condition; enum event_kind says which of them. */
	struct frame *frame;
	struct coroutine *coroutine;
	struct departure by;
};

struct rule {
	const char *name;
	const char *evidence;
	const char *source;
	uint8_t event; /* enum event_kind */
	bool (*holds)(const struct stack *s, const struct branch *b, struct event *e);
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
