/* SPDX-License-Identifier: MIT */
/* How -source sample finds callers: by frame pointers, from copies of the stack, or as the CPU has
 * noted them. */
#ifndef MTBPF_SESSION_UNWIND_CHOICE_H
#define MTBPF_SESSION_UNWIND_CHOICE_H

#include <stdint.h>

#include "session/capture_options.h"
#include "target/process.h"

struct unwind_choice {
	uint32_t stack; /* bytes of it to copy with each sample; 0: frame pointers will do */
	bool calls;	/* samples by the clock have the calls that the CPU noted instead */
};

/*
 * With -unwind auto it is tried for a tenth of a second on the process that runs already, and said
 * where frame pointers will not do; NULL: a program that does not run yet. 0, or -errno after a
 * line and a hint.
 */
int unwind_choice__make(const struct capture_options *options, const struct process *process,
			const struct cgroup *cgroup, struct unwind_choice *choice);

#endif
