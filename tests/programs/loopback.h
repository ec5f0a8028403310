/* SPDX-License-Identifier: MIT */
/* A TCP connection over loopback, within one process. */
#ifndef MTBPF_TESTS_LOOPBACK_H
#define MTBPF_TESTS_LOOPBACK_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* Sets both ends. Returns the second, or a negative number. */
static inline int connect_tcp(int tcp[static 2])
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	tcp[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &size) ||
	    connect(tcp[0], (struct sockaddr *)&address, size))
		return -1;
	tcp[1] = accept(listener, NULL, NULL);
	close(listener);
	return tcp[1];
}

#endif
