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
	bool is_call;
	const struct function *caller; /* of a call that returned: what it returned to; or NULL */
};

/* Replays the events: stack.v[i] runs at depth lowest + i. NULL: not known yet. */
struct true_stack {
	struct code_map *map; /* not owned */
	VEC(struct true_event) events;
	VEC(const struct function *) frames;
	long lowest;
	size_t next;
};

/* The log's events of one thread. False where it cannot be read. */
bool true_stack__read(struct true_stack *stack, const char *path, pid_t tid, struct code_map *map);
void true_stack__fini(struct true_stack *stack);

/* The function that holds a return address: a label of assembly may stand behind the call. */
const struct function *true_stack__function(struct code_map *map, uint64_t ip, bool is_return);

/* Takes the events up to this one, which is the thread's last. */
void true_stack__go_to(struct true_stack *stack, size_t event);

#endif
