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

static int name_inet(int fd, char name[static SOCKET_NAME_SIZE])
{
	int protocol = get_option(fd, SO_PROTOCOL);
	const char *text = protocol == IPPROTO_TCP     ? "TCP"
			   : protocol == IPPROTO_UDP   ? "UDP"
			   : protocol == IPPROTO_SCTP  ? "SCTP"
			   : protocol == IPPROTO_MPTCP ? "MPTCP"
						       : NULL;
	char here[INET_TEXT_SIZE], there[INET_TEXT_SIZE];
	union address address;
	struct tcp_info info;
	socklen_t size = sizeof(address), info_size = sizeof(info);
	const char *state = "";

	if (!text)
		return -EAFNOSUPPORT;
	if (getsockname(fd, &address.any, &size))
		return -errno;
	format_inet(&address, here);
	size = sizeof(address);
	if (!getpeername(fd, &address.any, &size)) {
		format_inet(&address, there);
		snprintf(name, SOCKET_NAME_SIZE, "%s %s to %s", text, here, there);
		return 0;
	}
	/* The kernel does not tell the address that a socket connects to until it is connected. */
	if (get_option(fd, SO_ACCEPTCONN) == 1)
		state = ", listening";
	else if (protocol == IPPROTO_TCP &&
		 !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_size) &&
		 info.tcpi_state == TCP_SYN_SENT)
		state = ", connecting";
	snprintf(name, SOCKET_NAME_SIZE, "%s %s%s", text, here, state);
	return 0;
}

/* Since Linux 6.5: a descriptor of the peer, as of pidfd_open(2). */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/*
 * ", peer postgres (712)": the process that made the connection, as the kernel noted it then. "" if
 * it is not known, or is `own`, which made a pair of sockets. A process that has ended since may
 * have left its number to another: only the descriptor tells.
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
	/* If the process still exists, the name that was read is its name. */
	if (!syscall(SYS_pidfd_send_signal, process, 0, NULL, 0) || errno == EPERM)
		snprintf(text, size, ", peer %s (%d)", comm, (int)peer.pid);
}

static int name_unix(int fd, pid_t pid, char name[static SOCKET_NAME_SIZE])
{
	union address address;
	const char *path = address.unix_.sun_path;
	socklen_t size = sizeof(address);
	size_t n = 0;
	bool is_abstract;
	char peer[64];

	/* Names the end that has a name: usually the one that listens. */
	if (getpeername(fd, &address.any, &size) ||
	    size <= offsetof(struct sockaddr_un, sun_path)) {
		size = sizeof(address);
		if (getsockname(fd, &address.any, &size))
			return -errno;
	}
	if (size > offsetof(struct sockaddr_un, sun_path))
		n = size - offsetof(struct sockaddr_un, sun_path);
	if (n > sizeof(address.unix_.sun_path))
		n = sizeof(address.unix_.sun_path);
	is_abstract = n && !path[0];
	if (!is_abstract)
		n = strnlen(path, n);
	format_peer(fd, pid, peer, sizeof(peer));
	snprintf(name, SOCKET_NAME_SIZE, "Unix socket%s%s%.*s%s", n ? " " : "",
		 is_abstract ? "@" : "", n ? (int)n - is_abstract : 0, path + is_abstract,
		 get_option(fd, SO_ACCEPTCONN) == 1 ? ", listening" : peer);
	return 0;
}

int socket_name__find(pid_t pid, int fd, const char *link, char name[static SOCKET_NAME_SIZE])
{
	_cleanup_close_ int process = (int)syscall(SYS_pidfd_open, pid, 0);
	_cleanup_close_ int copy = -1;
	char is[64];
	struct stat st;

	if (process < 0)
		return -errno;
	copy = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
	if (copy < 0 || fstat(copy, &st))
		return -errno;
	snprintf(is, sizeof(is), "socket:[%llu]", (unsigned long long)st.st_ino);
	if (strcmp(is, link))
		return -ESTALE;
	switch (get_option(copy, SO_DOMAIN)) {
	case AF_INET:
	case AF_INET6:
		return name_inet(copy, name);
	case AF_UNIX:
		return name_unix(copy, pid, name);
	}
	return -EAFNOSUPPORT;
}
