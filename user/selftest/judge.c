// SPDX-License-Identifier: MIT
#include "selftest/judge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decode/pt_note.h"
#include "util/vec.h"

#define NOT_NOTED UINT16_MAX

/* A call of a program's function in the trace. */
struct seen_call {
	const struct call *call;
	const struct call_tree *tree;
	uint16_t function;
	uint16_t depth;
	pid_t tid;
	size_t order; /* in the trees, which are in pre-order */
	unsigned int syscalls, untraced, in_kernel;
};

typedef VEC(struct seen_call) seen_calls;
typedef VEC(const struct noted_call *) noted_calls;

static uint16_t function_of(const struct call *call)
{
	if (!call->function || (call->kind != CALL_FUNCTION && call->kind != CALL_SIGNAL))
		return NOT_NOTED;
	if (strncmp(call->function->name, "mtbpf_selftest_", 15) != 0)
		return NOT_NOTED;
	for (unsigned int i = 0; i < n_program_functions; i++)
		if (!strcmp(program_functions[i].name, call->function->name))
			return (uint16_t)i;
	return NOT_NOTED;
}

const struct hit_mark *judge__find_hit(const struct decoded *decoded, uint64_t *k)
{
	for (size_t i = decoded->hits.n; i-- > 0;) {
		const struct hit_mark *hit = &decoded->hits.v[i];

		if (hit->n_args && (hit->args_read & 1)) {
			*k = hit->args[0];
			return hit;
		}
	}
	return NULL;
}

/*
 * Counts the system call of PROGRAM_SYSCALLS, as the kernel names it, for the nearest noted caller.
 */
static void count_in_kernel(seen_calls *seen, const struct call_tree *tree, const uint32_t *numbers,
			    const struct call *call)
{
	if (!call->function || !strstr(call->function->name, "_sys_getppid") ||
	    strstr(call->function->name, "mtbpf_"))
		return;
	while (call->parent != CALL_NO_PARENT) {
		uint32_t number = numbers[call->parent];

		if (number != UINT32_MAX) {
			seen->v[number].in_kernel++;
			return;
		}
		call = &tree->calls.v[call->parent];
	}
}

/* Adds the program's calls in one tree. */
static int see_tree(seen_calls *seen, const struct call_tree *tree, enum program program,
		    uint64_t end_ns, size_t *order)
{
	VEC(uint16_t) depths = {0}; /* of each call: how many of its callers and itself are noted */
	VEC(uint32_t) numbers = {0}; /* its index in `seen`, UINT32_MAX: it is not there */
	int err = 0;

	VEC_EACH_WHILE(&tree->calls, call, !err) {
		bool has_parent = call->parent != CALL_NO_PARENT;
		uint16_t above = has_parent ? depths.v[call->parent] : 0;
		uint16_t function = function_of(call);
		uint32_t number = UINT32_MAX, of = has_parent ? numbers.v[call->parent] : number;

		if (of != UINT32_MAX && call->kind == CALL_SYSCALL)
			seen->v[of].syscalls++;
		if (of != UINT32_MAX && call->kind == CALL_UNTRACED)
			seen->v[of].untraced++;
		count_in_kernel(seen, tree, numbers.v, call);
		if (function != NOT_NOTED && program_functions[function].program == program &&
		    call->start_ns <= end_ns) {
			number = (uint32_t)seen->n;
			err = VEC_ADD(seen, (struct seen_call){.call = call,
							       .tree = tree,
							       .function = function,
							       .depth = above,
							       .tid = tree->tid,
							       .order = ++*order});
		}
		if (!err)
			err = VEC_ADD(&depths, (uint16_t)(above + (function != NOT_NOTED)));
		if (!err)
			err = VEC_ADD(&numbers, number);
	}
	VEC_FINI(&depths);
	VEC_FINI(&numbers);
	return err;
}

ORDER(by_time, struct seen_call,
      COMPARE(x->call->start_ns, y->call->start_ns) ?: COMPARE(x->order, y->order))

static bool is_same(const struct seen_call *seen, const struct noted_call *noted)
{
	return seen->function == noted->function && seen->depth == noted->depth;
}

/* True for exceptions that programs raise on purpose: they have a vector below 32. */
static bool is_exception(const struct call *call)
{
	return call->kind == CALL_UNTRACED && call->reason >= PT_EVENT_EXCEPTION &&
	       call->reason < PT_EVENT_SYSTEM;
}

/*
 * Counts the exceptions that the trace has directly within the call. A page fault that the program
 * did not note is not wrong: its memory may be new to the kernel.
 */
