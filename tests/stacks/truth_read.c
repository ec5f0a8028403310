// SPDX-License-Identifier: MIT
#include "truth_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct function *true_stack__function(struct code_map *map, uint64_t ip, bool is_return)
{
	struct code_place place;

	if (!code_map__find(map, ip, &place))
		return NULL;
	/* A signal handler returns to what nothing has called. */
	if (is_return && place.entry == ip && strcmp(place.function->name, "__restore_rt"))
		code_map__find(map, ip - 1, &place);
	return place.function;
}

static bool read_events(struct true_stack *stack, FILE *f, pid_t tid)
{
	char *line = NULL, kind[16];
	size_t cap = 0;
	struct true_event e = {0};
	pid_t line_tid;

	while (getline(&line, &cap, f) > 0) {
		struct true_event *event;

		if (sscanf(line, "%d %" SCNu64 " %15s %" SCNx64 " %ld", &line_tid, &e.time_ns, kind,
			   &e.to, &e.depth) != 5 ||
		    line_tid != tid)
			continue;
		e.is_call = !strcmp(kind, "call");
		if (!e.is_call && strcmp(kind, "return"))
			continue;
		event = VEC_PUSH(&stack->events);
		if (!event)
			abort();
		*event = e;
	}
	free(line);
	return true;
}

/* Frames for the depths that the events are of. */
static void make_frames(struct true_stack *stack)
{
	long lowest = 0, highest = 0;

	for (size_t i = 0; i < stack->events.n; i++) {
		const struct true_event *e = &stack->events.v[i];

		/* A call's caller is one deeper than nothing. */
		if (e->depth - e->is_call < lowest)
			lowest = e->depth - e->is_call;
		if (e->depth > highest)
			highest = e->depth;
	}
	stack->lowest = lowest;
	stack->frames.n = stack->frames.cap = (size_t)(highest - lowest + 1);
	stack->frames.v = calloc(stack->frames.n, sizeof(*stack->frames.v));
	if (!stack->frames.v)
		abort();
}

static const struct function **frame(struct true_stack *stack, long depth)
{
	return &stack->frames.v[depth - stack->lowest];
}

/* Which function made a call is told by the return from it. */
static void find_callers(struct true_stack *stack)
{
	struct true_event **pending = calloc(stack->frames.n, sizeof(*pending));

	if (!pending)
		abort();
	for (size_t i = 0; i < stack->events.n; i++) {
		struct true_event *e = &stack->events.v[i];
		size_t at = (size_t)(e->depth - stack->lowest);

		if (e->is_call) {
			pending[at] = e;
			continue;
		}
		if (at + 1 >= stack->frames.n)
			continue;
		if (pending[at + 1])
			pending[at + 1]->caller = true_stack__function(stack->map, e->to, true);
		else if (!stack->frames.v[at])
			/* It ran from before the first event on. */
			stack->frames.v[at] = true_stack__function(stack->map, e->to, true);
		memset(&pending[at + 1], 0, (stack->frames.n - at - 1) * sizeof(*pending));
	}
	free(pending);
}

bool true_stack__read(struct true_stack *stack, const char *path, pid_t tid, struct code_map *map)
{
	FILE *f = fopen(path, "r");

	*stack = (struct true_stack){.map = map};
	if (!f || !read_events(stack, f, tid))
		return false;
	fclose(f);
	make_frames(stack);
	find_callers(stack);
	return true;
}

void true_stack__fini(struct true_stack *stack)
{
	VEC_FINI(&stack->events);
	VEC_FINI(&stack->frames);
}

static void take(struct true_stack *stack, const struct true_event *e)
{
	/* Without a return it is not known what had become of the caller by tail calls. */
	if (e->is_call)
		*frame(stack, e->depth - 1) = e->caller;
	*frame(stack, e->depth) = true_stack__function(stack->map, e->to, !e->is_call);
}

void true_stack__go_to(struct true_stack *stack, size_t event)
{
	for (; stack->next <= event; stack->next++)
		take(stack, &stack->events.v[stack->next]);
}
