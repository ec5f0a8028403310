// SPDX-License-Identifier: MIT
/* What the decoder remembers, of code and of packets, where it is no longer true. */
#include "packets_fixture.h"

/* The same bytes at the same code, over and over, but with other calls pending. */
static void test_what_was_replayed_depends_on_the_calls(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + SITE_1);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	for (int i = 0; i < 40; i++) {
		bool second = i % 3 == 1;

		put_tip(t, SMALL);
		put_tnt(t, "T");
		put_tip(t, i % 3 == 0 ? SITE_2 : SITE_1);
		expect(t, BRANCH_CALL, 1, BASE + (second ? SITE_2 : SITE_1), BASE + SMALL, 2);
		expect(t, BRANCH_RETURN, 2, BASE + SMALL_2, BASE + (second ? RET_2 : RET_1), 1);
		expect(t, BRANCH_RETURN, 1, BASE + (second ? RET_2 : RET_1),
		       BASE + (i % 3 == 0 ? SITE_2 : SITE_1), 1);
	}
	expect(t, BRANCH_END, 0, t->taken.list.v[t->taken.list.n - 1].to, 0, 0);
	check(t);
}

/* A full return behind it takes a call away that is older than the run. */
static void test_a_replayed_run_that_takes_a_call_away(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + SITE_1);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	for (int i = 0; i < 8; i++) {
		put_tip(t, SITE_1);
		expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + SITE_1, 2);
	}
	put_tip(t, SMALL);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + SMALL, 2);
	for (int i = 0; i < 6; i++) {
		put_tip(t, SMALL);
		expect(t, BRANCH_RETURN, 2, BASE + SMALL_2, BASE + SMALL, 1);
	}
	put_tnt(t, "TTTT");
	expect(t, BRANCH_RETURN, 2, BASE + SMALL_2, BASE + RET_1, 1);
	expect(t, BRANCH_RETURN, 1, BASE + RET_1, BASE + RET_1, 1);
	expect(t, BRANCH_RETURN, 1, BASE + RET_1, BASE + RET_1, 1);
	expect_gap(t, GAP_MISMATCH, BASE + RET_1);
	check(t);
}

static void put_short_ip(struct traced *t, enum pt_ip_packet kind, enum pt_ip_bytes bytes,
			 uint64_t ip)
{
	uint8_t p[PT_PACKET_MAX];

	put(t, p, pt_packet__ip(p, kind, bytes, ip));
}

/* Two bytes of an IP mean another one where the last one was far away. */
static void test_a_replayed_run_with_part_of_an_ip(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + RET_1);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + RET_1, 0);
	for (int i = 0; i < 5; i++) {
		put_short_ip(t, PT_TIP, PT_IP_UPDATE_16, BASE + RET_1);
		expect(t, BRANCH_RETURN, 1, BASE + RET_1, BASE + RET_1, 1);
	}
	put_tip(t, SITE_1);
	expect(t, BRANCH_RETURN, 1, BASE + RET_1, BASE + SITE_1, 1);
	put_ip(t, PT_TIP, KERNEL + 3);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, KERNEL + 3, 2);
	put_tnt(t, "T");
	expect(t, BRANCH_RETURN, 1, KERNEL + 3, BASE + RET_1, 1);
	put_short_ip(t, PT_TIP, PT_IP_UPDATE_16, BASE + RET_1);
	expect(t, BRANCH_RETURN, 1, BASE + RET_1, KERNEL + 0x1000 + RET_1, 1);
	expect(t, BRANCH_END, 0, KERNEL + 0x1000 + RET_1, 0, 0);
	check(t);
}

static void put_cyc(struct traced *t, uint64_t cycles)
{
	uint8_t p[PT_PACKET_MAX];

	put(t, p, pt_packet__cyc(p, cycles));
}

