/* SPDX-License-Identifier: MIT */
/* Between the files that make one thread's tree. */
#ifndef MTBPF_SAMPLED_SAMPLED_INTERNAL_H
#define MTBPF_SAMPLED_SAMPLED_INTERNAL_H

#include <stdbool.h>

#include "decode/images.h"
#include "sampled/events.h"
#include "sampled/slices.h"

/* One thread's way from its events to its tree. */
struct sampled_thread {
	const struct recording *rec;
	struct images *images;
	struct code_map *map;
	size_t next_map; /* see images__apply() */
	pid_t pid, tid;
	size_t next_hit;	       /* of the recording: the end of the snapshot that is read */
	const struct function *probed; /* NULL: nothing is, or it is not known */
	uint64_t returns_to;	       /* where it returns to, as a rule; 0: not known */
	struct slices slices;
	struct call_tree tree;
	VEC(struct seen) stack;
	VEC(uint64_t) calls; /* probes of functions of which each call is recorded */
};

/* NULL where no code is known. */
const struct function *sampled_thread__function_at(struct sampled_thread *t, uint64_t ip);
/* Whether it is the address that a return probe puts in the place of the caller's. */
bool sampled_thread__is_trampoline(struct sampled_thread *t, uint64_t ip);

/* sampled_sched.c: what the scheduler did, and by whom it was done. */
void sampled_thread__on_sched(struct sampled_thread *t, const struct rec_sched *sched);
void sampled_thread__on_by(struct sampled_thread *t, const struct mt_sched *sched);

/* sampled_entries.c: the functions of which each call is recorded. 0 or -ENOMEM. */
int sampled_thread__note_calls(struct sampled_thread *t, const struct event *events, size_t n);
void sampled_thread__on_entry(struct sampled_thread *t, const struct mt_entry *entry);

#endif
