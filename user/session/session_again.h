/* SPDX-License-Identifier: MIT */
/* A capture that goes on when its target is started again. */
#ifndef MTBPF_SESSION_SESSION_AGAIN_H
#define MTBPF_SESSION_SESSION_AGAIN_H

#include "session/session.h"

/*
 * session__capture(); where the target ends before a trigger, and was chosen by something else than
 * its pids, it is waited for and looked up again, with its probe. -ENOMSG after a line and a hint:
 * that was in vain.
 */
int session__capture_again(const struct capture_options *options, struct session_start *start,
			   struct recording *rec, enum session_end *end);

#endif
