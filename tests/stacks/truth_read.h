/* SPDX-License-Identifier: MIT */
/* The true stack of a thread after each of its calls and returns, from a truth log. */
#ifndef MTBPF_TESTS_STACKS_TRUTH_READ_H
#define MTBPF_TESTS_STACKS_TRUTH_READ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/code_map.h"
#include "util/vec.h"

struct true_event {
	uint64_t time_ns;
	uint64_t to;
	long depth;
	uint32_t stack; /* which of the thread's stacks it is on */
	bool is_call;
	const struct function *caller; /* of a call that returned: what it returned to; or NULL */
};

/* frames.v[i] runs at depth lowest + i. NULL: not known yet. */
struct true_stack {
	VEC(const struct function *) frames;
	long lowest;
};

/* Replays the events. */
struct truth_log {
	struct code_map *map; /* not owned */
	VEC(struct true_event) events;
	VEC(struct true_stack) stacks; /* the thread's own, and those of coroutines */
	size_t next;
};

/* The log's events of one thread. False where it cannot be read. */
bool truth_log__read(struct truth_log *log, const char *path, pid_t tid, struct code_map *map);
void truth_log__fini(struct truth_log *log);

/* The function that holds a return address: a label of assembly may stand behind the call. */
const struct function *truth_log__function(struct code_map *map, uint64_t ip, bool is_return);

/* The kernel has put its address where a handler returns to. */
bool truth_log__is_restorer(const struct function *function);

/* Takes the events up to this one, and returns the stack that it is on. */
struct true_stack *truth_log__go_to(struct truth_log *log, size_t event);
/* Its frame at a depth. */
const struct function **true_stack__frame(struct true_stack *stack, long depth);

#endif
