/* SPDX-License-Identifier: MIT */
/* One capture: joins target, trigger and capture, from the probe to a recording in memory. */
#ifndef MTBPF_SESSION_SESSION_H
#define MTBPF_SESSION_SESSION_H

#include <sys/types.h>

#include "capture/recording/recording.h"
#include "session/capture_options.h"
#include "target/cgroup.h"

enum session_end {
	SESSION_TRIGGERED,
	SESSION_INTERRUPTED, /* Ctrl-C */
	SESSION_TIMED_OUT,
	SESSION_EXITED, /* the target is gone */
};

struct session_start {
	pid_t pid;
	const struct cgroup *cgroup; /* instead of it: all processes in it; NULL: none */
	/* `run`: the file that pid will execute; it waits until a byte comes through go_fd. */
	const char *exec_path;
	int go_fd;
};

/*
 * Attaches, waits, freezes, reads; the target is let go when this returns. Fills rec and *end.
 * 0; -EINVAL after a line and a hint where the request is wrong; another -errno likewise.
 */
int session__capture(const struct capture_options *options, const struct session_start *start,
		     struct recording *rec, enum session_end *end);

#endif
