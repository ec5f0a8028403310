/* SPDX-License-Identifier: MIT */
/* The speed of code: a CPU's clock, and a thread's instructions over time. */
#ifndef MTBPF_DECODE_SPEED_H
#define MTBPF_DECODE_SPEED_H

#include <stdint.h>
#include <sys/types.h>

#include "capture/recording/recording.h"
#include "decode/branch.h"
#include "util/vec.h"

/* A stretch of a thread. */
struct speed {
	uint64_t begin_ns, end_ns;
	uint64_t traced_ns; /* time in traced code; the rest was in the kernel, off the CPU, or a
			       gap */
	uint64_t insns;
	int cpu; /* the ring's CPU */
};

/* Shorter stretches are combined. */
#define SPEED_MIN_NS 20000

/* As an entry among branches, and back. */
struct branch speed__entry(const struct speed *speed);
struct speed branch__speed(const struct branch *entry);

/* From time_ns on. */
struct clock_rate {
	uint64_t time_ns;
	uint32_t mhz;
};

struct clock_rates {
	VEC(struct clock_rate) all;
};

/*
 * Adds the frequencies that the PSB+s of one ring tell (SDM "Core:Bus Ratio Packet"). It adds
 * nothing if the recording lacks the bus frequency. 0 or -ENOMEM.
 */
int clock_rates__add(struct clock_rates *rates, const struct recording *rec,
		     const struct rec_aux *aux);
/* The rate at that time, or the first rate; 0: unknown. */
uint32_t clock_rates__at(const struct clock_rates *rates, uint64_t time_ns);

#endif
