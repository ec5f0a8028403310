/* SPDX-License-Identifier: MIT */
/* Which source the options mean, on this machine. */
#ifndef MTBPF_SESSION_SOURCE_CHOICE_H
#define MTBPF_SESSION_SOURCE_CHOICE_H

#include "capture/source.h"
#include "session/capture_options.h"
#include "target/process.h"

/*
 * Intel PT, or else, unless it is asked for by name, samples; says so. NULL with errno after a line
 * and a hint: this machine cannot do what is asked for.
 */
const struct source_ops *source_choice__make(const struct capture_options *options);

/* Whether the source can have n processes, or, 0, a cgroup: this is the first. 0, or -errno after a
 * line and a hint. */
int source_choice__check(const struct source_ops *ops, const struct process *process, size_t n);

#endif
