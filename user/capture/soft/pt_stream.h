/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Encodes branches as an Intel PT byte stream: the packets that a CPU writes under a user-only
 * filter (CPL > 0). It knows neither instructions nor where the bytes go. Freestanding, without
 * libc, so that the kernel module in tests/vm can share it.
 */
#ifndef MTBPF_CAPTURE_SOFT_PT_STREAM_H
#define MTBPF_CAPTURE_SOFT_PT_STREAM_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
#endif

/*
 * The bytes of the packets (Intel SDM vol. 3, chapter "Intel Processor Trace", "Packet
 * Definitions"; its titles are quoted in pt_stream.c). Each function writes one packet to out and
 * returns its length.
 */
#define PT_PACKET_MAX 16

/* Packets that carry an IP; the value is bits 4:0 of the first byte. */
enum pt_ip_packet {
	PT_TIP = 0x0d,
	PT_TIP_PGE = 0x11,
	PT_TIP_PGD = 0x01,
	PT_FUP = 0x1d,
};

/* The IPBytes field ("FUP/TIP IP Reconstruction"). */
enum pt_ip_bytes {
	PT_IP_SUPPRESSED = 0,
	PT_IP_UPDATE_16 = 1,
	PT_IP_UPDATE_32 = 2,
	PT_IP_SEXT_48 = 3,
	PT_IP_UPDATE_48 = 4,
	PT_IP_FULL = 6,
};

unsigned int pt_packet__psb(uint8_t *out);
unsigned int pt_packet__psbend(uint8_t *out);
unsigned int pt_packet__ovf(uint8_t *out);
/* The low 56 bits of tsc. */
unsigned int pt_packet__tsc(uint8_t *out, uint64_t tsc);
/*
 * The low 16 bits of the CTC at the last TSC packet, and the TSC ticks since the CTC's last edge:
 * 0-511.
 */
unsigned int pt_packet__tma(uint8_t *out, uint16_t ctc, uint16_t fast);
/* The 8 bits of the CTC that begin at bit MTCFreq. */
unsigned int pt_packet__mtc(uint8_t *out, uint8_t ctc);
/* Core cycles since the last CYC packet. */
unsigned int pt_packet__cyc(uint8_t *out, uint64_t cycles);
/* Core:bus ratio. */
unsigned int pt_packet__cbr(uint8_t *out, uint8_t ratio);
/* MODE.Exec for 64-bit code. */
unsigned int pt_packet__mode_exec_64(uint8_t *out);
/* n bits, 1 to 6: taken (1) or not taken (0), the oldest in the highest of the n. */
unsigned int pt_packet__tnt(uint8_t *out, uint8_t bits, unsigned int n);
/*
 * Writes the low bytes of ip that `bytes` selects. The caller ensures that the decoder can complete
 * them.
 */
unsigned int pt_packet__ip(uint8_t *out, enum pt_ip_packet packet, enum pt_ip_bytes bytes,
			   uint64_t ip);

/* The value of a PTWRITE, 4 or 8 bytes; has_ip: a FUP with the instruction's address follows. */
unsigned int pt_packet__ptw(uint8_t *out, uint64_t value, bool is_wide, bool has_ip);
/* Event Trace: control flow changed, by `type`; has_ip: a FUP of its own follows. */
unsigned int pt_packet__cfe(uint8_t *out, uint8_t type, uint8_t vector, bool has_ip);
/* Event Trace: data of the CFE that follows. */
unsigned int pt_packet__evd(uint8_t *out, uint8_t type, uint64_t value);
unsigned int pt_packet__trace_stop(uint8_t *out);

/*
 * Returns the shortest IPBytes from which a decoder whose last IP is `last` rebuilds ip. Without
 * `known` (after a PSB), `last` is ignored.
 */
enum pt_ip_bytes pt_packet__compress_ip(uint64_t ip, uint64_t last, bool known);

/* Depth of the CPU's return stack (SDM "Indirect Transfer Compression for Returns"). */
#define PT_RETURN_DEPTH 64

struct pt_stream_config {
	uint32_t psb_period; /* least number of bytes between two PSBs */
	/*
	 * The least number of ticks between two TSC packets. Without MTC, each PGE and PGD also has
	 * a TSC packet before it.
	 */
	uint64_t tsc_interval;
	bool tsc_at_switch; /* with MTC, too, a TSC packet at PGE and PGD: for decoders that lack
			       the CTC's ratio */
	bool return_compression; /* a RET to its CALL is a TNT bit; otherwise every RET is a TIP */
	uint8_t cbr;
	uint8_t nom_freq;   /* ratio of the TSC (cbr: of the core); 0: no CYC packets */
	uint8_t mtc_freq;   /* an MTC packet every 2^mtc_freq ticks of the CTC */
	uint16_t ctc_ticks; /* TSC ticks in one of the CTC's, below 512; 0: no MTC packets */
};

