/* SPDX-License-Identifier: MIT */
/* The code of processes while it can be read: files may be replaced, memory changes, all exits. */
#ifndef MTBPF_CAPTURE_CODE_LIVE_CODE_H
#define MTBPF_CAPTURE_CODE_LIVE_CODE_H

#include <sys/types.h>

#include "capture/recording/recording.h"
#include "target/cgroup.h"
#include "target/pid_set.h"

/*
 * Notes the files of these processes, or of all in the cgroup where that is not NULL, and copies
 * the code in their memory. To be called before the recording begins, as the process may be gone at
 * its end, and again when it is frozen. 0 or -errno.
 */
int live_code__take(struct recording *rec, const struct pid_set *pids, const struct cgroup *cgroup);

/*
 * Adds to rec->files what process pid has mapped executable by now and is not known yet: a file
 * that is replaced or deleted later can still be read from its descriptor. With rec->portable, the
 * separate debug files as well. 0 or -ENOMEM; nothing is added for a process that has ended.
 */
int code_files__note(struct recording *rec, pid_t pid);

/*
 * Adds to rec->data_maps the mappings without code that process pid has of the files in rec->files.
 * 0 or -ENOMEM; nothing is added for a process that has ended.
 */
int data_maps__take(struct recording *rec, pid_t pid);

#endif
