/* SPDX-License-Identifier: MIT */
/* Describes a socket of another process and its peer. */
#ifndef MTBPF_TARGET_SOCKET_NAME_H
#define MTBPF_TARGET_SOCKET_NAME_H

#include <sys/types.h>

#define SOCKET_NAME_SIZE 192

/*
 * "TCP 10.0.0.1:4242 to 10.0.0.2:5432", "TCP [::]:80, listening", "UDP 0.0.0.0:53",
 * "Unix socket /run/db, peer postgres (712)". The peer is the process that connected or listened at
 * the other end; Linux reports it since 6.5. `link` is what /proc/PID/fd/FD says: "socket:[1234]".
 *
 * Asks the kernel through a copy of the descriptor, which works in any network namespace and with
 * any number of sockets, and closes the copy at once. 0, or -errno: -EPERM without the right to
 * trace the process, -ESRCH or -EBADF if either is gone, -ESTALE if the descriptor is another
 * socket by now, -EAFNOSUPPORT for a kind that is not described here. Prints nothing.
 */
int socket_name__find(pid_t pid, int fd, const char *link, char name[static SOCKET_NAME_SIZE]);

#endif
