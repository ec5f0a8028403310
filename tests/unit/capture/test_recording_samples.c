// SPDX-License-Identifier: MIT
/* A recording of samples: from the kernel's records, to a perf.data and back. */
#include "recording_dir_fixture.h"

#include <linux/perf_event.h>

#include "capture/recording/perf_data.h"
#include "capture/sample/sample_ring.h"

static void fill_samples(struct recording *rec)
{
	static const uint64_t ips[] = {0x401003, 0x402000, 0x403000};
	static const uint64_t kernel[] = {0xffffffff81000123, 0xffffffff81000456};
	static const struct rec_sched scheds[] = {
		{2000, 100, 101, 0, REC_SCHED_BLOCKED},
		{2500, 100, 101, 3, REC_SCHED_IN},
		{2600, 100, 102, 1, REC_SCHED_PREEMPTED},
	};
	static const struct mt_entry entry = {.start_ns = 1500,
					      .end_ns = 1700,
					      .tid = 101,
					      .tgid = 100,
					      .kind = MT_ENTRY_LEFT,
					      .returns_to = 0x402000,
					      .goid = 1ull << 40,
					      .ip = 0x401000};
	static const struct mt_sched by = {1600, 101, 100, 77, 70, MT_SCHED_WOKEN, 0, {"waker"}};

	static uint8_t stack[24] = {1, 2, 3, [23] = 9};
	static const struct rec_user user = {.bx = 11,
					     .bp = 12,
					     .sp = 13,
					     .ip = 0x401003,
					     .r12 = 15,
					     .r13 = 16,
					     .r14 = 17,
					     .r15 = 18,
					     .stack = stack,
					     .size = sizeof(stack)};

	for (uint32_t i = 0; i < 4; i++) {
		struct rec_sample sample = {.time_ns = 1000 + i,
					    .pid = 100,
					    .tid = (pid_t)(101 + i),
					    .cpu = (int)i,
					    .at_switch = i & 1,
					    .in_kernel = i & 2,
					    .n_ips = i};

		assert_int_equal(recording__add_sample(rec, &sample, ips), 0);
		/* Whether it has a user part or not. */
		if (sample.in_kernel || !i)
			assert_int_equal(recording__add_sample_kernel(rec, kernel, 1 + (i & 1)), 0);
	}
	/* The last one can be unwound. */
	assert_int_equal(recording__add_sample_user(rec, &user), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(VEC_ADD(&rec->scheds, scheds[i]), 0);
	assert_int_equal(VEC_ADD(&rec->entries, entry), 0);
	assert_int_equal(recording__add_sched_by(rec, &by), 0);
	assert_int_equal(recording__add_open_file(rec, 100, 5, "pipe:[812]"), 0);
	rec->knows_interrupts = true;
	/* What it was first stays. */
	assert_int_equal(recording__add_open_file(rec, 100, 5, "socket:[1]"), 0);
	for (uint32_t i = 0; i < 2; i++) {
		struct rec_sample fault = {.time_ns = 1500 + i,
					   .pid = 100,
					   .tid = 101,
					   .faults = i ? 1 : REC_FAULT_PERIOD,
					   .is_major = i,
					   .n_ips = 1};

		assert_int_equal(recording__add_sample(rec, &fault, ips), 0);
	}
	assert_int_equal(recording__add_sample(rec,
					       &(struct rec_sample){.time_ns = 1600,
								    .pid = 100,
								    .tid = 101,
								    .at_park = true,
								    .n_ips = 2},
					       ips),
			 0);
	rec->sample_period_ns = 100000;
}

static int set_up_sampled(void **state)
{
	struct fixture *f;

	set_up(state);
	f = *state;
	recording__fini(&f->rec);
	recording__fill(&f->rec, 0);
	fill_samples(&f->rec);
	return 0;
}

static void assert_same_samples(const struct recording *a, const struct recording *b)
{
	assert_int_equal(b->samples.n, a->samples.n);
	for (size_t i = 0; i < a->samples.n; i++) {
		const struct rec_sample *x = &a->samples.v[i], *y = &b->samples.v[i];

		assert_int_equal(y->time_ns, x->time_ns);
		assert_int_equal(y->pid, x->pid);
		assert_int_equal(y->tid, x->tid);
		assert_int_equal(y->cpu, x->cpu);
		assert_int_equal(y->at_switch, x->at_switch);
		assert_int_equal(y->at_park, x->at_park);
		assert_int_equal(y->in_kernel, x->in_kernel);
		assert_int_equal(y->faults, x->faults);
		assert_int_equal(y->is_major, x->is_major);
		assert_int_equal(!y->user, !x->user);
		/* What is unwound has no chain in the file. */
		assert_int_equal(y->n_ips, x->user ? 1 : x->n_ips);
		for (uint32_t j = 0; j < y->n_ips; j++)
			assert_int_equal(b->sample_ips.v[y->first_ip + j],
					 a->sample_ips.v[x->first_ip + j]);
		assert_int_equal(y->n_kernel, x->n_kernel);
		for (uint32_t j = 0; j < y->n_kernel; j++)
			assert_true(b->sample_ips.v[y->first_kernel + j] ==
				    a->sample_ips.v[x->first_kernel + j]);
	}
}

static void assert_same_user(const struct rec_user *a, const struct rec_user *b)
{
	assert_memory_equal(a, b, offsetof(struct rec_user, stack));
	assert_int_equal(a->size, b->size);
	assert_memory_equal(a->stack, b->stack, a->size);
}

static void test_what_is_written_is_read(void **state)
{
	struct fixture *f = *state;

	write_it(f);
	assert_int_equal(read_it(f), 0);
	assert_string_equal(f->said.text, "");
	assert_true(recording__is_sampled(&f->back));
	assert_same_samples(&f->rec, &f->back);
	assert_int_equal(f->back.sample_users.n, 1);
	assert_same_user(&f->rec.sample_users.v[0], &f->back.sample_users.v[0]);
	assert_true(f->back.knows_interrupts);
	assert_int_equal(f->back.open_files.n, 1);
	assert_string_equal(recording__find_open_file(&f->back, 100, 5), "pipe:[812]");
	assert_null(recording__find_open_file(&f->back, 101, 5));
	assert_int_equal(f->back.sample_period_ns, 100000);
	assert_int_equal(f->back.scheds.n, 3);
	for (size_t i = 0; i < 3; i++)
		assert_memory_equal(&f->back.scheds.v[i], &f->rec.scheds.v[i],
				    sizeof(struct rec_sched));
	assert_int_equal(f->back.entries.n, 1);
	assert_memory_equal(&f->back.entries.v[0], &f->rec.entries.v[0], sizeof(struct mt_entry));
	assert_int_equal(f->back.sched_bys.n, 1);
	assert_memory_equal(&f->back.sched_bys.v[0], &f->rec.sched_bys.v[0],
			    sizeof(struct mt_sched));
	assert_int_equal(f->back.hits.n, f->rec.hits.n);
	assert_memory_equal(f->back.hits.v, f->rec.hits.v, 4 * sizeof(struct mt_hit));
	assert_int_equal(f->back.maps.n, f->rec.maps.n);
}

/* Whatever byte is broken: a refusal or a recording, never a crash (the sanitizers look on). */
static void test_damage(void **state)
{
	struct fixture *f = *state;
	char *data = NULL;
	const char *why;
	size_t size;
	FILE *out = open_memstream(&data, &size);

	perf_data__write(&f->rec, out);
	fclose(out);
	for (size_t i = 104; i < size; i++) {
		for (int bit = 0; bit < 8; bit += 7) {
			struct recording back;

			data[i] ^= (char)(1 << bit);
			recording__init(&back);
			perf_data__read(&back, (uint8_t *)data, size, &why);
			recording__fini(&back);
			data[i] ^= (char)(1 << bit);
		}
	}
	free(data);
}

/* As the kernel writes it. */
struct kernel_sample {
	struct perf_event_header header;
	uint64_t identifier, ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t n_ips, ips[4];
};

static void test_a_sample_of_the_kernel(void **state)
{
	struct sample_record_ids ids = {
		.switches = 8, .minor_faults = 9, .major_faults = 10, .until_ns = 700};
	struct kernel_sample r = {.header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL,
					     sizeof(struct kernel_sample)},
				  .identifier = 7,
				  .ip = 0xffffffff81000000,
				  .pid = 100,
				  .tid = 101,
				  .time_ns = 700,
				  .cpu = 3,
				  .n_ips = 3,
				  .ips = {(uint64_t)PERF_CONTEXT_USER, 0x401000, 0x402000}};
	struct recording rec;
	const struct rec_sample *s;

	recording__init(&rec);
	assert_int_equal(sample_record__add(&ids, &rec, &r, sizeof(r)), 0);
	r.identifier = 8;
	/* More than there is. */
	r.n_ips = 1000;
	assert_int_equal(sample_record__add(&ids, &rec, &r, sizeof(r)), 0);
	r.identifier = 9;
	assert_int_equal(sample_record__add(&ids, &rec, &r, sizeof(r)), 0);
	r.identifier = 10;
	assert_int_equal(sample_record__add(&ids, &rec, &r, sizeof(r)), 0);
	r.time_ns = 701;
	assert_int_equal(sample_record__add(&ids, &rec, &r, sizeof(r)), 0);
	assert_int_equal(rec.samples.n, 4);
	assert_int_equal(ids.late, 1);
	s = rec.samples.v;
	assert_int_equal(s[0].n_ips, 2);
	assert_int_equal(rec.sample_ips.v[s[0].first_ip], 0x401000);
	assert_int_equal(rec.sample_ips.v[s[0].first_ip + 1], 0x402000);
	assert_int_equal(s[0].tid, 101);
	assert_int_equal(s[0].cpu, 3);
	assert_true(s[0].in_kernel && !s[0].at_switch);
	assert_true(s[1].at_switch);
	assert_int_equal(s[1].n_ips, 3);
	assert_int_equal(s[0].faults, 0);
	assert_true(s[2].faults == REC_FAULT_PERIOD && !s[2].is_major);
	assert_true(s[3].faults == 1 && s[3].is_major);
	recording__fini(&rec);
}

