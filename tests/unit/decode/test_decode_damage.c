// SPDX-License-Identifier: MIT
/* Streams that are cut, overflowed, overwritten, or of code that is not there. */
#include "decode_fixture.h"

/*
 * The branches of `part`, but for a BEGIN where it starts, end the list `whole`. What starts at a
 * PSB has the time of that, while the whole may have an older one.
 */
static void assert_suffix(const struct branches *whole, const struct branches *part)
{
	size_t skip = part->list.n && part->list.v[0].kind == BRANCH_BEGIN;
	size_t n = part->list.n - skip;

	assert_true(n <= whole->list.n);
	for (size_t i = 0; i < n; i++) {
		struct branch a = whole->list.v[whole->list.n - n + i];
		const struct branch *b = &part->list.v[skip + i];

		/* Of the first, the instructions before the cut are not known. */
		if (i == 0)
			a.n_insns = b->n_insns;
		if (!same_branch(&a, b) || b->time_ns < a.time_ns ||
		    (a.kind >= BRANCH_BEGIN && a.time_ns != b->time_ns)) {
			print_branch("whole", &a);
			print_branch("part", b);
			fail();
		}
	}
}

static size_t first_psb(const struct pt_bytes *stream, size_t from)
{
	static const uint8_t psb[16] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
					2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};

	for (size_t i = from; i + sizeof(psb) <= stream->bytes.n; i++)
		if (!memcmp(stream->bytes.v + i, psb, sizeof(psb)))
			return i;
	return stream->bytes.n;
}

static uint64_t count_gaps(const struct traced *t)
{
	uint64_t n = 0;

	for (int i = 0; i < GAP_REASONS; i++)
		n += t->totals.gaps[i];
	return n;
}

static void check_every_cut(uint32_t psb_period, uint64_t tsc_interval, bool compress)
{
	struct branches whole = {0};
	struct traced t;
	size_t before = 0;

	traced__init(&t, psb_period, tsc_interval, compress);
	traced__run(&t, 25);
	traced__decode(&t);
	whole = t.seen;
	t.seen = (struct branches){0};
	for (size_t cut = 0; cut <= t.out.bytes.n; cut++) {
		traced__decode_bytes(&t, t.out.bytes.v + cut, t.out.bytes.n - cut);
		assert_int_equal(count_gaps(&t), 0);
		assert_suffix(&whole, &t.seen);
		/* Nothing of what stands behind the first PSB is lost. */
		if (cut && first_psb(&t.out, cut) == first_psb(&t.out, cut - 1))
			assert_int_equal(t.seen.list.n, before);
		if (first_psb(&t.out, cut) < t.out.bytes.n)
			assert_true(t.seen.list.n > 0);
		before = t.seen.list.n;
	}
	VEC_FINI(&whole.list);
	traced__fini(&t);
}

static void test_a_ring_that_wrapped_anywhere(void **state)
{
	check_every_cut(60, 25, true);
	check_every_cut(60, 0, true);
	check_every_cut(77, NO_TSC, true);
	check_every_cut(77, 25, false);
}

/* An interrupt right behind the PSB: the thread was there, and ran nothing. */
static void test_a_stream_that_begins_where_it_was_left(void **state)
{
	struct traced t;
	size_t psb;

	traced__init(&t, 60, NO_TSC, true);
	traced__enable(&t, 8);
	while (first_psb(&t.out, 1) == t.out.bytes.n)
		traced__jump_indirect(&t, 0, 8, 8);
	t.taken.list.n = 0;
	psb = first_psb(&t.out, 1);
	traced__expect(&t, BRANCH_BEGIN, 0, 0, 8, 0);
	traced__async(&t, 0, 8);
	traced__enable(&t, 8);
	traced__call_indirect(&t, 1, 8, G);
	traced__async(&t, 0, G);
	traced__decode_bytes(&t, t.out.bytes.v + psb, t.out.bytes.n - psb);
	assert_decoded(&t);
	traced__fini(&t);
}

/* A cut end: what was decoded is right, and nothing is made up. */
static void test_a_stream_that_ends_anywhere(void **state)
{
	struct traced t;

	traced__init(&t, 60, 25, true);
	traced__run(&t, 12);
	for (size_t end = 0; end < t.out.bytes.n; end++) {
		traced__decode_bytes(&t, t.out.bytes.v, end);
		assert_int_equal(count_gaps(&t), 0);
		for (size_t i = 0; i < t.seen.list.n; i++) {
			const struct branch *b = &t.seen.list.v[i];

			if (i + 1 == t.seen.list.n && b->kind == BRANCH_END)
				break;
			if (!same_branch(&t.taken.list.v[i], b)) {
				print_branch("taken", &t.taken.list.v[i]);
				print_branch("decoded", b);
				fail();
			}
		}
	}
	traced__fini(&t);
}

