/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The bytes of Intel PT packets (Intel SDM vol. 3, chapter "Intel Processor Trace", "Packet
 * Definitions"; its titles are quoted in pt_packet.c). Freestanding: no libc, so that a kernel
 * module can share it. Each function writes one packet to out and returns its length.
 */
#ifndef MTBPF_CAPTURE_SOFT_PT_PACKET_H
#define MTBPF_CAPTURE_SOFT_PT_PACKET_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
#endif

#define PT_PACKET_MAX 16

/* Packets that carry an IP; the value is bits 4:0 of the first byte . */
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
/* The CTC's low 16 bits at the last TSC packet, and the TSC ticks since the CTC's last edge: 0-511.
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
/* n taken (1) / not taken (0) bits, 1 to 6, the oldest in the highest of the n. */
unsigned int pt_packet__tnt(uint8_t *out, uint8_t bits, unsigned int n);
/* The low bytes of ip that `bytes` says; what the decoder adds is the caller's concern. */
unsigned int pt_packet__ip(uint8_t *out, enum pt_ip_packet packet, enum pt_ip_bytes bytes,
			   uint64_t ip);

/*
 * The shortest IPBytes from which a decoder whose last IP is `last` rebuilds ip. Without a known
 * last IP (known == false: after a PSB) only forms that do not need it.
 */
enum pt_ip_bytes pt_packet__compress_ip(uint64_t ip, uint64_t last, bool known);

#endif
