// SPDX-License-Identifier: MIT
#include "http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 16

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
};

static bool parse_port(const char *text, in_port_t *port)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	*port = htons((in_port_t)value);
	return *text >= '0' && *text <= '9' && !*end && value <= 65535;
}

static bool parse_v4(const char *host, const char *port, struct sockaddr_in *v4)
{
	v4->sin_family = AF_INET;
	if (!strcmp(host, "localhost"))
		host = "127.0.0.1";
	return inet_pton(AF_INET, host, &v4->sin_addr) == 1 && parse_port(port, &v4->sin_port) &&
	       ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

static bool parse_v6(const char *host, const char *port, struct sockaddr_in6 *v6)
{
	v6->sin6_family = AF_INET6;
	return !strcmp(host, "[::1]") && inet_pton(AF_INET6, "::1", &v6->sin6_addr) == 1 &&
	       parse_port(port, &v6->sin6_port);
}

/* Parses the address; returns its size, or 0. */
static socklen_t parse(const char *text, union address *address)
{
	const char *colon = strrchr(text, ':');
	char host[64];

	*address = (union address){0};
	if (!strncmp(text, "unix:", 5)) {
		address->local.sun_family = AF_UNIX;
		if (!text[5] || strlen(text + 5) >= sizeof(address->local.sun_path))
			return 0;
		strcpy(address->local.sun_path, text + 5);
		return sizeof(address->local);
	}
	if (!colon || (size_t)(colon - text) >= sizeof(host))
		return 0;
	snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
	if (parse_v4(host, colon + 1, &address->v4))
		return sizeof(address->v4);
	*address = (union address){0};
	return parse_v6(host, colon + 1, &address->v6) ? sizeof(address->v6) : 0;
}

/* Removes the socket of a mtbpf that was killed, but never one on which somebody listens. */
static void remove_stale(const struct sockaddr_un *local)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)local, sizeof(*local)) && errno == ECONNREFUSED &&
	    !lstat(local->sun_path, &st) && S_ISSOCK(st.st_mode))
		unlink(local->sun_path);
	close(fd);
}

static void describe(struct listener *l, const union address *address)
{
	union address bound = *address;
	socklen_t size = sizeof(bound);

	getsockname(l->fd, &bound.any, &size);
	if (bound.any.sa_family == AF_UNIX) {
		snprintf(l->path, sizeof(l->path), "%s", address->local.sun_path);
		snprintf(l->url, sizeof(l->url), "unix:%s", l->path);
	} else if (bound.any.sa_family == AF_INET) {
		char host[INET_ADDRSTRLEN];

		inet_ntop(AF_INET, &bound.v4.sin_addr, host, sizeof(host));
		l->port = ntohs(bound.v4.sin_port);
		snprintf(l->url, sizeof(l->url), "http://%s:%u", host, l->port);
	} else {
		l->port = ntohs(bound.v6.sin6_port);
		snprintf(l->url, sizeof(l->url), "http://[::1]:%u", l->port);
	}
}

static int open_socket(struct listener *l, const union address *address, socklen_t size)
{
	const int on = 1;

	l->fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return -errno;
	if (address->any.sa_family == AF_UNIX)
		remove_stale(&address->local);
	else
		setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(l->fd, &address->any, size))
		return -errno;
	describe(l, address);
	/* Set the mode before a client can connect. */
	if (l->path[0] && chmod(l->path, 0660))
		return -errno;
	return listen(l->fd, BACKLOG) ? -errno : 0;
}

int listener__open(struct listener *l, const char *text)
{
	union address address;
	socklen_t size = parse(text, &address);
	int err;

	*l = (struct listener){.fd = -1};
	if (!size)
		return -EINVAL;
	err = open_socket(l, &address, size);
	if (err)
		listener__close(l);
	return err;
}

void listener__close(struct listener *l)
{
	if (l->path[0])
		unlink(l->path);
	if (l->fd >= 0)
		close(l->fd);
	*l = (struct listener){.fd = -1};
}
