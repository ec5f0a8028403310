// SPDX-License-Identifier: MIT
/* Each packet, as libipt's packet decoder reads it back. */
#include "pt_fixture.h"

#include <stdlib.h>

/* One packet of n bytes, all of them its own. */
static struct pt_packet read_one(uint8_t *bytes, unsigned int n)
{
	struct pt_reader r;
	struct pt_packet packet;

	assert_true(n <= PT_PACKET_MAX);
	pt_reader__open(&r, bytes, n);
	r.last_ip_known = true;
	assert_true(pt_reader__next(&r));
	packet = r.packet;
	assert_int_equal(packet.size, n);
	assert_false(pt_reader__next(&r));
	pt_reader__close(&r);
	return packet;
}

static void test_packets_without_payload(void **state)
{
	uint8_t out[PT_PACKET_MAX];

	assert_int_equal(read_one(out, pt_packet__psb(out)).type, ppt_psb);
	assert_int_equal(read_one(out, pt_packet__psbend(out)).type, ppt_psbend);
	assert_int_equal(read_one(out, pt_packet__ovf(out)).type, ppt_ovf);
	assert_int_equal(read_one(out, pt_packet__trace_stop(out)).type, ppt_stop);
}

static void test_tsc_keeps_56_bits(void **state)
{
	static const uint64_t values[] = {0, 1, 0x0123456789abcd, 0xffffffffffffff, UINT64_MAX};
	uint8_t out[PT_PACKET_MAX];

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct pt_packet packet = read_one(out, pt_packet__tsc(out, values[i]));

		assert_int_equal(packet.type, ppt_tsc);
		assert_int_equal(packet.payload.tsc.tsc, values[i] & 0xffffffffffffff);
	}
}

static void test_cbr(void **state)
{
	uint8_t out[PT_PACKET_MAX];

	for (unsigned int ratio = 0; ratio < 256; ratio++) {
		struct pt_packet packet = read_one(out, pt_packet__cbr(out, (uint8_t)ratio));

		assert_int_equal(packet.type, ppt_cbr);
		assert_int_equal(packet.payload.cbr.ratio, ratio);
	}
}

static void test_tma(void **state)
{
	static const uint16_t values[][2] = {{0, 0}, {1, 1}, {0xffff, 0x1ff}, {0x1234, 0x123}};
	uint8_t out[PT_PACKET_MAX];

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct pt_packet packet =
			read_one(out, pt_packet__tma(out, values[i][0], values[i][1]));

		assert_int_equal(packet.type, ppt_tma);
		assert_int_equal(packet.payload.tma.ctc, values[i][0]);
		assert_int_equal(packet.payload.tma.fc, values[i][1]);
	}
}

static void test_mtc(void **state)
{
	uint8_t out[PT_PACKET_MAX];

	for (unsigned int ctc = 0; ctc < 256; ctc++) {
		struct pt_packet packet = read_one(out, pt_packet__mtc(out, (uint8_t)ctc));

		assert_int_equal(packet.type, ppt_mtc);
		assert_int_equal(packet.payload.mtc.ctc, ctc);
	}
}

/* The highest value of each length, and the next one. */
static void test_cyc_of_every_length(void **state)
{
	uint8_t out[PT_PACKET_MAX];

	for (unsigned int bits = 5, len = 1; bits < 60; bits += 7, len++) {
		uint64_t most = (1ull << bits) - 1;

		for (uint64_t value = most; value <= most + 1; value++) {
			struct pt_packet packet = read_one(out, pt_packet__cyc(out, value));

			assert_int_equal(packet.type, ppt_cyc);
			assert_int_equal(packet.size, len + (value > most));
			assert_int_equal(packet.payload.cyc.value, value);
		}
	}
}

