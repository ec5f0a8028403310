/* SPDX-License-Identifier: MIT */
/* The target of a command, chosen by -pid, -name, -container, -k8s-pod or -cgroup. */
#ifndef MTBPF_SESSION_TARGET_H
#define MTBPF_SESSION_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "target/cgroup.h"
#include "target/process.h"

/* The options as typed; at most one is set. */
struct target_options {
	const char *pids; /* "17,4" */
	const char *name; /* a glob */
	const char *cgroup, *container, *pod;
};

struct target {
	struct pid_set pids;  /* empty for a cgroup */
	struct cgroup cgroup; /* fd -1: not a cgroup */
};

/* True if one of the options was given. */
bool target_options__any(const struct target_options *options);
/* The value of the option that also finds restarted processes (all but -pid); otherwise NULL. */
const char *target_options__name(const struct target_options *options);
/*
 * Checks that at most one option is set, and that pids are numbers. 0, or -EINVAL after a line that
 * begins with the command's name, and a hint.
 */
int target_options__check(const struct target_options *options, const char *command);

/*
 * Finds the target's processes. If no option was given, asks the user on the terminal. Returns 0,
 * or -errno after a message and a hint: -ESRCH (not found), -EINVAL, -ENOTUNIQ, ...; -ENODATA
 * without a message: no option and no terminal. Call target__close() in any case.
 */
int target__choose(struct target *target, const struct target_options *options);
void target__close(struct target *target);

static inline bool target__is_cgroup(const struct target *target)
{
	return target->cgroup.fd >= 0;
}

/*
 * Stores the pids of its current processes, ascending; the caller frees *pids. 0, or -errno after a
 * message.
 */
int target__processes(const struct target *target, pid_t **pids, size_t *n);
/* Reports an empty cgroup with a message and a hint. Returns -ESRCH. */
int target__refuse_empty(const struct target *target);
/*
 * Without hits: says which process of the target has children that are not watched, since
 * a process that forks workers seldom does their work itself. with_children: -children is set.
 * Returns false, without a message, if there is no such process.
 */
bool target__blame_children(const struct target *target, bool with_children);
/* True while one of its processes lives. */
bool target__is_alive(const struct target *target);

/*
 * Waits until one of the target's processes runs; says so if that takes time. Returns 0; -EINTR if
 * signal_fd becomes readable (it is not read); -ETIME at deadline_ns (CLOCK_MONOTONIC; UINT64_MAX:
 * never); or another -errno, such as -ENOTUNIQ, after a message and a hint.
 */
int target__wait(struct target *target, const struct target_options *options, int signal_fd,
		 uint64_t deadline_ns);

#endif
