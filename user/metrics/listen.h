/* SPDX-License-Identifier: MIT */
/* A listening socket that only this machine reaches. */
#ifndef MTBPF_METRICS_LISTEN_H
#define MTBPF_METRICS_LISTEN_H

#include <limits.h>

struct listener {
	int fd;
	char path[108]; /* of a unix socket, to be removed at the end; "" for a port */
	char url[160];	/* for people */
};

/* "unix:PATH" or "ADDRESS:PORT". 0, or -errno after a line and a hint; -EINVAL: it is neither. */
int listener__open(struct listener *listener, const char *address);
/* Removes a unix socket's file; the descriptor may have been closed by who took it over (-1). */
void listener__close(struct listener *listener);

#endif
