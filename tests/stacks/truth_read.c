// SPDX-License-Identifier: MIT
#include "truth_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool truth_log__is_restorer(const struct function *function)
{
	return !strcmp(function->name, "__restore_rt") ||
	       !strncmp(function->name, "runtime.sigreturn", strlen("runtime.sigreturn"));
}

/* Behind what no call ends with: between functions. Go goes to a function's begin by a return. */
static bool is_behind_padding(struct code_map *map, uint64_t ip)
{
	const uint8_t int3 = 0xcc;
	uint8_t code;

	return code_map__read(map, ip - 1, &code, 1) == 1 && code == int3;
}

const struct function *truth_log__function(struct code_map *map, uint64_t ip, bool is_return)
{
	struct code_place place;

	if (!code_map__find(map, ip, &place))
		return NULL;
	/* A signal handler returns to what nothing has called. */
	if (is_return && place.entry == ip && !truth_log__is_restorer(place.function) &&
	    !is_behind_padding(map, ip))
		code_map__find(map, ip - 1, &place);
	return place.function;
}

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static void read_events(struct truth_log *log, FILE *f, pid_t tid)
{
	char *line = NULL, kind[16];
	struct true_event e = {0};
	pid_t line_tid;
	size_t cap = 0;

	while (getline(&line, &cap, f) > 0) {
		struct true_event *event;

		e.stack = 0;
		if (sscanf(line, "%d %" SCNu64 " %15s %" SCNx64 " %ld %" SCNu32, &line_tid,
			   &e.time_ns, kind, &e.to, &e.depth, &e.stack) < 5 ||
		    line_tid != tid)
			continue;
		e.is_call = !strcmp(kind, "call");
		if (!e.is_call && strcmp(kind, "return"))
			continue;
		event = must(VEC_PUSH(&log->events));
		*event = e;
	}
	free(line);
}

const struct function **true_stack__frame(struct true_stack *stack, long depth)
{
	return &stack->frames.v[depth - stack->lowest];
}

static void add_stacks(struct truth_log *log, uint32_t last)
{
	while (log->stacks.n <= last) {
		struct true_stack *stack = must(VEC_PUSH(&log->stacks));

		*stack = (struct true_stack){0};
	}
}

/* Frames for the depths that the events of each stack are of. */
static void make_frames(struct truth_log *log)
{
	add_stacks(log, 0);
	for (size_t i = 0; i < log->events.n; i++) {
		const struct true_event *e = &log->events.v[i];
		struct true_stack *stack;

		add_stacks(log, e->stack);
		stack = &log->stacks.v[e->stack];
		/* A call's caller is one deeper than nothing. */
		if (e->depth - e->is_call < stack->lowest)
			stack->lowest = e->depth - e->is_call;
		if (e->depth - stack->lowest + 1 > (long)stack->frames.n)
			stack->frames.n = (size_t)(e->depth - stack->lowest + 1);
	}
	for (size_t i = 0; i < log->stacks.n; i++) {
		struct true_stack *stack = &log->stacks.v[i];

		/* Depths may have come before the lowest. */
		stack->frames.n += (size_t)-stack->lowest + 1;
		stack->frames.v = must(calloc(stack->frames.n, sizeof(*stack->frames.v)));
	}
}

/* Which function made a call is told by the return from it. */
static void find_callers(struct truth_log *log, uint32_t which)
{
	struct true_stack *stack = &log->stacks.v[which];
	struct true_event **pending = must(calloc(stack->frames.n + 1, sizeof(*pending)));

	for (size_t i = 0; i < log->events.n; i++) {
		struct true_event *e = &log->events.v[i];
		size_t at = (size_t)(e->depth - stack->lowest);

		if (e->stack != which)
			continue;
		if (e->is_call) {
			pending[at] = e;
			continue;
		}
		if (pending[at + 1])
			pending[at + 1]->caller = truth_log__function(log->map, e->to, true);
		else if (!stack->frames.v[at])
			/* It ran from before the first event on. */
			stack->frames.v[at] = truth_log__function(log->map, e->to, true);
		memset(&pending[at + 1], 0, (stack->frames.n - at) * sizeof(*pending));
	}
	free(pending);
}

bool truth_log__read(struct truth_log *log, const char *path, pid_t tid, struct code_map *map)
{
	FILE *f = fopen(path, "r");

	*log = (struct truth_log){.map = map};
	if (!f)
		return false;
	read_events(log, f, tid);
	fclose(f);
	make_frames(log);
	for (uint32_t i = 0; i < log->stacks.n; i++)
		find_callers(log, i);
	return true;
}

void truth_log__fini(struct truth_log *log)
{
	for (size_t i = 0; i < log->stacks.n; i++)
		VEC_FINI(&log->stacks.v[i].frames);
	VEC_FINI(&log->stacks);
	VEC_FINI(&log->events);
}

/* A coroutine that begins by a return to a function's first instruction. */
static bool begins(const struct true_stack *stack, const struct true_event *e)
{
	return e->stack && e->depth == stack->lowest;
}

static void take(struct truth_log *log, const struct true_event *e)
{
	struct true_stack *stack = &log->stacks.v[e->stack];
	const struct function **frame;

	/* Without a return it is not known what had become of the caller by tail calls. */
	if (e->is_call)
		*true_stack__frame(stack, e->depth - 1) = e->caller;
	frame = true_stack__frame(stack, e->depth);
	/* Back in a function that was interrupted at its first instruction. */
	if (!e->is_call && *frame && *frame == truth_log__function(log->map, e->to, false))
		return;
	*frame = truth_log__function(log->map, e->to, !e->is_call && !begins(stack, e));
}

struct true_stack *truth_log__go_to(struct truth_log *log, size_t event)
{
	for (; log->next <= event; log->next++)
		take(log, &log->events.v[log->next]);
	return &log->stacks.v[log->events.v[event].stack];
}
