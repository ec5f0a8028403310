/* SPDX-License-Identifier: MIT */
/* In which of several processes a function is looked up. */
#ifndef MTBPF_SESSION_PROBE_FIRST_PROBE_H
#define MTBPF_SESSION_PROBE_FIRST_PROBE_H

#include "session/probe/probes.h"
#include "session/target.h"
#include "target/process.h"

/*
 * Opens the target's first process, by pid, that has the function (symbol NULL: the first that
 * can be looked at), and fills probe. 0, process__close() it then; or -errno after a line and a
 * hint: -ESRCH no process, -ENOENT none has it.
 */
int first_probe__find(const struct target *target, const char *symbol, struct process *process,
		      struct probe *probe);
/* The same of several functions: the process is the first that has the first of them. */
int first_probe__find_all(const struct target *target, const struct selectors *selectors,
			  struct process *process, struct probes *probes);

#endif
