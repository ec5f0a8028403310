/* SPDX-License-Identifier: MIT */
/* What a hit of the trigger's probe costs a thread on this machine, by trying it on our own. */
#ifndef MTBPF_SESSION_HIT_COST_H
#define MTBPF_SESSION_HIT_COST_H

#include <stdbool.h>
#include <stdint.h>

/* The probe: what the kernel does for a hit of it. */
struct hit_kind {
	bool emulated; /* else the instruction under it is single-stepped */
	bool returns;  /* the call's return is probed as well, ... */
	bool by_insn;  /* ... at the instruction that returns */
	bool sampling; /* each hit is logged */
};

/*
 * Sets such a probe, with a trigger that never fires, in mtbpf itself: *ns is what a hit, or a
 * call, takes longer with it. Takes some tenths of a second. 0 or -errno. Prints nothing but at -v.
 */
int hit_cost__measure(const struct hit_kind *kind, uint64_t *ns);

#endif
