/* SPDX-License-Identifier: MIT */
/* In which process of a cgroup a function is looked up. */
#ifndef MTBPF_SESSION_CGROUP_PROBE_H
#define MTBPF_SESSION_CGROUP_PROBE_H

#include "session/probe.h"
#include "target/cgroup.h"
#include "target/process.h"

/*
 * Opens the first process of the cgroup, by pid, that has the function (symbol NULL: the first that
 * can be looked at), and fills probe. 0, process__close() it then; or -errno after a line and a
 * hint: -ESRCH no process, -ENOENT none has it.
 */
int cgroup_probe__find(const struct cgroup *cgroup, const char *symbol, struct process *process,
		       struct probe *probe);

#endif