/* With registers and a copy of the stack behind the chain. */
static void test_a_copy_of_the_stack(void **state)
{
	struct {
		struct kernel_sample sample;
		uint64_t abi, bx, bp, sp, ip, r12, r13, r14, r15;
		uint64_t room, stack[4], valid;
	} r = {.sample = {.header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, sizeof(r)},
			  .pid = 100,
			  .tid = 101,
			  .time_ns = 1,
			  .n_ips = 4,
			  .ips = {(uint64_t)PERF_CONTEXT_USER, 0x401000, 0x402000, 0x403000}},
	       .abi = PERF_SAMPLE_REGS_ABI_64,
	       .bx = 1,
	       .bp = 2,
	       .sp = 3,
	       .ip = 0x401000,
	       .r12 = 5,
	       .r13 = 6,
	       .r14 = 7,
	       .r15 = 8,
	       .room = 32,
	       .stack = {21, 22, 23, 24},
	       .valid = 24};
	struct rec_user user = {.bx = 1,
				.bp = 2,
				.sp = 3,
				.ip = 0x401000,
				.r12 = 5,
				.r13 = 6,
				.r14 = 7,
				.r15 = 8,
				.stack = (uint8_t *)r.stack,
				.size = 24};
	struct sample_record_ids ids = {0};
	struct recording rec;

	recording__init(&rec);
	assert_int_equal(sample_record__add(&ids, &rec, &r, sizeof(r)), 0);
	assert_int_equal(rec.samples.v[0].user, 1);
	assert_same_user(&rec.sample_users.v[0], &user);
	/* None of it, cut short, and longer than what is there. */
	assert_int_equal(sample_record__add(&ids, &rec, &r, sizeof(r.sample)), 0);
	assert_int_equal(sample_record__add(&ids, &rec, &r, sizeof(r) - 16), 0);
	r.room = 1u << 20;
	assert_int_equal(sample_record__add(&ids, &rec, &r, sizeof(r)), 0);
	r.room = 32;
	r.sample.n_ips = 1u << 30;
	assert_int_equal(sample_record__add(&ids, &rec, &r, sizeof(r)), 0);
	assert_int_equal(rec.samples.n, 5);
	assert_int_equal(rec.sample_users.n, 1);
	recording__fini(&rec);
}

