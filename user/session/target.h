/* SPDX-License-Identifier: MIT */
/* Whom a command is about: what -pid, -name, -container, -k8s-pod and -cgroup choose. */
#ifndef MTBPF_SESSION_TARGET_H
#define MTBPF_SESSION_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "target/cgroup.h"
#include "target/process.h"

/* As they were typed; at most one of the texts. */
struct target_options {
	const char *pids; /* "17,4" */
	const char *name; /* a glob */
	const char *cgroup, *container, *pod;
};

struct target {
	struct pid_set pids;  /* none where it is a cgroup */
	struct cgroup cgroup; /* fd -1: it is none */
};

/* Whether one of them was given. */
bool target_options__any(const struct target_options *options);
/* What was given of those that stay the same where the processes are started again; NULL: pids. */
const char *target_options__name(const struct target_options *options);
/*
 * At most one may be, and pids must be numbers. 0, or -EINVAL after a line and a hint that begins
 * with the command's name.
 */
int target_options__check(const struct target_options *options, const char *command);

/*
 * Finds it as it is now. Where nothing was given, the user picks a process, if there is a terminal.
 * 0; or after a line and a hint on stderr: -ESRCH nobody, -EINVAL, -ENOTUNIQ, ...; -ENODATA:
 * nothing was given, and nobody can be asked: the caller says what to give. target__close() in any
 * case.
 */
int target__choose(struct target *target, const struct target_options *options);
void target__close(struct target *target);

static inline bool target__is_cgroup(const struct target *target)
{
	return target->cgroup.fd >= 0;
}

/*
 * The pids of its processes now, ascending; *pids is freed by the caller. 0, or -errno after a line
 * on stderr.
 */
int target__processes(const struct target *target, pid_t **pids, size_t *n);
/* A line and a hint of a cgroup that none is in: -ESRCH. */
int target__refuse_empty(const struct target *target);
/* True while one of them is there. */
bool target__is_alive(const struct target *target);

/*
 * Looks it up again, until a process of it is there; says so if that takes time. 0; -EINTR where
 * signal_fd is readable meanwhile, which is left to be read; -ETIME: it is deadline_ns of
 * CLOCK_MONOTONIC (UINT64_MAX: never); another -errno after a line and a hint: -ENOTUNIQ.
 */
int target__wait(struct target *target, const struct target_options *options, int signal_fd,
		 uint64_t deadline_ns);

#endif
