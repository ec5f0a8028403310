/* SPDX-License-Identifier: MIT */
/* A session captures snapshots of one target: it joins target, trigger and capture, and fills a
 * recording in memory. */
#ifndef MTBPF_SESSION_SESSION_H
#define MTBPF_SESSION_SESSION_H

#include <sys/types.h>

#include "capture/recording/recording.h"
#include "session/capture_options.h"
#include "session/target.h"
#include "trigger/trigger.h"

enum session_end {
	SESSION_TRIGGERED,
	SESSION_INTERRUPTED, /* Ctrl-C, SIGTERM or SIGHUP */
	SESSION_TIMED_OUT,
	SESSION_HITS_OVER, /* -max-hits were counted */
	SESSION_EXITED,	   /* the target has exited */
	SESSION_ASKED,	   /* SIGUSR1 */
	SESSION_COMMAND_ENDED,
};

struct session;

struct session_start {
	struct target *target; /* NULL for `run`, which sets pid */
	pid_t pid;
	/* `run`: the file that pid will execute when a byte is written to go_fd. */
	const char *exec_path;
	int go_fd;
	/*
	 * With a target: a child that waits for go_fd's byte, too. The session ends when the child
	 * ends. 0: none.
	 */
	pid_t command;
	/* Record everything to a file in this folder; NULL: into rings. */
	const char *spool_dir;
	/* For `record -dir`: an observer; SIGUSR1 then takes snapshots. Otherwise NULL. */
	const struct session_observer *observer;
};

/* Receives the trigger's counters. */
struct session_observer {
	void *ctx;
	/*
	 * Called once a second and when `armed` changes. armed: the trigger was enabled during the
	 * whole time since the last call. threshold_ns: 0 without a threshold, UINT64_MAX if not
	 * learned yet.
	 */
	void (*on_counters)(void *ctx, const struct mt_stats *stats, uint64_t threshold_ns,
			    bool armed);
};

/*
 * Finds the target and the probe, and loads the trigger; attaches nothing yet. The caller keeps
 * both arguments for as long as the session lives. NULL with errno after a message and a hint;
 * EINVAL: the request is wrong.
 */
struct session *session__open(const struct capture_options *options,
			      const struct session_start *start);
/* Removes everything from the target. Accepts NULL. */
void session__close(struct session *session);

/*
 * Attaches, waits for the trigger, freezes and reads. Adds the snapshot to rec, which is empty or
 * has earlier snapshots of this session, and sets *end. Returns 0, or -errno after a message and a
 * hint.
 */
int session__next(struct session *session, struct recording *rec, enum session_end *end);

/*
 * Stalls are found per thread, but a call of a Go function can move between threads: returns
 * -EINVAL after a message and a hint if one of the probes is in a Go program; otherwise 0.
 */
struct probes;
int stall__refuse_go(const struct probes *probes);

/* For the next snapshot, the trigger is not armed before until_ns (CLOCK_MONOTONIC). */
void session__hold_fire(struct session *session, uint64_t until_ns);
/* The recorded process; one of them if there are several. */
pid_t session__pid(const struct session *session);

/*
 * Opens a session and takes as many snapshots as the options ask for. If the target exits before a
 * trigger and was chosen by name (not by pid), waits until it is back and starts again. Returns 0,
 * or -errno after a message and a hint; -EINVAL: the request is wrong; -ENOMSG: the target did not
 * come back.
 */
int session__capture_again(const struct capture_options *options, struct session_start *start,
			   struct recording *rec, enum session_end *end);

/* Explains an empty snapshot. */
#define EMPTY_SNAPSHOT_TEXT_SIZE 160

/* Formats "nothing was recorded: ..." for a process; pid 0: for several. Returns text. */
char *empty_snapshot__format(char text[static EMPTY_SNAPSHOT_TEXT_SIZE],
			     const struct recording *rec, pid_t pid);

/* Prints empty_snapshot__format()'s text as an error, with a hint. Returns -ENOMSG. */
int empty_snapshot__refuse(const struct recording *rec, pid_t pid);

#endif
