/* SPDX-License-Identifier: MIT */
/* Who woke the target's threads, and who ran in their place: bpf/sample.bpf.c and its log. */
#ifndef MTBPF_TRIGGER_SCHED_LOG_H
#define MTBPF_TRIGGER_SCHED_LOG_H

#include <sys/types.h>

#include "mtbpf_shared.h"

struct sched_log;

/*
 * Loads and attaches; it is written from here on. NULL with errno where the kernel has no BTF, or
 * the rights are missing: prints nothing but at -v, since all else works without it.
 */
struct sched_log *sched_log__new(pid_t tgid);
void sched_log__free(struct sched_log *log);

/*
 * Stops it, and hands over what it holds, in no order. What `take` returns but 0 ends that, and is
 * returned; or -errno.
 */
int sched_log__take(struct sched_log *log, int (*take)(void *ctx, const struct mt_sched *entry),
		    void *ctx);

#endif