/* What is replayed has the times of the packets that it is replayed for. */
static void test_replayed_runs_with_times_in_them(void **state)
{
	struct traced *t = *state;
	uint8_t p[PT_PACKET_MAX];
	uint64_t now = 100;

	t->rec.pt.nom_freq = 10;
	put_psb(t, now, BASE + SITE_1);
	put(t, p, pt_packet__cbr(p, 10));
	for (uint64_t i = 0; i < 60; i++) {
		put_cyc(t, i % 5 * 40);
		put_tip(t, SMALL);
		put_cyc(t, 3 + i);
		put_tnt(t, "T");
		put_cyc(t, i % 7 * 1000);
		put_tip(t, SITE_1);
	}
	traced__decode(t);
	assert_int_equal(t->seen.list.n, 1 + 3 * 60 + 1);
	for (uint64_t i = 0; i < 60; i++) {
		const struct branch *b = &t->seen.list.v[1 + 3 * i];

		assert_int_equal(b[0].kind, BRANCH_CALL);
		assert_int_equal(b[0].time_ns, now += i % 5 * 40);
		assert_int_equal(b[1].kind, BRANCH_RETURN);
		assert_int_equal(b[1].time_ns, now += 3 + i);
		assert_int_equal(b[2].kind, BRANCH_RETURN);
		assert_int_equal(b[2].time_ns, now += i % 7 * 1000);
	}
}

/*
 * A TNT bit that comes before the TIP of the branch before it (SDM "Deferred TIPs"): the jump in
 * front of that branch has the time when the thread came there, and not the TNT's.
 */
static void test_replayed_runs_with_a_deferred_tip(void **state)
{
	static const struct {
		uint16_t at;
		uint8_t bytes[2];
	} code[] = {{0x100, {0xeb, 0x0e}},  /* jmp 110 */
		    {0x110, {0xff, 0xe0}},  /* jmp *%rax: 120 */
		    {0x120, {0x75, 0x04}},  /* jne 126 */
		    {0x126, {0xff, 0xe0}}}; /* jmp *%rax: 100 */
	struct traced *t = *state;
	uint8_t p[PT_PACKET_MAX];
	uint64_t now = 100;

	for (int i = 0; i < 4; i++)
		memcpy((uint8_t *)t->rec.images.v[0].data + code[i].at, code[i].bytes, 2);
	t->rec.pt.nom_freq = 10;
	put_psb(t, now, BASE + 0x100);
	put(t, p, pt_packet__cbr(p, 10));
	for (uint64_t i = 0; i < 40; i++) {
		put_cyc(t, 7 + i);
		put_tnt(t, "T");
		put_cyc(t, 50 + i % 3);
		put_tip(t, 0x120);
		put_cyc(t, 1000);
		put_tip(t, 0x100);
	}
	traced__decode(t);
	assert_int_equal(t->seen.list.n, 1 + 4 * 40 + 1);
	for (uint64_t i = 0; i < 40; i++) {
		const struct branch *b = &t->seen.list.v[1 + 4 * i];

		assert_int_equal(b[0].from, BASE + 0x100);
		assert_int_equal(b[0].time_ns, now);
		now += 7 + i + 50 + i % 3;
		assert_int_equal(b[1].from, BASE + 0x110);
		assert_int_equal(b[1].time_ns, now);
		assert_int_equal(b[2].kind, BRANCH_COND);
		assert_int_equal(b[2].time_ns, now);
		now += 1000;
		assert_int_equal(b[3].to, BASE + 0x100);
		assert_int_equal(b[3].time_ns, now);
	}
}

/* The same around MTCs, which begin to count anew in the middle of a run. */
static void test_replayed_runs_with_mtcs_in_them(void **state)
{
	struct traced *t = *state;
	uint8_t p[PT_PACKET_MAX];
	const struct branch *b;

	t->rec.pt.nom_freq = 10;
	t->rec.pt.tsc_ctc_num = t->rec.pt.tsc_ctc_den = 1;
	t->rec.pt.mtc_freq = 14;
	put_psb(t, 100, BASE + SITE_1);
	put(t, p, pt_packet__cbr(p, 10));
	put_tsc(t, 100);
	put(t, p, pt_packet__tma(p, 0, 0));
	for (uint64_t i = 1; i <= 60; i++) {
		put_cyc(t, 9);
		/* Once behind an MTC that is replayed, one that was not seen before. */
		put_short_ip(t, PT_TIP, i == 41 ? PT_IP_UPDATE_32 : PT_IP_SEXT_48, BASE + SMALL);
		put_cyc(t, 2000);
		put(t, p, pt_packet__mtc(p, (uint8_t)i));
		put_cyc(t, 3 + i);
		put_tnt(t, "T");
		put_cyc(t, i % 7 * 1000);
		put_tip(t, SITE_1);
	}
	traced__decode(t);
	assert_int_equal(t->seen.list.n, 1 + 3 * 60 + 1);
	for (uint64_t i = 1; i < 60; i++) {
		b = &t->seen.list.v[3 * i - 1];
		assert_int_equal(b[0].kind, BRANCH_RETURN);
		assert_int_equal(b[0].time_ns, 100 + (i << 14) + 3 + i);
		assert_int_equal(b[1].kind, BRANCH_RETURN);
		assert_int_equal(b[1].time_ns, 100 + (i << 14) + 3 + i + i % 7 * 1000);
		assert_int_equal(b[2].kind, BRANCH_CALL);
		assert_int_equal(b[2].time_ns, 100 + (i << 14) + 3 + i + i % 7 * 1000 + 9);
	}
}

