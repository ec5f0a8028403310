/* SPDX-License-Identifier: MIT */
/*
 * Whom a source of perf events records, while it does: what its sideband has said so far, and what
 * wakes those that wait for it. Its rings are the source's own.
 */
#ifndef MTBPF_CAPTURE_PERF_FOLLOWED_H
#define MTBPF_CAPTURE_PERF_FOLLOWED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/perf/sideband.h"
#include "capture/recording/recording.h"
#include "capture/source.h"

struct followed {
	struct sideband sideband;
	struct recording pending; /* what it has said */
	size_t left_out;	  /* threads that began when the memory was full */
	int epoll_fd;
	int pid_fd; /* -1: a cgroup's */
};

/*
 * config->pid, or a cgroup's processes. 0 or -errno: -ESRCH it is gone; followed__close() in any
 * case. Its sideband keeps a pointer to `pending`: it must not be moved from here on. Prints
 * nothing.
 */
int followed__open(struct followed *followed, const struct source_config *config);
void followed__close(struct followed *followed);

/* epoll_fd is readable when fd is. 0 or -errno. */
int followed__watch(struct followed *followed, int fd);

/* What to do about threads: one that is recorded has ended; one began that is not. */
struct followed_ops {
	void (*ended)(struct source *source, pid_t tid);
	/* 0; -ESRCH it is gone already; another -errno: said of it. */
	int (*began)(struct source *source, pid_t tid);
};

/* Hands over the threads that the sideband has told of since the last time. */
void followed__threads(struct followed *followed, struct source *source,
		       const struct followed_ops *ops);

/* Adds what the sideband has said to rec. 0 or -ENOMEM. */
int followed__add_to(const struct followed *followed, struct recording *rec);
/*
 * Adds the kernel's own code in the target, which runs at return probes and single-stepped ones:
 * that of all processes of which threads are known. Where config has no probe: nothing. 0 or
 * -ENOMEM.
 */
int followed__add_uprobes_pages(const struct followed *followed, const struct source_config *config,
				uint64_t time_ns, struct recording *rec);
/* A line where threads had to be left out. */
void followed__warn_left_out(const struct followed *followed, const struct source_config *config);

#endif
