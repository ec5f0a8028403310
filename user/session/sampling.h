/* SPDX-License-Identifier: MIT */
/* What BPF adds to samples: joins the trigger's logs with a recording. */
#ifndef MTBPF_SESSION_SAMPLING_H
#define MTBPF_SESSION_SAMPLING_H

#include "capture/recording/recording.h"
#include "trigger/sched_log.h"

/*
 * Adds to rec, up to its freeze, who woke and who replaced its threads, and their names. A log that
 * is NULL has nothing. 0 or -errno.
 */
int sampling__take_scheds(struct sched_log *log, struct recording *rec);

#endif
