/* SPDX-License-Identifier: MIT */
/* The callers at a sample that carries a copy of its stack. */
#ifndef MTBPF_SAMPLED_SAMPLE_STACK_H
#define MTBPF_SAMPLED_SAMPLE_STACK_H

#include <stddef.h>

#include "capture/recording/recording.h"
#include "decode/images.h"
#include "target/unwind/unwind.h"

/*
 * Where the call of the probed function that triggered next returns to: the one that time_ns lies
 * in, or one like it. 0: not known.
 */
uint64_t sample_stack__returns_to(const struct recording *rec, pid_t tid, uint64_t time_ns);

/*
 * Of return probes: the first instruction of the kernel's page in the process, which stands in the
 * stack in place of a return address. 0: it has none.
 */
uint64_t sample_stack__trampoline(const struct recording *rec, pid_t pid);

/* The start for unwinding a copy of a stack, which stays the recording's; without a return probe.
 */
struct unwind_start sample_stack__start(const struct rec_user *user);

/*
 * With the code that `map` shows. Where a return probe has taken the place of a return address, it
 * is taken to be that of the call that triggered next. 0 or -ENOMEM; unwound__fini() in any case.
 */
int sample_stack__unwind(const struct recording *rec, const struct rec_sample *sample,
			 struct code_map *map, struct unwound *out);

/* How far frame pointers lead, against copies of the stacks: of a recording that has both. */
struct chain_count {
	size_t unwound; /* stacks of which the copy tells callers */
	size_t reach;	/* of these, whose frame pointers lead as far as that */
};

/* Adds to *count. 0 or -ENOMEM. */
int sample_stack__count(const struct recording *rec, struct images *images,
			struct chain_count *count);

#endif
