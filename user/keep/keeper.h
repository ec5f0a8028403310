/* SPDX-License-Identifier: MIT */
/* Captures for weeks: one after another, the newest of which are kept. */
#ifndef MTBPF_KEEP_KEEPER_H
#define MTBPF_KEEP_KEEPER_H

#include "keep/keep_options.h"
#include "session/session.h"

/*
 * Until SIGINT, SIGTERM or SIGHUP, the timeout, or, of -pid, the end of the processes. What has a
 * name is waited for, and goes on when it is started again. 0, or -errno after a line and a hint.
 */
int keeper__run(const struct record_options *options);

#endif
