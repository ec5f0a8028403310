/* SPDX-License-Identifier: MIT */
/* Who woke the target's threads, and who ran in their place: bpf/sample.bpf.c and its log. */
#ifndef MTBPF_TRIGGER_SCHED_LOG_H
#define MTBPF_TRIGGER_SCHED_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "mtbpf_shared.h"

struct sched_log;

/* Whose threads: of a process, of several, or of a cgroup where both are 0. */
struct sched_log_config {
	pid_t tgid;
	const pid_t *tgids; /* read while it loads */
	size_t n_tgids;
	bool with_children; /* of tgids: what they fork from now on as well */
	int cgroup_fd;
	uint64_t syscall_thresh_ns; /* system calls of at least that are noted; 0: none */
};

/*
 * Loads and attaches; it is written from here on. NULL with errno where the kernel has no BTF, or
 * the rights are missing: prints nothing but at -v, since all else works without it.
 */
struct sched_log *sched_log__new(const struct sched_log_config *config);
void sched_log__free(struct sched_log *log);
/* Behind sched_log__take(): it is written again, from here on. */
void sched_log__begin(struct sched_log *log);

/*
 * Stops it, and hands over what was written since it began, in no order. What `take` returns but 0
 * ends that, and is returned; or -errno.
 */
int sched_log__take(struct sched_log *log, int (*take)(void *ctx, const struct mt_sched *entry),
		    void *ctx);

#endif
