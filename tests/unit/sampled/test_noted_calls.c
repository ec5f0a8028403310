// SPDX-License-Identifier: MIT
/* Stacks of calls that the CPU has noted: from the kernel's records to a tree. */
#include "sampled_fixture.h"

#include <linux/perf_event.h>

#include "capture/sample/sample_ring.h"
#include "sampled/sample_stack.h"

#define CLOCK  7
#define SWITCH 8

/* What is made into a record as the kernel writes it (include/uapi/linux/perf_event.h). */
struct made {
	uint64_t identifier, time_ns;
	uint64_t n_ips, ips[4];
	uint64_t n_calls; /* as it says */
	struct perf_branch_entry calls[2];
	uint64_t behind[6]; /* them, up to the first 0 */
	size_t cut;	    /* bytes that are missing at its end */
};

static struct made made(void)
{
	return (struct made){
		.identifier = CLOCK,
		.time_ns = 1000,
		.n_ips = 2,
		.ips = {(uint64_t)PERF_CONTEXT_USER, FIND + 4},
		.n_calls = 2,
		.calls = {{.from = ITER + 0x20, .to = FIND}, {.from = MAIN + 0x10, .to = ITER}}};
}

static size_t append(uint8_t *record, size_t at, const void *bytes, size_t n)
{
	memcpy(record + at, bytes, n);
	return at + n;
}

static void add(struct fixture *f, const struct made *m)
{
	struct sample_record_ids ids = {.switches = SWITCH, .calls = CLOCK};
	uint32_t who[] = {PID, TID}, cpu[] = {0, 0};
	uint64_t first[] = {m->identifier, FIND + 4};
	uint8_t record[256] __attribute__((aligned(8)));
	size_t chain = m->n_ips < 4 ? m->n_ips : 4;
	size_t at = append(record, sizeof(struct perf_event_header), first, sizeof(first));

	at = append(record, at, who, sizeof(who));
	at = append(record, at, &m->time_ns, sizeof(m->time_ns));
	at = append(record, at, cpu, sizeof(cpu));
	at = append(record, at, &m->n_ips, sizeof(m->n_ips));
	at = append(record, at, m->ips, chain * sizeof(m->ips[0]));
	if (m->identifier == CLOCK) {
		at = append(record, at, &m->n_calls, sizeof(m->n_calls));
		at = append(record, at, m->calls, sizeof(m->calls));
		for (size_t i = 0; m->behind[i]; i++)
			at = append(record, at, &m->behind[i], sizeof(m->behind[i]));
	}
	at -= m->cut;
	append(record, 0,
	       &(struct perf_event_header){PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, (uint16_t)at},
	       sizeof(struct perf_event_header));
	assert_int_equal(sample_record__add(&ids, &f->rec, record, at), 0);
}

static void put_code(struct fixture *f, uint64_t ip, const void *code, size_t len)
{
	for (size_t i = 0; i < f->rec.images.n; i++) {
		struct rec_image *image = &f->rec.images.v[i];

		if (ip >= image->start && ip + len <= image->start + image->size)
			memcpy((uint8_t *)image->data + (ip - image->start), code, len);
	}
}

/* MAIN calls ITER directly, five bytes; ITER calls FIND through a register, two. */
static void put_calls(struct fixture *f)
{
	put_code(f, MAIN + 0x10, "\xe8\x00\x00\x00\x00", 5);
	put_code(f, ITER + 0x20, "\xff\xd0", 2);
}

static void settle(struct fixture *f)
{
	struct images *images = images__new(&f->rec);

	assert_int_equal(settle_calls(&f->rec, images), 0);
	images__free(images);
}

static void expect_ips(const struct fixture *f, size_t i, const uint64_t *ips)
{
	const struct rec_sample *s = &f->rec.samples.v[i];

	for (uint32_t j = 0; j < s->n_ips || ips[j]; j++)
		assert_int_equal(j < s->n_ips ? f->rec.sample_ips.v[s->first_ip + j] : 0, ips[j]);
}

#define EXPECT_IPS(f, i, ...) expect_ips(f, i, (const uint64_t[]){__VA_ARGS__, 0})

/* There are no frame pointers. */
static void test_calls_are_callers(void **state)
{
	struct fixture *f = *state;
	struct made r = made();

	put_calls(f);
	add(f, &r);
	EXPECT_IPS(f, 0, FIND + 4, ITER + 0x20, MAIN + 0x10);
	assert_int_equal(f->rec.samples.v[0].n_calls, 2);
	settle(f);
	EXPECT_IPS(f, 0, FIND + 4, ITER + 0x22, MAIN + 0x15);
	assert_int_equal(f->rec.samples.v[0].n_calls, 0);
	/* Once only: behind a call there may be another one. */
	put_code(f, ITER + 0x22, "\xff\xd0", 2);
	settle(f);
	EXPECT_IPS(f, 0, FIND + 4, ITER + 0x22, MAIN + 0x15);
}

