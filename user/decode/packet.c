// SPDX-License-Identifier: MIT
#include "decode/packet.h"

#include <intel-pt.h>

#include "capture/recording/recording.h"
#include "decode/pt_note.h"

void errata__of(struct errata *errata, const struct rec_pt_config *config)
{
	struct pt_cpu cpu = {
		.vendor = pcv_intel,
		.family = (uint16_t)config->cpu_family,
		.model = (uint8_t)config->cpu_model,
		.stepping = (uint8_t)config->cpu_stepping,
	};
	struct pt_errata all = {0};

	*errata = (struct errata){0};
	if (!config->cpu_family || pt_cpu_errata(&all, &cpu) < 0)
		return;
	errata->bdm64 = all.bdm64;
	errata->skd007 = all.skd007;
	errata->skd022 = all.skd022;
	errata->skl014 = all.skl014;
}

void packet_reader__init(struct packet_reader *r, const uint8_t *bytes, size_t size)
{
	*r = (struct packet_reader){.begin = bytes, .end = bytes + size};
}

void packet_reader__fini(struct packet_reader *r)
{
	pt_pkt_free_decoder(r->libipt);
	r->libipt = NULL;
}

/*
 * "02 82" eight times. If a CYC that ends in 02 and a TNT of 82 precede the PSB, a match begins too
 * early: the last match counts.
 */
const uint8_t *packet__find_psb(const uint8_t *from, const uint8_t *end)
{
	static const uint8_t psb[PSB_SIZE] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
					      2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};
	const uint8_t *at = from < end ? memmem(from, (size_t)(end - from), psb, PSB_SIZE) : NULL;

	while (at && end - at >= PSB_SIZE + 2 && !memcmp(at + PSB_SIZE, psb, 2))
		at += 2;
	return at;
}

static void set_event(struct packet *out, enum pt_note_kind kind, bool has_fup, uint64_t value)
{
	out->kind = has_fup ? PACKET_BEFORE_FUP : PACKET_OTHER;
	out->event = (uint8_t)kind;
	out->value = value;
}

/* Reads a packet that is rare, with libipt. */
static void read_rare(struct packet_reader *r, const uint8_t *at, struct packet *out)
{
	struct pt_packet packet;
	const struct pt_packet_mwait *mwait = &packet.payload.mwait;
	const struct pt_packet_pwre *pwre = &packet.payload.pwre;
	const struct pt_packet_pwrx *pwrx = &packet.payload.pwrx;
	int n = -pte_bad_opc;

	if (!r->libipt) {
		struct pt_config config;

		pt_config_init(&config);
		config.begin = (uint8_t *)r->begin;
		config.end = (uint8_t *)r->end;
		r->libipt = pt_pkt_alloc_decoder(&config);
	}
	if (r->libipt && pt_pkt_sync_set(r->libipt, (uint64_t)(at - r->begin)) >= 0)
		n = pt_pkt_next(r->libipt, &packet, sizeof(packet));
	if (n == -pte_eos)
		out->kind = PACKET_END;
	if (n <= 0)
		return;
	out->len = (uint8_t)n;
	switch (packet.type) {
	case ppt_ptw:
		set_event(out, PT_NOTE_PTWRITE, packet.payload.ptw.ip, packet.payload.ptw.payload);
		break;
	case ppt_mwait:
		set_event(out, PT_NOTE_MWAIT, true, mwait->hints | (uint64_t)mwait->ext << 32);
		break;
	case ppt_pwre:
		/*
		 * SDM "PWRE Packet": the hardware initiated the entry if bit 7 is set in the byte
		 * after the opcode. libipt 2.0 reads bit 3 instead.
		 */
		set_event(out, PT_NOTE_PWRE, false,
			  pwre->sub_state | pwre->state << 4 | (at[2] & 0x80 ? 1u << 8 : 0));
		break;
	case ppt_exstop:
		set_event(out, PT_NOTE_EXSTOP, packet.payload.exstop.ip, 0);
		break;
	case ppt_pwrx:
		set_event(out, PT_NOTE_PWRX, false,
			  pwrx->deepest | pwrx->last << 4 | (pwrx->interrupt ? 1u << 8 : 0) |
				  (pwrx->store ? 1u << 10 : 0) | (pwrx->autonomous ? 1u << 11 : 0));
		break;
	default:
		out->kind = PACKET_OTHER;
		break;
	}
}

