/* SPDX-License-Identifier: MIT */
/* Probes on system calls, by name: "syscall:fsync", "syscall:read|recv*(socket)". */
#ifndef MTBPF_SESSION_PROBE_SYSCALL_PROBE_H
#define MTBPF_SESSION_PROBE_SYSCALL_PROBE_H

#include <stdbool.h>

#include "kernel/syscalls.h"
#include "session/probe/probe.h"

/* True if the text is meant to name a system call. */
bool syscall_probe__is_selector(const char *text);

/*
 * Calls fn for each system call that the selector means: names or globs with | between them, and
 * in brackets on what the descriptor is open that is its first argument. What fn returns but 0 ends
 * it, and is returned; 0; or -errno after a line and a hint: -EINVAL it is no selector, -ENOENT.
 */
int syscall_probe__each(const char *text, probe_fn fn, void *ctx);

/*
 * The regions of -requests: from the read of a request to the write of its answer, over sockets.
 */
#define SYSCALL_REQUEST_START SYSCALL_PREFIX "read|readv|recvfrom|recvmsg(socket)"
#define SYSCALL_REQUEST_STOP  SYSCALL_PREFIX "write|writev|sendto|sendmsg|sendfile(socket)"

#endif