/* A stack is the same whichever way its callers were found. */
static void test_trees_are_one(void **state)
{
	struct fixture *f = *state;
	struct made r = made();

	put_calls(f);
	add(f, &r);
	r.time_ns = 1100;
	r.identifier = SWITCH;
	r.n_ips = 4;
	memcpy(&r.ips[1], (const uint64_t[]){FIND + 8, ITER + 0x22, MAIN + 0x15}, 24);
	add(f, &r);
	settle(f);
	make_trees(f, 1);
	assert_int_equal(f->trees[0].calls.n, 3);
	assert_int_equal(f->trees[0].calls.v[2].depth, 2);
}

/* Where the CPU has room for fewer than there are, frame pointers go on. */
static void test_the_rest_by_frame_pointers(void **state)
{
	struct fixture *f = *state;
	struct made r = made();

	put_calls(f);
	r.n_ips = 4;
	/* FIND has no frame pointer: its caller is missing in the chain. */
	memcpy(&r.ips[1], (const uint64_t[]){FIND + 4, MAIN + 0x15, MAIN + 0x80}, 24);
	add(f, &r);
	settle(f);
	EXPECT_IPS(f, 0, FIND + 4, ITER + 0x22, MAIN + 0x15, MAIN + 0x80);
	/* Where the two do not meet, the CPU is right. */
	r.ips[2] = MAIN + 0x60;
	add(f, &r);
	settle(f);
	EXPECT_IPS(f, 1, FIND + 4, ITER + 0x22, MAIN + 0x15);
}

static void test_none_noted(void **state)
{
	struct fixture *f = *state;
	struct made r = made();

	r.n_ips = 3;
	r.ips[2] = ITER + 0x22;
	r.n_calls = 0;
	add(f, &r);
	EXPECT_IPS(f, 0, FIND + 4, ITER + 0x22);
	/* From the kernel, or nowhere: the first that is none ends it. */
	r.n_calls = 2;
	r.calls[0].from = 0xffffffff81000000;
	add(f, &r);
	EXPECT_IPS(f, 1, FIND + 4, ITER + 0x22);
	r.calls[0].from = ITER + 0x20;
	r.calls[1].from = 0;
	add(f, &r);
	assert_int_equal(f->rec.samples.v[2].n_calls, 1);
	EXPECT_IPS(f, 2, FIND + 4, ITER + 0x20);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(f->rec.samples.v[i].user, 0);
}

/* Two calls look like the registers of a copied stack: what stands behind them is none. */
static void test_no_stack_behind_them(void **state)
{
	struct fixture *f = *state;
	struct made r = made();

	/* Two registers, a copy of eight bytes, and how many of these are good. */
	memcpy(r.behind, (const uint64_t[]){14, 15, 8, 0x1234, 8}, 40);
	add(f, &r);
	assert_int_equal(f->rec.samples.v[0].n_calls, 2);
	assert_int_equal(f->rec.samples.v[0].user, 0);
	assert_int_equal(f->rec.sample_users.n, 0);
}

/* Whatever the record says of its own size. */
static void test_cut_short(void **state)
{
	struct fixture *f = *state;
	struct made r = made();

	/* As a size it would wrap around. */
	r.n_calls = UINT64_MAX / sizeof(r.calls[0]) + 2;
	add(f, &r);
	r.n_calls = 2;
	r.cut = sizeof(r.calls[0]);
	add(f, &r);
	r.cut = sizeof(r.calls) + 4;
	add(f, &r);
	r.n_ips = 1u << 30;
	add(f, &r);
	assert_int_equal(f->rec.samples.n, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(f->rec.samples.v[i].n_calls, 0);
}

/* Code that nobody knows, or that is no call: still within the call. */
static void test_unknown_code(void **state)
{
	struct fixture *f = *state;
	struct made r = made();

	r.calls[1].from = 0x7000000;
	add(f, &r);
	settle(f);
	EXPECT_IPS(f, 0, FIND + 4, ITER + 0x21, 0x7000001);
}

static void test_room(void **state)
{
	const struct perf_branch_entry calls[] = {{.from = 0x100}, {.from = 0x200}};
	uint64_t ips[4] = {1, 0x205, 0x300, 0x400};
	uint32_t n_calls;

	assert_int_equal(noted_calls__join(calls, 2, ips, 4, 4, &n_calls), 4);
	assert_memory_equal(ips, ((uint64_t[]){1, 0x100, 0x200, 0x300}), sizeof(ips));
	assert_int_equal(n_calls, 2);
	assert_int_equal(noted_calls__join(calls, 2, ips, 2, 2, &n_calls), 2);
	assert_int_equal(n_calls, 0);
	/* Kernel code only: whose calls they are is not known. */
	assert_int_equal(noted_calls__join(calls, 2, ips, 0, 4, &n_calls), 0);
	assert_int_equal(n_calls, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_calls_are_callers),
		TEST(test_trees_are_one),
		TEST(test_the_rest_by_frame_pointers),
		TEST(test_none_noted),
		TEST(test_no_stack_behind_them),
		TEST(test_cut_short),
		TEST(test_unknown_code),
		TEST(test_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
