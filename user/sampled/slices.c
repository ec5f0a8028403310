// SPDX-License-Identifier: MIT
#include "sampled/slices.h"

#include <stddef.h>
#include <stdlib.h>

#include "util/vec.h"

/* The stack at one moment, as far as it is known. */
struct view {
	const struct seen *stack; /* outermost first */
	size_t n;
	bool is_known; /* false: without a stack; the functions that ran before are assumed to
			  continue */
	bool is_cut;   /* it begins with SEEN_NO_CALLERS */
};

/* The numbers of open slices and of a stack's frames that are the same calls. */
struct common {
	size_t open, stack;
};

void slices__fini(struct slices *s)
{
	VEC_FINI(&s->open);
	VEC_FINI(&s->entered);
	VEC_FINI(&s->cut);
}

/*
 * The end of a slice that was last seen at from_ns and is missing at to_ns. It is halfway, so that
 * a frame in n samples is n periods long. If the times are more than two periods apart, each sample
 * counts for half a period.
 */
static uint64_t edge_after(const struct slices *s, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t between = to_ns - from_ns;

	if (!from_ns)
		return to_ns;
	if (s->period_ns && between > 2 * s->period_ns)
		return from_ns + s->period_ns / 2;
	return from_ns + between / 2;
}

/* When a slice started that was missing at from_ns and is seen at to_ns. */
static uint64_t edge_before(const struct slices *s, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t between = to_ns - from_ns;

	if (!from_ns)
		return to_ns;
	if (s->period_ns && between > 2 * s->period_ns)
		return to_ns - s->period_ns / 2;
	return from_ns + between / 2;
}

/* Opens a new slice, within the innermost one. NULL: out of memory. Valid until the next push().
 */
static struct open_slice *push(struct slices *s, const struct seen *seen, uint64_t time_ns,
			       uint8_t flags)
{
	size_t depth = s->open.n;
	struct call *call = s->failed ? NULL : VEC_PUSH(&s->tree->calls);
	struct open_slice *open = call ? VEC_PUSH(&s->open) : NULL;

	if (!open) {
		s->failed = true;
		return NULL;
	}
	*call = (struct call){.start_ns = time_ns,
			      .end_ns = time_ns,
			      .entry_ip = seen->ip,
			      .function = seen->function,
			      .kind = seen->kind,
			      .flags = flags | CALL_SAMPLED,
			      .parent = depth ? s->open.v[depth - 1].call : CALL_NO_PARENT,
			      .depth = (uint32_t)depth};
	*open = (struct open_slice){.call = (uint32_t)(s->tree->calls.n - 1), .seen = *seen};
	return open;
}

/* Closes all but the n outermost slices, and adds `flags` to those. */
static void pop_to(struct slices *s, size_t n, uint64_t time_ns, uint8_t flags)
{
	while (s->open.n > n) {
		struct call *call = &s->tree->calls.v[s->open.v[--s->open.n].call];

		call->end_ns = time_ns;
		call->flags |= flags;
	}
	if (time_ns > s->last_ns)
		s->last_ns = time_ns;
}

/*
 * True if two frames have the same function and call site: two stacks cannot tell such calls apart.
 * The call site is not known if frame pointers miss the caller. If the function is not known, the
 * addresses in it must be the same.
 */
static bool seen__is_same(const struct seen *a, const struct seen *b)
{
	return a->kind == b->kind && a->function == b->function &&
	       (a->return_ip == b->return_ip || !a->return_ip || !b->return_ip) &&
	       (a->function || a->kind != CALL_FUNCTION || a->ip == b->ip);
}

static struct call *innermost(const struct slices *s)
{
	return &s->tree->calls.v[s->open.v[s->open.n - 1].call];
}

/* Time on the CPU without a stack, in periods, that a late sample does not explain. */
#define UNKNOWN_PERIODS 4

/*
 * The thread is on its CPU up to until_ns. If no stack was seen for much longer than the sampling
 * period, closes all but `keep` open slices and adds "[not recorded]" in their place.
 */
