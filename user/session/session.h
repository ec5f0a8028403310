/* SPDX-License-Identifier: MIT */
/* Captures of one target: joins target, trigger and capture, from the probe to a recording in
 * memory. */
#ifndef MTBPF_SESSION_SESSION_H
#define MTBPF_SESSION_SESSION_H

#include <sys/types.h>

#include "capture/recording/recording.h"
#include "session/capture_options.h"
#include "session/target.h"
#include "trigger/trigger.h"

enum session_end {
	SESSION_TRIGGERED,
	SESSION_INTERRUPTED, /* Ctrl-C */
	SESSION_TIMED_OUT,
	SESSION_HITS_OVER, /* as many as were to be looked at */
	SESSION_EXITED,	   /* the target is gone */
	SESSION_ASKED,	   /* SIGUSR1 */
	SESSION_COMMAND_ENDED,
};

struct session;

struct session_start {
	struct target *target; /* NULL: `run`, and then: */
	pid_t pid;
	/* `run`: the file that pid will execute; it waits until a byte comes through go_fd. */
	const char *exec_path;
	int go_fd;
	/* With a target: a child that waits likewise, and whose end ends the session; 0: none. */
	pid_t command;
	/* All of it is recorded, into a file of this folder's file system; NULL: rings. */
	const char *spool_dir;
	/* `record -dir`: SIGUSR1 asks for a snapshot; NULL: it does not. */
	const struct session_observer *observer;
};

/* Who is told of the trigger's counters. */
struct session_observer {
	void *ctx;
	/*
	 * Once a second, and where `armed` changes: whether a hit could have triggered till now.
	 * threshold_ns: 0 none, UINT64_MAX not learned yet.
	 */
	void (*on_counters)(void *ctx, const struct mt_stats *stats, uint64_t threshold_ns,
			    bool armed);
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
 * -EINVAL after a line and a hint if calls of these functions are goroutines', of which no thread
 * can be said to be in one for long. 0 otherwise.
 */
struct probes;
int stall__refuse_go(const struct probes *probes);

/* The next snapshot's trigger does not come before that, of CLOCK_MONOTONIC. */
void session__hold_fire(struct session *session, uint64_t until_ns);
/* The process that is recorded, or one of the cgroup's. */
pid_t session__pid(const struct session *session);

/*
 * All of it, with as many snapshots as the options want. 0; -EINVAL after a line and a hint where
 * the request is wrong; another -errno likewise.
 */
int session__capture(const struct capture_options *options, const struct session_start *start,
		     struct recording *rec, enum session_end *end);

/*
 * session__capture(); where the target ends before a trigger, and was chosen by something else than
 * its pids, it is waited for and looked up again, with its probe. -ENOMSG after a line and a hint:
 * that was in vain.
 */
int session__capture_again(const struct capture_options *options, struct session_start *start,
			   struct recording *rec, enum session_end *end);

/* Explains a snapshot that holds nothing. */
#define EMPTY_SNAPSHOT_TEXT_SIZE 160

/* "nothing was recorded: ...", of that process, or, 0, of several. The text. */
char *empty_snapshot__format(char text[static EMPTY_SNAPSHOT_TEXT_SIZE],
			     const struct recording *rec, pid_t pid);

/* The same as an error, with a hint. -ENOMSG. */
int empty_snapshot__refuse(const struct recording *rec, pid_t pid);

#endif
