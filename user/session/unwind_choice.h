/* SPDX-License-Identifier: MIT */
/* How -source sample finds callers: by frame pointers, or from copies of the stack. */
#ifndef MTBPF_SESSION_UNWIND_CHOICE_H
#define MTBPF_SESSION_UNWIND_CHOICE_H

#include <stdint.h>

#include "session/capture_options.h"
#include "target/process.h"

/*
 * Bytes of the stack to copy with each sample; 0: frame pointers will do. With -unwind auto it is
 * tried for a tenth of a second on the process that runs already, and said where copies are needed;
 * NULL: a program that does not run yet. 0, or -errno after a line and a hint.
 */
int unwind_choice__make(const struct capture_options *options, const struct process *process,
			const struct cgroup *cgroup, uint32_t *stack);

#endif
