/* SPDX-License-Identifier: MIT */
/* Who ran on which CPU, and when: a recording's switches, to look things up in. */
#ifndef MTBPF_DECODE_SWITCHES_H
#define MTBPF_DECODE_SWITCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/recording/recording.h"

struct switches;

/* The recording's switches must stay as they are. NULL: out of memory. */
struct switches *switches__new(const struct recording *rec);
void switches__free(struct switches *switches);

/*
 * Who runs on the CPU at that time; NULL: nobody that is known of. Any number of threads may ask.
 */
const struct rec_switch *switches__at(const struct switches *switches, int cpu, uint64_t time_ns);

/* What the CPU's ring still holds in this snapshot begins there. 0 or -ENOMEM. */
int switches__set_start(struct switches *switches, int cpu, unsigned int snapshot,
			uint64_t time_ns);

/*
 * Whether the thread, between from_ns and to_ns, when `who` switched to it, ran on a CPU whose ring
 * holds nothing of that in this snapshot any more.
 */
bool switches__ran_unseen(const struct switches *switches, const struct rec_switch *who,
			  unsigned int snapshot, uint64_t from_ns, uint64_t to_ns);

#endif