static void fill_unknown(struct slices *s, size_t keep, uint64_t until_ns)
{
	struct seen seen = {.kind = CALL_NOT_RECORDED};
	uint64_t since_ns = s->known_ns + s->period_ns / 2;

	if (!s->period_ns || s->off || !s->last_ns)
		return;
	if (s->known_ns &&
	    (until_ns < s->known_ns || until_ns - s->known_ns <= UNKNOWN_PERIODS * s->period_ns))
		return;
	if (!s->known_ns || since_ns < s->last_ns)
		since_ns = s->last_ns;
	if (since_ns >= until_ns)
		return;
	/* A system call's own slice says all about its time. */
	if (keep && s->open.v[keep - 1].seen.kind == CALL_SYSCALL)
		return;
	pop_to(s, keep, since_ns, CALL_INFERRED_END);
	if (push(s, &seen, since_ns, 0))
		pop_to(s, s->open.n - 1, until_ns, 0);
}

/* Opens slices for frames from..to of a stack; their start is inferred. */
static void push_rest(struct slices *s, const struct view *view, size_t from, size_t to,
		      uint64_t start_ns)
{
	for (size_t i = from; i < to; i++)
		push(s, &view->stack[i], start_ns, CALL_INFERRED_START);
}

/*
 * Exact calls: probes recorded their start, and mostly their end. While an exact call runs, its
 * callers cannot change: a stack that shows fewer of them has missed some.
 */

static void add_wait(struct slices *s, const struct waits_for *wait)
{
	struct waits_for copy = *wait;

	copy.call = s->open.v[s->open.n - 1].call;
	if (VEC_ADD(&s->tree->waits, copy))
		s->failed = true;
}

/* exit_ns of a call that is open until a stack shows its end, or until slices__end(). */
#define NO_EXIT UINT64_MAX

static bool ends_by(const struct entered *e, uint64_t time_ns)
{
	return e->end == END_UNKNOWN || (e->end != END_OPEN && e->end_ns <= time_ns);
}

/* The number of open slices down to the innermost exact one. */
static size_t count_exact(const struct slices *s)
{
	size_t n = s->open.n;

	while (n && !s->open.v[n - 1].exit_ns)
		n--;
	return n;
}

struct place {
	size_t at;
	bool is_found;	/* the call belongs at this place in the stack */
	bool is_hidden; /* its own frame is missing there (a tail call replaced it, for example) */
};

/*
 * Finds the outermost frame from `from` on that can be the call's: a frame that returns to the same
 * address is the call or has replaced its frame. Kernel frames are left out: in the call's return
 * probe they return there as well. That probe is being handled if the innermost frame is at the
 * return address (kernel/events/uprobes.c: uprobe_handle_trampoline).
 */
static struct place find_call(const struct view *view, const struct function *function,
			      uint64_t returns_to, size_t from)
{
	size_t n = seen__user(view->stack, view->n);

	if (n > from && returns_to && view->stack[n - 1].ip == returns_to)
		return (struct place){n, true, true};
	for (size_t i = from; i < n && returns_to; i++)
		if (view->stack[i].return_ip == returns_to)
			return (struct place){i, true, view->stack[i].function != function};
	for (size_t i = from; i < n && function; i++)
		if (view->stack[i].function == function)
			return (struct place){i, true, false};
	return (struct place){from, false, true};
}

/* A system call is made by the innermost user frame. */
static struct place find_syscall(const struct view *view)
{
	return (struct place){seen__user(view->stack, view->n), true, true};
}

/* A function that is in a system call: its frame is the innermost, unless that is missing. */
static struct place find_caller_of_syscall(const struct view *view, const struct function *function,
					   size_t from)
{
	size_t n = seen__user(view->stack, view->n);

	if (n > from && view->stack[n - 1].function == function)
		return (struct place){n - 1, true, false};
	return (struct place){n > from ? n : from, true, true};
}

/* The position of the walk along the stack. */
struct walk {
	size_t exact;	   /* index of the stack frame after the innermost exact call */
	size_t plain;	   /* the same, but also after the frames above it that match open slices */
	bool lacks_caller; /* callers of the stack's first frame are missing */
};

/*
 * Places a running call that the stack does not show: it called the frames that the walk has not
 * reached yet. If the walk has not passed any frame, and the call has a caller or the stack has
 * only one function, then the stack lacks callers.
 */
