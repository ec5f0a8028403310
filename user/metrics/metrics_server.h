/* SPDX-License-Identifier: MIT */
/* GET /metrics, for those on this machine. */
#ifndef MTBPF_METRICS_METRICS_SERVER_H
#define MTBPF_METRICS_METRICS_SERVER_H

#include "metrics/metrics.h"

struct metrics_server;

/*
 * Answers from now on, in a thread of its own: at "unix:PATH", a socket of mode 0660, or at
 * "ADDRESS:PORT", a loopback address; port 0 takes a free one, which is told. NULL with errno after
 * a line and a hint. Signals are to be held before: the thread takes none.
 */
struct metrics_server *metrics_server__start(const char *address);
/* NULL is fine. */
void metrics_server__stop(struct metrics_server *server);

/* What it answers from now on. Nothing for NULL. */
void metrics_server__set(struct metrics_server *server, const struct metrics *metrics);

#endif
