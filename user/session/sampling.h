/* SPDX-License-Identifier: MIT */
/* What a session with -source sample does beyond others. */
#ifndef MTBPF_SESSION_SAMPLING_H
#define MTBPF_SESSION_SAMPLING_H

#include "capture/recording/recording.h"
#include "trigger/recorder.h"

/* Makes of the calls that the CPU noted the stacks that they mean. 0 or -ENOMEM. */
int sampling__settle_calls(struct recording *rec);

/*
 * Adds to rec, up to its freeze, when its threads ran, who woke and who replaced them, what system
 * calls they left their CPUs in, the files of these, and what interrupts, quotas and the hypervisor
 * took. The stacks of switches, of the samples from first_sample on, get the times of these. Of a
 * recorder that is NULL: nothing. 0 or -errno.
 */
int sampling__take_records(struct recorder *recorder, struct recording *rec, size_t first_sample);

#endif
