/* SPDX-License-Identifier: MIT */
/* Shared by the keeper's files: its state, storing a capture, waiting for the target. */
#ifndef MTBPF_KEEP_KEEPER_INTERNAL_H
#define MTBPF_KEEP_KEEPER_INTERNAL_H

#include "keep/after.h"
#include "keep/keep_options.h"
#include "keep/quota.h"
#include "keep/folder.h"
#include "metrics/metrics.h"
#include "session/session.h"
#include "session/target.h"

struct keeper {
	const struct record_options *options;
	struct folder folder;
	struct quota quota;
	struct after after;
	struct metrics metrics;
	struct mt_stats before; /* totals of earlier targets */
	uint64_t unarmed;	/* the current target's value at the last look */
	uint64_t let_pass;	/* triggers that came while -max-per-hour was used up */
	bool held;		/* -max-per-hour is used up */
	struct metrics_server *server;
	struct target target;
	struct session_start start;
	struct session_observer observer;
	int signal_fd;
	bool has_been_there; /* the target has been found once */
	bool has_settled;    /* a session could be opened just before */
};

/* Writes the capture to the folder and says so. Counts it, or prints and counts the error. */
void keeper__put(struct keeper *k, struct recording *rec, enum session_end end);
/* Updates the metrics with the folder's content. */
void keeper__count_recordings(struct keeper *k);

/* Sets k->target for -pid: these processes must exist now. 0, or -errno after a message and a
 * hint. */
int keeper__check_target(struct keeper *k);
/*
 * Waits for the target and sets k->target. 0; -EINTR if mtbpf was told to end; or another -errno
 * after a message and a hint.
 */
int keeper__find_target(struct keeper *k);

#endif
