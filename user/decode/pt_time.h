/* SPDX-License-Identifier: MIT */
/*
 * Computes the time in TSC ticks from TSC, TMA, MTC, CYC and CBR packets (Intel SDM vol. 3,
 * "Reconstructing Timestamps"), and how fast CPUs ran.
 */
#ifndef MTBPF_DECODE_PT_TIME_H
#define MTBPF_DECODE_PT_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/recording/recording.h"
#include "decode/packet.h"
#include "util/vec.h"

#define PT_TIME_RATIO_BITS 16
#define TSC_BITS	   56

/* A TSC packet has 56 bits. The upper bits are the reference's, or differ by one wrap. */
static inline uint64_t tsc__extend(uint64_t tsc, uint64_t reference)
{
	const uint64_t span = 1ull << TSC_BITS;
	uint64_t full = (reference & ~(span - 1)) | (tsc & (span - 1));

	if (full > reference && full - reference > span / 2 && full >= span)
		full -= span;
	else if (full < reference && reference - full > span / 2)
		full += span;
	return full;
}

/* Converts a packet's 56 bits to the time nearest to the reference. */
static inline uint64_t tsc__to_ns(uint64_t tsc, uint64_t reference,
				  const struct rec_pt_config *config)
{
	return rec_pt__tsc_to_ns(config, tsc__extend(tsc, reference));
}

struct pt_time {
	const struct rec_pt_config *config;
	uint64_t tsc;	     /* now; 0: not known */
	uint64_t ref;	     /* TSC when `cycles` was last set to 0 */
	uint64_t cycles;     /* CPU cycles since ref */
	uint64_t ratio;	     /* TSC ticks per cycle, << PT_TIME_RATIO_BITS; 0: not known */
	uint64_t tma;	     /* TSC at the start of the MTC period in which the last TMA was */
	uint64_t periods;    /* number of MTC periods since tma */
	uint64_t mtc_tsc;    /* TSC at the last MTC; 0: no MTC since the last TSC packet */
	uint64_t mtc_cycles; /* CPU cycles since the last MTC; unlike `cycles`, a CBR keeps them */
	uint8_t last_mtc;
	bool have_tma;
};

/* Resets the time to unknown, as at a PSB: packets before it do not count. */
void pt_time__init(struct pt_time *time, const struct rec_pt_config *config);

void pt_time__on_tsc(struct pt_time *time, uint64_t tsc);
void pt_time__on_tma(struct pt_time *time, uint64_t ctc, uint16_t fast_counter);
void pt_time__on_mtc(struct pt_time *time, uint8_t ctc);
void pt_time__on_cbr(struct pt_time *time, uint8_t ratio);

/* Handles timing packets and ignores others. */
void pt_time__on_packet(struct pt_time *time, const struct packet *packet);

static inline void pt_time__on_cyc(struct pt_time *time, uint64_t cycles)
{
	uint64_t now;

	time->cycles += cycles;
	time->mtc_cycles += cycles;
	now = time->ref + (time->cycles * time->ratio >> PT_TIME_RATIO_BITS);
	if (now > time->tsc && time->ref)
		time->tsc = now;
}

/* The frequency of a CPU from time_ns on. */
struct clock_rate {
	uint64_t time_ns;
	uint32_t mhz;
};

struct clock_rates {
	VEC(struct clock_rate) all;
};

/*
 * Adds the frequencies that the PSB+s of one ring tell (SDM "Core:Bus Ratio Packet"). It adds
 * nothing if the recording lacks the nominal frequency or the clock's conversion. 0 or -ENOMEM.
 */
int clock_rates__add(struct clock_rates *rates, const struct recording *rec,
		     const struct rec_aux *aux);
/* The rate at that time, or the first rate; 0: unknown. */
uint32_t clock_rates__at(const struct clock_rates *rates, uint64_t time_ns);

#endif