/* The thread came to the branch of the TIP that is cut, through the call before it. */
static void test_a_stream_that_ends_within_a_tip(void **state)
{
	struct traced t;
	size_t whole;

	traced__init(&t, NO_PSB, 1, false);
	traced__enable(&t, 0);
	traced__call(&t, 1, 0, F);
	whole = t.out.bytes.n;
	traced__ret(&t, 3, F + 2, 5);
	traced__decode_bytes(&t, t.out.bytes.v, t.out.bytes.n - 1);
	assert_int_equal(count_gaps(&t), 0);
	assert_int_equal(t.seen.list.n, 3);
	assert_true(same_branch(&t.taken.list.v[1], &t.seen.list.v[1]));
	assert_int_equal(t.seen.list.v[2].kind, BRANCH_END);
	assert_int_equal(t.seen.list.v[2].from, BASE + F + 2);
	/* Nothing tells that the call happened. */
	traced__decode_bytes(&t, t.out.bytes.v, whole);
	assert_int_equal(t.seen.list.n, 2);
	assert_int_equal(t.seen.list.v[1].from, BASE);
	traced__fini(&t);
}

static void expect_gap(struct traced *t, enum gap_reason reason, uint64_t from, uint32_t n_insns)
{
	struct branch *b = VEC_PUSH(&t->taken.list);

	*b = (struct branch){
		.from = from, .n_insns = n_insns, .kind = BRANCH_GAP, .reason = (uint8_t)reason};
}

static void test_an_overflow_is_a_gap(void **state)
{
	struct traced t;
	uint64_t before;

	traced__init(&t, NO_PSB, 1, true);
	traced__enable(&t, 0);
	traced__call(&t, 1, 0, F);
	traced__ret(&t, 3, F + 2, 5);
	traced__call_indirect(&t, 2, 8, G);
	before = t.now;
	/* Held back, and lost. */
	pt_stream__cond(&t.stream, true, BASE + G + 3);
	expect_gap(&t, GAP_OVERFLOW, 0, 0);
	t.now += 1000;
	pt_stream__time(&t.stream, t.now);
	pt_stream__overflow(&t.stream, BASE + 5);
	traced__expect(&t, BRANCH_BEGIN, 0, 0, 5, 0);
	traced__call_indirect(&t, 2, 8, G);
	traced__async(&t, 0, G);
	traced__decode(&t);
	assert_decoded(&t);
	assert_int_equal(t.totals.gaps[GAP_OVERFLOW], 1);
	/* The gap lasts from the last that is known to where tracing goes on. */
	assert_int_equal(t.seen.list.v[4].time_ns, before);
	assert_int_equal(t.seen.list.v[5].time_ns, t.taken.list.v[5].time_ns);
	assert_int_equal(t.totals.gap_ns[GAP_OVERFLOW], t.taken.list.v[5].time_ns - before);
	traced__fini(&t);
}

static void test_overflow_while_out_of_user_code(void **state)
{
	struct traced t;
	uint8_t ovf[PT_PACKET_MAX];

	traced__init(&t, NO_PSB, 1, true);
	traced__enable(&t, 0x20);
	traced__syscall(&t, 1, 0x20);
	pt_bytes__emit(&t.out, ovf, pt_packet__ovf(ovf));
	t.stream.last_ip_known = false;
	expect_gap(&t, GAP_OVERFLOW, 0, 0);
	traced__enable(&t, 5);
	traced__call_indirect(&t, 2, 8, G);
	traced__async(&t, 0, G);
	traced__decode(&t);
	assert_decoded(&t);
	assert_int_equal(t.seen.list.v[3].time_ns, t.taken.list.v[3].time_ns);
	traced__fini(&t);
}

