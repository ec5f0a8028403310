/* SPDX-License-Identifier: MIT */
/* -also: functions whose calls are recorded one by one, though they trigger nothing. */
#ifndef MTBPF_SESSION_PROBE_ALSO_H
#define MTBPF_SESSION_PROBE_ALSO_H

#include "session/probe/probes.h"

/* So many functions at most: each call of each of them costs the target two probes. */
#define ALSO_MAX 64

/*
 * Finds the functions that the texts mean, as probes__find() does, but all that a glob matches.
 * Those in `have`, whose calls are recorded anyway, are left out. `returns` is enum return_probes.
 * 0, or -errno after a line and a hint: -EINVAL what is no function as a whole, or too many.
 */
int also__find(struct probes *also, const struct option_list *texts, const struct probe_source *in,
	       const struct probes *have, int returns);

#endif
