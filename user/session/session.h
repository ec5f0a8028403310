/* SPDX-License-Identifier: MIT */
/* Captures of one target: joins target, trigger and capture, from the probe to a recording in
 * memory. */
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

struct session;

struct session_start {
	pid_t pid;
	const struct cgroup *cgroup; /* instead of it: all processes in it; NULL: none */
	/* `run`: the file that pid will execute; it waits until a byte comes through go_fd. */
	const char *exec_path;
	int go_fd;
};

/*
 * Finds the target and the probe, and loads the trigger; nothing is attached yet. Both arguments
 * are the caller's, and live as long as the session. NULL with errno after a line and a hint:
 * EINVAL where the request is wrong.
 */
struct session *session__open(const struct capture_options *options,
			      const struct session_start *start);
/* Leaves nothing in the target. NULL is fine. */
void session__close(struct session *session);

/*
 * Attaches, waits, freezes, reads; the target is let go when this returns. Adds a snapshot to rec,
 * which is empty or has earlier ones of this session, and sets *end. 0, or -errno after a line and
 * a hint.
 */
int session__next(struct session *session, struct recording *rec, enum session_end *end);

/*
 * All of it, with as many snapshots as the options want. 0; -EINVAL after a line and a hint where
 * the request is wrong; another -errno likewise.
 */
int session__capture(const struct capture_options *options, const struct session_start *start,
		     struct recording *rec, enum session_end *end);

#endif
