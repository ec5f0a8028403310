/* SPDX-License-Identifier: MIT */
/* Looks up which thread ran on a CPU at a time, by the recording's context switches. */
#ifndef MTBPF_DECODE_SWITCHES_H
#define MTBPF_DECODE_SWITCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/recording/recording.h"

struct switches;

/* The recording's switches must not change afterwards. NULL: out of memory. */
struct switches *switches__new(const struct recording *rec);
void switches__free(struct switches *switches);

/* The switch to the thread that runs on the CPU at that time; NULL: unknown. Thread-safe. */
const struct rec_switch *switches__at(const struct switches *switches, int cpu, uint64_t time_ns);

/* Sets the time of the oldest data in the CPU's ring in this snapshot. 0 or -ENOMEM. */
int switches__set_start(struct switches *switches, int cpu, unsigned int snapshot,
			uint64_t time_ns);

/*
 * `who` is the switch to a thread at to_ns. True if the thread ran between from_ns and to_ns on
 * another CPU, whose ring lacks that time in this snapshot.
 */
bool switches__ran_unseen(const struct switches *switches, const struct rec_switch *who,
			  unsigned int snapshot, uint64_t from_ns, uint64_t to_ns);

#endif