static size_t place_missing(const struct view *view, struct walk *walk, bool has_caller)
{
	size_t n = seen__user(view->stack, view->n);

	if (view->is_cut && !walk->exact)
		return 0;
	if (!walk->plain && n && (has_caller || n == 1))
		walk->lacks_caller = true;
	return walk->plain;
}

static void place_open(struct open_slice *open, const struct view *view, struct walk *walk,
		       bool has_caller)
{
	struct place place =
		open->seen.kind == CALL_SYSCALL ? find_syscall(view)
		: open->is_innermost
			? find_caller_of_syscall(view, open->seen.function, walk->exact)
			: find_call(view, open->seen.function, open->returns_to, walk->exact);

	if (!place.is_found && open->end != END_KNOWN && !view->is_cut) {
		/*
		 * A tail call may have replaced the function: from here on stacks decide when it
		 * ends.
		 */
		open->exit_ns = 0;
		return;
	}
	if (!place.is_found)
		place.at = place_missing(view, walk, has_caller);
	open->next = place.at + !place.is_hidden;
	walk->exact = walk->plain = open->next;
}

static struct walk walk_open(struct slices *s, uint64_t time_ns, const struct view *view)
{
	size_t i = 0, n_user = seen__user(view->stack, view->n);
	struct walk walk = {0};
	bool differs = false;

	for (; i < s->open.n; i++) {
		struct open_slice *open = &s->open.v[i];

		if (open->exit_ns && open->exit_ns <= time_ns)
			break;
		if (open->exit_ns) {
			place_open(open, view, &walk, i > 0);
			differs = !open->exit_ns;
			continue;
		}
		differs = differs || walk.plain == n_user ||
			  !seen__is_same(&open->seen, &view->stack[walk.plain]);
		walk.plain += !differs;
	}
	for (; i < s->open.n; i++)
		s->open.v[i].next = NOT_IN_STACK;
	return walk;
}

static bool is_last_of_function(const struct slices *s, size_t i)
{
	return !FIND_IN(s->entered.v + i + 1, s->entered.n - i - 1, e,
			e->function == s->entered.v[i].function);
}

static struct place find_entered(const struct slices *s, size_t i, uint64_t time_ns,
				 const struct view *view, struct walk *walk)
{
	const struct entered *e = &s->entered.v[i];
	struct place place;

	if (e->end == END_UNKNOWN && is_last_of_function(s, i)) {
		/* Its end is not known: the innermost frame is the latest activation. */
		for (size_t k = view->n; k-- > walk->exact;)
			if (view->stack[k].function == e->function)
				return (struct place){k, true, false};
		return (struct place){walk->exact, false, false};
	}
	if (ends_by(e, time_ns))
		return (struct place){0};
	if (e->kind == CALL_SYSCALL)
		return find_syscall(view);
	if (e->is_innermost)
		return find_caller_of_syscall(view, e->function, walk->exact);
	/* Frames that match open slices are other calls, unless no other frame fits. */
	place = find_call(view, e->function, e->returns_to, walk->plain);
	if (!place.is_found)
		place = find_call(view, e->function, e->returns_to, walk->exact);
	if (!place.is_found && (e->end == END_KNOWN || view->is_cut))
		return (struct place){place_missing(view, walk, s->open.n > 0), true, true};
	return place;
}

/*
 * Finds the frames at time_ns of all exact calls, open or entered since the last stack. False if
 * the stack must lack callers, because the frame of a running call is missing.
 */
static bool place_calls(struct slices *s, uint64_t time_ns, const struct view *view)
{
	struct walk walk = walk_open(s, time_ns, view);

	for (size_t i = 0; i < s->entered.n; i++) {
		struct entered *e = &s->entered.v[i];
		struct place place = find_entered(s, i, time_ns, view, &walk);

		e->is_placed = place.is_found;
		e->is_lost = !place.is_found && !ends_by(e, time_ns);
		e->is_hidden = place.is_hidden;
		e->at = place.at;
		if (place.is_found)
			walk.exact = walk.plain = place.at + !place.is_hidden;
	}
	return !walk.lacks_caller;
}

/* For a view that is known; place_calls() must have looked at it. */
static struct common find_common(const struct slices *s, const struct view *view)
{
	size_t n = count_exact(s);
	struct common c = {n, n ? s->open.v[n - 1].next : 0};

