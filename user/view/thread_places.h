/* SPDX-License-Identifier: MIT */
/* A process's threads at a stall: their places, and the threads that they waited for. */
#ifndef MTBPF_VIEW_THREAD_PLACES_H
#define MTBPF_VIEW_THREAD_PLACES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "stack/call_tree.h"
#include "util/vec.h"

struct cJSON;

enum thread_doing {
	THREAD_WAITS,
	THREAD_RUNS,
	THREAD_READY, /* it could run */
	THREAD_STOPPED,
};

#define THREAD_WAITS_FOR_SIZE 256

struct thread_place {
	pid_t tid;
	const char *comm;
	enum thread_doing doing;
	bool is_stalled;
	char waits_for[THREAD_WAITS_FOR_SIZE]; /* "futex", "read of pipe:[7] (fd 5)"; "": not known
						*/
	pid_t owner;			       /* it waits for this thread's mutex; 0: not known */
	size_t first_name, n_names;	       /* in names, the innermost function first */
	bool is_whole;			       /* the last name is the outermost function */
};

struct thread_places {
	VEC(struct thread_place) all;
	VEC(const char *) names; /* the text stays with whoever added it */
};

void thread_places__fini(struct thread_places *places);

/*
 * Finds a deadlock: a ring of threads in which each waits for a mutex of the next one. Stores their
 * indices in `ring`, which must have room for all threads. Returns their number; 0: no deadlock.
 */
size_t thread_places__deadlock(const struct thread_places *places, size_t *ring);

/* Prints one line per place; nothing without places. */
void thread_places__print(FILE *out, const struct thread_places *places);
/* Adds "threads" and "deadlock" to the object; nothing without places. */
void thread_places__add_json(struct cJSON *object, const struct thread_places *places);
/* Prints an object on one line, for a hit without a report. 0 or -ENOMEM. */
int thread_places__print_json(FILE *out, const struct thread_places *places,
			      const struct hit_mark *hit);

#endif
