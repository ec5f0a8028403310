/* SPDX-License-Identifier: MIT */
/* Reads a trace in a process without rights, since the trace may be hostile. */
#ifndef MTBPF_SERVE_SIGHT_APART_H
#define MTBPF_SERVE_SIGHT_APART_H

#include "serve/deep_link.h"

/*
 * sight__find() in a process that is confined as far as the kernel supports it. Also -EBADMSG if
 * that process crashes, or -errno if it cannot be started.
 */
int sight__find_apart(struct sight *sight, int trace_fd);

#endif
