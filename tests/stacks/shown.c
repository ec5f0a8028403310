// SPDX-License-Identifier: MIT
#include "shown.h"

#include <stdlib.h>
#include <string.h>

static void *must_zero(size_t n, size_t size)
{
	void *memory = calloc(n + 1, size);

	if (!memory)
		abort();
	return memory;
}

void shown__init(struct shown *shown, const struct truth_log *log)
{
	*shown = (struct shown){.is_decoded = must_zero(log->events.n, sizeof(bool)),
				.is_shown = must_zero(log->events.n, sizeof(bool))};
	for (size_t i = 0; i < log->stacks.n; i++) {
		size_t **began = VEC_PUSH(&shown->began);

		if (!began)
			abort();
		*began = must_zero(log->stacks.v[i].frames.n, sizeof(**began));
	}
}

void shown__fini(struct shown *shown)
{
	for (size_t i = 0; i < shown->began.n; i++)
		free(shown->began.v[i]);
	VEC_FINI(&shown->began);
	free(shown->is_decoded);
	free(shown->is_shown);
}

void shown__decoded(struct shown *shown, size_t event)
{
	shown->is_decoded[event] = true;
}

static size_t *began_at(const struct shown *shown, const struct truth_log *log, uint32_t stack,
			long depth)
{
	return &shown->began.v[stack][depth - log->stacks.v[stack].lowest];
}

static void show(struct shown *shown, size_t began)
{
	if (began)
		shown->is_shown[began - 1] = true;
}

/* Exactly one frame has ended. */
static bool has_ended_one(const struct truth_log *log, size_t event)
{
	const struct true_event *e = &log->events.v[event];

	return event && e[-1].stack == e->stack && e[-1].depth == e->depth + 1;
}

static void take(struct shown *shown, const struct truth_log *log, size_t event)
{
	const struct true_event *e = &log->events.v[event];
	size_t *began = began_at(shown, log, e->stack, e->depth);

	if (e->is_call)
		*began = event + 1;
	if (!shown->is_decoded[event])
		return;
	show(shown, began[0]);
	if (e->is_call)
		show(shown, began[-1]);
	else if (has_ended_one(log, event))
		show(shown, began[1]);
}

void shown__look(struct shown *shown, const struct truth_log *log)
{
	for (size_t i = 0; i < log->events.n; i++)
		take(shown, log, i);
	for (size_t i = 0; i < log->stacks.n; i++)
		memset(shown->began.v[i], 0, log->stacks.v[i].frames.n * sizeof(size_t));
}

void shown__go_to(struct shown *shown, const struct truth_log *log, size_t event)
{
	for (; shown->next <= event; shown->next++)
		take(shown, log, shown->next);
}

bool shown__is(const struct shown *shown, const struct truth_log *log, size_t event, long depth)
{
	size_t began = *began_at(shown, log, log->events.v[event].stack, depth);

	return !began || shown->is_shown[began - 1];
}
