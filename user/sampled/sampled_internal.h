/* SPDX-License-Identifier: MIT */
/* Between the files that make one thread's tree. */
#ifndef MTBPF_SAMPLED_SAMPLED_INTERNAL_H
#define MTBPF_SAMPLED_SAMPLED_INTERNAL_H

#include <stdbool.h>

#include "decode/images.h"
#include "sampled/events.h"
#include "sampled/slices.h"

struct known_probe {
	uint64_t ip;
	bool is_of_calls; /* each is recorded from its begin to its end */
	uint64_t end_ns;  /* of the latest */
	/* As the maps were when they had been followed so far. */
	const struct function *function;
	uint64_t entry; /* of that function */
	size_t next_map;
};

/* One thread's way from its events to its tree. */
struct sampled_thread {
	const struct recording *rec;
	struct images *images;
	struct meter *meter; /* of samples */
	struct code_map *map;
	size_t next_map; /* see images__apply() */
	pid_t pid, tid;
	int cpu;	    /* that it had last, as switches tell; -1: not known */
	size_t next_hit;    /* of the recording: the end of the snapshot that is read */
	struct span region; /* that is read; none behind a snapshot that it was over before */
	const struct function *probed; /* NULL: nothing is, or it is not known */
	uint64_t returns_to;	       /* where it returns to, as a rule; 0: not known */
	struct slices slices;
	struct call_tree tree;
	VEC(struct seen) stack;
	VEC(struct known_probe) probes; /* of all its entries */
};

/* NULL where no code is known. */
const struct function *sampled_thread__function_at(struct sampled_thread *t, uint64_t ip);
/* Whether it is the address that a return probe puts in the place of the caller's. */
bool sampled_thread__is_trampoline(struct sampled_thread *t, uint64_t ip);

/* sampled_sched.c: what the scheduler did, and by whom it was done. */
void sampled_thread__on_sched(struct sampled_thread *t, const struct rec_sched *sched);
/* It runs: of a wait for a CPU that has ended, what a quota took. */
void sampled_thread__take_throttled(struct sampled_thread *t, uint64_t now_ns);
void sampled_thread__on_by(struct sampled_thread *t, const struct mt_sched *sched);
/* Of this thread: while it ran. */
void sampled_thread__on_taken(struct sampled_thread *t, const struct rec_taken *taken);

/* sampled_entries.c: the functions that were probed. 0 or -ENOMEM. */
int sampled_thread__note_probes(struct sampled_thread *t, const struct event *events, size_t n);
/* True if each call of the function is recorded from its begin to its end. */
bool sampled_thread__has_calls(struct sampled_thread *t, const struct function *function);
/*
 * Drops the innermost frame of t->stack where that is one that has not begun, or is over: the probe
 * at its begin, or its end, is being handled.
 */
void sampled_thread__drop_at_probe(struct sampled_thread *t, uint64_t time_ns);
void sampled_thread__on_entry(struct sampled_thread *t, const struct mt_entry *entry);

#endif
