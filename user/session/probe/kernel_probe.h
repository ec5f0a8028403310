/* SPDX-License-Identifier: MIT */
/*
 * Probes in the kernel, by name: on system calls ("syscall:fsync", "syscall:read|recv*(socket)"),
 * functions ("kernel:tcp_sendmsg"), tracepoints ("tracepoint:block:block_rq_issue"), signals before
 * they are delivered ("signal:SEGV"), exits of a program ("exit:nonzero"), and processes that the
 * OOM killer has chosen ("oom:"); and on functions of a JIT ("jit:handle": jit_probe.h).
 */
#ifndef MTBPF_SESSION_PROBE_KERNEL_PROBE_H
#define MTBPF_SESSION_PROBE_KERNEL_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/kernel.h"
#include "session/probe/probe.h"

/*
 * Calls fn for each probe that the selector names; the selector has one of the prefixes above. A
 * selector of system calls has names or globs with | between them, and in brackets the kind of file
 * that the descriptor must refer to. Returns 0; what fn returned if that was not 0; or -errno after
 * a message and a hint: -EINVAL, -ENOENT.
 */
int kernel_probe__each(const struct probe_source *source, const char *text, probe_fn fn, void *ctx);

/* True if kernel_probe__list() can list the matches of such a selector. */
bool kernel_probe__can_list(const char *text);
/* Prints what the selector's glob matches, one per line, and returns how many. */
size_t kernel_probe__list(const char *text);

/*
 * The regions of -requests: from reading a request from a socket to writing the answer to one.
 */
#define SYSCALL_REQUEST_START SYSCALL_PREFIX "read|readv|recvfrom|recvmsg(socket)"
#define SYSCALL_REQUEST_STOP  SYSCALL_PREFIX "write|writev|sendto|sendmsg|sendfile(socket)"

#endif
