/* SPDX-License-Identifier: MIT */
/* Shared by goroutines.c and goroutine_shown.c, which make a goroutine's call tree. */
#ifndef MTBPF_SAMPLED_GOROUTINES_INTERNAL_H
#define MTBPF_SAMPLED_GOROUTINES_INTERNAL_H

#include <string.h>

#include "capture/recording/recording.h"
#include "stack/stack.h"
#include "target/code_map.h"
#include "util/vec.h"

/* Stop-the-world: from start_ns on no goroutine is scheduled, from still_ns on none runs. */
struct world_stop {
	uint32_t tgid;
	uint64_t start_ns, still_ns, end_ns; /* ascending */
};

struct thread_trees;

/* A thread's calls[index]. */
struct shown {
	const struct call_tree *thread;
	size_t index;
	uint64_t start_ns;
};

struct goroutine_calls {
	VEC(const struct mt_entry *) all;
	VEC(const struct mt_entry *) ready;    /* who made whom ready; in the order of `all` */
	VEC(const struct rec_sample *) stacks; /* by thread and time */
	VEC(const struct rec_sample *) parks;  /* where goroutines began to wait; as `stacks` */
	VEC(struct world_stop) stops;	       /* by process and time */
	/* Slices of threads that show calls of one function of a process, by time. */
	struct {
		uint32_t tgid;
		const struct function *function;
		VEC(struct shown) all;
		bool has_others; /* some belong to calls that are not in the log */
	} shown;
};

/* The first and the last thread of a call: the scheduler may move the goroutine in between. */
struct ran_in {
	pid_t first, last;
};

/* The state while one goroutine's log entries become its call tree. */
struct goroutine {
	const struct recording *rec;
	struct goroutine_calls *calls;
	const struct thread_trees *threads;
	uint32_t number;	   /* mt_entry.goroutine */
	VEC(struct call) exact;	   /* the calls that were measured; the tree has more */
	VEC(struct ran_in) ran_in; /* the threads of each of `exact` */
	VEC(const char *) reasons; /* for each of `exact`: what a park waits for, or NULL */
	VEC(uint32_t) at;	   /* in the tree: the calls that are open, by depth */
	uint64_t noted_ns;
	struct call_tree tree;
	struct code_map *map;
	size_t next_map;    /* see images__apply() */
	VEC(uint32_t) open; /* indices in `exact` of the open calls, outermost first */
};

/* Appends the call in pre-order. 0 or -ENOMEM. */
int goroutine__emit(struct goroutine *g, const struct call *call, uint32_t depth);
/* Notes what the call that was added last waits for; NULL: not known. The text must outlive the
 * tree. 0 or -ENOMEM. */
int goroutine__emit_wait(struct goroutine *g, const char *text);

/*
 * Fills [start_ns, end_ns) of exact.v[call], in which it runs no exact callee: with calls that
 * threads show, with stop-the-world, and the rest as not recorded. ran_in: the goroutine's threads
 * at start_ns and end_ns. 0 or -ENOMEM.
 */
int goroutine__fill_gap(struct goroutine *g, uint32_t call, struct ran_in ran_in, uint64_t start_ns,
			uint64_t end_ns);

/* True for the function with this name, and its variants: "runtime.mcall.abi0". */
bool go_function__is(const struct function *function, const char *name);
/*
 * True for the runtime's functions that look for another goroutine. They run on the thread's own
 * stack, whose frame pointers lead on to the goroutine that it left.
 */
bool go_function__is_scheduler(const struct function *function);

#define PARK "runtime.gopark"

static inline bool is_park(const struct call *call)
{
	return call->function && !strcmp(call->function->name, PARK);
}

#endif