static void add_exceptions(struct judged_calls *judged, const struct seen_call *seen,
			   const struct noted_call *noted)
{
	uint32_t own = (uint32_t)(seen->call - seen->tree->calls.v);
	uint8_t expected = (uint8_t)(PT_EVENT_EXCEPTION + noted->vector);
	bool is_found = noted->event != NOTED_EXCEPTION;

	for (size_t i = own + 1; i < seen->tree->calls.n; i++) {
		const struct call *call = &seen->tree->calls.v[i];

		if (call->depth <= seen->call->depth)
			break;
		if (call->parent != own || !is_exception(call))
			continue;
		if (!is_found && call->reason == expected && call->entry_ip == noted->value) {
			judged->events++;
			is_found = true;
		} else if (call->reason != PT_EVENT_PAGE_FAULT) {
			judged->unnoted_events++;
		}
	}
}

static void add_right(struct judged_calls *judged, const struct decoded *decoded,
		      const struct seen_call *seen, const struct noted_call *noted)
{
	const char *function = program_functions[noted->function].name;
	int64_t least = (int64_t)(seen->call->start_ns - noted->time_ns);
	int64_t most = (int64_t)(seen->call->end_ns - noted->time_ns);

	/*
	 * The start of calls that began before the trace is unknown, and so is the end of those
	 * that go on after it.
	 */
	if (!(seen->call->flags & CALL_INFERRED_START) && least > judged->least_shift_ns)
		judged->least_shift_ns = least;
	if (!(seen->call->flags & CALL_INFERRED_END) && most < judged->most_shift_ns)
		judged->most_shift_ns = most;
	judged->right++;
	judged->syscalls += seen->syscalls;
	judged->untraced += seen->untraced;
	judged->in_kernel += seen->in_kernel;
	add_exceptions(judged, seen, noted);
	/* The value of PTWRITE is found by its thread, function, and time. */
	VEC_EACH_WHILE(&decoded->events, note, noted->event == NOTED_PTWRITE) {
		if (note->kind != PT_NOTE_PTWRITE || note->tid != seen->tid ||
		    note->time_ns < seen->call->start_ns || note->time_ns > seen->call->end_ns)
			continue;
		if (note->value == noted->value && note->in && !strcmp(note->in, function))
			judged->events++;
		else
			judged->unnoted_events++;
	}
}

/*
 * Matches the calls in the trace with the noted ones by their longest common subsequence (dynamic
 * programming): a call that is missing or too many costs itself, and not all that come after it. 0
 * or -ENOMEM.
 */
static int compare(struct judged_calls *judged, const struct decoded *decoded,
		   const struct seen_call *seen, size_t n_seen, const noted_calls *noted)
{
	size_t rows = n_seen + 1, columns = noted->n + 1, i = 0, j = 0;
	uint16_t *longest = calloc(rows * columns, sizeof(*longest));
	bool has_begun = false;

	if (!longest)
		return -ENOMEM;
#define LONGEST(i, j) longest[(i)*columns + (j)]
	for (i = n_seen; i-- > 0;) {
		for (j = noted->n; j-- > 0;) {
			uint16_t without = LONGEST(i + 1, j), next = LONGEST(i, j + 1);

			if (next > without)
				without = next;
			if (is_same(&seen[i], noted->v[j]) && LONGEST(i + 1, j + 1) + 1 > without)
				without = (uint16_t)(LONGEST(i + 1, j + 1) + 1);
			LONGEST(i, j) = without;
		}
	}
	for (i = j = 0; i < n_seen && j < noted->n;) {
		if (is_same(&seen[i], noted->v[j]) && LONGEST(i, j) == LONGEST(i + 1, j + 1) + 1) {
			add_right(judged, decoded, &seen[i++], noted->v[j++]);
			has_begun = true;
		} else if (LONGEST(i + 1, j) >= LONGEST(i, j + 1)) {
			judged->unnoted += has_begun; /* else it may be of the iteration before */
			i++;
		} else {
			j++;
		}
	}
	judged->unnoted += (unsigned int)(n_seen - i);
#undef LONGEST
	free(longest);
	return 0;
}

/* Judges one thread. The trace may reach back to earlier iterations: the last calls count. */
static int judge_thread(struct judged_calls *judged, const struct decoded *decoded,
			const seen_calls *seen, const struct iteration *iteration,
			enum program program, pid_t tid)
{
	noted_calls noted = {0};
	seen_calls own = {0};
	size_t skip;
	int err = 0;

