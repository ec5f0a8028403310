/* SPDX-License-Identifier: MIT */
/* The code of processes while it can be read: files may be replaced, memory changes, all exits. */
#ifndef MTBPF_CAPTURE_CODE_LIVE_CODE_H
#define MTBPF_CAPTURE_CODE_LIVE_CODE_H

#include "capture/recording/recording.h"
#include "target/cgroup.h"
#include "target/pid_set.h"

/*
 * Notes the files of these processes, or of all in the cgroup where that is not NULL, and copies
 * the code in their memory. To be called before the recording begins, as the process may be gone at
 * its end, and again when it is frozen. 0 or -errno.
 */
int live_code__take(struct recording *rec, const struct pid_set *pids, const struct cgroup *cgroup);

#endif
