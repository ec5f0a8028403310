// SPDX-License-Identifier: MIT
#include "target/socket_name.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fs.h"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un unix_;
};

/* "10.0.0.1:80", "[::1]:80" */
#define INET_TEXT_SIZE (INET6_ADDRSTRLEN + 8)

static void format_inet(const union address *address, char text[static INET_TEXT_SIZE])
{
	char host[INET6_ADDRSTRLEN] = "?";
	const struct in6_addr *v6 = &address->v6.sin6_addr;

	if (address->any.sa_family == AF_INET) {
		inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof(host));
		snprintf(text, INET_TEXT_SIZE, "%s:%u", host, ntohs(address->v4.sin_port));
		return;
	}
	/* A socket of both versions. */
	if (IN6_IS_ADDR_V4MAPPED(v6)) {
		inet_ntop(AF_INET, &v6->s6_addr[12], host, sizeof(host));
		snprintf(text, INET_TEXT_SIZE, "%s:%u", host, ntohs(address->v6.sin6_port));
		return;
	}
	inet_ntop(AF_INET6, v6, host, sizeof(host));
	snprintf(text, INET_TEXT_SIZE, "[%s]:%u", host, ntohs(address->v6.sin6_port));
}

static int get_option(int fd, int option)
{
	socklen_t size = sizeof(int);
	int value;

	return getsockopt(fd, SOL_SOCKET, option, &value, &size) ? -errno : value;
}

static const char *protocol_name(int fd)
{
	switch (get_option(fd, SO_PROTOCOL)) {
	case IPPROTO_TCP:
		return "TCP";
	case IPPROTO_UDP:
		return "UDP";
	case IPPROTO_SCTP:
		return "SCTP";
	case IPPROTO_MPTCP:
		return "MPTCP";
	}
	return NULL;
}

/* The kernel does not tell whom to, until it is. */
static bool is_connecting(int fd)
{
	struct tcp_info info;
	socklen_t size = sizeof(info);

	return get_option(fd, SO_PROTOCOL) == IPPROTO_TCP &&
	       !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) &&
	       info.tcpi_state == TCP_SYN_SENT;
}

static int name_inet(int fd, char name[static SOCKET_NAME_SIZE])
{
	const char *protocol = protocol_name(fd);
	char here[INET_TEXT_SIZE], there[INET_TEXT_SIZE];
	union address address;
	socklen_t size = sizeof(address);

	if (!protocol)
		return -EAFNOSUPPORT;
	if (getsockname(fd, &address.any, &size))
		return -errno;
	format_inet(&address, here);
	size = sizeof(address);
	if (!getpeername(fd, &address.any, &size)) {
		format_inet(&address, there);
		snprintf(name, SOCKET_NAME_SIZE, "%s %s to %s", protocol, here, there);
		return 0;
	}
	snprintf(name, SOCKET_NAME_SIZE, "%s %s%s", protocol, here,
		 get_option(fd, SO_ACCEPTCONN) == 1 ? ", listening"
		 : is_connecting(fd)		    ? ", connecting"
						    : "");
	return 0;
}

/* " /run/db", " @abstract"; "" without one. */
static void format_path(const struct sockaddr_un *address, socklen_t size, char *text,
			size_t text_size)
{
	size_t n = size > offsetof(struct sockaddr_un, sun_path)
			   ? size - offsetof(struct sockaddr_un, sun_path)
			   : 0;
	bool is_abstract = n && !address->sun_path[0];

	if (n > sizeof(address->sun_path))
		n = sizeof(address->sun_path);
	if (!is_abstract)
		n = strnlen(address->sun_path, n);
	snprintf(text, text_size, "%s%s%.*s", n ? " " : "", is_abstract ? "@" : "",
		 n ? (int)n - is_abstract : 0, address->sun_path + is_abstract);
}

/* Since Linux 6.5: a pidfd(2). */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/*
 * The kernel notes who it was when the connection was made; of a pair its maker, who says nothing.
 * A process that has ended since may have left its number to another: only the descriptor tells.
 */
static void format_peer(int fd, pid_t own, char *text, size_t size)
{
	_cleanup_close_ int process = get_option(fd, SO_PEERPIDFD);
	struct ucred peer = {0};
	socklen_t peer_size = sizeof(peer);
	_cleanup_free_ char *comm = NULL;
	size_t len;

	*text = '\0';
	if (process < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) ||
	    peer.pid <= 0 || peer.pid == own || fs__read_proc(peer.pid, "comm", &comm, &len))
		return;
	comm[strcspn(comm, "\n")] = '\0';
	/* It was its name if it is there still. */
	if (!syscall(SYS_pidfd_send_signal, process, 0, NULL, 0) || errno == EPERM)
		snprintf(text, size, ", peer %s (%d)", comm, (int)peer.pid);
}

static int name_unix(int fd, pid_t pid, char name[static SOCKET_NAME_SIZE])
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 2], peer[64];
	union address address;
	socklen_t size = sizeof(address);

	/* The end that has a name: usually the one that listens. */
	if (getpeername(fd, &address.any, &size) ||
	    size <= offsetof(struct sockaddr_un, sun_path)) {
		size = sizeof(address);
		if (getsockname(fd, &address.any, &size))
			return -errno;
	}
	format_path(&address.unix_, size, path, sizeof(path));
	format_peer(fd, pid, peer, sizeof(peer));
	snprintf(name, SOCKET_NAME_SIZE, "Unix socket%s%s", path,
		 get_option(fd, SO_ACCEPTCONN) == 1 ? ", listening" : peer);
	return 0;
}

static int name_copy(int fd, pid_t pid, const char *link, char name[static SOCKET_NAME_SIZE])
{
	char is[64];
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	snprintf(is, sizeof(is), "socket:[%llu]", (unsigned long long)st.st_ino);
	if (strcmp(is, link))
		return -ESTALE;
	switch (get_option(fd, SO_DOMAIN)) {
	case AF_INET:
	case AF_INET6:
		return name_inet(fd, name);
	case AF_UNIX:
		return name_unix(fd, pid, name);
	}
	return -EAFNOSUPPORT;
}

int socket_name__find(pid_t pid, int fd, const char *link, char name[static SOCKET_NAME_SIZE])
{
	_cleanup_close_ int process = (int)syscall(SYS_pidfd_open, pid, 0);
	_cleanup_close_ int copy = -1;

	if (process < 0)
		return -errno;
	copy = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
	return copy < 0 ? -errno : name_copy(copy, pid, link, name);
}
