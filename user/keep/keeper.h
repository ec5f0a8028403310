/* SPDX-License-Identifier: MIT */
/* Takes captures for weeks, one after another, and keeps the newest. */
#ifndef MTBPF_KEEP_KEEPER_H
#define MTBPF_KEEP_KEEPER_H

#include "keep/keep_options.h"
#include "session/session.h"

/*
 * Runs until SIGINT, SIGTERM or SIGHUP, the timeout, or, with -pid, the end of the processes. A
 * target with a name is waited for, at the start and after each exit. 0, or -errno after a message
 * and a hint.
 */
int keeper__run(const struct record_options *options);

#endif