/* The reason why a thread leaves user code: the types of CFE and EVD packets. */
struct pt_stream_event {
	uint8_t type; /* 0: no event is written */
	uint8_t vector;
	bool has_address; /* for a page fault */
	uint64_t address;
};
#define PT_CFE_INTR 1
#define PT_EVD_PFA  0

struct pt_stream {
	struct pt_stream_config config;
	struct pt_stream_event event; /* of the next pt_stream__disable_async() */
	void (*emit)(void *ctx, const uint8_t *bytes, unsigned int len);
	void *ctx;
	bool enabled;	    /* packets are being generated: between PGE and PGD */
	bool last_ip_known; /* false after a PSB: the next IP is written in full */
	uint64_t last_ip;   /* of the last packet with an IP payload */
	uint64_t now;	    /* TSC; set by pt_stream__time() */
	uint64_t last_tsc;  /* of the last TSC packet */
	uint64_t next_mtc;  /* when the next MTC packet is due; never if they are off */
	uint64_t cycles;    /* up to the last CYC packet */
	uint64_t tnt_time;  /* of the newest of tnt_bits */
	uint32_t since_psb; /* bytes */
	bool started;	    /* the first PSB has been written */
	uint8_t tnt_bits;
	uint8_t tnt_count;
	uint8_t depth; /* valid entries of returns */
	uint8_t top;   /* the next free entry of returns, a ring */
	uint64_t returns[PT_RETURN_DEPTH];
};

/* emit is called with whole packets, in order. */
void pt_stream__init(struct pt_stream *stream, const struct pt_stream_config *config,
		     void (*emit)(void *ctx, const uint8_t *bytes, unsigned int len), void *ctx);

/* Sets the time of what follows, in TSC ticks. Time never runs backwards. */
void pt_stream__time(struct pt_stream *stream, uint64_t tsc);

/* Tracing starts, or goes on, with the instruction at ip: TIP.PGE. Only while disabled. */
void pt_stream__enable(struct pt_stream *stream, uint64_t ip);

/*
 * The following functions may be called only while enabled. `to` is the target of the instruction.
 */

/* A conditional jump. */
void pt_stream__cond(struct pt_stream *stream, bool taken, uint64_t to);
/* A direct call: no packet, but its return may be compressed. */
void pt_stream__call(struct pt_stream *stream, uint64_t return_ip, uint64_t to);
/* An indirect call. */
void pt_stream__call_indirect(struct pt_stream *stream, uint64_t return_ip, uint64_t to);
/* An indirect jump, or a far transfer that stays in user code. */
void pt_stream__jump_indirect(struct pt_stream *stream, uint64_t to);
/* A near return. */
void pt_stream__ret(struct pt_stream *stream, uint64_t to);
/*
 * The thread left user code by an instruction made for it (syscall, int n): TIP.PGD without an IP.
 */
void pt_stream__disable(struct pt_stream *stream);
/*
 * The thread left user code before the instruction at ip (fault, interrupt, signal, int3): FUP,
 * TIP.PGD.
 */
void pt_stream__disable_async(struct pt_stream *stream, uint64_t ip);
/* The instruction at ip goes to `to`, which is outside of the ranges that are traced. */
void pt_stream__leave_range(struct pt_stream *stream, uint64_t to);
/* The PTWRITE instruction at ip wrote a value; ip 0: no FUP. */
void pt_stream__ptwrite(struct pt_stream *stream, uint64_t value, bool is_wide, uint64_t ip);
/*
 * In either state: writes a TraceStop packet. As with a CPU, no packets may follow until tracing is
 * enabled again; the caller ensures this.
 */
void pt_stream__trace_stop(struct pt_stream *stream);
/* In either state: writes CYC packets from now on; nom_freq 0: none. */
void pt_stream__count_cycles(struct pt_stream *stream, uint8_t nom_freq);
/* Packets were lost; tracing goes on at ip: OVF, FUP. */
void pt_stream__overflow(struct pt_stream *stream, uint64_t ip);

/* In either state: writes packets that are held back. */
void pt_stream__flush(struct pt_stream *stream);

#endif
