/* SPDX-License-Identifier: MIT */
/* What a session with -source sample does beyond others. */
#ifndef MTBPF_SESSION_SAMPLING_H
#define MTBPF_SESSION_SAMPLING_H

#include "capture/recording/recording.h"
#include "capture/sample/sample_cost.h"
#include "session/overhead.h"
#include "session/sample_options.h"
#include "trigger/recorder.h"

/*
 * How often to sample: -sample-rate, or what -max-overhead leaves; by default 1000 times a second,
 * or fewer where these would cost 5 % of a thread's time.
 */
unsigned int sampling__rate(const struct sample_options *options, const struct sample_cost *cost,
			    const struct sample_load *load);

/*
 * Measures that, with so many bytes of the stack, and the kernel's part, of processes that run
 * already (none: a program that does not yet); and says the rate, and what it costs: both into
 * *overhead, which is zeroed. 0, or -errno after a line and a hint.
 */
int sampling__choose_rate(const struct sample_options *options, uint32_t stack, bool kernel,
			  const struct pid_set *pids, struct overhead *overhead);

/* Whether there is a rate that keeps -max-overhead; and what is said where there is none. */
bool sampling__is_kept(const struct sample_options *options, const struct sample_cost *cost,
		       const struct sample_load *load);
void sampling__warn_broken(const struct sample_options *options);

/* Makes of the calls that the CPU noted the stacks that they mean. 0 or -ENOMEM. */
int sampling__settle_calls(struct recording *rec);

/*
 * Adds to rec, up to its freeze, when its threads ran, who woke and who replaced them, what system
 * calls they left their CPUs in, the files of these, and what interrupts took. The stacks of
 * switches, of the samples from first_sample on, get the times of these. Of a recorder that is
 * NULL: nothing. 0 or -errno.
 */
int sampling__take_records(struct recorder *recorder, struct recording *rec, size_t first_sample);

#endif
