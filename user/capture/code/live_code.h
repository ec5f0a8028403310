/* SPDX-License-Identifier: MIT */
/* The code of processes while it can be read: files may be replaced, memory changes, all exits. */
#ifndef MTBPF_CAPTURE_CODE_LIVE_CODE_H
#define MTBPF_CAPTURE_CODE_LIVE_CODE_H

#include "capture/recording/recording.h"
#include "target/cgroup.h"

/*
 * Notes the files of process pid, or of all in the cgroup where that is not NULL, and copies the
 * code in its memory. To be called before the recording begins, as the process may be gone at its
 * end, and again when it is frozen. 0 or -errno.
 */
int live_code__take(struct recording *rec, pid_t pid, const struct cgroup *cgroup);

#endif