	if (c.stack == NOT_IN_STACK)
		return c;
	for (; c.open < s->open.n && c.stack < view->n; c.open++, c.stack++)
		if (!seen__is_same(&s->open.v[c.open].seen, &view->stack[c.stack]))
			break;
	return c;
}

/* Closes the exact calls that have returned by time_ns. */
static void leave_returned(struct slices *s, uint64_t time_ns)
{
	for (size_t i = s->open.n; i-- > 0;) {
		const struct open_slice *open = &s->open.v[i];
		uint64_t exit_ns = open->exit_ns;
		bool is_exact = open->end == END_KNOWN && exit_ns >= s->last_ns;

		if (!exit_ns || exit_ns > time_ns)
			continue;
		if (exit_ns < s->last_ns)
			exit_ns = s->last_ns;
		fill_unknown(s, i + 1, exit_ns);
		if (s->open.n > i + 1)
			pop_to(s, i + 1, edge_after(s, s->last_ns, exit_ns), CALL_INFERRED_END);
		pop_to(s, i, exit_ns, is_exact ? 0 : CALL_INFERRED_END);
		/* The thread is back in a caller that a stack has shown. */
		if (is_exact && i && !s->open.v[i - 1].exit_ns)
			s->known_ns = exit_ns;
	}
}

/* True unless the stack is missing, or lacks both the call and its callers. */
static bool tells_caller(const struct view *view, const struct entered *e)
{
	bool is_in_front = e->is_placed && e->is_hidden && !e->at;

	return view->is_known && !(view->is_cut && is_in_front);
}

/*
 * Leaves out slices that look like the entered call's callers, but have ended: functions that its
 * caller had called before. If the return address is that of another call, only functions that
 * waited are left out, since those rather make system calls than call others. An unknown function
 * may be the caller.
 */
static struct common leave_callees(const struct slices *s, const struct entered *e, struct common c,
				   size_t exact)
{
	size_t n = e->caller ? c.open : exact;
	bool has_waited = false;

	for (; n > exact; n--) {
		const struct seen *seen = &s->open.v[n - 1].seen;

		if (seen->kind == CALL_FUNCTION && (!seen->function || seen->function == e->caller))
			break;
	}
	for (size_t i = n; i < s->open.n; i++)
		has_waited |= s->open.v[i].has_blocked;
	if (n == exact || (e->is_usual && !has_waited))
		return c;
	if (c.stack != NOT_IN_STACK)
		c.stack -= c.open - n;
	c.open = n;
	return c;
}

/*
 * The slices that stay open when the call is entered: an inexact call of the same function does
 * not.
 */
static struct common kept(const struct slices *s, const struct entered *e, const struct view *view)
{
	size_t exact = count_exact(s);
	struct common c = {exact, NOT_IN_STACK};

	if (tells_caller(view, e)) {
		c = find_common(s, view);
		/*
		 * Matching frames at and after the call's own belong to other activations of the
		 * same functions.
		 */
		while (e->is_placed && c.open > exact && c.stack > e->at) {
			c.open--;
			c.stack--;
		}
	} else {
		while (c.open < s->open.n &&
		       (!e->function || s->open.v[c.open].seen.function != e->function))
			c.open++;
	}
	if (!e->is_placed || !tells_caller(view, e))
		c = leave_callees(s, e, c, exact);
	/* An entered call cannot have a kernel frame as its caller. */
	while (c.open > exact && s->open.v[c.open - 1].seen.kind == CALL_IN_KERNEL) {
		c.open--;
		c.stack -= c.stack != NOT_IN_STACK;
	}
	return c;
}

