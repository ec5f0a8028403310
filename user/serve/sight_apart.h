/* SPDX-License-Identifier: MIT */
/* A trace is what others wrote: it is read by a process without rights. */
#ifndef MTBPF_SERVE_SIGHT_APART_H
#define MTBPF_SERVE_SIGHT_APART_H

#include "serve/deep_link.h"

/*
 * sight__find(), by a process that is confined as far as the kernel knows how. -EBADMSG, too, where
 * the trace makes that crash; -errno where it cannot be started.
 */
int sight__find_apart(struct sight *sight, int trace_fd);

#endif