static void test_unmapped_code_is_a_gap(void **state)
{
	struct traced t;

	traced__init(&t, 60, 1, true);
	traced__enable(&t, 0);
	traced__call(&t, 1, 0, F);
	traced__ret(&t, 3, F + 2, 5);
	/* To code that nobody has. */
	traced__tick(&t);
	pt_stream__jump_indirect(&t.stream, 0x7f0000000000);
	traced__async(&t, 0, 0x500000);
	traced__run(&t, 3);
	traced__decode(&t);
	assert_int_equal(t.totals.gaps[GAP_UNMAPPED], 1);
	assert_int_equal(count_gaps(&t), 1);
	assert_true(t.seen.list.n > 10);
	for (size_t i = 1; i <= 5; i++)
		assert_true(same_branch(&t.taken.list.v[t.taken.list.n - i],
					&t.seen.list.v[t.seen.list.n - i]));
	traced__fini(&t);
}

static bool is_flow(const struct branch *b)
{
	return b->kind != BRANCH_GAP && b->kind != BRANCH_BEGIN;
}

/* Nothing but what was taken, in its order. Of the first behind a gap not all that ran is known. */
static void assert_part(const struct branches *whole, const struct branches *part)
{
	size_t at = 0;

	for (size_t i = 0; i < part->list.n; i++) {
		const struct branch *b = &part->list.v[i], *a;

		if (!is_flow(b))
			continue;
		do {
			if (at == whole->list.n) {
				print_branch("not taken", b);
				fail();
			}
			a = &whole->list.v[at++];
		} while (a->kind != b->kind || a->from != b->from || a->to != b->to);
	}
}

/* What lies before a PSB overwritten from each byte on: decoding goes on there. */
static void test_garbage_costs_no_more_than_the_way_to_the_next_psb(void **state)
{
	static const uint8_t garbage[2] = {0x02, 0x0b};
	struct traced t;
	size_t last_psb = 0, gaps = 0;

	traced__init(&t, 60, 25, true);
	traced__run(&t, 25);
	for (size_t at = first_psb(&t.out, 0); at < t.out.bytes.n; at = first_psb(&t.out, at + 1))
		last_psb = at;
	for (size_t at = 16; at < last_psb; at++) {
		uint8_t *copy;
		size_t next = first_psb(&t.out, at);

		/* A wrong IP right before a PSB shows only behind it. */
		if (next - at < 3)
			continue;
		copy = malloc(t.out.bytes.n);
		memcpy(copy, t.out.bytes.v, t.out.bytes.n);
		/* Up to the PSB, so that nothing of it can pass for something else. */
		for (size_t i = at; i < next; i++)
			copy[i] = garbage[(i - at) % 2];
		traced__decode_bytes(&t, copy, t.out.bytes.n);
		free(copy);
		/* In the payload of a packet it may pass for a part of that. */
		if (count_gaps(&t) == 1 && t.totals.gaps[GAP_BAD_PACKET] == 1)
			gaps++;
		assert_true(t.seen.list.n > 0);
		assert_int_equal(t.seen.list.v[t.seen.list.n - 1].kind, BRANCH_END_ASYNC);
	}
	assert_true(gaps > last_psb / 2);
	traced__fini(&t);
}

/* Bad bytes that look like an IP: short IPs after them have the upper bytes of the IP before them.
 */
static void test_garbage_with_an_ip_of_its_own(void **state)
{
	static const uint8_t garbage[] = {0x05, 0x7d, 1, 2, 3, 4, 5, 6, 0x05};
	struct traced t;
	size_t before;

	traced__init(&t, NO_PSB, NO_TSC, true);
	traced__run(&t, 5);
	before = t.taken.list.n;
	pt_bytes__emit(&t.out, garbage, sizeof(garbage));
	traced__run(&t, 20);
	traced__decode(&t);
	assert_part(&t.taken, &t.seen);
	assert_int_equal(t.totals.gaps[GAP_BAD_PACKET], 1);
	assert_int_equal(count_gaps(&t), 1);
	assert_true(t.seen.list.n > before + (t.taken.list.n - before) * 3 / 4);
	traced__fini(&t);
}