/* A packet that is cut off by the end of the bytes becomes PACKET_END. */
static void set(struct packet_reader *r, const uint8_t *at, struct packet *out,
		enum packet_kind kind, unsigned int len)
{
	out->kind = (size_t)(r->end - at) < len ? PACKET_END : (uint8_t)kind;
	out->len = (uint8_t)len;
}

static uint64_t low_bytes(uint64_t value, unsigned int n)
{
	return n < 8 ? value & ((1ull << (8 * n)) - 1) : value;
}

static void read_ip(struct packet_reader *r, const uint8_t *at, struct packet *out,
		    enum packet_kind kind)
{
	unsigned int size = packet__ip_size(*at >> 5);

	if (size > 8)
		return;
	out->n = *at >> 5;
	out->value = low_bytes(packet__load(at + 1, r->end), size);
	set(r, at, out, kind, 1 + size);
}

/* SDM "CYC Packet": 5 bits, then 7 bits per byte while the lowest bit is set. */
static void read_cyc(struct packet_reader *r, const uint8_t *at, struct packet *out)
{
	unsigned int len = 1, shift = 5;
	bool more = *at & 4;

	/*
	 * Erratum SKD007: an OVF (02 F3) in place of what follows a CYC's first byte. Read as CYCs,
	 * 02 ends a CYC of two bytes, and F3 begins another one: two in a row only occur when the
	 * counter is full.
	 */
	if (more && r->skd007 && r->end - at >= 3 && at[1] == 0x02 && at[2] == 0xf3) {
		set(r, at, out, PACKET_PAD, 1);
		return;
	}
	out->value = *at >> 3;
	while (more) {
		if (at + len == r->end) {
			out->kind = PACKET_END;
			return;
		}
		/* No counter has that many bits. */
		if (shift + 7 > 64)
			return;
		more = at[len] & 1;
		out->value |= (uint64_t)(at[len] >> 1) << shift;
		shift += 7;
		len++;
	}
	set(r, at, out, PACKET_CYC, len);
}

static void read_psb(struct packet_reader *r, const uint8_t *at, struct packet *out)
{
	size_t left = (size_t)(r->end - at);

	for (size_t i = 0; i < PSB_SIZE && i < left; i++)
		if (at[i] != (i & 1 ? 0x82 : 0x02))
			return;
	set(r, at, out, PACKET_PSB, PSB_SIZE);
}

/* SDM "Control Flow Event (CFE) Packet". libipt 2.0 does not know it. */
static void read_cfe(struct packet_reader *r, const uint8_t *at, struct packet *out)
{
	set(r, at, out, PACKET_CFE, 4);
	if (out->kind == PACKET_END)
		return;
	set_event(out, PT_NOTE_CFE, true, (at[2] & 0x1f) | (uint64_t)at[3] << 8);
	if (!(at[2] & 0x80))
		out->kind = PACKET_CFE;
}

/* SDM "Event Data (EVD) Packet": it precedes the CFE that it belongs to. */
static void read_evd(struct packet_reader *r, const uint8_t *at, struct packet *out)
{
	static const uint8_t kinds[] = {PT_NOTE_PFA, PT_NOTE_VMXQ, PT_NOTE_VMXR};
	unsigned int type;

	set(r, at, out, PACKET_OTHER, 11);
	if (out->kind == PACKET_END)
		return;
	type = at[2] & 0x3f;
	if (type < sizeof(kinds))
		set_event(out, (enum pt_note_kind)kinds[type], false, packet__load(at + 3, r->end));
}