static void test_values_of_ptwrite(void **state)
{
	const uint64_t value = 0x1122334455667788;
	uint8_t out[PT_PACKET_MAX];

	for (unsigned int i = 0; i < 4; i++) {
		bool is_wide = i & 1, has_ip = i & 2;
		struct pt_packet packet =
			read_one(out, pt_packet__ptw(out, value, is_wide, has_ip));

		assert_int_equal(packet.type, ppt_ptw);
		assert_int_equal(packet.payload.ptw.ip, has_ip);
		assert_int_equal(packet.payload.ptw.payload, is_wide ? value : value & UINT32_MAX);
	}
}

/* libipt 2.0 does not know them. */
static void test_event_trace(void **state)
{
	static const uint8_t cfe[] = {0x02, 0x13, 0x01, 0xec}, cfe_ip[] = {0x02, 0x13, 0x83, 0x00};
	static const uint8_t pfa[] = {0x02, 0x53, 0,	0x88, 0x77, 0x66,
				      0x55, 0x44, 0x33, 0x22, 0x11};
	uint8_t out[PT_PACKET_MAX];

	assert_int_equal(pt_packet__cfe(out, PT_CFE_INTR, 0xec, false), sizeof(cfe));
	assert_memory_equal(out, cfe, sizeof(cfe));
	assert_int_equal(pt_packet__cfe(out, 3, 0, true), sizeof(cfe_ip));
	assert_memory_equal(out, cfe_ip, sizeof(cfe_ip));
	assert_int_equal(pt_packet__evd(out, PT_EVD_PFA, 0x1122334455667788), sizeof(pfa));
	assert_memory_equal(out, pfa, sizeof(pfa));
}

static void test_mode_says_64_bit_code(void **state)
{
	uint8_t out[PT_PACKET_MAX];
	struct pt_packet packet = read_one(out, pt_packet__mode_exec_64(out));

	assert_int_equal(packet.type, ppt_mode);
	assert_int_equal(packet.payload.mode.leaf, pt_mol_exec);
	assert_int_equal(pt_get_exec_mode(&packet.payload.mode.bits.exec), ptem_64bit);
}

static void test_tnt_of_every_length_and_value(void **state)
{
	uint8_t out[PT_PACKET_MAX];

	for (unsigned int n = 1; n <= 6; n++)
		for (unsigned int bits = 0; bits < 1u << n; bits++) {
			struct pt_packet packet =
				read_one(out, pt_packet__tnt(out, (uint8_t)bits, n));

			assert_int_equal(packet.type, ppt_tnt_8);
			assert_int_equal(packet.payload.tnt.bit_size, n);
			assert_int_equal(packet.payload.tnt.payload, bits);
		}
}

static void test_ip_packets_of_every_kind_and_length(void **state)
{
	static const struct {
		enum pt_ip_packet in;
		enum pt_packet_type type;
	} kinds[] = {{PT_TIP, ppt_tip},
		     {PT_TIP_PGE, ppt_tip_pge},
		     {PT_TIP_PGD, ppt_tip_pgd},
		     {PT_FUP, ppt_fup}};
	static const struct {
		enum pt_ip_bytes in;
		enum pt_ip_compression ipc;
		unsigned int n;
	} forms[] = {
		{PT_IP_SUPPRESSED, pt_ipc_suppressed, 1}, {PT_IP_UPDATE_16, pt_ipc_update_16, 3},
		{PT_IP_UPDATE_32, pt_ipc_update_32, 5},	  {PT_IP_SEXT_48, pt_ipc_sext_48, 7},
		{PT_IP_UPDATE_48, pt_ipc_update_48, 7},	  {PT_IP_FULL, pt_ipc_full, 9}};
	const uint64_t ip = 0x1122334455667788;
	uint8_t out[PT_PACKET_MAX];

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
			unsigned int n = pt_packet__ip(out, kinds[k].in, forms[f].in, ip);
			struct pt_packet packet = read_one(out, n);
			uint64_t mask = n == 9 ? UINT64_MAX : (1ull << 8 * (n - 1)) - 1;

			assert_int_equal(n, forms[f].n);
			assert_int_equal(packet.type, kinds[k].type);
			assert_int_equal(packet.payload.ip.ipc, forms[f].ipc);
			assert_int_equal(packet.payload.ip.ip & mask, ip & mask);
		}
}

