/* SPDX-License-Identifier: MIT */
/* Finds callers at samples and hits: in copies of stacks, or by frame pointers. */
#ifndef MTBPF_SAMPLED_SAMPLE_STACK_H
#define MTBPF_SAMPLED_SAMPLE_STACK_H

#include <stddef.h>

#include "capture/recording/recording.h"
#include "decode/images.h"
#include "target/unwind/unwind.h"

/*
 * The return address of the thread's call of the probed function that triggers next after time_ns;
 * if that is not recorded, of another such call. 0: not known.
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
	size_t reach;	/* of these, stacks whose frame pointers lead equally far */
};

/* Adds to *count. Returns 0 or -ENOMEM. */
int sample_stack__count(const struct recording *rec, struct images *images,
			struct chain_count *count);

/*
 * Finds the callers at one of rec's hits. It unwinds the copy of the stack, and completes (or,
 * without a copy, starts) with the addresses that the kernel found by frame pointers, up to the
 * first that does not follow a call instruction. Such a list may lack callers, and is never marked
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