/* Packets with the prefix 02. */
static void read_extended(struct packet_reader *r, const uint8_t *at, struct packet *out)
{
	uint64_t payload;

	if (r->end - at < 2) {
		out->kind = PACKET_END;
		return;
	}
	payload = packet__load(at + 2, r->end);
	switch (at[1]) {
	case 0x82:
		read_psb(r, at, out);
		break;
	case 0xa3: /* long TNT */
		set(r, at, out, PACKET_TNT, 8);
		payload = low_bytes(payload, 6);
		if (out->kind == PACKET_TNT && !payload)
			out->kind = PACKET_BAD;
		if (out->kind != PACKET_TNT)
			break;
		out->n = (uint8_t)(63 - __builtin_clzll(payload));
		out->value = out->n ? payload << (64 - out->n) : 0;
		break;
	case 0x03:
		out->value = payload & 0xff;
		set(r, at, out, PACKET_CBR, 4);
		break;
	case 0x73:
		set(r, at, out, PACKET_TMA, 7);
		payload = low_bytes(payload, 5);
		out->value = payload & 0xffff;
		out->fc = payload >> 24 & 0x1ff;
		/* The bits around the fast counter are reserved, and 0. */
		if (out->kind == PACKET_TMA && payload != (out->value | (uint64_t)out->fc << 24))
			out->kind = PACKET_BAD;
		break;
	case 0xf3:
		set(r, at, out, PACKET_OVF, 2);
		break;
	case 0x23:
		set(r, at, out, PACKET_PSBEND, 2);
		break;
	case 0x13:
		read_cfe(r, at, out);
		break;
	case 0x53:
		read_evd(r, at, out);
		break;
	default:
		read_rare(r, at, out);
		break;
	}
}

void packet__read(struct packet_reader *r, const uint8_t *at, struct packet *out)
{
	unsigned int n;

	*out = (struct packet){.kind = PACKET_BAD};
	if (at == r->end) {
		out->kind = PACKET_END;
	} else if (packet__is_short_tnt(*at)) {
		out->value = packet__short_tnt(*at, &n);
		out->n = (uint8_t)n;
		set(r, at, out, PACKET_TNT, 1);
	} else if (!*at) {
		set(r, at, out, PACKET_PAD, 1);
	} else if (*at == 2) {
		read_extended(r, at, out);
	} else if ((*at & 3) == 3) {
		read_cyc(r, at, out);
	} else if (*at == 0x19) {
		out->value = low_bytes(packet__load(at + 1, r->end), 7);
		set(r, at, out, PACKET_TSC, 8);
	} else if (*at == MTC_HEADER) {
		out->value = low_bytes(packet__load(at + 1, r->end), 1);
		set(r, at, out, PACKET_MTC, 2);
	} else if (*at == 0x99 && r->end - at < 2) {
		out->kind = PACKET_END;
	} else if (*at == 0x99) {
		out->value = at[1] & 3;
		if (at[1] >> 5 < 2)
			set(r, at, out, at[1] >> 5 ? PACKET_MODE_TSX : PACKET_MODE_EXEC, 2);
	} else if ((*at & 0x1f) == 0x0d) {
		read_ip(r, at, out, PACKET_TIP);
	} else if ((*at & 0x1f) == 0x11) {
		read_ip(r, at, out, PACKET_PGE);
	} else if ((*at & 0x1f) == 0x01) {
		read_ip(r, at, out, PACKET_PGD);
	} else if ((*at & 0x1f) == 0x1d) {
		read_ip(r, at, out, PACKET_FUP);
	}
}

void packet__read_psb_plus(struct packet_reader *reader, const uint8_t *at, uint64_t *tsc,
			   uint64_t *ratio)
{
	struct packet packet;

	*tsc = *ratio = 0;
	packet__read(reader, at, &packet);
	do {
		at += packet.len;
		packet__read(reader, at, &packet);
		if (packet.kind == PACKET_TSC)
			*tsc = packet.value;
		else if (packet.kind == PACKET_CBR)
			*ratio = packet.value & 0xff;
	} while (packet.kind > PACKET_BAD && packet.kind != PACKET_PSBEND &&
		 packet.kind != PACKET_PSB && packet.kind != PACKET_OVF);
}