static void test_a_switch_of_the_kernel(void **state)
{
	static const struct {
		uint16_t misc;
		enum rec_sched_what what;
	} switches[] = {
		{0, REC_SCHED_IN},
		{PERF_RECORD_MISC_SWITCH_OUT, REC_SCHED_BLOCKED},
		{PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
		 REC_SCHED_PREEMPTED},
	};
	struct sample_record_ids ids = {.until_ns = 50};
	struct recording rec;

	recording__init(&rec);
	for (size_t i = 0; i < 3; i++) {
		struct {
			struct perf_event_header header;
			uint32_t pid, tid;
			uint64_t time_ns;
			uint32_t cpu, reserved;
			uint64_t identifier;
		} r = {.header = {PERF_RECORD_SWITCH, switches[i].misc, sizeof(r)},
		       .pid = 100,
		       .tid = 101,
		       .time_ns = 10 + i};

		assert_int_equal(sample_record__add(&ids, &rec, &r, sizeof(r)), 0);
		assert_int_equal(rec.scheds.v[i].what, switches[i].what);
		assert_int_equal(rec.scheds.v[i].time_ns, 10 + i);
		/* After the freeze, and cut. */
		r.time_ns = 51;
		assert_int_equal(sample_record__add(&ids, &rec, &r, sizeof(r)), 0);
		assert_int_equal(sample_record__add(&ids, &rec, &r, sizeof(r) - 8), 0);
	}
	assert_int_equal(rec.scheds.n, 3);
	recording__fini(&rec);
}

