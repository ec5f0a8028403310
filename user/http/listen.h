/* SPDX-License-Identifier: MIT */
/* A listening socket that can only be reached from this machine. */
#ifndef MTBPF_HTTP_LISTEN_H
#define MTBPF_HTTP_LISTEN_H

#include <stdint.h>

struct listener {
	int fd;
	uint16_t port;	/* 0: a unix socket */
	char path[108]; /* of a unix socket, which listener__close() removes; "" for a port */
	char url[128];	/* "http://127.0.0.1:9464" or "unix:/run/mtbpf.sock" */
};

/*
 * address: "unix:PATH" (mode 0660), or "ADDRESS:PORT" with a loopback address; port 0 takes a free
 * one. 0; -EINVAL: neither; or another -errno. Prints nothing.
 */
int listener__open(struct listener *listener, const char *address);
/* Also removes a unix socket's file. fd -1: another owner closes it. */
void listener__close(struct listener *listener);

#endif
