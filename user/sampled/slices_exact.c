// SPDX-License-Identifier: MIT
/*
 * Calls whose begins, and mostly ends too, were seen by themselves. While one runs, what had called
 * it cannot change: a stack that shows less of that has missed it.
 */
#include "sampled/slices_internal.h"

/* Until a stack shows that it is over, or the end of all. */
#define NO_EXIT UINT64_MAX

static bool ends_by(const struct entered *e, uint64_t time_ns)
{
	return e->end == END_UNKNOWN || (e->end != END_OPEN && e->end_ns <= time_ns);
}

size_t slices__count_exact(const struct slices *s)
{
	size_t n = s->open.n;

	while (n && !s->open.v[n - 1].exit_ns)
		n--;
	return n;
}

struct place {
	size_t at;
	bool is_found;	/* somewhere in the stack, ... */
	bool is_hidden; /* ... where another has its frame: a tail call, or its own is missing */
};

/*
 * The outermost from there on. What returns where it would has its frame, if it is not itself. The
 * kernel's part returns there as well, in the call's return probe: it is not the call.
 */
static struct place find_call(const struct view *view, const struct function *function,
			      uint64_t returns_to, size_t from)
{
	size_t n = seen__user(view->stack, view->n);

	for (size_t i = from; i < n && returns_to; i++)
		if (view->stack[i].return_ip == returns_to)
			return (struct place){i, true, view->stack[i].function != function};
	for (size_t i = from; i < n && function; i++)
		if (view->stack[i].function == function)
			return (struct place){i, true, false};
	return (struct place){from, false, true};
}

/* All that was user code then: the kernel's part comes last. */
static struct place find_syscall(const struct view *view)
{
	return (struct place){seen__user(view->stack, view->n), true, true};
}

/* Where the walk along the stack has come to. */
struct walk {
	size_t exact;	   /* behind the innermost exact call */
	size_t plain;	   /* behind that, and what else is the same */
	bool lacks_caller; /* of the first in the stack, which is not the thread's outermost */
};

/*
 * A call that runs, and that the stack does not show, has called what the stack shows and the walk
 * has not come to. If the walk has not come to anything, and there is something that had called
 * that call, or the stack is one function, then callers are missing between the two.
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

static void step_plain(const struct open_slice *open, const struct view *view, struct walk *walk,
		       bool *differs)
{
	if (*differs || walk->plain == seen__user(view->stack, view->n) ||
	    !seen__is_same(&open->seen, &view->stack[walk->plain]))
		*differs = true;
	else
		walk->plain++;
}

static void place_open(struct open_slice *open, const struct view *view, struct walk *walk,
		       bool has_caller)
{
	struct place place =
		open->seen.kind == CALL_SYSCALL
			? find_syscall(view)
			: find_call(view, open->seen.function, open->returns_to, walk->exact);

	if (!place.is_found && open->end != END_KNOWN && !view->is_cut) {
		/* It may have been left by a jump: nothing holds it any more. */
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
	struct walk walk = {0};
	bool differs = false;
	size_t i = 0;

	for (; i < s->open.n; i++) {
		struct open_slice *open = &s->open.v[i];

		if (open->exit_ns && open->exit_ns <= time_ns)
			break;
		if (!open->exit_ns) {
			step_plain(open, view, &walk, &differs);
			continue;
		}
		place_open(open, view, &walk, i > 0);
		differs = !open->exit_ns;
	}
	for (; i < s->open.n; i++)
		s->open.v[i].next = NOT_IN_STACK;
	return walk;
}

static bool is_last_of_function(const struct slices *s, size_t i)
{
	const struct function *function = s->entered.v[i].function;

	for (i++; i < s->entered.n; i++)
		if (s->entered.v[i].function == function)
			return false;
	return true;
}

/* Of one whose return is not known: the innermost is the one that was entered last. */
static struct place find_innermost(const struct view *view, const struct function *function,
				   size_t from)
{
	for (size_t i = view->n; i-- > from;)
		if (view->stack[i].function == function)
			return (struct place){i, true, false};
	return (struct place){from, false, false};
}

static struct place find_entered(const struct slices *s, size_t i, uint64_t time_ns,
				 const struct view *view, struct walk *walk)
{
	const struct entered *e = &s->entered.v[i];
	struct place place;

	if (e->end == END_UNKNOWN && is_last_of_function(s, i))
		return find_innermost(view, e->function, walk->exact);
	if (ends_by(e, time_ns))
		return (struct place){0};
	if (e->kind == CALL_SYSCALL)
		return find_syscall(view);
	/* What was there before is another call, unless it has to be this one. */
	place = find_call(view, e->function, e->returns_to, walk->plain);
	if (!place.is_found)
		place = find_call(view, e->function, e->returns_to, walk->exact);
	if (!place.is_found && (e->end == END_KNOWN || view->is_cut))
		return (struct place){place_missing(view, walk, s->open.n > 0), true, true};
	return place;
}

bool slices__place(struct slices *s, uint64_t time_ns, const struct view *view)
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

struct common slices__common(const struct slices *s, const struct view *view)
{
	size_t n = slices__count_exact(s);
	struct common c = {n, n ? s->open.v[n - 1].next : 0};

	if (c.stack == NOT_IN_STACK)
		return c;
	for (; c.open < s->open.n && c.stack < view->n; c.open++, c.stack++)
		if (!seen__is_same(&s->open.v[c.open].seen, &view->stack[c.stack]))
			break;
	return c;
}

