/* SPDX-License-Identifier: MIT */
/* Finds callers at samples and hits: in copies of stacks, or by frame pointers. */
#ifndef MTBPF_SAMPLED_SAMPLE_STACK_H
#define MTBPF_SAMPLED_SAMPLE_STACK_H

#include <stddef.h>

#include "capture/recording/recording.h"
#include "decode/images.h"
#include "target/unwind/unwind.h"

/*
 * The return address of the probed function's call at the thread's first hit from time_ns on;
 * without such a hit, at the recording's last hit. 0: not known.
 */
uint64_t sample_stack__returns_to(const struct recording *rec, pid_t tid, uint64_t time_ns);

/*
 * The address that return probes of the process put onto the stack in place of a return address:
 * the start of the kernel's page. 0 without one.
 */
uint64_t sample_stack__trampoline(const struct recording *rec, pid_t pid);

/*
 * Unwinds the copy of the stack in a sample with the code in `map`. If return probes replaced
 * return addresses, `calls` has the originals (struct unwind_start); without any,
 * sample_stack__returns_to() gives that of the trigger's function. 0 or -ENOMEM; call
 * unwound__fini() in any case.
 */
int sample_stack__unwind(const struct recording *rec, const struct rec_sample *sample,
			 struct code_map *map, const probed_calls *calls, struct unwound *out);

/*
 * Compares the callers found by frame pointers with those in copies of the stacks, in a recording
 * with both.
 */
struct chain_count {
	size_t unwound; /* stacks whose copy shows callers */
	size_t reach;	/* of these, stacks whose frame pointers lead as far out as the copy */
};

/* Adds to *count. Returns 0 or -ENOMEM. */
int sample_stack__count(const struct recording *rec, struct images *images,
			struct chain_count *count);

/*
 * Finds the callers at one of rec's hits: unwinds the copy of the stack, then adds the addresses
 * that the kernel found by frame pointers (without a copy, only these), up to the first that does
 * not follow a call instruction. A list with such addresses may lack callers, and is never marked
 * whole. 0 or -ENOMEM; call unwound__fini() in any case.
 */
int hit_stack__find(const struct recording *rec, const struct mt_hit *hit, struct images *images,
		    struct unwound *out);

/*
 * Replaces the addresses of call instructions (LBR; rec_sample.n_calls) by return addresses, with
 * the code that ran. If the code is not known, the address is one byte after the start of the call:
 * a lookup of the byte before it still finds the call. Returns 0 or -ENOMEM.
 */
int settle_calls(struct recording *rec, struct images *images);

#endif