/* A damaged PSB+ is not the end of the trace: there are more behind it. */
static void test_garbage_within_a_psb(void **state)
{
	struct branches whole = {0};
	struct traced t;
	size_t psb;

	traced__init(&t, 60, 25, true);
	traced__run(&t, 25);
	traced__decode(&t);
	whole = t.seen;
	t.seen = (struct branches){0};
	psb = first_psb(&t.out, 1);
	memcpy(t.out.bytes.v + psb + 16, "\x02\x0b\x02\x0b\x02\x0b\x02\x0b", 8);
	traced__decode(&t);
	assert_part(&whole, &t.seen);
	assert_in_range(count_gaps(&t), 1, 2);
	assert_true(t.seen.list.n > whole.list.n * 3 / 4);
	/* And so where it is the first of all. */
	memcpy(t.out.bytes.v + 16, "\x02\x0b\x02\x0b\x02\x0b\x02\x0b", 8);
	traced__decode(&t);
	assert_part(&whole, &t.seen);
	assert_in_range(count_gaps(&t), 1, 3);
	assert_int_equal(t.seen.list.v[t.seen.list.n - 1].kind, BRANCH_END_ASYNC);
	VEC_FINI(&whole.list);
	traced__fini(&t);
}

/* `jmp .` asks for no packet: nothing but a limit ends it. */
static void test_code_that_never_asks_for_a_packet(void **state)
{
	struct traced t;

	traced__init(&t, 60, 1, true);
	traced__enable(&t, SPIN);
	pt_stream__disable_async(&t.stream, BASE + F);
	traced__run(&t, 5);
	traced__decode(&t);
	assert_int_equal(t.totals.gaps[GAP_MISMATCH], 1);
	assert_int_equal(t.seen.list.v[t.seen.list.n - 1].kind, BRANCH_END_ASYNC);
	/* With no PSB behind it. */
	traced__fini(&t);
	traced__init(&t, NO_PSB, 1, true);
	traced__enable(&t, SPIN);
	pt_stream__disable(&t.stream);
	traced__decode(&t);
	assert_true(t.seen.list.n < TOO_MANY);
	traced__fini(&t);
}

/* Each end has its begin, and time does not run backwards. */
static void assert_sane(const struct branches *seen)
{
	bool tracing = false;
	uint64_t before = 0;

	for (size_t i = 0; i < seen->list.n; i++) {
		const struct branch *b = &seen->list.v[i];

		assert_true(b->time_ns >= before);
		before = b->time_ns;
		if (b->kind != BRANCH_BEGIN && b->kind != BRANCH_GAP && !tracing) {
			print_branch("not begun", b);
			fail();
		}
		tracing = b->kind < BRANCH_END_SYSCALL;
	}
}

static void mutate(uint8_t *bytes, size_t n, unsigned int *seed)
{
	size_t at = (size_t)rand_r(seed) % n, other = (size_t)rand_r(seed) % n;
	size_t len = 1 + (size_t)rand_r(seed) % 16;

	if (len > n - at)
		len = n - at;
	if (len > n - other)
		len = n - other;
	switch (rand_r(seed) % 4) {
	case 0:
		bytes[at] = (uint8_t)rand_r(seed);
		break;
	case 1:
		bytes[at] ^= (uint8_t)(1u << rand_r(seed) % 8);
		break;
	case 2:
		memmove(bytes + at, bytes + other, len);
		break;
	default:
		memset(bytes + at, rand_r(seed) % 2 ? 0 : 0xff, len);
		break;
	}
}

static void test_mutated_streams(void **state)
{
	unsigned int seed = 11;
	struct traced t;
	uint8_t *copy;

	traced__init(&t, 60, 25, true);
	traced__run(&t, 6);
	copy = malloc(t.out.bytes.n);
	for (int round = 0; round < 3000; round++) {
		memcpy(copy, t.out.bytes.v, t.out.bytes.n);
		for (int i = rand_r(&seed) % 4; i >= 0; i--)
			mutate(copy, t.out.bytes.n, &seed);
		traced__decode_bytes(&t, copy, t.out.bytes.n);
		assert_sane(&t.seen);
	}
	free(copy);
	traced__fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_ring_that_wrapped_anywhere),
		cmocka_unit_test(test_a_stream_that_begins_where_it_was_left),
		cmocka_unit_test(test_a_stream_that_ends_anywhere),
		cmocka_unit_test(test_a_stream_that_ends_within_a_tip),
		cmocka_unit_test(test_an_overflow_is_a_gap),
		cmocka_unit_test(test_overflow_while_out_of_user_code),
		cmocka_unit_test(test_unmapped_code_is_a_gap),
		cmocka_unit_test(test_garbage_costs_no_more_than_the_way_to_the_next_psb),
		cmocka_unit_test(test_garbage_with_an_ip_of_its_own),
		cmocka_unit_test(test_garbage_within_a_psb),
		cmocka_unit_test(test_code_that_never_asks_for_a_packet),
		cmocka_unit_test(test_mutated_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
