// SPDX-License-Identifier: MIT
/* Our packet reader against libipt's, packet by packet, on bytes of any kind. */
#include "pt_fixture.h"

#include <stdlib.h>

#include "decode/packet.h"
#include "decode/pt_note.h"

/* Those of PTWRITE and power states. */
static void translate_event(const struct pt_packet *p, struct packet *out)
{
	switch (p->type) {
	case ppt_ptw:
		out->kind = p->payload.ptw.ip ? PACKET_BEFORE_FUP : PACKET_OTHER;
		out->value = p->payload.ptw.payload;
		break;
	case ppt_mwait:
		out->kind = PACKET_BEFORE_FUP;
		out->value = (uint64_t)p->payload.mwait.ext << 32 | p->payload.mwait.hints;
		break;
	case ppt_pwre:
		out->value = p->payload.pwre.state << 4 | p->payload.pwre.sub_state;
		break;
	case ppt_pwrx:
		out->value = p->payload.pwrx.autonomous << 11 | p->payload.pwrx.store << 10 |
			     p->payload.pwrx.interrupt << 8 | p->payload.pwrx.last << 4 |
			     p->payload.pwrx.deepest;
		break;
	case ppt_exstop:
		out->kind = p->payload.exstop.ip ? PACKET_BEFORE_FUP : PACKET_OTHER;
		break;
	default:
		break;
	}
}

/* libipt's packet in our words. */
static struct packet translate(const struct pt_packet *p)
{
	struct packet out = {.kind = PACKET_OTHER, .len = p->size};

	switch (p->type) {
	case ppt_pad:
		out.kind = PACKET_PAD;
		break;
	case ppt_tnt_8:
	case ppt_tnt_64:
		out.kind = PACKET_TNT;
		out.n = p->payload.tnt.bit_size;
		out.value = out.n ? p->payload.tnt.payload << (64 - out.n) : 0;
		break;
	case ppt_tip:
	case ppt_tip_pge:
	case ppt_tip_pgd:
	case ppt_fup:
		out.kind = p->type == ppt_tip	    ? PACKET_TIP
			   : p->type == ppt_tip_pge ? PACKET_PGE
			   : p->type == ppt_tip_pgd ? PACKET_PGD
						    : PACKET_FUP;
		out.n = (uint8_t)p->payload.ip.ipc;
		out.value = p->payload.ip.ip;
		break;
	case ppt_tsc:
		out.kind = PACKET_TSC;
		out.value = p->payload.tsc.tsc;
		break;
	case ppt_tma:
		out.kind = PACKET_TMA;
		out.value = p->payload.tma.ctc;
		out.fc = p->payload.tma.fc;
		break;
	case ppt_mtc:
		out.kind = PACKET_MTC;
		out.value = p->payload.mtc.ctc;
		break;
	case ppt_cyc:
		out.kind = PACKET_CYC;
		out.value = p->payload.cyc.value;
		break;
	case ppt_cbr:
		out.kind = PACKET_CBR;
		out.value = p->payload.cbr.ratio;
		break;
	case ppt_mode:
		if (p->payload.mode.leaf == pt_mol_exec) {
			out.kind = PACKET_MODE_EXEC;
			out.value = p->payload.mode.bits.exec.csl | p->payload.mode.bits.exec.csd
									    << 1;
		} else {
			out.kind = PACKET_MODE_TSX;
			out.value = p->payload.mode.bits.tsx.intx | p->payload.mode.bits.tsx.abrt
									    << 1;
		}
		break;
	case ppt_psb:
		out.kind = PACKET_PSB;
		break;
	case ppt_psbend:
		out.kind = PACKET_PSBEND;
		break;
	case ppt_ovf:
		out.kind = PACKET_OVF;
		break;
	default:
		translate_event(p, &out);
		break;
	}
	return out;
}

static struct packet read_libipt(struct pt_packet_decoder *decoder, uint64_t offset)
{
	struct pt_packet packet;
	int n = pt_pkt_sync_set(decoder, offset);

	if (n >= 0)
		n = pt_pkt_next(decoder, &packet, sizeof(packet));
	if (n < 0)
		return (struct packet){.kind = n == -pte_eos ? PACKET_END : PACKET_BAD};
	return translate(&packet);
}