/* Calls whose return was seen, up to now. */
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
		slices__fill_unknown(s, i + 1, exit_ns);
		if (s->open.n > i + 1)
			slices__pop_to(s, i + 1, slices__edge_behind(s, s->last_ns, exit_ns),
				       CALL_INFERRED_END);
		slices__pop_to(s, i, exit_ns, is_exact ? 0 : CALL_INFERRED_END);
		/* It is back in its caller, where that is known. */
		if (is_exact && i && !s->open.v[i - 1].exit_ns)
			s->known_ns = exit_ns;
	}
}

/* User code is called, and system calls are made, out of the kernel. */
static struct common leave_kernel(const struct slices *s, struct common c, size_t exact)
{
	while (c.open > exact && s->open.v[c.open - 1].seen.kind == CALL_IN_KERNEL) {
		c.open--;
		c.stack -= c.stack != NOT_IN_STACK;
	}
	return c;
}

/* One that a stack lacks together with its own callers says nothing of these. */
static bool tells_caller(const struct view *view, const struct entered *e)
{
	bool is_in_front = e->is_placed && e->is_hidden && !e->at;

	return view->is_known && !(view->is_cut && is_in_front);
}

/* What runs on when it is entered: not another call of the same function that nothing holds. */
static struct common kept(const struct slices *s, const struct entered *e, const struct view *view)
{
	size_t exact = slices__count_exact(s);
	struct common c = {exact, NOT_IN_STACK};

	if (tells_caller(view, e)) {
		c = slices__common(s, view);
		/* It is another activation, even if it looks the same. */
		while (e->is_placed && c.open > exact && c.stack > e->at) {
			c.open--;
			c.stack--;
		}
		return leave_kernel(s, c, exact);
	}
	while (c.open < s->open.n &&
	       (!e->function || s->open.v[c.open].seen.function != e->function))
		c.open++;
	return leave_kernel(s, c, exact);
}

/* Not beyond what it was called in. */
static uint64_t exit_of(const struct slices *s, const struct entered *e)
{
	size_t n = slices__count_exact(s);
	uint64_t exit_ns = e->end == END_OPEN ? NO_EXIT : e->end_ns;

	return n && s->open.v[n - 1].exit_ns < exit_ns ? s->open.v[n - 1].exit_ns : exit_ns;
}

static void push_entered(struct slices *s, const struct entered *e, const struct view *view)
{
	struct seen seen = {.function = e->function, .kind = e->kind};
	bool is_shown = e->is_placed && !e->is_hidden;
	/* Of a system call that no stack was seen in it is not known who made it. */
	uint8_t flags = e->kind == CALL_SYSCALL && !e->is_placed ? CALL_INFERRED : 0;
	/* Nothing holds what should be in the stack, and is not. */
	uint64_t exit_ns = e->end == END_UNKNOWN || e->is_lost ? 0 : exit_of(s, e);
	struct open_slice *open =
		slices__push(s, is_shown ? &view->stack[e->at] : &seen, e->start_ns, flags);

	if (!open)
		return;
	open->exit_ns = exit_ns;
	open->end = e->end;
	open->returns_to = e->returns_to;
	open->next = e->is_placed ? e->at + !e->is_hidden : NOT_IN_STACK;
	s->last_ns = e->start_ns;
	if (e->kind == CALL_SYSCALL) {
		s->tree->calls.v[open->call].reason = e->reason;
		slices__add_wait(s, &e->what);
	}
	if (e->end == END_UNKNOWN && !e->is_placed)
		slices__pop_to(s, s->open.n - 1, e->start_ns, CALL_INFERRED_END);
}

static void enter(struct slices *s, const struct entered *e, const struct view *view)
{
	uint64_t start_ns;
	struct common same;

	leave_returned(s, e->start_ns);
	start_ns = slices__edge_before(s, s->last_ns, e->start_ns);
	same = kept(s, e, view);
	slices__fill_unknown(s, tells_caller(view, e) ? same.open : slices__count_exact(s),
			     e->is_placed ? start_ns : e->start_ns);
	if (s->open.n > same.open)
		slices__pop_to(s, same.open, slices__edge_behind(s, s->last_ns, e->start_ns),
			       CALL_INFERRED_END);
	if (e->is_placed)
		slices__push_rest(s, view, same.stack, e->at, start_ns);
	push_entered(s, e, view);
}

void slices__take_entered(struct slices *s, uint64_t time_ns, const struct view *view)
{
	for (size_t i = 0; i < s->entered.n; i++) {
		/* Not before what is known to have come earlier: a file may say anything. */
		if (s->entered.v[i].start_ns < s->last_ns)
			s->entered.v[i].start_ns = s->last_ns;
		enter(s, &s->entered.v[i], view);
	}
	s->entered.n = 0;
	leave_returned(s, time_ns);
}

void slices__enter(struct slices *s, const struct entered *entered)
{
	struct entered *out;

	slices__found(s, entered->start_ns);
	out = VEC_PUSH(&s->entered);
	if (!out) {
		s->failed = true;
		return;
	}
	*out = *entered;
	out->is_placed = out->is_lost = false;
}

bool slices__has_call(const struct slices *s, const struct function *function, uint64_t time_ns)
{
	for (size_t i = 0; i < s->open.n; i++)
		if (s->open.v[i].exit_ns > time_ns && s->open.v[i].seen.function == function)
			return true;
	for (size_t i = 0; i < s->entered.n; i++)
		if (s->entered.v[i].function == function && !ends_by(&s->entered.v[i], time_ns))
			return true;
	return false;
}

void slices__add_wait(struct slices *s, const struct waits_for *wait)
{
	struct waits_for *out = VEC_PUSH(&s->tree->waits);

	if (!out) {
		s->failed = true;
		return;
	}
	*out = *wait;
	out->call = s->open.v[s->open.n - 1].call;
}