static void push_entered(struct slices *s, const struct entered *e, const struct view *view)
{
	struct seen seen = {.function = e->function, .kind = e->kind};
	bool is_shown = e->is_placed && !e->is_hidden;
	/* No stack was taken in this system call: its caller is inferred. */
	uint8_t flags = e->kind == CALL_SYSCALL && !e->is_placed ? CALL_INFERRED : 0;
	uint64_t exit_ns = e->end == END_OPEN ? NO_EXIT : e->end_ns;
	size_t n = count_exact(s);
	struct open_slice *open;

	/* An exact call ends no later than its exact caller. */
	if (n && s->open.v[n - 1].exit_ns < exit_ns)
		exit_ns = s->open.v[n - 1].exit_ns;
	/* A call that the stack should show, and does not, is not exact. */
	if (e->end == END_UNKNOWN || e->is_lost)
		exit_ns = 0;
	open = push(s, is_shown ? &view->stack[e->at] : &seen, e->start_ns, flags);
	if (!open)
		return;
	open->exit_ns = exit_ns;
	open->end = e->end;
	open->returns_to = e->returns_to;
	open->is_innermost = e->is_innermost;
	open->next = e->is_placed ? e->at + !e->is_hidden : NOT_IN_STACK;
	s->last_ns = e->start_ns;
	if (e->kind == CALL_SYSCALL) {
		innermost(s)->reason = e->reason;
		add_wait(s, &e->what);
	}
	if (e->end == END_UNKNOWN && !e->is_placed)
		pop_to(s, s->open.n - 1, e->start_ns, CALL_INFERRED_END);
}

static void enter(struct slices *s, const struct entered *e, const struct view *view)
{
	uint64_t start_ns;
	struct common same;

	leave_returned(s, e->start_ns);
	start_ns = edge_before(s, s->last_ns, e->start_ns);
	same = kept(s, e, view);
	fill_unknown(s, tells_caller(view, e) ? same.open : count_exact(s),
		     e->is_placed ? start_ns : e->start_ns);
	if (s->open.n > same.open)
		pop_to(s, same.open, edge_after(s, s->last_ns, e->start_ns), CALL_INFERRED_END);
	if (e->is_placed)
		push_rest(s, view, same.stack, e->at, start_ns);
	push_entered(s, e, view);
}

static void take_entered(struct slices *s, uint64_t time_ns, const struct view *view)
{
	for (size_t i = 0; i < s->entered.n; i++) {
		/* A damaged file may have entries out of order. */
		if (s->entered.v[i].start_ns < s->last_ns)
			s->entered.v[i].start_ns = s->last_ns;
		enter(s, &s->entered.v[i], view);
	}
	s->entered.n = 0;
	leave_returned(s, time_ns);
}

/*
 * The thread is seen running although its return to the CPU was not recorded; its wake-up may be
 * missing as well. Does nothing if the thread was not off its CPU.
 */
static void find_running(struct slices *s, uint64_t time_ns)
{
	if (s->off && innermost(s)->reason == OFF_BLOCKED)
		s->woken_ns = 0;
	slices__on(s, time_ns);
}

void slices__enter(struct slices *s, const struct entered *entered)
{
	struct entered copy = *entered;

	find_running(s, entered->start_ns);
	copy.is_placed = copy.is_lost = false;
	if (VEC_ADD(&s->entered, copy))
		s->failed = true;
}

size_t slices__count_calls(const struct slices *s, const struct function *function,
			   uint64_t time_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < s->open.n; i++)
		n += s->open.v[i].exit_ns > time_ns && s->open.v[i].seen.function == function;
	for (size_t i = 0; i < s->entered.n; i++)
		n += s->entered.v[i].function == function && !ends_by(&s->entered.v[i], time_ns);
	return n;
}

static void add_running(struct slices *s, const struct function *function, uint64_t returns_to,
			probed_calls *out)
{
	struct probed_call call = {.function = function, .returns_to = returns_to};

	if (function && returns_to && VEC_ADD(out, call))
		s->failed = true;
}

void slices__running(struct slices *s, uint64_t time_ns, probed_calls *out)
{
	for (size_t i = s->entered.n; i-- > 0;)
		if (!ends_by(&s->entered.v[i], time_ns))
			add_running(s, s->entered.v[i].function, s->entered.v[i].returns_to, out);
	for (size_t i = s->open.n; i-- > 0;)
		if (s->open.v[i].exit_ns > time_ns)
			add_running(s, s->open.v[i].seen.function, s->open.v[i].returns_to, out);
}

