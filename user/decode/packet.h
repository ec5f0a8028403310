/* SPDX-License-Identifier: MIT */
/*
 * Reads Intel PT packets (Intel SDM vol. 3, "Packet Definitions"): frequent ones itself, the rest
 * with libipt.
 */
#ifndef MTBPF_DECODE_PACKET_H
#define MTBPF_DECODE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct pt_packet_decoder;
struct rec_pt_config;

enum packet_kind {
	PACKET_END, /* the rest is not a whole packet */
	PACKET_BAD, /* the bytes are not a valid packet */
	PACKET_PAD,
	PACKET_TNT,
	PACKET_TIP,
	PACKET_PGE,
	PACKET_PGD,
	PACKET_FUP,
	PACKET_TSC,
	PACKET_TMA,
	PACKET_MTC,
	PACKET_CYC,
	PACKET_CBR,
	PACKET_MODE_EXEC,
	PACKET_MODE_TSX,
	PACKET_PSB,
	PACKET_PSBEND,
	PACKET_OVF,
	PACKET_BEFORE_FUP, /* PTWRITE, EXSTOP, MWAIT, CFE: the next FUP tells only where this
			      happened */
	PACKET_CFE,	   /* CFE without an IP of its own: the FUP of its branch tells where */
	PACKET_OTHER,
};

struct packet {
	uint8_t kind; /* enum packet_kind */
	uint8_t len;
	uint8_t n;	/* TNT: how many bits; IP: the IPBytes field */
	uint8_t event;	/* enum pt_note_kind if the packet is such an event; 0: it is not */
	uint16_t fc;	/* TMA: fast counter */
	uint64_t value; /* TNT: bits, the oldest in bit 63; IP: as sent; else the payload */
};

/*
 * The errata of CPUs that matter to the walk (Intel's specification updates; libipt knows which
 * CPU has which). These need no flag:
 *
 * BDM70: a PSB+ before a TIP.PGE gives the IP of a thread that is not traced yet. A PSB is not a
 * branch until something happens after it.
 *
 * APL12: the FUP after an OVF may give such an IP as well.
 *
 * APL11: a TIP.PGD after an OVF. Tracing is off, and the gap continues.
 *
 * SKD010: an OVF without a FUP. The walk continues at the next packet with an IP.
 *
 * SKL168: a CYC is lost before a PSB. Time is computed from each PSB's TSC and TMA.
 *
 * SKZ84 (a TMA in a guest whose TSC is offset or scaled, followed by an invalid byte) becomes a
 * bad packet.
 */
struct errata {
	bool bdm64;  /* the branch before a transaction's abort went to the abort's IP */
	bool skd007; /* an OVF may come in the middle of a CYC */
	bool skd022; /* a VM entry that ends tracing writes a FUP */
	bool skl014; /* a direct branch out of a filter's range does not tell where to */
};

/* No errata if the CPU is unknown. */
void errata__of(struct errata *errata, const struct rec_pt_config *config);

struct packet_reader {
	const uint8_t *begin, *end;
	bool skd007;			  /* errata.skd007 */
	uint64_t last_ip;		  /* SDM "FUP/TIP IP Reconstruction" */
	struct pt_packet_decoder *libipt; /* made when it is first needed */
};

#define PSB_SIZE 16

void packet_reader__init(struct packet_reader *r, const uint8_t *bytes, size_t size);
void packet_reader__fini(struct packet_reader *r);

/* Reads the packet at `at`, within [begin, end]. */
void packet__read(struct packet_reader *r, const uint8_t *at, struct packet *packet);

/* Reads TSC and core:bus ratio from the PSB+ at `at`; 0: missing. */
void packet__read_psb_plus(struct packet_reader *r, const uint8_t *at, uint64_t *tsc,
			   uint64_t *ratio);

/* The first PSB at or after `from`, or NULL. */
const uint8_t *packet__find_psb(const uint8_t *from, const uint8_t *end);

/* IPBytes (SDM "FUP/TIP IP Reconstruction"). */
enum {
	IP_SUPPRESSED = 0,
	IP_UPDATE_16 = 1,
	IP_UPDATE_32 = 2,
	IP_SEXT_48 = 3,
	IP_UPDATE_48 = 4,
	IP_FULL = 6,
};

/* The payload's size in bytes, by IPBytes; 0xff: reserved. */
static inline unsigned int packet__ip_size(unsigned int ip_bytes)
{
	return (unsigned int)(0xff08ff0606040200ull >> (8 * ip_bytes)) & 0xff;
}

/* Rebuilds the IP from the payload, and stores it as the last IP. */
static inline uint64_t packet_reader__ip(struct packet_reader *r, unsigned int ip_bytes,
					 uint64_t value)
{
	static const uint64_t masks[8] = {
		[IP_UPDATE_16] = 0xffff,   [IP_UPDATE_32] = 0xffffffff,
		[IP_SEXT_48] = UINT64_MAX, [IP_UPDATE_48] = 0xffffffffffff,
		[IP_FULL] = UINT64_MAX,
	};

	if (ip_bytes == IP_SEXT_48)
		value = (uint64_t)((int64_t)(value << 16) >> 16);
	r->last_ip = (r->last_ip & ~masks[ip_bytes]) | (value & masks[ip_bytes]);
	return r->last_ip;
}

/* Loads up to 8 bytes, little-endian; bytes after the end are 0. */
static inline uint64_t packet__load(const uint8_t *at, const uint8_t *end)
{
	uint64_t value = 0;

	if (end - at >= 8)
		memcpy(&value, at, 8);
	else if (end > at)
		memcpy(&value, at, (size_t)(end - at));
	return value;
}

#define MTC_HEADER 0x59

/* A CYC or an MTC. */
static inline bool packet__is_time(uint8_t byte)
{
	return (byte & 3) == 3 || byte == MTC_HEADER;
}

/* "Short TNT": bit 0 clear; 00 is a PAD, 02 an escape. */
static inline bool packet__is_short_tnt(uint8_t byte)
{
	return !(byte & 1) && byte > 2;
}

/* The bits of a short TNT, the oldest in bit 63: those below the byte's highest set bit. */
static inline uint64_t packet__short_tnt(uint8_t byte, unsigned int *n)
{
	unsigned int stop = 31 - (unsigned int)__builtin_clz(byte);

	*n = stop - 1;
	return (uint64_t)byte << (64 - stop);
}

#endif