/* At each byte of them, as if a packet began there. */
static void check(const uint8_t *bytes, size_t n)
{
	uint8_t *copy = malloc(n);
	struct pt_packet_decoder *decoder;
	struct packet_reader r;
	struct pt_config config;

	memcpy(copy, bytes, n);
	packet_reader__init(&r, copy, n);
	pt_config_init(&config);
	config.begin = copy;
	config.end = copy + n;
	decoder = pt_pkt_alloc_decoder(&config);
	assert_non_null(decoder);
	for (size_t at = 0; at <= n; at++) {
		struct packet theirs = read_libipt(decoder, at), ours;

		packet__read(&r, copy + at, &ours);
		/* A packet that is cut or none may look like either. */
		if (theirs.kind <= PACKET_BAD && ours.kind <= PACKET_BAD &&
		    (theirs.kind == ours.kind || n - at < PSB_SIZE))
			continue;
		/* A TRIG packet, known to libipt from 2.2 on: mtbpf turns no triggers on. */
		if (copy[at] == 0xd9 && ours.kind == PACKET_BAD)
			continue;
		/* Event Trace's CFE and EVD, which libipt 2.0 does not know: test_pt_notes.c. */
		if (theirs.kind <= PACKET_BAD && n - at >= 2 && copy[at] == 0x02 &&
		    (copy[at + 1] == 0x13 || copy[at + 1] == 0x53))
			continue;
		/* libipt has another bit for "by hardware" than the SDM: test_pt_notes.c. */
		if (ours.event == PT_NOTE_PWRE)
			ours.value &= 0xff;
		if (theirs.kind != ours.kind || theirs.len != ours.len || theirs.n != ours.n ||
		    theirs.value != ours.value || theirs.fc != ours.fc)
			print_message("%02x %02x %02x: kind %u len %u n %u value %" PRIx64
				      ", libipt's %u %u %u %" PRIx64 "\n",
				      copy[at], at + 1 < n ? copy[at + 1] : 0,
				      at + 2 < n ? copy[at + 2] : 0, ours.kind, ours.len, ours.n,
				      ours.value, theirs.kind, theirs.len, theirs.n, theirs.value);
		assert_int_equal(theirs.kind, ours.kind);
		assert_int_equal(theirs.len, ours.len);
		assert_int_equal(theirs.n, ours.n);
		assert_int_equal(theirs.value, ours.value);
		assert_int_equal(theirs.fc, ours.fc);
	}
	pt_pkt_free_decoder(decoder);
	packet_reader__fini(&r);
	free(copy);
}

static void test_every_header(void **state)
{
	uint8_t bytes[32];
	unsigned int seed = 3;

	for (unsigned int first = 0; first < 256; first++)
		for (unsigned int second = 0; second < 256; second++) {
			for (size_t i = 2; i < sizeof(bytes); i++)
				bytes[i] = (uint8_t)rand_r(&seed);
			bytes[0] = (uint8_t)first;
			bytes[1] = (uint8_t)second;
			check(bytes, sizeof(bytes));
		}
}

/* Bytes from here begin many packets. */
static const uint8_t frequent[] = {0x00, 0x02, 0x82, 0x03, 0x0d, 0x2d, 0x4d, 0x6d, 0x8d,
				   0xcd, 0x11, 0x71, 0x01, 0x7d, 0x19, 0x59, 0x99, 0xa3,
				   0x73, 0xf3, 0x23, 0x43, 0xc3, 0x62, 0x12, 0x07, 0xff};

static void test_random_bytes(void **state)
{
	unsigned int seed = 5;
	uint8_t bytes[200];

	for (int round = 0; round < 2000; round++) {
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = rand_r(&seed) % 2
					   ? frequent[(size_t)rand_r(&seed) % sizeof(frequent)]
					   : (uint8_t)rand_r(&seed);
		check(bytes, 1 + (size_t)rand_r(&seed) % sizeof(bytes));
	}
}

static void test_a_psb(void **state)
{
	uint8_t bytes[64] = {0};

	assert_null(packet__find_psb(bytes, bytes + sizeof(bytes)));
	pt_packet__psb(bytes + 20);
	assert_ptr_equal(packet__find_psb(bytes, bytes + sizeof(bytes)), bytes + 20);
	assert_ptr_equal(packet__find_psb(bytes, bytes + 36), bytes + 20);
	assert_null(packet__find_psb(bytes, bytes + 35));
	assert_null(packet__find_psb(bytes + 21, bytes + sizeof(bytes)));
}

/* A CYC that ends in 02, and a TNT of 82, look like the PSB's beginning. */
static void test_a_psb_behind_bytes_like_its_own(void **state)
{
	uint8_t bytes[64] = {0};

	for (size_t i = 0; i < 3; i++)
		memcpy(bytes + 14 + 2 * i, "\x02\x82", 2);
	pt_packet__psb(bytes + 20);
	assert_ptr_equal(packet__find_psb(bytes, bytes + sizeof(bytes)), bytes + 20);
	assert_ptr_equal(packet__find_psb(bytes, bytes + 36), bytes + 20);
}

/* SDM "FUP/TIP IP Reconstruction" */
static void test_ips(void **state)
{
	struct packet_reader r = {.last_ip = 0x1122334455667788};

	assert_int_equal(packet_reader__ip(&r, IP_UPDATE_16, 0xffff), 0x112233445566ffff);
	assert_int_equal(packet_reader__ip(&r, IP_UPDATE_32, 0x1), 0x1122334400000001);
	assert_int_equal(packet_reader__ip(&r, IP_UPDATE_48, 0xa0000000000b), 0x1122a0000000000b);
	assert_int_equal(packet_reader__ip(&r, IP_SEXT_48, 0x800000000000), 0xffff800000000000);
	assert_int_equal(packet_reader__ip(&r, IP_SEXT_48, 0x7fffffffffff), 0x7fffffffffff);
	assert_int_equal(packet_reader__ip(&r, IP_FULL, 0x8877665544332211), 0x8877665544332211);
	assert_int_equal(r.last_ip, 0x8877665544332211);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_header),
		cmocka_unit_test(test_random_bytes),
		cmocka_unit_test(test_a_psb),
		cmocka_unit_test(test_a_psb_behind_bytes_like_its_own),
		cmocka_unit_test(test_ips),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