static void test_the_shortest_form_is_taken(void **state)
{
	const uint64_t last = 0x7f0012345678;

	assert_int_equal(pt_packet__compress_ip(last, last, true), PT_IP_UPDATE_16);
	assert_int_equal(pt_packet__compress_ip(0x7f001234ffff, last, true), PT_IP_UPDATE_16);
	assert_int_equal(pt_packet__compress_ip(0x7f0012350000, last, true), PT_IP_UPDATE_32);
	assert_int_equal(pt_packet__compress_ip(0x7f00ffffffff, last, true), PT_IP_UPDATE_32);
	assert_int_equal(pt_packet__compress_ip(0x7f0100000000, last, true), PT_IP_SEXT_48);
	assert_int_equal(pt_packet__compress_ip(0xffffffff81000000, last, true), PT_IP_SEXT_48);
	assert_int_equal(pt_packet__compress_ip(0x800000000000, last, true), PT_IP_FULL);
	assert_int_equal(pt_packet__compress_ip(0x1122334455667788, last, true), PT_IP_FULL);
}

static void test_an_unknown_last_ip_is_not_relied_on(void **state)
{
	assert_int_equal(pt_packet__compress_ip(0x401000, 0x401000, false), PT_IP_SEXT_48);
	assert_int_equal(pt_packet__compress_ip(0x401000, 0, false), PT_IP_SEXT_48);
	assert_int_equal(pt_packet__compress_ip(0, 0, false), PT_IP_SEXT_48);
	assert_int_equal(pt_packet__compress_ip(0x800000000000, 0x800000000000, false), PT_IP_FULL);
}

static uint64_t random_ip(unsigned int *seed)
{
	static const uint64_t near[] = {0x401000, 0x7fff12345678, 0xffffffff81000000,
					0x800000000000};
	uint64_t ip = near[rand_r(seed) % 4];

	ip += (uint64_t)rand_r(seed) >> rand_r(seed) % 31;
	if (rand_r(seed) % 8 == 0)
		ip ^= (uint64_t)rand_r(seed) << 33;
	return ip;
}

static void test_random_ips_are_rebuilt(void **state)
{
	unsigned int seed = 1;
	struct pt_bytes stream = {0};
	uint64_t sent[2000], last = 0;
	struct pt_reader r;

	for (size_t i = 0; i < 2000; i++) {
		uint8_t out[PT_PACKET_MAX];
		enum pt_ip_bytes form;

		sent[i] = random_ip(&seed);
		form = pt_packet__compress_ip(sent[i], last, i > 0);
		pt_bytes__emit(&stream, out, pt_packet__ip(out, PT_TIP, form, sent[i]));
		last = sent[i];
	}
	pt_reader__open(&r, stream.bytes.v, stream.bytes.n);
	for (size_t i = 0; i < 2000; i++) {
		assert_true(pt_reader__next(&r));
		assert_int_equal(r.last_ip, sent[i]);
	}
	assert_false(pt_reader__next(&r));
	pt_reader__close(&r);
	VEC_FINI(&stream.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packets_without_payload),
		cmocka_unit_test(test_tsc_keeps_56_bits),
		cmocka_unit_test(test_cbr),
		cmocka_unit_test(test_tma),
		cmocka_unit_test(test_mtc),
		cmocka_unit_test(test_cyc_of_every_length),
		cmocka_unit_test(test_values_of_ptwrite),
		cmocka_unit_test(test_event_trace),
		cmocka_unit_test(test_mode_says_64_bit_code),
		cmocka_unit_test(test_tnt_of_every_length_and_value),
		cmocka_unit_test(test_ip_packets_of_every_kind_and_length),
		cmocka_unit_test(test_the_shortest_form_is_taken),
		cmocka_unit_test(test_an_unknown_last_ip_is_not_relied_on),
		cmocka_unit_test(test_random_ips_are_rebuilt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