void slices__see(struct slices *s, uint64_t time_ns, const struct seen *stack, size_t n)
{
	struct view view = {.stack = stack,
			    .n = n,
			    .is_known = true,
			    .is_cut = n && stack[0].kind == CALL_NO_CALLERS};
	struct common same;
	uint64_t start_ns;

	find_running(s, time_ns);
	if (!place_calls(s, time_ns, &view)) {
		/* The same stack, marked as lacking its outermost callers. */
		s->cut.n = 0;
		s->failed = s->failed || VEC_ADD(&s->cut, SEEN_NO_CALLERS);
		for (size_t i = 0; i < n && !s->failed; i++)
			s->failed = VEC_ADD(&s->cut, stack[i]);
		view.stack = s->cut.v;
		view.n = s->cut.n;
		view.is_cut = s->cut.n != 0;
		place_calls(s, time_ns, &view);
	}
	take_entered(s, time_ns, &view);
	/* Adds the frames that are not exact calls. */
	start_ns = edge_before(s, s->last_ns, time_ns);
	same = find_common(s, &view);
	/* Within a period of the last stack, that stack still holds. */
	if (s->is_begun || time_ns - s->last_ns > s->period_ns)
		fill_unknown(s, same.open, start_ns);
	pop_to(s, same.open, edge_after(s, s->last_ns, time_ns), CALL_INFERRED_END);
	push_rest(s, &view, same.stack, view.n, start_ns);
	s->last_ns = s->known_ns = time_ns;
	s->is_begun = false;
}

void slices__begin(struct slices *s, uint64_t time_ns)
{
	if (s->last_ns)
		return;
	s->last_ns = time_ns;
	s->is_begun = true;
}

void slices__end(struct slices *s, uint64_t time_ns)
{
	if (s->stolen_until_ns && s->stolen_until_ns < time_ns)
		slices__on(s, time_ns);
	s->stolen_until_ns = 0;
	if (!s->off) {
		take_entered(s, time_ns, &(struct view){0});
		fill_unknown(s, count_exact(s), time_ns);
	}
	pop_to(s, 0, time_ns > s->last_ns ? time_ns : s->last_ns, CALL_INFERRED_END);
	s->entered.n = 0;
	s->off = s->is_begun = false;
	s->last_ns = s->known_ns = 0;
}

void slices__gap(struct slices *s, uint64_t start_ns, uint64_t end_ns, uint8_t reason)
{
	struct seen seen = {.kind = CALL_GAP};

	if (!push(s, &seen, start_ns, 0))
		return;
	innermost(s)->reason = reason;
	pop_to(s, 0, end_ns, 0);
	s->last_ns = s->known_ns = 0;
}

/* Time off the CPU: exact slices, and the threads that caused them. */

static void push_off(struct slices *s, uint64_t time_ns, uint8_t reason)
{
	struct seen seen = {.kind = CALL_OFF_CPU};

	if (!push(s, &seen, time_ns, 0))
		return;
	innermost(s)->reason = reason;
	s->last_ns = time_ns;
	s->off = true;
}

/* Notes that `by` caused `ns` of the innermost slice. */
static void add_by(struct slices *s, const struct done_by *by, uint64_t ns)
{
	struct done_by copy = *by;

	copy.call = s->open.v[s->open.n - 1].call;
	copy.ns = ns;
	for (size_t i = s->tree->done_by.n; i-- > 0;) {
		struct done_by *known = &s->tree->done_by.v[i];

		if (known->call != copy.call)
			break;
		if (known->tid == by->tid) {
			known->ns += ns;
			return;
		}
	}
	/* It is only left out if memory runs out. */
	if (by->tid)
		(void)VEC_ADD(&s->tree->done_by, copy);
}

void slices__waits(struct slices *s, const struct waits_for *wait)
{
	s->wait = *wait;
	s->has_wait = true;
}

/*
 * A wake-up this long before a thread leaves its CPU to wait still counts: the thread was about to
 * sleep.
 */
#define EARLY_NS 100000

void slices__off(struct slices *s, uint64_t time_ns, uint8_t reason)
{
	find_running(s, time_ns);
	if (reason != OFF_BLOCKED || s->woken_ns + EARLY_NS < time_ns)
		s->woken_ns = 0;
	take_entered(s, time_ns, &(struct view){0});
	fill_unknown(s, count_exact(s), time_ns);
	s->off_ns = time_ns;
	if (s->open.n)
		s->open.v[s->open.n - 1].has_blocked |= reason == OFF_BLOCKED;
	push_off(s, time_ns, reason);
	if (reason == OFF_BLOCKED && s->has_wait)
		add_wait(s, &s->wait);
	s->has_wait = false;
	s->next_ns = time_ns;
}

