/* SPDX-License-Identifier: MIT */
/* Finds the callers from a thread's registers and the top of its stack, as a debugger does. */
#ifndef MTBPF_TARGET_UNWIND_UNWIND_H
#define MTBPF_TARGET_UNWIND_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/code_map.h"
#include "util/vec.h"

#define UNWIND_MAX 1024

/* A call whose return is probed: the trampoline's address is in place of returns_to. */
struct probed_call {
	const struct function *function; /* of the code map */
	uint64_t returns_to;
};

typedef VEC(struct probed_call) probed_calls;

/* A thread between two instructions. */
struct unwind_start {
	uint64_t ip, sp, bp, bx, r12, r13, r14, r15;
	const uint8_t *stack; /* the memory from sp on */
	size_t size;
	/*
	 * For return probes: the trampoline's address replaces a return address. 0: none.
	 * returns_to is the original if one call is probed. If several are, `calls` lists them, the
	 * latest first; the last one is also used for any other call of its function.
	 */
	uint64_t trampoline, returns_to;
	const struct probed_call *calls;
	size_t n_calls;
};

/*
 * ips[0] is the current address. A return address follows for each frame, the innermost first;
 * after a signal handler comes the interrupted address instead.
 */
struct unwound {
	VEC(uint64_t) ips;
	bool is_whole; /* the last of `ips` is in the thread's outermost frame */
	bool is_cut;   /* further callers are beyond the end of the copy */
};

/*
 * Finds at most UNWIND_MAX ips, as many as are certain by the code in `map`: each return address
 * follows one call instruction. 0 or -ENOMEM; unwound__fini() in any case.
 */
int unwind__stack(struct code_map *map, const struct unwind_start *start, struct unwound *out);
void unwound__fini(struct unwound *unwound);

/* True if the code before ip is a call instruction. */
bool unwind__is_behind_call(struct code_map *map, uint64_t ip);
/* The address that the direct call before ip calls; 0: there is no such call. */
uint64_t unwind__called_before(struct code_map *map, uint64_t ip);

/*
 * Frame pointers lead from ip to return_ip. True if they skip the caller of ip's function:
 * .eh_frame shows that this function does not have a frame at ip, so return_ip is its caller's
 * return address. *caller is set to the function called before return_ip, or to zeroes if the code
 * does not tell. At a function's first instruction return_ip may also be the function's own return
 * address, which the kernel adds at a probe (since Linux 6.11): if the code does not tell, either
 * is possible.
 */
bool unwind__misses_caller(struct code_map *map, uint64_t ip, uint64_t return_ip,
			   struct code_place *caller);

/*
 * True if .eh_frame tells how to get from ip to its caller: frame pointers may be invalid in such
 * code.
 */
bool unwind__has_rules(struct code_map *map, uint64_t ip);

/*
 * True if .eh_frame says that ip's function has put its caller's %rbp away, and does not find its
 * own frame by %rbp: then %rbp may hold anything, and frame pointers lead from ip to nothing.
 */
bool unwind__reuses_frame_pointer(struct code_map *map, uint64_t ip);

#endif
