/* SPDX-License-Identifier: MIT */
/* Frames whose calls are told before the tree is finished, and what was told. */
#ifndef MTBPF_TESTS_FRAMES_EARLY_FIXTURE_H
#define MTBPF_TESTS_FRAMES_EARLY_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "decode/branch.h"
#include "stack/frames.h"

/* A begin or an end, as a trace file has them. */
struct event {
	uint64_t time_ns;
	uint64_t ip; /* of the call: no two have the same */
	bool is_end;
	size_t place; /* in the file */
};
typedef VEC(struct event) event_vec;

struct fixture {
	struct frames frames;
	struct call_consumer consumer;
	event_vec events; /* of what was told */
	char told[256];	  /* "3 5(6 7) ": by entry_ip, what was told at once in one word */
	const struct inlined *in[32]; /* by entry_ip: the outermost inlined call around a call */
	size_t n_batches;
	int err;
};

static const struct function f = {.name = "f"}, root = {.name = "root"};

static inline void add(event_vec *events, uint64_t time_ns, uint64_t ip, bool is_end)
{
	struct event *event = VEC_PUSH(events);

	*event = (struct event){time_ns, ip, is_end, events->n - 1};
}

/* Calls in pre-order, as a trace is written. */
static inline void add_calls(event_vec *events, const struct call *calls, size_t n)
{
	const struct call *open[1024];
	size_t n_open = 0;

	for (size_t i = 0; i <= n; i++) {
		while (n_open && (i == n || open[n_open - 1]->depth >= calls[i].depth)) {
			n_open--;
			add(events, open[n_open]->end_ns, open[n_open]->entry_ip, true);
		}
		if (i == n)
			return;
		add(events, calls[i].start_ns, calls[i].entry_ip, false);
		open[n_open++] = &calls[i];
	}
}

static inline int take(void *ctx, struct call *calls, size_t n)
{
	struct fixture *fixture = ctx;

	fixture->n_batches++;
	add_calls(&fixture->events, calls, n);
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(fixture->told);

		snprintf(fixture->told + len, sizeof(fixture->told) - len, "%s%llu%s", i ? "+" : "",
			 (unsigned long long)calls[i].entry_ip, i + 1 == n ? " " : "");
	}
	return fixture->err;
}

static inline const struct inlined *outermost(void *ctx, const struct call *call)
{
	const struct fixture *fixture = ctx;

	return call->entry_ip < 32 ? fixture->in[call->entry_ip] : NULL;
}

static inline int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	frames__init(&fixture->frames);
	fixture->consumer = (struct call_consumer){take, outermost, fixture};
	fixture->frames.consumer = &fixture->consumer;
	*state = fixture;
	return 0;
}

static inline int tear_down(void **state)
{
	struct fixture *fixture = *state;

	frames__fini(&fixture->frames);
	VEC_FINI(&fixture->events);
	free(fixture);
	return 0;
}

static inline void push(struct frames *frames, uint64_t time_ns, uint64_t ip)
{
	struct call call = {.start_ns = time_ns, .entry_ip = ip, .function = &f};

	assert_non_null(frames__push(frames, &call));
}

#define EARLY_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
