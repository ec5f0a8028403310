/* SPDX-License-Identifier: MIT */
/* A listening socket that can only be reached from this machine. */
#ifndef MTBPF_METRICS_LISTEN_H
#define MTBPF_METRICS_LISTEN_H

#include <limits.h>

struct listener {
	int fd;
	char path[108]; /* of a unix socket, removed at the end; "" for a port */
	char url[160];	/* for messages */
};

/* address: "unix:PATH" or "ADDRESS:PORT". 0, or -errno after a message and a hint (-EINVAL:
 * neither).
 */
int listener__open(struct listener *listener, const char *address);
/* Closes it (fd -1 if another owner closes it) and removes a unix socket's file. */
void listener__close(struct listener *listener);

#endif
