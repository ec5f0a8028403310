/* SPDX-License-Identifier: MIT */
/* Streams made packet by packet, of the code in decode_fixture.h and a little more. */
#ifndef MTBPF_TESTS_PACKETS_FIXTURE_H
#define MTBPF_TESTS_PACKETS_FIXTURE_H

#include "decode_fixture.h"

#define KERNEL 0xffffffff81000000ull

static inline void put(struct traced *t, const uint8_t *bytes, unsigned int n)
{
	pt_bytes__emit(&t->out, bytes, n);
}

static inline void put_tsc(struct traced *t, uint64_t tsc)
{
	uint8_t p[PT_PACKET_MAX];

	t->now = tsc;
	put(t, p, pt_packet__tsc(p, tsc));
}

static inline void put_ip(struct traced *t, enum pt_ip_packet kind, uint64_t ip)
{
	uint8_t p[PT_PACKET_MAX];

	put(t, p, pt_packet__ip(p, kind, ip ? PT_IP_SEXT_48 : PT_IP_SUPPRESSED, ip));
}

static inline void put_tip(struct traced *t, uint64_t at)
{
	put_ip(t, PT_TIP, BASE + at);
}

/* "TNT": the oldest first. */
static inline void put_tnt(struct traced *t, const char *bits)
{
	uint8_t p[PT_PACKET_MAX], value = 0;
	unsigned int n = (unsigned int)strlen(bits);

	for (unsigned int i = 0; i < n; i++)
		value = (uint8_t)(value << 1 | (bits[i] == 'T'));
	put(t, p, pt_packet__tnt(p, value, n));
}

/* ip 0: tracing is off. */
static inline void put_psb(struct traced *t, uint64_t tsc, uint64_t ip)
{
	uint8_t p[PT_PACKET_MAX];

	put(t, p, pt_packet__psb(p));
	put_tsc(t, tsc);
	put(t, p, pt_packet__mode_exec_64(p));
	if (ip)
		put_ip(t, PT_FUP, ip);
	put(t, p, pt_packet__psbend(p));
}

static inline void put_ovf(struct traced *t)
{
	uint8_t p[PT_PACKET_MAX];

	put(t, p, pt_packet__ovf(p));
}

/* call *%rax; ret; call *%rax; ret; nop; ret */
#define SITE_1	0x180
#define RET_1	0x182
#define SITE_2	0x183
#define RET_2	0x185
#define SMALL	0x186
#define SMALL_2 0x187

static inline int set_up(void **state)
{
	static const uint8_t calls[] = {0xff, 0xd0, 0xc3, 0xff, 0xd0, 0xc3, 0x90, 0xc3};
	static const uint8_t handler[] = {0x90, 0x48, 0xcf, 0xc3}; /* nop; iretq; ret */
	struct rec_map map = {
		.start = KERNEL, .len = CODE_SIZE, .pid = PID, .tid = PID, .path = "[kernel]"};
	struct rec_image image = {.path = "[kernel]", .start = KERNEL, .size = CODE_SIZE};
	struct traced *t = malloc(sizeof(*t));
	uint8_t code[CODE_SIZE];

	traced__init(t, NO_PSB, NO_TSC, true);
	memset(code, 0x90, sizeof(code));
	memcpy(code, handler, sizeof(handler));
	image.data = code;
	assert_int_equal(recording__add_map(&t->rec, &map), 0);
	assert_int_equal(recording__add_image(&t->rec, &image), 0);
	memcpy(t->rec.images.v[0].data + SITE_1, calls, sizeof(calls));
	*state = t;
	return 0;
}

static inline int tear_down(void **state)
{
	traced__fini(*state);
	free(*state);
	return 0;
}

static inline void expect(struct traced *t, enum branch_kind kind, uint32_t n_insns, uint64_t from,
			  uint64_t to, uint8_t len)
{
	struct branch *b = VEC_PUSH(&t->taken.list);

	assert_non_null(b);
	*b = (struct branch){
		.from = from, .to = to, .n_insns = n_insns, .kind = (uint8_t)kind, .len = len};
}

static inline void expect_gap(struct traced *t, enum gap_reason reason, uint64_t from)
{
	expect(t, BRANCH_GAP, 0, from, 0, 0);
	t->taken.list.v[t->taken.list.n - 1].reason = (uint8_t)reason;
}

static inline void check(struct traced *t)
{
	traced__decode(t);
	assert_decoded(t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
