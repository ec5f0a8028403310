/* SPDX-License-Identifier: MIT */
/* Which file a probe has to be set in, so that a process that runs already hits it. */
#ifndef MTBPF_SESSION_PROBE_PROBE_FILE_H
#define MTBPF_SESSION_PROBE_PROBE_FILE_H

#include "session/probe/probe.h"
#include "target/process.h"

/*
 * On an overlay (a container's file system) the name may lead to a copy that was made since the
 * process started: a probe in it is set, and never hit. It is tried, for a moment, whether it
 * arrives in the process's memory; else probe->path becomes that of the lower layer which the
 * process still runs, and a line says so. 0; -ESTALE after a line and a hint: it is in none that
 * can be opened here; or -errno.
 */
int probe_file__settle(struct probe *probe, const struct process *process,
		       const struct mapping *mapping);

/*
 * Whether a probe that was found in the process is at the same place of the same file as another,
 * which would hit there as well. Of overlays that share a layer only a try of that tells.
 */
bool probe_file__is_same(const struct probe *other, const struct probe *found,
			 const struct process *process);

#endif