static bool waits_for_cpu(const struct slices *s)
{
	return s->off &&
	       (innermost(s)->reason == OFF_PREEMPTED || innermost(s)->reason == OFF_RUNNABLE);
}

/* Notes the thread that until now ran on the CPU for which this thread waits. */
static void add_runner(struct slices *s, uint64_t until_ns)
{
	add_by(s, &s->next, until_ns > s->next_ns ? until_ns - s->next_ns : 0);
}

void slices__replaced(struct slices *s, uint64_t time_ns, const struct done_by *by)
{
	if (waits_for_cpu(s))
		add_runner(s, time_ns);
	s->next = *by;
	s->next_ns = time_ns;
}

ORDER(by_time, struct done_by, COMPARE(y->ns, x->ns))

void slices__woken(struct slices *s, uint64_t time_ns, const struct done_by *by)
{
	/* A wake-up before the thread has left its CPU keeps it there, or makes it ready at once.
	 */
	s->woken_ns = time_ns;
	if (!s->off || innermost(s)->reason != OFF_BLOCKED)
		return;
	add_by(s, by, time_ns - innermost(s)->start_ns);
	pop_to(s, s->open.n - 1, time_ns, 0);
	push_off(s, time_ns, OFF_RUNNABLE);
	/* From now on the thread waits for a CPU: `next` runs there. */
	s->next_ns = time_ns;
}

uint64_t slices__waits_since(const struct slices *s)
{
	return waits_for_cpu(s) ? innermost(s)->start_ns : 0;
}

void slices__throttled(struct slices *s, uint64_t time_ns, uint64_t ns, const char *text)
{
	struct waits_for wait = {.fd = -1, .text = text};
	uint64_t start_ns = slices__waits_since(s);
	uint32_t call = s->open.v[s->open.n - 1].call;

	/* Forgets who ran instead: a throttled thread could not have run anyway. */
	while (s->tree->done_by.n && s->tree->done_by.v[s->tree->done_by.n - 1].call == call)
		s->tree->done_by.n--;
	s->next.tid = 0;
	s->tree->calls.v[call].reason = OFF_THROTTLED;
	if (text)
		add_wait(s, &wait);
	if (start_ns + ns >= time_ns)
		return;
	pop_to(s, s->open.n - 1, start_ns + ns, 0);
	push_off(s, start_ns + ns, OFF_RUNNABLE);
	s->next_ns = start_ns + ns;
}

void slices__stolen(struct slices *s, uint64_t start_ns, uint64_t end_ns)
{
	if (s->off || start_ns < s->last_ns)
		return;
	slices__off(s, start_ns, OFF_STOLEN);
	s->stolen_until_ns = end_ns;
}

void slices__on(struct slices *s, uint64_t time_ns)
{
	size_t n = 0, all;
	uint32_t call;

	/* The switch off the CPU may not have been recorded. */
	if (!s->off)
		return;
	call = s->open.v[s->open.n - 1].call;
	/*
	 * A thread runs again only after a wake-up: if that came before the switch, the thread was
	 * ready all the time and did not block.
	 */
	if (s->woken_ns && innermost(s)->reason == OFF_BLOCKED) {
		s->woken_ns = 0;
		innermost(s)->reason = OFF_RUNNABLE;
		if (s->tree->waits.n && s->tree->waits.v[s->tree->waits.n - 1].call == call)
			s->tree->waits.n--;
	}
	if (s->stolen_until_ns && s->stolen_until_ns < time_ns)
		time_ns = s->stolen_until_ns;
	s->stolen_until_ns = 0;
	if (waits_for_cpu(s)) {
		add_runner(s, time_ns);
		/* The thread that ran longest instead comes first. */
		all = s->tree->done_by.n;
		while (n < all && s->tree->done_by.v[all - n - 1].call == call)
			n++;
		if (n > 1)
			qsort(&s->tree->done_by.v[all - n], n, sizeof(struct done_by), by_time);
	}
	pop_to(s, s->open.n - 1, time_ns, 0);
	s->off = false;
	s->next.tid = 0;
	s->last_ns = time_ns;
	/*
	 * The code that ran before the thread left its CPU goes on: time off the CPU is not unknown
	 * time.
	 */
	if (s->known_ns)
		s->known_ns += time_ns - s->off_ns;
}
