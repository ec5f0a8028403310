/* SPDX-License-Identifier: MIT */
/* Between the files of the keeper: its state, a capture's way to the folder, the wait for a target.
 */
#ifndef MTBPF_KEEP_KEEPER_INTERNAL_H
#define MTBPF_KEEP_KEEPER_INTERNAL_H

#include "keep/after.h"
#include "keep/keeper.h"
#include "keep/quota.h"
#include "keep/shelf.h"
#include "metrics/metrics_server.h"
#include "session/target.h"

struct keeper {
	const struct record_options *options;
	struct shelf shelf;
	struct quota quota;
	struct after after;
	struct metrics metrics;
	struct mt_stats before; /* of targets that are gone */
	uint64_t unarmed;	/* of this one: seen so far */
	uint64_t let_pass;	/* as many as an hour may have were made: what came after them */
	bool held;		/* that is so */
	struct metrics_server *server;
	struct target target;
	struct session_start start;
	struct session_observer observer;
	int signal_fd;
	bool has_been_there; /* the target */
	bool has_settled;    /* it could be opened, a moment ago */
};

/* Writes what was captured, says so in a line, and counts it. What fails is said, and counted. */
void keeper__put(struct keeper *k, struct recording *rec, enum session_end end);
/* What the folder holds goes into the metrics. */
void keeper__count_recordings(struct keeper *k);

/* Sets k->target where it is pids: a process that is not there will not come. 0, or -errno after a
 * line and a hint. */
int keeper__check_target(struct keeper *k);
/*
 * Waits for the target, and sets k->target. 0; -EINTR: told to end meanwhile; another -errno after
 * a line and a hint.
 */
int keeper__find_target(struct keeper *k);

#endif