/* An OVF forgets the last IP. */
static void test_part_of_an_ip_behind_an_overflow(void **state)
{
	struct traced *t = *state;

	put_psb(t, 100, BASE + SITE_1);
	put_ip(t, PT_TIP, KERNEL);
	put_ovf(t);
	put_short_ip(t, PT_FUP, PT_IP_UPDATE_32, BASE + SITE_2);
	put_tip(t, SMALL);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, KERNEL, 2);
	expect_gap(t, GAP_OVERFLOW, 0);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_2, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_2, BASE + SMALL, 2);
	expect(t, BRANCH_END, 0, BASE + SMALL, 0, 0);
	check(t);
}

/* Other code is mapped while a call is pending: where that returns to is still known. */
static void test_code_that_changes_under_a_call(void **state)
{
	struct traced *t = *state;
	uint8_t code[CODE_SIZE];

	memcpy(code, t->rec.images.v[0].data, sizeof(code));
	code[SMALL] = 0xc3;
	traced__map(t, 1000, "[code, new]", code);
	put_psb(t, 100, BASE + SITE_1);
	put_tip(t, SMALL);
	put_ip(t, PT_FUP, BASE + SMALL);
	put_ip(t, PT_TIP_PGD, 0);
	put_tsc(t, 2000);
	put_ip(t, PT_TIP_PGE, BASE + SMALL);
	put_tnt(t, "T");
	put_tip(t, SITE_1);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + SMALL, 2);
	expect(t, BRANCH_END_ASYNC, 0, BASE + SMALL, 0, 0);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SMALL, 0);
	expect(t, BRANCH_RETURN, 1, BASE + SMALL, BASE + RET_1, 1);
	expect(t, BRANCH_RETURN, 1, BASE + RET_1, BASE + SITE_1, 1);
	expect(t, BRANCH_END, 0, BASE + SITE_1, 0, 0);
	check(t);
}

/* Code that was missing is there the next time. */
static void test_code_that_is_mapped_later(void **state)
{
	struct traced *t = *state;
	struct rec_map map = {.time_ns = 1000,
			      .start = BASE + 0x100000,
			      .len = CODE_SIZE,
			      .pid = PID,
			      .tid = PID,
			      .path = "[code]"};

	assert_int_equal(recording__add_map(&t->rec, &map), 0);
	put_psb(t, 100, BASE + SITE_1);
	for (int i = 0; i < 2; i++) {
		put_tip(t, 0x100000 + SITE_2);
		if (!i) {
			put_ip(t, PT_FUP, BASE + 0x100000 + SITE_2);
			put_ip(t, PT_TIP_PGD, 0);
			put_tsc(t, 2000);
			put_ip(t, PT_TIP_PGE, BASE + SITE_1);
		}
	}
	put_tip(t, 0);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + 0x100000 + SITE_2, 2);
	expect(t, BRANCH_END_ASYNC, 0, BASE + 0x100000 + SITE_2, 0, 0);
	expect(t, BRANCH_BEGIN, 0, 0, BASE + SITE_1, 0);
	expect(t, BRANCH_CALL, 1, BASE + SITE_1, BASE + 0x100000 + SITE_2, 2);
	expect(t, BRANCH_CALL, 1, BASE + 0x100000 + SITE_2, BASE, 2);
	expect(t, BRANCH_END, 0, BASE, 0, 0);
	check(t);
}

