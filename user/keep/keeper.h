/* SPDX-License-Identifier: MIT */
/* Takes captures for weeks, one after another, and keeps the newest. */
#ifndef MTBPF_KEEP_KEEPER_H
#define MTBPF_KEEP_KEEPER_H

#include <stddef.h>
#include <stdint.h>

#include "keep/keep_options.h"
#include "session/session.h"

/*
 * Runs until SIGINT, SIGTERM or SIGHUP, the timeout, or, with -pid, the end of the processes. A
 * target with a name is waited for, at the start and after each exit. 0, or -errno after a message
 * and a hint.
 */
int keeper__run(const struct record_options *options);

/* Sets defaults and checks combinations. 0, or -EINVAL after a message and a hint. */
int keep_options__check(struct record_options *options, const char *command);

/* Limits the captures per hour: a token can be spent again an hour after it was spent. */

#define QUOTA_SPAN_NS 3600000000000ull

struct quota {
	uint64_t *spent_ns; /* a ring: when each token was last spent; 0: never */
	size_t tokens;	    /* 0: no limit */
	size_t oldest;
};

/* 0 or -ENOMEM. */
int quota__init(struct quota *quota, size_t per_hour);
void quota__fini(struct quota *quota);

/* When the next token can be spent, on the clock of quota__spend(); 0: at once. */
uint64_t quota__next_ns(const struct quota *quota);
/* Spends a token. now_ns must not decrease from call to call. */
void quota__spend(struct quota *quota, uint64_t now_ns);

#endif
