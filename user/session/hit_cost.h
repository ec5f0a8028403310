/* SPDX-License-Identifier: MIT */
/* Measures what a hit of the trigger's probe costs on this machine, with a probe in mtbpf itself.
 */
#ifndef MTBPF_SESSION_HIT_COST_H
#define MTBPF_SESSION_HIT_COST_H

#include <stdbool.h>
#include <stdint.h>

/* How the kernel handles a hit of the probe. */
struct hit_kind {
	bool emulated; /* else the instruction under it is single-stepped */
	bool returns;  /* the call's return is probed as well, ... */
	bool by_insn;  /* ... at the instruction that returns */
	bool sampling; /* each hit is logged */
};

/*
 * Sets such a probe, with a trigger that never fires, in mtbpf itself, and stores in *ns how much
 * longer a call takes with it. Takes some tenths of a second. 0 or -errno; prints only at -v.
 */
int hit_cost__measure(const struct hit_kind *kind, uint64_t *ns);

#endif