static void test_rates(void **state)
{
	assert_int_equal(sample_rate__allowed(10000, 100000), 10000);
	assert_int_equal(sample_rate__allowed(10000, 2500), 2500);
	assert_int_equal(sample_rate__allowed(10000, 0), 10000);
	assert_int_equal(sample_rate__allowed(10000000, 0), SAMPLE_RATE_HIGHEST);
}

#define SAMPLED(name) cmocka_unit_test_setup_teardown(name, set_up_sampled, tear_down)

/* A target that never ran for a period: what is made of its switches is the same behind reading. */
static void test_the_period_is_known_without_a_sample_by_the_clock(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < f->rec.samples.n; i++)
		f->rec.samples.v[i].at_switch = !f->rec.samples.v[i].faults;
	write_it(f);
	assert_int_equal(read_it(f), 0);
	assert_int_equal(f->back.samples.n, f->rec.samples.n);
	assert_int_equal(f->back.sample_period_ns, 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAMPLED(test_what_is_written_is_read),
		SAMPLED(test_the_period_is_known_without_a_sample_by_the_clock),
		SAMPLED(test_damage),
		cmocka_unit_test(test_a_sample_of_the_kernel),
		cmocka_unit_test(test_a_copy_of_the_stack),
		cmocka_unit_test(test_a_switch_of_the_kernel),
		cmocka_unit_test(test_rates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
