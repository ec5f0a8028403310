// SPDX-License-Identifier: (GPL-2.0-only OR MIT)
#include "pt_packet.h"

static unsigned int put_le(uint8_t *out, uint64_t value, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		out[i] = (uint8_t)(value >> (8 * i));
	return n;
}

/* "PSB Packet": 02 82, eight times. */
unsigned int pt_packet__psb(uint8_t *out)
{
	for (unsigned int i = 0; i < 16; i += 2) {
		out[i] = 0x02;
		out[i + 1] = 0x82;
	}
	return 16;
}

/* "PSBEND Packet" */
unsigned int pt_packet__psbend(uint8_t *out)
{
	return put_le(out, 0x2302, 2);
}

/* "OVF Packet" */
unsigned int pt_packet__ovf(uint8_t *out)
{
	return put_le(out, 0xf302, 2);
}

/* "TSC Packet" */
unsigned int pt_packet__tsc(uint8_t *out, uint64_t tsc)
{
	out[0] = 0x19;
	return 1 + put_le(out + 1, tsc, 7);
}

/* "TMA Packet": the fast counter has 9 bits. */
unsigned int pt_packet__tma(uint8_t *out, uint16_t ctc, uint16_t fast)
{
	return put_le(out, 0x7302 | (uint64_t)ctc << 16 | (uint64_t)(fast & 0x1ff) << 40, 7);
}

/* "MTC Packet" */
unsigned int pt_packet__mtc(uint8_t *out, uint8_t ctc)
{
	return put_le(out, 0x59 | (uint32_t)ctc << 8, 2);
}

/* "CYC Packet": 5 bits in the first byte, above its Exp bit 2; then 7 a byte, above Exp in bit 0.
 */
unsigned int pt_packet__cyc(uint8_t *out, uint64_t cycles)
{
	unsigned int n = 1;

	out[0] = (uint8_t)(cycles << 3 | (cycles >> 5 ? 7 : 3));
	for (cycles >>= 5; cycles; cycles >>= 7)
		out[n++] = (uint8_t)(cycles << 1 | (cycles >> 7 ? 1 : 0));
	return n;
}

/* "CBR Packet" */
unsigned int pt_packet__cbr(uint8_t *out, uint8_t ratio)
{
	return put_le(out, 0x0302 | (uint32_t)ratio << 16, 4);
}

/* "MODE Packets", MODE.Exec: leaf 000, CS.L = 1, CS.D = 0. */
unsigned int pt_packet__mode_exec_64(uint8_t *out)
{
	return put_le(out, 0x0199, 2);
}

/* "TNT Packet": bit 0 clear, the newest bit in bit 1, a stop bit above the oldest. */
unsigned int pt_packet__tnt(uint8_t *out, uint8_t bits, unsigned int n)
{
	out[0] = (uint8_t)(1u << (n + 1) | (uint32_t)bits << 1);
	return 1;
}

static unsigned int ip_length(enum pt_ip_bytes bytes)
{
	switch (bytes) {
	case PT_IP_SUPPRESSED:
		return 0;
	case PT_IP_UPDATE_16:
		return 2;
	case PT_IP_UPDATE_32:
		return 4;
	case PT_IP_SEXT_48:
	case PT_IP_UPDATE_48:
		return 6;
	case PT_IP_FULL:
		break;
	}
	return 8;
}

/* "TIP Packet" and those of the same form: TIP.PGE, TIP.PGD, FUP. */
unsigned int pt_packet__ip(uint8_t *out, enum pt_ip_packet packet, enum pt_ip_bytes bytes,
			   uint64_t ip)
{
	out[0] = (uint8_t)(packet | bytes << 5);
	return 1 + put_le(out + 1, ip, ip_length(bytes));
}

enum pt_ip_bytes pt_packet__compress_ip(uint64_t ip, uint64_t last, bool known)
{
	if (known && ip >> 16 == last >> 16)
		return PT_IP_UPDATE_16;
	if (known && ip >> 32 == last >> 32)
		return PT_IP_UPDATE_32;
	if (ip == (uint64_t)((int64_t)(ip << 16) >> 16))
		return PT_IP_SEXT_48;
	return PT_IP_FULL;
}
