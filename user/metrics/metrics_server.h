/* SPDX-License-Identifier: MIT */
/* Serves GET /metrics to clients on this machine. */
#ifndef MTBPF_METRICS_METRICS_SERVER_H
#define MTBPF_METRICS_METRICS_SERVER_H

#include "metrics/metrics.h"

struct metrics_server;

/*
 * Starts a thread that answers at "unix:PATH" (a socket of mode 0660) or at "ADDRESS:PORT" (a
 * loopback address; port 0 takes a free one, which is printed). NULL with errno after a message and
 * a hint. Block signals before, so that the thread does not take them.
 */
struct metrics_server *metrics_server__start(const char *address);
/* Accepts NULL. */
void metrics_server__stop(struct metrics_server *server);

/* Sets the metrics to answer with. Does nothing if server is NULL. */
void metrics_server__set(struct metrics_server *server, const struct metrics *metrics);

#endif
