/* SPDX-License-Identifier: MIT */
/* A PT stream in memory, and its packets as libipt's packet decoder reads them, as text. */
#ifndef MTBPF_TESTS_PT_FIXTURE_H
#define MTBPF_TESTS_PT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <intel-pt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "capture/soft/pt_stream.h"
#include "util/vec.h"

struct pt_bytes {
	VEC(uint8_t) bytes;
};

/* pt_stream's emit; ctx is a struct pt_bytes. */
static inline void pt_bytes__emit(void *ctx, const uint8_t *bytes, unsigned int len)
{
	struct pt_bytes *out = ctx;

	for (unsigned int i = 0; i < len; i++) {
		uint8_t *byte = VEC_PUSH(&out->bytes);

		assert_non_null(byte);
		*byte = bytes[i];
	}
}

/* Walks packets. */
struct pt_reader {
	struct pt_packet_decoder *decoder;
	struct pt_packet packet;
	uint64_t offset;  /* of the packet */
	uint64_t last_ip; /* the last packet's IP, rebuilt */
	bool last_ip_known;
};

static inline void pt_reader__open(struct pt_reader *r, uint8_t *bytes, size_t n)
{
	struct pt_config config;

	*r = (struct pt_reader){0};
	pt_config_init(&config);
	config.begin = bytes;
	config.end = bytes + n;
	r->decoder = pt_pkt_alloc_decoder(&config);
	assert_non_null(r->decoder);
	assert_true(pt_pkt_sync_set(r->decoder, 0) >= 0);
}

static inline void pt_reader__close(struct pt_reader *r)
{
	pt_pkt_free_decoder(r->decoder);
}

/* SDM "FUP/TIP IP Reconstruction"; without a known last IP only what needs none is right. */
static inline void pt_reader__rebuild_ip(struct pt_reader *r)
{
	uint64_t ip = r->packet.payload.ip.ip, last = r->last_ip;

	switch (r->packet.payload.ip.ipc) {
	case pt_ipc_suppressed:
		return;
	case pt_ipc_update_16:
		assert_true(r->last_ip_known);
		r->last_ip = (last & ~0xffffull) | (ip & 0xffff);
		break;
	case pt_ipc_update_32:
		assert_true(r->last_ip_known);
		r->last_ip = (last & ~0xffffffffull) | (ip & 0xffffffff);
		break;
	case pt_ipc_update_48:
		assert_true(r->last_ip_known);
		r->last_ip = (last & ~0xffffffffffffull) | (ip & 0xffffffffffff);
		break;
	case pt_ipc_sext_48:
		r->last_ip = (uint64_t)((int64_t)(ip << 16) >> 16);
		break;
	case pt_ipc_full:
		r->last_ip = ip;
		break;
	}
	r->last_ip_known = true;
}

/* False at the end of the bytes; anything that is no packet fails the test. */
static inline bool pt_reader__next(struct pt_reader *r)
{
	int n;

	assert_int_equal(pt_pkt_get_offset(r->decoder, &r->offset), 0);
	n = pt_pkt_next(r->decoder, &r->packet, sizeof(r->packet));
	if (n == -pte_eos)
		return false;
	assert_true(n > 0);
	switch (r->packet.type) {
	case ppt_psb:
	case ppt_ovf:
		r->last_ip_known = false;
		break;
	case ppt_fup:
	case ppt_tip:
	case ppt_tip_pge:
	case ppt_tip_pgd:
		pt_reader__rebuild_ip(r);
		break;
	default:
		break;
	}
	return true;
}

static inline int pt_reader__print_ip(const struct pt_reader *r, char *out, size_t size)
{
	static const char *const forms[] = {"none", "16", "32", "sext48", "48", "?", "full"};
	enum pt_ip_compression ipc = r->packet.payload.ip.ipc;

	if (ipc == pt_ipc_suppressed)
		return snprintf(out, size, "-");
	return snprintf(out, size, "%s:%" PRIx64, forms[ipc], r->last_ip);
}

static inline void pt_reader__print(const struct pt_reader *r, char *out, size_t size)
{
	static const char *const names[] = {
		[ppt_pad] = "pad",	 [ppt_psb] = "psb",	    [ppt_psbend] = "psbend",
		[ppt_fup] = "fup ",	 [ppt_tip] = "tip ",	    [ppt_tip_pge] = "pge ",
		[ppt_tip_pgd] = "pgd ",	 [ppt_tnt_8] = "tnt ",	    [ppt_mode] = "mode",
		[ppt_cbr] = "cbr ",	 [ppt_tsc] = "tsc ",	    [ppt_ovf] = "ovf",
		[ppt_tnt_64] = "tnt-64", [ppt_invalid] = "invalid", [ppt_tma] = "tma ",
		[ppt_mtc] = "mtc ",	 [ppt_cyc] = "cyc ",
	};
	const struct pt_packet *p = &r->packet;
	int n = snprintf(out, size, "%s",
			 p->type <= ppt_ovf && names[p->type] ? names[p->type] : "?");

	out += n;
	size -= (size_t)n;
	switch (p->type) {
	case ppt_fup:
	case ppt_tip:
	case ppt_tip_pge:
	case ppt_tip_pgd:
		pt_reader__print_ip(r, out, size);
		break;
	case ppt_tnt_8:
		for (int bit = p->payload.tnt.bit_size - 1; bit >= 0; bit--)
			*out++ = p->payload.tnt.payload >> bit & 1 ? 'T' : 'N';
		*out = '\0';
		break;
	case ppt_cbr:
		snprintf(out, size, "%u", p->payload.cbr.ratio);
		break;
	case ppt_tsc:
		snprintf(out, size, "%" PRIu64, p->payload.tsc.tsc);
		break;
	case ppt_tma:
		snprintf(out, size, "%u+%u", p->payload.tma.ctc, p->payload.tma.fc);
		break;
	case ppt_mtc:
		snprintf(out, size, "%u", p->payload.mtc.ctc);
		break;
	case ppt_cyc:
		snprintf(out, size, "%" PRIu64, p->payload.cyc.value);
		break;
	default:
		break;
	}
}

/* "psb, tsc 1, fup sext48:401000, psbend": every packet, IPs rebuilt. */
static inline void assert_packets(const struct pt_bytes *stream, const char *expected)
{
	static char text[1 << 16];
	struct pt_reader r;
	size_t n = 0;

	text[0] = '\0';
	pt_reader__open(&r, stream->bytes.v, stream->bytes.n);
	while (pt_reader__next(&r)) {
		assert_true(n + 64 < sizeof(text));
		if (n)
			n += (size_t)snprintf(text + n, sizeof(text) - n, ", ");
		pt_reader__print(&r, text + n, sizeof(text) - n);
		n += strlen(text + n);
	}
	pt_reader__close(&r);
	assert_string_equal(text, expected);
}

#endif
