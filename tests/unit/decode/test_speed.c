// SPDX-License-Identifier: MIT
/* How fast CPUs ran, and how much a thread did in which time. */
#include "packets_fixture.h"

#include "decode/pt_time.h"

/* A TSC of 2 GHz; the CPU's ratio is to 20. */
#define NOM_FREQ 20

static void put_ratio(struct traced *t, uint64_t tsc, uint8_t ratio)
{
	uint8_t p[PT_PACKET_MAX];

	put(t, p, pt_packet__psb(p));
	put_tsc(t, tsc);
	put(t, p, pt_packet__cbr(p, ratio));
	put(t, p, pt_packet__psbend(p));
}

static void put_padding(struct traced *t, unsigned int n)
{
	static const uint8_t pads[1024];

	for (; n; n--)
		put(t, pads, sizeof(pads));
}

static void read_rates(struct clock_rates *rates, struct traced *t)
{
	struct rec_aux aux = {.tsc = t->now, .data = t->out.bytes.v, .size = t->out.bytes.n};

	*rates = (struct clock_rates){0};
	assert_int_equal(clock_rates__add(rates, &t->rec, &aux), 0);
}

static void prepare(struct traced *t)
{
	traced__init(t, NO_PSB, NO_TSC, false);
	t->out.bytes.n = 0;
	t->rec.pt = (struct rec_pt_config){.time_mult = 1, .time_shift = 1, .nom_freq = NOM_FREQ};
}

static void test_rates_are_noted_where_they_change(void **state)
{
	static const struct clock_rate expected[] = {{5000, 3500}, {15000, 800}};
	struct clock_rates rates;
	struct traced t;

	prepare(&t);
	for (unsigned int i = 1; i <= 4; i++) {
		put_ratio(&t, i * 10000, i < 3 ? 35 : 8);
		put_padding(&t, 17);
	}
	read_rates(&rates, &t);
	assert_int_equal(rates.all.n, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(rates.all.v[i].time_ns, expected[i].time_ns);
		assert_int_equal(rates.all.v[i].mhz, expected[i].mhz);
	}
	assert_int_equal(clock_rates__at(&rates, 0), 3500);
	assert_int_equal(clock_rates__at(&rates, 14999), 3500);
	assert_int_equal(clock_rates__at(&rates, 15000), 800);
	assert_int_equal(clock_rates__at(&rates, UINT64_MAX), 800);
	VEC_FINI(&rates.all);
	traced__fini(&t);
}

static void test_a_ratio_of_nobody_knows_what(void **state)
{
	struct clock_rates rates;
	struct traced t;

	prepare(&t);
	put_ratio(&t, 10000, 35);
	t.rec.pt.nom_freq = 0;
	read_rates(&rates, &t);
	assert_int_equal(rates.all.n, 0);
	assert_int_equal(clock_rates__at(&rates, 10000), 0);
	traced__fini(&t);
}

static void test_a_speed_among_branches(void **state)
{
	const struct speed speed = {.begin_ns = 1,
				    .end_ns = UINT64_MAX,
				    .traced_ns = UINT64_MAX - 1,
				    .insns = 0xfedcba9876543210,
				    .cpu = 7};
	struct branch entry = speed__entry(&speed);
	struct speed back = branch__speed(&entry);

	assert_true(branch__is_entry(&entry));
	assert_int_equal(back.begin_ns, speed.begin_ns);
	assert_int_equal(back.end_ns, speed.end_ns);
	assert_int_equal(back.traced_ns, speed.traced_ns);
	assert_int_equal(back.insns, speed.insns);
	assert_int_equal(back.cpu, speed.cpu);
}

struct speeds {
	VEC(struct speed) list;
};

static int take_speeds(void *ctx, struct branch *v, size_t n)
{
	struct speeds *speeds = ctx;

	for (size_t i = 0; i < n; i++)
		if (v[i].kind == ENTRY_SPEED)
			assert_int_equal(VEC_ADD(&speeds->list, branch__speed(&v[i])), 0);
	return 0;
}

/* What ran in the kernel took time, and is no part of what was traced. */
static void test_time_in_the_kernel_is_not_the_thread_s(void **state)
{
	struct decode_totals totals = {0};
	struct speeds speeds = {0};
	struct code_map *map = code_map__new();
	struct traced t;
	struct rec_aux aux;
	struct images *images;

	traced__init(&t, NO_PSB, 1, false);
	traced__enable(&t, 0);
	t.now += SPEED_MIN_NS;
	traced__call(&t, 1, 0x00, F);
	traced__ret(&t, 3, F + 2, 0x05);
	traced__async(&t, 0, 0x05);
	t.now += 5 * SPEED_MIN_NS;
	traced__enable(&t, 0x05);
	traced__call_indirect(&t, 2, 0x08, G);
	aux = (struct rec_aux){.pid = PID,
			       .tid = TID,
			       .cpu = 3,
			       .tsc = t.now,
			       .data = t.out.bytes.v,
			       .size = t.out.bytes.n};
	images = images__new(&t.rec);
	assert_int_equal(decode__run(&(struct decode_request){.rec = &t.rec,
							      .aux = &aux,
							      .images = images,
							      .map = map,
							      .take = take_speeds,
							      .ctx = &speeds,
							      .totals = &totals,
							      .jobs = 1}),
			 0);
	assert_int_equal(speeds.list.n, 1);
	assert_in_range(speeds.list.v[0].end_ns - speeds.list.v[0].begin_ns, 6 * SPEED_MIN_NS,
			6 * SPEED_MIN_NS + 100);
	assert_in_range(speeds.list.v[0].traced_ns, SPEED_MIN_NS, SPEED_MIN_NS + 100);
	assert_int_equal(speeds.list.v[0].insns, totals.insns);
	assert_int_equal(totals.insns, 6);
	assert_int_equal(speeds.list.v[0].cpu, 3);
	VEC_FINI(&speeds.list);
	images__free(images);
	code_map__free(map);
	traced__fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates_are_noted_where_they_change),
		cmocka_unit_test(test_a_ratio_of_nobody_knows_what),
		cmocka_unit_test(test_a_speed_among_branches),
		cmocka_unit_test(test_time_in_the_kernel_is_not_the_thread_s),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