	for (unsigned int i = 0; i < iteration->n && !err; i++) {
		const struct noted_call *call = &iteration->calls[i];

		if (call->tid != tid || program_functions[call->function].program != program)
			continue;
		judged->noted_events += call->event != NOTED_NO_EVENT;
		err = VEC_ADD(&noted, call);
	}
	for (size_t i = 0; i < seen->n && !err; i++)
		if (seen->v[i].tid == tid)
			err = VEC_ADD(&own, seen->v[i]);
	skip = own.n > noted.n ? own.n - noted.n : 0;
	if (!err && noted.n && own.n)
		err = compare(judged, decoded, own.v + skip, own.n - skip, &noted);
	judged->noted += (unsigned int)noted.n;
	VEC_FINI(&noted);
	VEC_FINI(&own);
	return err;
}

int judge__calls(const struct decoded *decoded, const struct iteration *iteration,
		 enum program program, uint64_t end_ns, struct judged_calls *judged)
{
	seen_calls seen = {0};
	size_t order = 0;
	int err = 0;

	*judged = JUDGED_NONE;
	for (size_t i = 0; i < decoded->trees.n && !err; i++)
		err = see_tree(&seen, &decoded->trees.v[i], program, end_ns, &order);
	if (!err)
		VEC_SORT(&seen, by_time);
	/* Judges each thread once: at its first note. */
	for (unsigned int i = 0; i < iteration->n && !err; i++) {
		pid_t tid = iteration->calls[i].tid;
		unsigned int first = 0;

		while (iteration->calls[first].tid != tid)
			first++;
		if (first == i)
			err = judge_thread(judged, decoded, &seen, iteration, program, tid);
	}
	VEC_FINI(&seen);
	return err;
}

void judged_calls__add(struct judged_calls *sum, const struct judged_calls *judged)
{
	sum->noted += judged->noted;
	sum->right += judged->right;
	sum->unnoted += judged->unnoted;
	sum->syscalls += judged->syscalls;
	sum->untraced += judged->untraced;
	sum->in_kernel += judged->in_kernel;
	sum->noted_events += judged->noted_events;
	sum->events += judged->events;
	sum->unnoted_events += judged->unnoted_events;
	if (judged->least_shift_ns > sum->least_shift_ns)
		sum->least_shift_ns = judged->least_shift_ns;
	if (judged->most_shift_ns < sum->most_shift_ns)
		sum->most_shift_ns = judged->most_shift_ns;
}

/* ---- time in samples */

static bool is_called(const struct call *call, const char *function)
{
	return call->function && call->kind == CALL_FUNCTION &&
	       !strcmp(call->function->name, function);
}

/* The nearest caller of that name, or the call itself; NULL: none. */
static const struct call *find_caller(const struct call_tree *tree, const struct call *call,
				      const char *function)
{
	while (!is_called(call, function)) {
		if (call->parent == CALL_NO_PARENT)
			return NULL;
		call = &tree->calls.v[call->parent];
	}
	return call;
}

void judge__time(const struct decoded *decoded, const struct iteration *iteration,
		 const char *function, struct judged_time *judged)
{
	uint64_t from_ns = 0, to_ns = 0;
	pid_t tid = 0;

	/* Finds the time between the function's first and last note. */
	for (unsigned int i = 0; i < iteration->n; i++) {
		const struct noted_call *call = &iteration->calls[i];

		if (strcmp(program_functions[call->function].name, function) != 0)
			continue;
		tid = call->tid;
		to_ns = call->time_ns;
		if (!from_ns)
			from_ns = call->time_ns;
	}
	*judged = (struct judged_time){.true_ns = to_ns - from_ns, .has_caller = true};
	VEC_EACH(&decoded->trees, tree) {
		for (size_t c = 0; tree->tid == tid && c < tree->calls.n; c++) {
			const struct call *call = &tree->calls.v[c];
			uint64_t from = call->start_ns > from_ns ? call->start_ns : from_ns;
			uint64_t to = call->end_ns < to_ns ? call->end_ns : to_ns;
			uint64_t ns = to - from;

			if (to <= from)
				continue;
			if (is_called(call, function)) {
				judged->slices_ns += ns;
				if (!find_caller(tree, call, "mtbpf_selftest_time_main"))
					judged->has_caller = false;
			}
			if (call->kind == CALL_OFF_CPU && find_caller(tree, call, function))
				*(call->reason == OFF_BLOCKED ? &judged->blocked_ns
							      : &judged->waited_ns) += ns;
		}
	}
}

uint64_t judge__busy_ns(const struct decoded *decoded)
{
	uint64_t ns = 0;

	VEC_EACH(&decoded->trees, tree) {
		for (size_t c = 0; c < tree->calls.n; c++)
			if (is_called(&tree->calls.v[c], "mtbpf_selftest_busy_main"))
				ns += tree->calls.v[c].end_ns - tree->calls.v[c].start_ns;
	}
	return ns;
}