/* Another thread's trace begins before the code changed that the first one's ended with. */
static void test_a_second_thread_sees_the_code_of_its_time(void **state)
{
	struct traced *t = *state;
	struct images *images = images__new(&t->rec);
	uint8_t code[CODE_SIZE];

	memcpy(code, t->rec.images.v[0].data, sizeof(code));
	code[SMALL] = 0xc3;
	traced__map(t, 1000, "[code, new]", code);
	put_psb(t, 100, BASE + SMALL);
	put_tip(t, SMALL);
	put_psb(t, 2000, BASE + SMALL);
	put_tip(t, SITE_1);
	for (int i = 0; i < 3; i++) {
		struct rec_aux aux = {.pid = PID, .tid = TID, .tsc = t->now};
		struct code_map *map = code_map__new();

		aux.data = t->out.bytes.v;
		aux.size = t->out.bytes.n;
		t->seen.list.n = 0;
		assert_int_equal(decode__run(&(struct decode_request){.rec = &t->rec,
								      .aux = &aux,
								      .images = images,
								      .map = map,
								      .take = traced__take_all,
								      .ctx = t,
								      .totals = &t->totals}),
				 0);
		assert_int_equal(t->seen.list.n, 4);
		assert_int_equal(t->seen.list.v[1].from, BASE + SMALL_2);
		assert_int_equal(t->seen.list.v[2].from, BASE + SMALL);
		code_map__free(map);
	}
	images__free(images);
}

/* More than fits into one batch, and more than one region each has to wait for. */
static void test_many_branches_in_many_regions(void **state)
{
	static const struct decoding alone = {.run = decode__run, .jobs = 1, .region_size = 5000};
	static const struct decoding at_once = {.run = decode__run, .jobs = 3, .region_size = 5000};
	struct traced t;

	traced__init(&t, 5000, 100, true);
	traced__run(&t, 8000);
	traced__decode_both(&t, &alone, &at_once, t.out.bytes.v, t.out.bytes.n);
	assert_decoded(&t);
	traced__fini(&t);
	traced__init(&t, 100000, 100, true);
	traced__run(&t, 8000);
	traced__decode_both(&t, &alone, &at_once, t.out.bytes.v, t.out.bytes.n);
	assert_decoded(&t);
	traced__fini(&t);
}

static int stop(void *ctx, const struct branch *branch)
{
	return ++*(int *)ctx == 20000 ? 77 : 0;
}

TAKE_EACH(stop_late, stop)

static void test_the_taker_stops_many_threads(void **state)
{
	struct images *images;
	struct code_map *map = code_map__new();
	struct traced t;
	struct rec_aux aux = {.pid = PID, .tid = TID};
	int taken = 0;

	traced__init(&t, 1000, 100, true);
	traced__run(&t, 8000);
	images = images__new(&t.rec);
	aux.data = t.out.bytes.v;
	aux.size = t.out.bytes.n;
	assert_int_equal(decode__run(&(struct decode_request){.rec = &t.rec,
							      .aux = &aux,
							      .images = images,
							      .map = map,
							      .take = stop_late,
							      .ctx = &taken,
							      .totals = &t.totals,
							      .all_branches = true,
							      .jobs = 4,
							      .region_size = 1000}),
			 77);
	assert_int_equal(taken, 20000);
	code_map__free(map);
	images__free(images);
	traced__fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_was_replayed_depends_on_the_calls),
		TEST(test_a_replayed_run_that_takes_a_call_away),
		TEST(test_a_replayed_run_with_part_of_an_ip),
		TEST(test_replayed_runs_with_times_in_them),
		TEST(test_replayed_runs_with_a_deferred_tip),
		TEST(test_replayed_runs_with_mtcs_in_them),
		TEST(test_part_of_an_ip_behind_an_overflow),
		TEST(test_code_that_changes_under_a_call),
		TEST(test_code_that_is_mapped_later),
		TEST(test_a_second_thread_sees_the_code_of_its_time),
		cmocka_unit_test(test_many_branches_in_many_regions),
		cmocka_unit_test(test_the_taker_stops_many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
