/* SPDX-License-Identifier: MIT */
/* A target that has a name may end and be started again: it is waited for. */
#ifndef MTBPF_SESSION_TARGET_WAIT_H
#define MTBPF_SESSION_TARGET_WAIT_H

#include <stdint.h>

#include "session/target.h"

/*
 * Looks it up again, until a process of it is there; says so if that takes time. 0; -EINTR where
 * signal_fd is readable meanwhile, which is left to be read; -ETIME: it is deadline_ns of
 * CLOCK_MONOTONIC (UINT64_MAX: never); another -errno after a line and a hint: -ENOTUNIQ.
 */
int target__wait(struct target *target, const struct target_options *options, int signal_fd,
		 uint64_t deadline_ns);

#endif
